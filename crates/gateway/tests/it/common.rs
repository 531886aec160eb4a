//! Three nodes, a gateway in front of them, and a program that asks it.

mod browser;
mod http;
mod issuer;
mod sign;
mod signed;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::Right;
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_gateway::{Running as Gateway, make_access_key, make_token};
use polyclave_node::Running as Node;
use polyclave_node::local::{Local, create};
use serde_json::Value;

pub use browser::Browser;
pub use http::*;
pub use issuer::*;
pub use signed::{AccessKey, Unsigned};

/// How long a test waits for what happens by itself: much longer than it takes, since machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The key of the KMS.
pub const KMS_KEY: &str = "kubernetes";

/// What the gateway tokenizes, under the key `token-key`.
const TRANSFORM: &str = r#"
[[transform.role]]
name = "shop"
transformations = ["account", "card", "email", "ssn", "plate"]

[[transform.role]]
name = "accounts"
transformations = ["account"]

[[transform.transformation]]
name = "account"
key = "token-key"
template = "account"

[[transform.transformation]]
name = "card"
key = "token-key"
template = "builtin/creditcardnumber"
tweak_source = "internal"
keep_last = 3
luhn = true

[[transform.transformation]]
name = "email"
key = "token-key"
template = "builtin/email"
tweak_source = "internal"
tweak = "6d61696c"

[[transform.transformation]]
name = "ssn"
key = "token-key"
template = "builtin/socialsecuritynumber"

[[transform.transformation]]
name = "plate"
key = "token-key"
template = "plate"
tweak_source = "internal"

[[transform.template]]
name = "account"
pattern = "([0-9]+)"
alphabet = "builtin/numeric"

[[transform.template]]
name = "plate"
pattern = "[A-Z]{1,3}-([A-HJ-NPR-Z0-9]{4,8})"
alphabet = "plate"

[[transform.alphabet]]
name = "plate"
characters = "ABCDEFGHJKLMNPRSTUVWXYZ0123456789"
"#;

/// Nodes and a gateway, which are gone when dropped.
pub struct World {
    pub gateway: Option<Gateway>,
    pub nodes: Vec<Option<Node>>,
    pub local: Local,
    pub dir: tempfile::TempDir,
    /// The token that may do everything.
    pub root: String,
}

impl World {
    /// Starts three nodes, and the gateway once they are ready.
    pub fn start() -> World {
        World::start_with("")
    }

    /// The same with more lines in the gateway's file.
    pub fn start_with(more: &str) -> World {
        let mut world = World::define();
        world.root = world.write_settings(more);
        world.start_nodes();
        world.make_kms_key();
        world.make_ff1_key();
        world.start_gateway();
        world
    }

    /// Makes the files, and starts nothing.
    pub fn define() -> World {
        let _ = tracing_subscriber::fmt().with_ansi(false).with_writer(Collected::default).try_init();
        let dir = tempfile::tempdir().expect("a directory");
        let local = create(&dir.path().join("cluster"), "shamir", 3, 1).expect("a cluster");
        for node in &local.nodes {
            // Tests ask as the client of the gateway while it is busy.
            let mut node = NodeDir::open(node).expect("its directory");
            let mut settings = node.settings().clone();
            settings.limits.requests_at_once_per_client = settings.limits.channels - 1;
            node.set_settings(settings).expect("set");
        }
        let mut world =
            World { gateway: None, nodes: vec![None, None, None], local, dir, root: String::new() };
        world.root = world.write_settings("");
        world
    }

    /// The world that all tests of a program share which run at the same time and change nothing that others
    /// would notice.
    pub fn shared() -> Arc<World> {
        static SHARED: Mutex<Weak<World>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        let world = shared.upgrade().unwrap_or_else(|| Arc::new(World::start()));
        *shared = Arc::downgrade(&world);
        world
    }

    /// The file of the gateway.
    pub fn file(&self) -> PathBuf {
        self.dir.path().join("gateway.toml")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("kms.sock")
    }

    /// Writes the file, with one token that may do everything, and with more lines.
    pub fn write_settings(&self, more: &str) -> String {
        let (token, entry) =
            make_token("root", &polyclave_config::TOKEN_RIGHTS, &["*".into()]).expect("a token");
        let text = format!(
            "client = {:?}\nhttp_listen = \"127.0.0.1:0\"\n{more}\n[[listener]]\naddress = \"127.0.0.1:0\"\n\n[[kms]]\nname = \
             \"api-server\"\nsocket = \"kms.sock\"\nkey = {KMS_KEY:?}\n\n{TRANSFORM}\n{}",
            self.local.client,
            entry.to_text()
        );
        std::fs::write(self.file(), text).expect("written");
        token.to_string()
    }

    /// Adds a token to the file.
    pub fn add_token(&self, name: &str, rights: &[Right], keys: &[&str]) -> String {
        let _one_at_a_time = FILE.lock();
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let (token, entry) = make_token(name, rights, &keys).expect("a token");
        let text = std::fs::read_to_string(self.file()).expect("read");
        replace(&self.file(), &format!("{text}\n{}", entry.to_text()));
        token.to_string()
    }

    /// Adds an access key to the file.
    pub fn add_access_key(&self, name: &str, rights: &[Right], keys: &[&str]) -> AccessKey {
        let _one_at_a_time = FILE.lock();
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let secret_file = format!("{name}.secret");
        let made = make_access_key(name, rights, &keys, Path::new(&secret_file));
        let (secret, entry) = made.expect("an access key");
        let path = self.dir.path().join(&secret_file);
        polyclave_config::private::write(&path, secret.as_bytes()).expect("written");
        let text = std::fs::read_to_string(self.file()).expect("read");
        replace(&self.file(), &format!("{text}\n{}", entry.to_text()));
        AccessKey { id: entry.id, secret: secret.to_string() }
    }

    /// Removes a token from the file.
    pub fn revoke(&self, name: &str) {
        let text = std::fs::read_to_string(self.file()).expect("read");
        let mut entries = text.split("[[token]]");
        let head = entries.next().expect("a head").to_owned();
        let named = format!("name = {name:?}");
        let kept = entries.filter(|entry| !entry.contains(&named)).map(|entry| format!("[[token]]{entry}"));
        replace(&self.file(), &(head + &kept.collect::<String>()));
    }

    pub fn start_nodes(&mut self) {
        (0..3).for_each(|node| self.start_node(node));
        self.wait_until("nodes are ready", |world| {
            world.nodes.iter().flatten().all(|node| node.is_ready() && node.status().connected.len() >= 3)
        });
    }

    pub fn start_node(&mut self, node: usize) {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("its directory");
        self.nodes[node] = Some(Node::start(dir).expect("it starts"));
    }

    pub fn stop_node(&mut self, node: usize) {
        self.nodes[node].take().expect("it runs").stop();
    }

    pub fn start_gateway(&mut self) {
        self.gateway = Some(Gateway::start(&self.file()).expect("it starts"));
    }

    pub fn make_kms_key(&self) {
        use polyclave_api::{Mode, NewKey};
        let new = NewKey::for_modes(KMS_KEY, "aes-256", &[Mode::Gcm], 1 << 32);
        self.client().generate(new).expect("a key");
    }

    /// The key of what is tokenized: that of the samples of SP 800-38G for FF1-AES128.
    fn make_ff1_key(&self) {
        use polyclave_api::{Mode, NewKey};
        let new = NewKey::for_modes("token-key", "aes-128", &[Mode::Ff1], 1 << 30);
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        self.client().import(new, &key).expect("a key");
    }

    /// The client that may do everything, without the gateway.
    pub fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.local.client).expect("its directory")).expect("a client")
    }

    pub fn address(&self) -> SocketAddr {
        self.gateway.as_ref().expect("it runs").addresses()[0]
    }

    pub fn http_address(&self) -> SocketAddr {
        self.gateway.as_ref().expect("it runs").http_address().expect("an address")
    }

    pub fn wait_until(&self, what: &str, is_so: impl Fn(&World) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < until, "{what}: it did not become so");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks as the token that may do everything.
    pub fn ask(&self, method: &str, path: &str, body: Value) -> Answer {
        self.ask_as(&self.root, method, path, body)
    }

    pub fn ask_as(&self, token: &str, method: &str, path: &str, body: Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Ask::new(method, path).token(token).body(body.as_bytes()).of(self.address())
    }

    /// The same for something that has to succeed.
    pub fn done(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.ask(method, path, body);
        assert!(matches!(answer.status, 200 | 204), "{path}: {answer:?}");
        answer.json
    }

    /// The lines of a node's audit log.
    pub fn audit_log(&self, node: usize) -> String {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("its directory");
        std::fs::read_to_string(dir.audit_path()).expect("it is there")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Before its nodes: it would say that they are gone.
        drop(self.gateway.take());
    }
}

/// Who changes the file of a gateway.
static FILE: Mutex<()> = Mutex::new(());

/// Replaces a file as an editor does.
pub fn replace(file: &Path, text: &str) {
    let draft = file.with_extension("draft");
    std::fs::write(&draft, text).expect("written");
    std::fs::rename(draft, file).expect("renamed");
}

/// Everything that was logged in this process.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// What has been logged so far.
pub fn logged() -> String {
    String::from_utf8(LOG.lock().clone()).expect("text")
}

/// Writes into [`LOG`], and where tests write.
#[derive(Default)]
struct Collected;

impl std::io::Write for Collected {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().extend_from_slice(bytes);
        print!("{}", String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

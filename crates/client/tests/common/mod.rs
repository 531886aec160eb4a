//! Real nodes and clients in one process.
#![allow(dead_code, reason = "every test program uses a part of it")]

pub mod active;
pub mod fake;
pub mod from_keys;
pub mod messages;
pub mod oracle;
pub mod raw;
pub mod tr31;
pub mod vectors;

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::{Mode, NewKey, Right};
use polyclave_client::{Client, Result};
use polyclave_config::{ClientDir, Cluster, Consent, NodeDir, StockSettings};
use polyclave_node::Running;
use polyclave_node::admin::{Instruction, order};
use polyclave_node::local::{Local, create};
use polyclave_store::{Secret, Store, restore};
use polyclave_transport::Identity;

/// How long a test waits for what nodes do by themselves: much longer than it takes, since machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster that is gone when dropped.
pub struct TestCluster {
    pub nodes: Vec<Option<Running>>,
    pub local: Local,
    dir: tempfile::TempDir,
}

impl TestCluster {
    /// Starts all nodes and waits until they are ready.
    pub fn start(nodes: usize, threshold: usize) -> TestCluster {
        let mut cluster = TestCluster::define(nodes, threshold);
        for node in 0..nodes {
            cluster.restart(node);
        }
        cluster.wait_until_ready();
        cluster
    }

    /// Makes the directories and starts nothing.
    pub fn define(nodes: usize, threshold: usize) -> TestCluster {
        TestCluster::define_with("shamir", nodes, threshold)
    }

    /// Sets for how many blocks of AES and of Triple DES the nodes keep material. They read it when they
    /// start.
    pub fn set_stock(&self, aes_blocks: usize, des_blocks: usize) {
        self.set_stock_settings(&StockSettings::of(aes_blocks, des_blocks));
    }

    /// The same with everything that is under `[stock]`.
    pub fn set_stock_settings(&self, stock: &StockSettings) {
        for path in &self.local.nodes {
            let mut node = NodeDir::open(path).expect("its directory");
            let mut settings = node.settings().clone();
            settings.stock = stock.clone();
            node.set_settings(settings).expect("saved");
        }
    }

    /// The same under a protocol.
    pub fn define_with(protocol: &str, nodes: usize, threshold: usize) -> TestCluster {
        let _ = tracing_subscriber::fmt().with_test_writer().try_init();
        let dir = tempfile::tempdir().expect("a temporary directory");
        let local = create(&dir.path().join("cluster"), protocol, nodes, threshold).expect("a new cluster");
        for path in &local.nodes {
            // Tests that run at the same time are one client to the nodes.
            let mut node = NodeDir::open(path).expect("its directory");
            let mut settings = node.settings().clone();
            settings.limits.requests_at_once_per_client = 64;
            // So that material is made on two streams, whatever machine runs the tests.
            settings.processors = Some(4);
            node.set_settings(settings).expect("saved");
        }
        TestCluster { nodes: (0..nodes).map(|_| None).collect(), local, dir }
    }

    /// Three nodes that all tests of a program share which run at the same time.
    pub fn shared() -> Arc<TestCluster> {
        static SHARED: Mutex<Weak<TestCluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        let cluster = shared.upgrade().unwrap_or_else(|| Arc::new(TestCluster::start(3, 1)));
        *shared = Arc::downgrade(&cluster);
        cluster
    }

    /// Waits until all running nodes can serve and are connected with each other.
    pub fn wait_until_ready(&self) {
        let running = self.nodes.iter().flatten().count();
        let all_there = |node: &Running| node.is_ready() && node.status().connected.len() >= running;
        self.wait_until(|| self.nodes.iter().flatten().all(all_there));
    }

    /// Waits until something is the case.
    pub fn wait_until(&self, is_so: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < until, "it did not become so: {:?}", self.statuses());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn statuses(&self) -> Vec<polyclave_api::NodeStatus> {
        self.nodes.iter().flatten().map(Running::status).collect()
    }

    /// The client that may do everything. Every one has connections of its own.
    pub fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.local.client).expect("its directory")).expect("a client")
    }

    /// Who the client is that may do everything.
    pub fn identity(&self) -> Identity {
        let dir = ClientDir::open(&self.local.client).expect("its directory");
        Identity::from_der(&dir.identity().certificate, &dir.identity().key).expect("its identity")
    }

    /// The cluster's file.
    pub fn file(&self) -> Cluster {
        let dir = ClientDir::open(&self.local.client).expect("its directory");
        dir.cluster().expect("it can be read").expect("it is there")
    }

    /// Another client, which may do only this, as soon as all nodes know it.
    pub fn client_with(&self, name: &str, rights: &[Right], keys: &[&str]) -> Client {
        let identity = Identity::generate_named(name, 1).expect("an identity");
        let client = self.client_of(name, &identity);
        self.allow(name, rights, keys);
        self.wait_until(|| client.status().iter().all(|(_, s)| s.is_ok()));
        client
    }

    /// A client that the nodes do not know yet.
    pub fn client_of(&self, name: &str, identity: &Identity) -> Client {
        let path = self.dir.path().join(name);
        ClientDir::init(&path, name, &identity.certificate(), &identity.reveal_private_key()).expect("made");
        let dir = ClientDir::open(&path).expect("its directory");
        dir.set_cluster(&self.file(), Consent::None).expect("saved");
        Client::open(&dir).expect("a client")
    }

    /// Has all nodes let a client do only this.
    pub fn allow(&self, name: &str, rights: &[Right], keys: &[&str]) {
        self.allow_at(&self.local.nodes, name, rights, keys);
    }

    /// Has some nodes let a client do only this.
    pub fn allow_at(&self, nodes: &[PathBuf], name: &str, rights: &[Right], keys: &[&str]) {
        let card = ClientDir::open(&self.dir.path().join(name)).expect("its directory").card();
        static POLICIES: Mutex<()> = Mutex::new(());
        let _one_at_a_time = POLICIES.lock();
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        for path in nodes {
            let node = NodeDir::open(path).expect("its directory");
            let mut policy = node.policy().expect("its policy");
            policy.allow(&card, rights, &keys).expect("a rule");
            node.save_policy(&policy).expect("saved");
        }
    }

    /// Three shared nodes, and keys for every mode, whose names ([`name_for`]) begin with each of some.
    pub fn shared_with_keys(names: &[&str]) -> Arc<TestCluster> {
        static MAKING: Mutex<()> = Mutex::new(());
        let cluster = TestCluster::shared();
        let _one_at_a_time = MAKING.lock();
        let client = cluster.client();
        for name in names.iter().filter(|name| client.info(&name_for(name, Mode::Ecb)).is_err()) {
            for modes in TOGETHER {
                client.generate(key(&name_for(name, modes[0]), "aes-128", modes)).expect("a key");
            }
        }
        cluster
    }

    /// The store of a node that does not run.
    pub fn store_of(&self, node: usize) -> Store {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("its directory");
        let secret = Secret::from_bytes(*dir.secret().expect("its secret"));
        Store::open(&dir.store_path(), &secret).expect("its store")
    }

    /// Stops a node.
    pub fn stop(&mut self, node: usize) {
        self.nodes[node].take().expect("it runs").stop();
    }

    /// Gives all keys fresh shares, as at a next start of all nodes.
    pub fn refresh(&mut self) {
        let all = 0..self.local.nodes.len();
        for node in all.clone() {
            self.stop(node);
            self.store_of(node).want_refresh().expect("wanted");
        }
        all.for_each(|node| self.restart(node));
        self.wait_until_refreshed();
    }

    /// Waits until all nodes are ready and have nothing to refresh.
    pub fn wait_until_refreshed(&self) {
        let is_over = |node: &Running| node.is_ready() && node.status().rotating.is_empty();
        self.wait_until(|| self.nodes.iter().flatten().all(is_over));
    }

    /// Replaces a node by its backup of this moment, with new room on the disk, and has the others readmit
    /// it.
    pub fn restore_from_backup(&mut self, node: usize) {
        let path = self.local.nodes[node].clone();
        let (file, key_file) = (path.with_extension("backup"), path.with_extension("key"));
        let secret = Secret::generate_file(&key_file).expect("a key");
        let dir = NodeDir::open(&path).expect("its directory");
        order(&dir, &Instruction::Backup { file: file.clone(), key_file }).expect("backed up");
        self.stop(node);
        std::fs::rename(&path, path.with_extension("before")).expect("moved away");
        restore(&file, &secret, &path).expect("restored");
        self.restart(node);
        self.readmit(node);
        self.wait_until_ready();
    }

    /// Has all others let a node in that is not where they saw it last.
    pub fn readmit(&self, node: usize) {
        let name = format!("node-{}", node + 1);
        for other in (0..self.local.nodes.len()).filter(|other| *other != node) {
            let dir = NodeDir::open(&self.local.nodes[other]).expect("its directory");
            order(&dir, &Instruction::Readmit { node: name.clone() }).expect("readmitted");
        }
    }

    /// Starts a node that was stopped.
    pub fn restart(&mut self, node: usize) {
        self.nodes[node] = Some(run(self.local.nodes[node].clone()));
    }
}

fn run(path: PathBuf) -> Running {
    Running::start(NodeDir::open(&path).expect("its directory")).expect("it starts")
}

/// All modes, those together that one key can be made for.
pub const TOGETHER: [&[Mode]; 3] = [&[Mode::Gcm, Mode::Cmac], &[Mode::Ctr, Mode::Cbc], &[Mode::Ecb]];

/// Of some keys that are made for all modes between them, the name of the one for a mode.
pub fn name_for(name: &str, mode: Mode) -> String {
    match mode {
        Mode::Gcm | Mode::Cmac | Mode::Tr31 => name.into(),
        Mode::Ctr | Mode::Cbc => format!("{name}-stream"),
        Mode::Ecb
        | Mode::Envelope
        | Mode::Siv
        | Mode::Ccm
        | Mode::Ff1
        | Mode::GcmSiv
        | Mode::Xaes
        | Mode::Hmac => {
            format!("{name}-{mode}")
        }
    }
}

/// A key for some modes.
pub fn key(name: &str, cipher: &str, modes: &[Mode]) -> NewKey {
    let budget_blocks = if cipher.starts_with("aes") { 1 << 32 } else { 1 << 20 };
    NewKey::for_modes(name, cipher, modes, budget_blocks)
}

/// So many bytes, not all the same.
pub fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

pub fn nothing(_: u64) {}

/// Asks again what may pass, as when nodes have just started.
pub fn insist<T>(attempt: &dyn Fn() -> Result<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(e) => assert!(e.may_pass() && Instant::now() < until, "{e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

//! What each release has left is still read: the directory of a node with its store, backups, cards, cluster
//! file, a client's directory, a request for approval, a sealed key, a sealed file. `tests/golden` has them
//! by release, made once by its program and kept for ever. The keys in them protect nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use polyclave_api::{Mode, Right};
use polyclave_client::Client;
use polyclave_config::{ClientDir, Cluster, Consent, NodeDir, NodeSettings, load_approval, load_sealed_key};
use polyclave_transport::Identity;

use crate::common::{Place, Running, free_ports};
use crate::kill_all::{CODE, KEY, insist, message, new_key};
use crate::reshare::fingerprint;

const NODES: usize = 3;
/// A hundred years.
const DAYS: u32 = 36_500;
/// The first port in recorded files. Copies get others.
const RECORDED_PORT: u16 = 20_001;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Copies a folder. Git keeps no permissions, and what is private must be.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).expect("set");
    for entry in fs::read_dir(from).expect("a folder") {
        let (path, to) =
            (entry.as_ref().expect("an entry").path(), to.join(entry.expect("an entry").file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("copied");
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).expect("set");
        }
    }
}

/// Gives the nodes other ports: those that were recorded may be taken.
fn move_ports(place: &Place) {
    let ports = free_ports(3 * NODES as u16);
    let files = (1..=NODES).map(|node| format!("node-{node}")).chain(["client".into()]);
    let files = files.flat_map(|folder| [format!("{folder}/node.toml"), format!("{folder}/cluster.toml")]);
    for file in files.chain(["cluster.toml".into()]).map(|file| format!("try/{file}")) {
        if !place.path(&file).exists() {
            continue;
        }
        let text = String::from_utf8(place.read(&file)).expect("it is text");
        let moved = (0..).zip(&ports).fold(text, |text, (at, port)| {
            text.replace(&format!("127.0.0.1:{}", RECORDED_PORT + at), &format!("127.0.0.1:{port}"))
        });
        place.write(&file, moved.as_bytes());
    }
}

fn client(place: &Place) -> Client {
    Client::open(&ClientDir::open(&place.path("try/client")).expect("there")).expect("a client")
}

fn start(place: &Place) -> Vec<Running> {
    let start = |node: usize| place.start(&format!("node run try/node-{node} --log warn"));
    let nodes: Vec<Running> = (1..=NODES).map(start).collect();
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    nodes
}

/// The first node is used as it was, the others are restored from backups.
fn is_read(release: &Path) {
    let place = Place::new();
    copy(release, &place.path("try"));
    let approved = load_approval(&place.path("try/delete.approval")).expect("an approval");
    assert_eq!(approved.1.purpose, "golden");
    assert!(place.run("approval show try/delete.approval").contains("known"));
    load_sealed_key(&place.path("try/sealed.key")).expect("a sealed key");
    assert_eq!(Cluster::load(&place.path("try/cluster.toml")).expect("a cluster file").nodes(), NODES);
    place.run("cluster define --protocol shamir --threshold 1 --out again.toml try/node-1/card.toml try/node-2.card try/node-3.card");
    for node in 2..=NODES {
        place.run(&format!(
            "node restore try/node-{node}.backup try/node-{node} --key try/node-{node}.backup-key"
        ));
    }
    move_ports(&place);
    for node in 1..=NODES {
        for other in (1..=NODES).filter(|other| *other != node) {
            place.run(&format!("node readmit try/node-{node} node-{other}"));
        }
    }
    let nodes = start(&place);
    place.write("message", &message());
    place.run(&format!("mac --key known message --verify {CODE}"));
    place.run("decrypt --key sealing try/sealed-file opened");
    assert_eq!(place.read("opened"), message());
    insist("a new key", || client(&place).generate(new_key("another", Mode::Gcm)));
    nodes.into_iter().for_each(Running::end);
    place.run("node audit verify try/node-1");
}

#[test]
fn what_each_release_has_left_is_read_and_its_keys_are_what_they_were() {
    let mut releases: Vec<PathBuf> =
        fs::read_dir(golden()).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    releases.retain(|path| path.is_dir());
    assert!(!releases.is_empty());
    releases.iter().for_each(|release| is_read(release));
}

#[test]
#[ignore = "it records what a release leaves, once: before the release is tagged"]
fn record_what_this_release_leaves() {
    let release = golden().join(env!("CARGO_PKG_VERSION"));
    assert!(!release.exists(), "{} is kept as it is", release.display());
    let place = Place::new();
    make_cluster(&place.path("try"));
    let nodes = start(&place);
    let key = hex::decode(KEY).expect("hexadecimal");
    insist("import", || client(&place).import(new_key("known", Mode::Cmac), &key));
    insist("generate", || client(&place).generate(new_key("sealing", Mode::Gcm)));
    place.write("message", &message());
    place.run("encrypt --key sealing message try/sealed-file");
    place.run("approval request delete known --out try/delete.approval --purpose golden");
    place.write("key.hex", KEY.as_bytes());
    fs::set_permissions(place.path("key.hex"), fs::Permissions::from_mode(0o600)).expect("set");
    let expected = fingerprint(&place, "try/cluster.toml");
    let by = format!("--cluster try/cluster.toml --expect {expected} --out try/sealed.key");
    place.run(&format!("key seal-import carried --modes cmac --key-file key.hex {by}"));
    for node in 2..=NODES {
        place.run(&format!(
            "node backup try/node-{node} try/node-{node}.backup --key try/node-{node}.backup-key"
        ));
    }
    nodes.into_iter().for_each(Running::end);
    for node in 2..=NODES {
        place.write(&format!("try/node-{node}.card"), &place.read(&format!("try/node-{node}/card.toml")));
        fs::remove_dir_all(place.path(&format!("try/node-{node}"))).expect("it was there");
    }
    copy(&place.path("try"), &release);
}

/// A cluster whose certificates are valid for as long as somebody may want to read it.
fn make_cluster(folder: &Path) {
    fs::create_dir(folder).expect("made");
    let at = |number: usize| format!("127.0.0.1:{}", usize::from(RECORDED_PORT) + number);
    let identity = |name: &str| Identity::generate_named(name, DAYS).expect("an identity");
    let node = |number: usize| {
        let (name, port) = (format!("node-{number}"), 3 * (number - 1));
        let mut settings = NodeSettings::new(&name, &at(port), &at(port + 1));
        settings.http_listen = Some(at(port + 2));
        let (path, identity) = (folder.join(&name), identity(&name));
        let (certificate, key) = (identity.certificate(), identity.reveal_private_key());
        let card = NodeDir::init(&path, &settings, &certificate, &key).expect("made");
        card.save(&path.join("card.toml")).expect("saved");
        card
    };
    let cluster = Cluster::define("shamir", 1, (1..=NODES).map(node).collect()).expect("it fits");
    cluster.save(&folder.join("cluster.toml")).expect("saved");
    let (path, identity) = (folder.join("client"), identity("client"));
    let (certificate, key) = (identity.certificate(), identity.reveal_private_key());
    let card = ClientDir::init(&path, "client", &certificate, &key).expect("made");
    ClientDir::open(&path).and_then(|dir| dir.set_cluster(&cluster, Consent::None)).expect("joined");
    for number in 1..=NODES {
        let dir = NodeDir::open(&folder.join(format!("node-{number}"))).expect("made");
        dir.set_cluster(&cluster, Consent::None).expect("joined");
        let mut policy = dir.policy().expect("there");
        policy.allow(&card, &Right::ALL, &["*".into()]).expect("allowed");
        dir.save_policy(&policy).expect("saved");
    }
}

//! Nodes that come back from an old copy of their disk, from a backup, or twice: peers refuse them until they
//! are readmitted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use polyclave_api::{Mode, NewKey};
use polyclave_store::{Secret, restore};

use crate::common::active::start_cheating;
use crate::common::messages::{ctr, gcm};
use crate::common::{TestCluster, data, key};
use polyclave_client::Client;
use polyclave_config::NodeDir;
use polyclave_node::admin::{Instruction, order};
use polyclave_node::{Cheat, Running};
use polyclave_protocol::{Party, PartySet};

/// Longer than it takes to be let in, or refused.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

fn started() -> (TestCluster, Client) {
    let cluster = TestCluster::start(5, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    (cluster, client)
}

fn connected(node: &Running) -> PartySet {
    node.status().connected
}

/// Whether a node is let in by nobody.
fn is_refused(cluster: &TestCluster, node: usize) -> bool {
    let me = Party(node as u8);
    std::thread::sleep(POLL_INTERVAL);
    let nodes = cluster.nodes.iter().flatten();
    nodes.filter(|other| connected(other).contains(me) && connected(other).len() > 1).count() == 0
}

/// Has a key made and some of its budget reserved: both change all stores.
fn work(client: &Client, name: &str) {
    let small = NewKey { budget_blocks: 100, ..key(name, "aes-128", &[Mode::Ctr]) };
    client.generate(small).expect("a key");
    ctr(client, name, &data(48)).expect("computed");
}

/// A file of a running node in a moment in which it is not written.
fn quiet_copy(file: &Path) -> Vec<u8> {
    loop {
        let one = std::fs::read(file).expect("read");
        std::thread::sleep(Duration::from_millis(50));
        if one == std::fs::read(file).expect("read") {
            return one;
        }
    }
}

#[test]
fn a_copy_of_a_disk_made_since_the_last_start_is_refused_until_it_is_readmitted() {
    let (mut cluster, client) = started();
    let victim = NodeDir::open(&cluster.local.nodes[4]).expect("its directory");
    // The log first: its lines are never ahead of the store.
    let files = [victim.audit_path(), victim.store_path()];
    let old = files.each_ref().map(|file| quiet_copy(file));
    work(&client, "since");
    cluster.stop(4);
    files.iter().zip(old).for_each(|(file, old)| std::fs::write(file, old).expect("put back"));
    cluster.restart(4);
    assert!(is_refused(&cluster, 4), "it was let in");
    gcm(&client, "k", b"", b"x").expect("the others go on");
    cluster.readmit(4);
    cluster.wait_until_ready();
    client.generate(key("new", "aes-128", &[Mode::Gcm])).expect("all serve again");
}

#[test]
fn a_backup_made_since_the_last_start_is_refused_until_it_is_readmitted_whatever_happened_since() {
    let (mut cluster, client) = started();
    let path = cluster.local.nodes[4].clone();
    let (file, key_file) = (path.with_file_name("backup"), path.with_file_name("backup.key"));
    let secret = Secret::generate_file(&key_file).expect("a key");
    let dir = NodeDir::open(&path).expect("its directory");
    order(&dir, &Instruction::Backup { file: file.clone(), key_file }).expect("backed up");
    cluster.stop(4);
    std::fs::rename(&path, path.with_file_name("before")).expect("moved away");
    restore(&file, &secret, &path).expect("restored");
    cluster.restart(4);
    assert!(is_refused(&cluster, 4), "it was let in");
    cluster.readmit(4);
    cluster.wait_until_ready();
    gcm(&client, "k", b"", b"x").expect("served");
}

#[test]
fn of_two_copies_of_one_node_that_run_only_one_is_let_in() {
    let (mut cluster, client) = started();
    cluster.stop(0);
    let copy = copy_elsewhere(&cluster.local.nodes[0]);
    cluster.restart(0);
    cluster.wait_until_ready();
    let second = Running::start(NodeDir::open(&copy).expect("its directory")).expect("it starts");
    std::thread::sleep(POLL_INTERVAL);
    assert_eq!(connected(&second).len(), 1, "beside the first one");
    gcm(&client, "k", b"", b"x").expect("the others are not troubled");
    cluster.stop(0);
    std::thread::sleep(POLL_INTERVAL);
    assert_eq!(connected(&second).len(), 1, "nor in its place");
}

/// A copy of a node's directory that listens elsewhere. It calls the others itself, since it is the first of
/// them.
fn copy_elsewhere(path: &Path) -> PathBuf {
    let copy = path.with_file_name("copy");
    polyclave_config::private::make_dir(&copy).expect("made");
    for file in std::fs::read_dir(path).expect("a directory") {
        let file = file.expect("a file").path();
        if file.is_file() {
            std::fs::copy(&file, copy.join(file.file_name().expect("a name"))).expect("copied");
        }
    }
    let mut dir = NodeDir::open(&copy).expect("its directory");
    let mut settings = dir.settings().clone();
    (settings.listen, settings.client_listen, settings.http_listen) =
        ("127.0.0.1:0".into(), "127.0.0.1:0".into(), None);
    dir.set_settings(settings).expect("saved");
    copy
}

#[test]
fn nodes_that_start_again_and_again_between_requests_are_never_refused() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    for round in 0..6 {
        work(&client, &format!("k{round}"));
        cluster.stop(round % 3);
        cluster.restart(round % 3);
        cluster.wait_until_ready();
    }
}

#[test]
fn nothing_is_computed_under_a_change_that_the_others_do_not_hold() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    cluster.stop(2);
    start_cheating(&mut cluster, 2, Cheat::HoldsNothing);
    cluster.wait_until_ready();
    let message = gcm(&client, "k", b"", b"x").expect_err("a range was reserved").to_string();
    assert!(message.contains("node-3 did not confirm"), "{message}");
    assert!(client.generate(key("new", "aes-128", &[Mode::Gcm])).is_err());
    cluster.stop(2);
    cluster.restart(2);
    cluster.wait_until_ready();
    gcm(&client, "k", b"", b"x").expect("it confirms");
}

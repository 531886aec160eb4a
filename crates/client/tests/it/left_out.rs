//! Under `shamir` with more nodes than it takes one that refuses by itself is left out, and named; who runs
//! it is told in its status.

use std::sync::Arc;

use parking_lot::Mutex;

use polyclave_api::{Mode, NodeStatus, Reason, Right};
use polyclave_store::StoredKey;

use crate::common::messages::{cmac, gcm, seal, ungcm};
use crate::common::{TestCluster, data, key};
use polyclave_client::{Client, Error};
use polyclave_config::NodeDir;
use polyclave_transport::Identity;

type Told = Arc<Mutex<Vec<String>>>;

fn listening(client: Client) -> (Client, Told) {
    let message = Told::default();
    let heard = message.clone();
    (client.on_remark(move |remark| heard.lock().push(remark.to_owned())), message)
}

/// Every kind of request passes, and the person is told once who is left out and why.
fn passes_without(cluster: &TestCluster, node: usize, why: &str) {
    let (client, text) = listening(cluster.client());
    for _ in 0..3 {
        let message = gcm(&client, "k", b"more", &data(40)).expect("the others serve");
        assert_eq!(ungcm(&client, "k", b"more", &message).expect("decrypted"), data(40));
    }
    seal(&client, "k", &data(40)).expect("sealed");
    assert_eq!(cmac(&client, "k", b"x").expect("a code").len(), 16);
    assert_eq!(client.info("k").expect("shown").properties.name, "k");
    let text = text.lock();
    let name = format!("node-{}", node + 1);
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(text[0].starts_with(&name) && text[0].contains(why), "{text:?}");
}

fn status_of(cluster: &TestCluster, node: usize) -> NodeStatus {
    cluster.nodes[node].as_ref().expect("it runs").status()
}

fn with_key(nodes: usize) -> TestCluster {
    let cluster = TestCluster::start(nodes, 1);
    cluster.client().generate(key("k", "aes-128", &[Mode::Gcm, Mode::Cmac])).expect("a key");
    cluster
}

/// Stops a node, changes its store, and starts it again.
fn change(cluster: &mut TestCluster, node: usize, change: impl FnOnce(&TestCluster)) {
    cluster.stop(node);
    change(cluster);
    cluster.restart(node);
    cluster.wait_until_ready();
}

fn lose_key(cluster: &mut TestCluster, node: usize) {
    let id = cluster.client().info("k").expect("a key").id;
    change(cluster, node, |cluster| cluster.store_of(node).delete("k", id).expect("gone"));
}

#[test]
fn a_node_without_the_key_is_left_out_and_so_says_its_status() {
    let mut cluster = with_key(4);
    lose_key(&mut cluster, 0);
    passes_without(&cluster, 0, "there is no key 'k'");
    let knows = || status_of(&cluster, 0).lacking == 1 && status_of(&cluster, 1).lacking == 0;
    cluster.wait_until(knows);
    let listed = cluster.client().keys().expect("a list").keys;
    assert_eq!(listed.iter().map(|key| key.at.len()).collect::<Vec<_>>(), [3]);
    // Two of four are more than can be missed.
    lose_key(&mut cluster, 2);
    let refused = gcm(&cluster.client(), "k", b"", b"x").expect_err("two of four serve nobody");
    let Error::Refused { node, refusal } = &refused else { panic!("{refused}") };
    assert!(refusal.reason == Reason::NoSuchKey && ["node-1", "node-3"].contains(&&node[..]), "{refused}");
}

#[test]
fn nodes_with_another_policy_are_left_out_as_long_as_enough_others_serve() {
    let cluster = with_key(5);
    let identity = Identity::generate_named("bob", 1).expect("an identity");
    let (bob, message) = listening(cluster.client_of("bob", &identity));
    // Each node's file is written once: a rule that is changed at once may be in force for a moment.
    for (nodes, keys) in [(0..1, "k"), (1..3, "other"), (3..5, "k")] {
        cluster.allow_at(&cluster.local.nodes[nodes], "bob", &[Right::Encrypt], &[keys]);
    }
    cluster.wait_until(|| bob.status().iter().all(|(_, s)| s.is_ok()));
    gcm(&bob, "k", b"", b"x").expect("three of five are enough");
    let said = message.lock().join("\n");
    for node in ["node-2", "node-3"] {
        assert!(
            said.contains(&format!("{node} refused: its policy does not allow bob to encrypt")),
            "{said}"
        );
    }
    cluster.allow_at(&cluster.local.nodes[4..], "bob", &[Right::Encrypt], &["other"]);
    let denied = || match gcm(&bob, "k", b"", b"x") {
        Err(Error::Refused { refusal, .. }) => refusal.reason == Reason::Denied,
        _ => false,
    };
    cluster.wait_until(denied);
}

/// Flips a bit of every sealed record of a table of a node that does not run.
fn damage(cluster: &TestCluster, node: usize, table: &str) {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    let database = redb::Database::open(dir.store_path()).expect("its store");
    let change = database.begin_write().expect("begun");
    {
        let mut table =
            change.open_table(redb::TableDefinition::<&[u8], &[u8]>::new(table)).expect("the table");
        let all: Vec<(Vec<u8>, Vec<u8>)> = redb::ReadableTable::iter(&table)
            .expect("read")
            .map(|record| record.expect("read"))
            .map(|(id, sealed)| (id.value().to_vec(), sealed.value().to_vec()))
            .collect();
        assert!(!all.is_empty());
        for (id, mut sealed) in all {
            *sealed.last_mut().expect("bytes") ^= 1;
            table.insert(&id[..], &sealed[..]).expect("written");
        }
    }
    change.commit().expect("written");
}

#[test]
fn a_node_with_a_damaged_record_is_left_out_and_the_key_can_still_be_deleted() {
    let mut cluster = with_key(4);
    change(&mut cluster, 1, |cluster| damage(cluster, 1, "shares"));
    // Before anybody asked for the key.
    cluster.wait_until(|| status_of(&cluster, 1).damaged == 1);
    passes_without(&cluster, 1, "its share of the key 'k' is damaged");
    let client = cluster.client();
    client.generate(key("l", "aes-128", &[Mode::Gcm])).expect("another key");
    gcm(&client, "l", b"", b"x").expect("served by all");
    assert_eq!(client.keys().expect("a list").keys.len(), 2);
    client.delete("k").expect("asked").expect("deleted");
    assert_eq!(status_of(&cluster, 1).damaged, 0);
}

#[test]
fn a_node_that_cannot_read_what_a_key_is_lists_its_other_keys() {
    let mut cluster = with_key(4);
    change(&mut cluster, 1, |cluster| damage(cluster, 1, "keys"));
    let client = cluster.client();
    client.generate(key("l", "aes-128", &[Mode::Gcm])).expect("another key");
    let listed = client.keys().expect("a list").keys;
    let at: Vec<(&str, usize)> =
        listed.iter().map(|key| (&key.info.properties.name[..], key.at.len())).collect();
    assert_eq!(at, [("k", 3), ("l", 4)]);
    passes_without(&cluster, 1, "its share of the key 'k' is damaged");
}

/// Puts a key into the stores of all nodes, which are stopped one after the other; what one of them puts can
/// be changed.
fn plant(cluster: &mut TestCluster, changed: usize, of: impl Fn(&mut StoredKey)) {
    for node in 0..cluster.nodes.len() {
        cluster.stop(node);
        let store = cluster.store_of(node);
        let mut planted = StoredKey::clone(&store.key("k").expect("read").expect("there"));
        planted.info.id = [7; 16];
        if node == changed {
            of(&mut planted);
        }
        store.delete("k", store.key("k").expect("read").expect("there").info.id).expect("deleted");
        store.put_pending(&planted).expect("put");
        store.announce("k", planted.info.id).expect("announced");
        drop(store);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
}

#[test]
fn a_node_whose_shares_are_cut_is_left_out() {
    let mut cluster = with_key(4);
    plant(&mut cluster, 0, |key| {
        let round_keys = key.shares.get_mut("round keys").expect("there");
        round_keys.pop();
    });
    passes_without(&cluster, 0, "its share of the key 'k' is damaged");
    assert_eq!(status_of(&cluster, 0).damaged, 1);
}

#[test]
fn a_node_that_holds_another_key_of_the_name_is_left_out() {
    for odd in [0, 1] {
        let mut cluster = with_key(4);
        plant(&mut cluster, odd, |key| key.info.id = [8; 16]);
        let (client, text) = listening(cluster.client());
        let message = gcm(&client, "k", b"", &data(40)).expect("the others serve");
        assert_eq!(ungcm(&client, "k", b"", &message).expect("decrypted"), data(40));
        let text = text.lock().join("\n");
        let cause = format!("node-{} is taken to be the cause of this", odd + 1);
        assert!(text.contains(&cause) && text.contains("hold different keys of this name"), "{text}");
    }
}

//! Lists of more keys than one message holds, and the limit of keys.

use polyclave_api::{KEYS, KeyInfo, Mode, Operation, Origin, Reply, Request, operations};

use crate::common::fake::{FakeNode, Say};
use crate::common::{TestCluster, key};
use polyclave_config::NodeDir;
use polyclave_protocol::PartySet;

/// More than two full pages.
const COUNT: usize = 2 * KEYS + 500;

fn info(number: usize) -> KeyInfo {
    let properties = key(&format!("key-{number:06}"), "aes-128", &[Mode::Gcm]);
    KeyInfo::first(properties, [7; 16], Origin::Generated, 1, vec![1; 5])
}

/// The page that an honest node of so many keys would send.
fn page(request: &Request, count: usize) -> Say {
    let Operation::List(operations::List { after, .. }) = &request.operation else { return Say::Nothing };
    let mut keys: Vec<KeyInfo> = (0..count).map(info).filter(|key| key.properties.name > *after).collect();
    let more = keys.len() > KEYS;
    keys.truncate(KEYS);
    Say::All(Box::new(Reply::Keys { keys, more }))
}

#[test]
fn a_list_of_many_pages_comes_whole_and_says_which_node_has_which_key() {
    let cluster = TestCluster::define(3, 1);
    let _nodes: Vec<FakeNode> = (0..3)
        .map(|node| {
            let count = if node == 2 { KEYS + 1 } else { COUNT };
            FakeNode::start(&cluster, node, move |request| page(request, count))
        })
        .collect();
    let listing = cluster.client().keys().expect("a list");
    assert!(listing.missing.is_empty());
    assert_eq!(listing.keys.len(), COUNT);
    assert!((0..).zip(&listing.keys).all(|(number, listed)| listed.info == info(number)));
    assert_eq!(listing.keys[KEYS].at, PartySet::all(3));
    assert_eq!(listing.keys[KEYS + 1].at, PartySet::all(2));
}

#[test]
fn a_node_that_lists_without_end_or_order_is_left_out_and_named() {
    let cluster = TestCluster::define(3, 1);
    let endless = |_: &Request| {
        let keys = (0..KEYS).map(info).collect();
        Say::All(Box::new(Reply::Keys { keys, more: true }))
    };
    let disordered =
        |_: &Request| Say::All(Box::new(Reply::Keys { keys: vec![info(2), info(1)], more: false }));
    let _nodes = [
        FakeNode::start(&cluster, 0, endless),
        FakeNode::start(&cluster, 1, disordered),
        FakeNode::start(&cluster, 2, |request| page(request, 3)),
    ];
    let listing = cluster.client().keys().expect("a list");
    assert_eq!(listing.keys.len(), 3);
    let message: Vec<String> = listing.missing.iter().map(|(_, e)| e.to_string()).collect();
    assert_eq!(message.len(), 2, "{message:?}");
    assert!(message[0].contains("node-1 lists the same keys again"), "{message:?}");
    assert!(message[1].contains("node-2 lists its keys in disorder"), "{message:?}");
}

#[test]
fn a_node_makes_no_more_keys_than_its_operator_allows() {
    let mut cluster = TestCluster::define(3, 1);
    let mut dir = NodeDir::open(&cluster.local.nodes[1]).expect("its directory");
    let mut settings = dir.settings().clone();
    settings.limits.keys = 2;
    dir.set_settings(settings).expect("saved");
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    for name in ["one", "two"] {
        client.generate(key(name, "aes-128", &[Mode::Ctr])).expect("a key");
    }
    let message =
        client.generate(key("three", "aes-128", &[Mode::Ctr])).expect_err("one too many").to_string();
    assert!(
        message.contains("node-2 refused") && message.contains("2 keys") && message.contains("[limits]"),
        "{message}"
    );
    let message =
        client.import(key("three", "aes-128", &[Mode::Ctr]), &[1; 16]).expect_err("likewise").to_string();
    assert!(message.contains("node-2 refused"), "{message}");
    client.delete("one").expect("deleted");
    client.generate(key("three", "aes-128", &[Mode::Ctr])).expect("there is room again");
    assert_eq!(client.keys().expect("a list").keys.len(), 2);
}

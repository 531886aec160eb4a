//! Session keys: they live until their time has ended, at every node, and then nothing is left of them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polyclave_api::{KeyInfo, Lifetime, Mode, NewKey, Reason};
use polyclave_store::{KeyState, Which};

use crate::common::from_keys::refused;
use crate::common::messages::{gcm, open, seal};
use crate::common::{TestCluster, insist, key};

fn session(name: &str, seconds: u32) -> NewKey {
    NewKey { lifetime: Lifetime::Session { seconds }, ..key(name, "aes-128", &[Mode::Gcm]) }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn wait_for_the_end_of(info: &KeyInfo) {
    while now() <= info.ends().expect("it is a session key") {
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_session_key_is_used_like_others_and_gone_after_its_time() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for seconds in [0, 86_401, u32::MAX] {
        refused(client.generate(session("passing", seconds)), Reason::Key, "1 to 86400 seconds");
    }
    let made = client.generate(session("passing", 20)).expect("a key");
    assert_eq!(made.ends(), Some(made.made + 20));
    let sealed = seal(&client, "passing", b"for a while").expect("sealed");
    assert_eq!(open(&client, "passing", &sealed).expect("opened"), b"for a while");
    assert!(client.keys().expect("a list").keys.iter().any(|listed| listed.info.id == made.id));
    refused(client.rotate("passing"), Reason::Key, "is a session key");
    refused(client.generate(key("passing", "aes-128", &[Mode::Gcm])), Reason::Key, "already");
    wait_for_the_end_of(&made);
    open(&client, "passing", &sealed).expect_err("it has ended");
    let is_gone = || client.keys().expect("a list").keys.iter().all(|listed| listed.info.id != made.id);
    cluster.wait_until(is_gone);
    client.generate(key("passing", "aes-128", &[Mode::Gcm])).expect("the name is free");
    client.delete("passing").expect("deleted");
}

#[test]
fn a_session_key_can_be_deleted_before_its_end() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let made = client.generate(session("ended-early", 3600)).expect("a key");
    let sealed = seal(&client, "ended-early", b"x").expect("sealed");
    assert_eq!(client.delete("ended-early").expect("deleted").map(|info| info.id), Some(made.id));
    assert_eq!(client.delete("ended-early").expect("twice is once"), None);
    refused(open(&client, "ended-early", &sealed), Reason::NoSuchKey, "there is no key");
}

/// One node is stopped before a key ends and started after that; all are restarted meanwhile. No node has
/// anything left, not even the id.
#[test]
fn a_session_key_survives_restarts_until_its_end_and_not_longer() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(key("stays", "aes-128", &[Mode::Gcm])).expect("a key");
    let long = client.generate(session("long", 3600)).expect("a key");
    let short = client.generate(session("short", 30)).expect("a key");
    let message = seal(&client, "long", b"before").expect("sealed");
    for node in 0..3 {
        cluster.stop(node);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
    assert_eq!(insist(&|| open(&client, "long", &message)), b"before");
    cluster.stop(2);
    wait_for_the_end_of(&short);
    gcm(&client, "short", b"", b"x").expect_err("it has ended");
    // This node has slept over the end.
    cluster.restart(2);
    cluster.wait_until_ready();
    gcm(&client, "short", b"", b"x").expect_err("it has ended");
    let is_gone = || client.keys().expect("a list").keys.iter().all(|listed| listed.info.id != short.id);
    cluster.wait_until(is_gone);
    assert_eq!(insist(&|| open(&client, "long", &message)), b"before");
    for node in 0..3 {
        cluster.stop(node);
        let store = cluster.store_of(node);
        let held: Vec<_> = store.held_keys().expect("read").into_iter().map(|key| key.id).collect();
        assert!(held.contains(&long.id) && !held.contains(&short.id), "{held:?}");
        assert_eq!(store.state("short", short.id).expect("read"), None);
        assert_eq!(store.count().expect("read"), 1);
    }
}

/// The nodes refresh, also under a protocol whose MAC key changes with that. Session keys that all have go
/// on; one that a node lacks ends.
#[test]
fn session_keys_are_carried_over_by_a_refresh() {
    for (protocol, nodes) in [("shamir", 3), ("spdz-lt", 2)] {
        let mut cluster = TestCluster::define_with(protocol, nodes, 1);
        cluster.set_stock(256, 0);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let client = cluster.client();
        insist(&|| client.generate(session("kept", 3600)));
        let partly = insist(&|| client.generate(session("partly", 3600)));
        let sealed = insist(&|| seal(&client, "kept", b"before"));
        let mut before = Vec::new();
        for node in 0..nodes {
            cluster.stop(node);
            let store = cluster.store_of(node);
            if node == 0 {
                store.delete("partly", partly.id).expect("deleted here only");
            }
            before.push(store.setup().expect("read").expect("there").id);
            store.want_refresh().expect("wanted");
        }
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_refreshed();
        assert_eq!(insist(&|| open(&client, "kept", &sealed)), b"before", "{protocol}");
        for (node, before) in before.into_iter().enumerate() {
            cluster.stop(node);
            let store = cluster.store_of(node);
            assert_ne!(store.setup().expect("read").expect("there").id, before, "{protocol}");
            assert_eq!(store.find("partly", Which::Id(partly.id)).expect("read"), None, "{protocol}");
            let kept = store.key("kept").expect("read").expect("there");
            assert_eq!(kept.state, KeyState::Announced);
        }
    }
}

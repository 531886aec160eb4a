//! Three nodes under `replicated-active` with standby pairs: two go on with the keys while the third one is
//! away.

use std::time::{Duration, Instant};

use polyclave_api::{Mode, Operation, Reason, Request, operations};
use polyclave_client::{Client, Error, Padding};
use polyclave_config::NodeDir;
use polyclave_node::admin::{Answer, Instruction, Status, order};
use polyclave_node::{Cheat, Running};
use polyclave_protocol::PartySet;
use polyclave_protocol::authenticated::Guesses;
use polyclave_store::{Secret, Store};

use crate::common::active::start_cheating;
use crate::common::messages::{
    cbc, cmac, ctr, decrypt_siv, ecb, encrypt_siv, gcm, uncbc, unctr, unecb, ungcm,
};
use crate::common::raw::{Raw, request};
use crate::common::{PATIENCE, TOGETHER, TestCluster, data, insist, key};

/// Three nodes whose pairs have shares of a key, and a message that was encrypted under it by all three.
fn start() -> (TestCluster, Vec<u8>) {
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("made");
    let message = gcm(&client, "k", b"to", b"a message").expect("encrypted");
    wait_until_pairs_have(&cluster, 1);
    (cluster, message)
}

/// Waits until both pairs of each node are ready and have so many keys.
fn wait_until_pairs_have(cluster: &TestCluster, keys: u64) {
    cluster.wait_until(|| pairs_have(cluster, keys));
}

fn pairs_have(cluster: &TestCluster, keys: u64) -> bool {
    cluster.nodes.iter().flatten().all(|node| {
        let pairs = node.standby();
        pairs.len() == 2 && pairs.iter().all(|pair| pair.ready && pair.keys == keys && pair.lacking == 0)
    })
}

#[test]
fn two_nodes_go_on_with_a_key_while_the_third_one_is_away_whichever_it_is() {
    let (mut cluster, message) = start();
    for away in 0..3 {
        cluster.stop(away);
        let client = cluster.client();
        assert_eq!(insist(&|| ungcm(&client, "k", b"to", &message)), b"a message");
        let of_two = insist(&|| gcm(&client, "k", b"to", b"of two"));
        let refused = client.generate(key("other", "aes-128", &[Mode::Gcm])).expect_err("it takes all");
        assert!(matches!(refused, Error::TooFewNodes { .. }), "{refused}");
        cluster.restart(away);
        cluster.wait_until_ready();
        wait_until_pairs_have(&cluster, 1);
        assert_eq!(insist(&|| ungcm(&client, "k", b"to", &of_two)), b"of two", "all three read it");
    }
}

/// The store of a node's shares in its pair with another, which does not run.
fn store_of(cluster: &TestCluster, node: usize, partner: usize) -> Store {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    let secret = Secret::from_bytes(*dir.secret().expect("its secret"));
    let path = dir.standby_path(&format!("node-{}", partner + 1));
    Store::standby(&path, &secret).expect("its store")
}

fn status(cluster: &TestCluster, node: usize) -> Status {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    match order(&dir, &Instruction::Status) {
        Ok(Some(Answer::Status(status))) => *status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_altered_share_in_a_pair_is_found_and_stops_the_nodes_in_all_until_a_refresh_begins_the_pairs_anew() {
    let (mut cluster, message) = start();
    let client = cluster.client();
    (0..3).for_each(|node| cluster.stop(node));
    let store = store_of(&cluster, 0, 1);
    let id = *store.standby_ids().expect("read").first().expect("a key");
    let mut shares = store.shares_of(id).expect("read");
    // Behind the head, which says how the cells are.
    shares.values_mut().for_each(|share| share.iter_mut().skip(128).for_each(|byte| *byte ^= 0x5a));
    store.put_standby(&[(id, shares)]).expect("stored");
    drop(store);
    [0, 1].into_iter().for_each(|node| cluster.restart(node));
    cluster.wait_until(|| {
        let of_both = cluster.nodes.iter().flatten().flat_map(Running::standby);
        of_both.filter(|pair| pair.serves).count() == 2
    });
    let refused = loop {
        match ungcm(&client, "k", b"to", &message) {
            Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::Quarantined => break refusal,
            Err(e) => assert!(e.may_pass(), "{e}"),
            Ok(_) => panic!("an altered share made no difference"),
        }
    };
    assert!(refused.message.contains("a check failed among the nodes"), "{refused}");
    cluster.restart(2);
    cluster.wait_until(|| (0..2).all(|node| status(&cluster, node).connected.len() == 3));
    // Not only in the pair, and over a restart.
    let again = gcm(&client, "k", b"to", b"of all").expect_err("one of them departed from the protocol");
    assert!(
        matches!(&again, Error::Refused { refusal, .. } if refusal.reason == Reason::Quarantined),
        "{again}"
    );
    cluster.refresh();
    wait_until_pairs_have(&cluster, 1);
    cluster.stop(2);
    assert_eq!(insist(&|| ungcm(&client, "k", b"to", &message)), b"a message", "with fresh shares");
}

#[test]
fn a_node_without_its_store_of_a_pair_or_with_an_older_one_begins_the_pair_anew_with_its_partner() {
    let (mut cluster, message) = start();
    let client = cluster.client();
    let path = |node: usize, partner: usize| {
        let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
        dir.standby_path(&format!("node-{}", partner + 1))
    };
    let (lost, older) = (path(0, 1), path(1, 2));
    cluster.stop(1);
    let copy = std::fs::read(&older).expect("read");
    cluster.restart(1);
    cluster.wait_until_ready();
    client.generate(key("later", "aes-128", &[Mode::Gcm])).expect("made");
    wait_until_pairs_have(&cluster, 2);
    [0, 1].into_iter().for_each(|node| cluster.stop(node));
    std::fs::remove_file(&lost).expect("removed");
    std::fs::write(&older, copy).expect("put back");
    [0, 1].into_iter().for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    // The two wait for a while before they give up what the other does not accept.
    let until = Instant::now() + 3 * PATIENCE;
    while !pairs_have(&cluster, 2) {
        assert!(Instant::now() < until, "the pairs did not begin anew");
        std::thread::sleep(Duration::from_millis(100));
    }
    for away in [2, 0] {
        cluster.stop(away);
        assert_eq!(insist(&|| ungcm(&client, "k", b"to", &message)), b"a message");
        cluster.restart(away);
        cluster.wait_until_ready();
    }
}

#[test]
fn no_share_of_a_deleted_key_is_left_in_any_pair_when_the_deletion_is_reported() {
    let (mut cluster, _) = start();
    let client = cluster.client();
    client.delete("k").expect("deleted");
    (0..3).for_each(|node| cluster.stop(node));
    for (node, partner) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        assert!(store_of(&cluster, node, partner).standby_ids().expect("read").is_empty());
    }
}

#[test]
fn a_dealer_that_lies_when_a_pair_gets_a_key_is_found_and_the_pair_has_no_wrong_key() {
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    [0, 1].into_iter().for_each(|node| cluster.restart(node));
    start_cheating(&mut cluster, 2, Cheat::InReshare);
    cluster.wait_until_ready();
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("made");
    let message = gcm(&client, "k", b"to", b"a message").expect("encrypted");
    for node in 0..2 {
        cluster.wait_until(|| status(&cluster, node).quarantine.is_some());
        let reason = status(&cluster, node).quarantine.expect("it is").reason;
        assert!(reason.contains("node-3") && reason.contains("standby pair"), "{reason}");
    }
    let given = cluster.nodes.iter().flatten().flat_map(Running::standby).map(|pair| pair.keys).sum::<u64>();
    assert_eq!(given, 0, "no pair took what did not fit");
    cluster.stop(2);
    cluster.restart(2);
    cluster.refresh();
    wait_until_pairs_have(&cluster, 1);
    cluster.stop(0);
    assert_eq!(insist(&|| ungcm(&client, "k", b"to", &message)), b"a message");
}

#[test]
fn uses_in_pairs_are_charged_twice_so_that_no_node_can_hide_them_from_the_others() {
    let (mut cluster, _) = start();
    let client = cluster.client();
    let mut new = key("small", "aes-128", &[Mode::Ctr]);
    new.budget_blocks = 100;
    client.generate(new).expect("made");
    wait_until_pairs_have(&cluster, 2);
    let mut of_each = Vec::new();
    for away in [2, 0, 1] {
        cluster.stop(away);
        let mut computed = 0;
        loop {
            match ctr(&client, "small", &[0; 16]) {
                Ok(_) => computed += 1,
                Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::Spent => break,
                Err(e) => assert!(e.may_pass(), "{e}"),
            }
        }
        of_each.push(computed);
        cluster.restart(away);
        cluster.wait_until_ready();
    }
    // What failed in the middle is paid, too. The nodes of the first pair have nothing left for another.
    assert!((1..=50).contains(&of_each[0]), "{of_each:?} of a budget of 100");
    assert_eq!(of_each[1..], [0, 0]);
}

/// Also if a client asks them for it.
#[test]
fn a_pair_makes_and_deletes_no_key() {
    let (cluster, _) = start();
    let serving = PartySet::all(2);
    for operation in [
        Operation::Generate(operations::Generate { new: key("made", "aes-128", &[Mode::Gcm]) }),
        Operation::Delete(operations::Delete { key: "k".into(), version: None }),
    ] {
        let mut raw = Raw::call_pair(&cluster, 0);
        raw.tell_all(&Request { serving, ..request(operation.clone(), None) });
        for node in 0..2 {
            let ending = raw.ending(node);
            let refusal = ending.refusal.expect("it is refused");
            assert!(refusal.message.contains("go on while node-3 is away"), "{refusal}");
        }
    }
    assert_eq!(cluster.client().keys().expect("listed").keys.len(), 1);
}

/// After so many silences that a MAC key bears no more.
#[test]
fn a_pair_whose_mac_key_is_worn_out_by_silences_begins_anew_and_nothing_is_quarantined() {
    let (mut cluster, message) = start();
    let client = cluster.client();
    let id_of = |cluster: &TestCluster| {
        store_of(cluster, 0, 1).standby_binding().expect("read").expect("it is bound").own
    };
    (0..3).for_each(|node| cluster.stop(node));
    let before = id_of(&cluster);
    let silences = Guesses { failed: 0, unanswered: 2000 };
    store_of(&cluster, 0, 1).count_guesses(silences).expect("counted");
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    wait_until_pairs_have(&cluster, 1);
    assert!((0..3).all(|node| status(&cluster, node).quarantine.is_none()));
    cluster.stop(2);
    assert_eq!(insist(&|| ungcm(&client, "k", b"to", &message)), b"a message");
    (0..2).for_each(|node| cluster.stop(node));
    assert_ne!(id_of(&cluster), before, "it has another store, with another MAC key");
}

#[test]
fn all_modes_of_use_work_in_a_pair_and_what_takes_all_nodes_says_so() {
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    let known = hex::decode("000102030405060708090a0b0c0d0e0f").expect("hexadecimal");
    let mut names = Vec::new();
    for modes in TOGETHER {
        let name = format!("known-{}", modes[0]);
        client.import(key(&name, "aes-128", modes), &known).expect("imported");
        names.push(name);
    }
    wait_until_pairs_have(&cluster, names.len() as u64);
    let all = |client: &Client| -> (Vec<u8>, Vec<u8>) {
        (
            insist(&|| cmac(client, &names[0], &data(40))),
            insist(&|| ecb(client, &names[2], Padding::None, &data(48))),
        )
    };
    let of_three = all(&client);
    cluster.stop(1);
    assert_eq!(all(&client), of_three, "the same key");
    let (counter, text) = insist(&|| ctr(&client, &names[1], &data(100)));
    assert_eq!(insist(&|| unctr(&client, &names[1], &counter, &text)), data(100));
    let (initial, text) = insist(&|| cbc(&client, &names[1], Padding::Pkcs7, &data(100)));
    assert_eq!(insist(&|| uncbc(&client, &names[1], Padding::Pkcs7, &initial, &text)), data(100));
    let message = insist(&|| gcm(&client, &names[0], b"to", &data(5000)));
    assert_eq!(insist(&|| ungcm(&client, &names[0], b"to", &message)), data(5000));
    let mut wrong = message.clone();
    *wrong.last_mut().expect("a tag") ^= 1;
    assert!(matches!(ungcm(&client, &names[0], b"to", &wrong), Err(Error::Unauthentic(_))));
    let refused = client.delete(&names[0]).expect_err("it takes all nodes").to_string();
    assert!(refused.contains("2 of 3 nodes can be asked, 3 are needed"), "{refused}");
}

/// Their round keys are stored by the bits from which the others follow, and these differ from cipher to
/// cipher.
#[test]
fn keys_of_all_kinds_work_in_a_pair_and_take_little_room_in_its_store() {
    /// Less, so that a key for GCM takes at most 30 kB in both pairs of a node.
    const MOST: usize = 15_000;
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    let ciphers =
        ["aes-128", "aes-192", "aes-256", "3des-ede2", "3des-ede3", "present-80", "gift-128", "twine-128"];
    for cipher in ciphers {
        client.generate(key(cipher, cipher, &[Mode::Ecb])).expect("made");
    }
    for (name, mode) in [("gcm", Mode::Gcm), ("siv", Mode::Siv)] {
        client.generate(key(name, "aes-256", &[mode])).expect("made");
    }
    wait_until_pairs_have(&cluster, ciphers.len() as u64 + 2);
    let encrypted = |cipher: &&str| insist(&|| ecb(&client, cipher, Padding::Pkcs7, &data(40)));
    let of_three: Vec<Vec<u8>> = ciphers.iter().map(encrypted).collect();
    let sealed = insist(&|| gcm(&client, "gcm", b"to", &data(40)));
    let additional = [b"to".to_vec()];
    let in_siv = insist(&|| encrypt_siv(&client, "siv", &additional, &data(40)));
    cluster.stop(0);
    assert_eq!(ciphers.iter().map(encrypted).collect::<Vec<_>>(), of_three, "the same keys");
    assert_eq!(insist(&|| unecb(&client, "aes-192", Padding::Pkcs7, &of_three[1])), data(40));
    assert_eq!(insist(&|| ungcm(&client, "gcm", b"to", &sealed)), data(40));
    assert_eq!(insist(&|| decrypt_siv(&client, "siv", &additional, &in_siv)), data(40));
    cluster.stop(1);
    let store = store_of(&cluster, 1, 2);
    for id in store.standby_ids().expect("read") {
        let parts = store.shares_of(id).expect("read");
        let bytes: usize = parts.values().map(|part| part.len()).sum();
        assert!(bytes < MOST, "{bytes} bytes: {:?}", parts.keys());
    }
}

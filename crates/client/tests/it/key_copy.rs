//! Copies of keys: the same key under another name, for the same or less, paid from one account.

use std::time::{Duration, Instant};

use polyclave_api::{KeyInfo, Lifetime, Mode, NewKey, Origin, Reason, Right, Usage, VersionState, Wrapping};

use crate::common::from_keys::refused;
use crate::common::messages::{self, gcm, open, seal, ungcm};
use crate::common::{TestCluster, insist, key};
use polyclave_client::{Client, Error, Result, Withdrawal};

/// A copy for the same.
fn same(of: &KeyInfo, name: &str) -> NewKey {
    NewKey { name: name.into(), ..of.properties.clone() }
}

fn code(client: &Client, key: &str) -> Result<Vec<u8>> {
    messages::cmac(client, key, b"a message")
}

#[test]
fn a_copy_is_the_same_key_and_each_is_deleted_alone() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let made = client.generate(key("model", "aes-128", &[Mode::Gcm, Mode::Cmac])).expect("a key");
    let less = NewKey { modes: vec![Mode::Cmac], usage: vec![Usage::Mac], ..same(&made, "model-less") };
    let copy = client.copy("model", made.id, same(&made, "model-copy")).expect("copied");
    let less = client.copy("model-copy", copy.id, less).expect("a copy of a copy");
    assert_eq!((copy.origin, copy.version, copy.account), (Origin::Copied, 1, made.id));
    assert_eq!((&copy.check_value, less.account), (&made.check_value, made.id));
    assert!(copy.id != made.id && less.id != copy.id);
    let message = gcm(&client, "model", b"", b"of the key").expect("encrypted");
    assert_eq!(ungcm(&client, "model-copy", b"", &message).expect("the same key"), b"of the key");
    let expected = code(&client, "model").expect("a code");
    for name in ["model-copy", "model-less"] {
        assert_eq!(code(&client, name).expect("a code"), expected);
    }
    refused(gcm(&client, "model-less", b"", b"x"), Reason::NotForThis, "not for gcm");
    client.delete("model").expect("deleted");
    assert_eq!(ungcm(&client, "model-copy", b"", &message).expect("it is still there"), b"of the key");
    client.delete("model-copy").expect("deleted");
    assert_eq!(code(&client, "model-less").expect("it is still there"), expected);
    client.delete("model-less").expect("deleted");
}

#[test]
fn a_copy_that_would_be_for_more_is_refused() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let made = client.generate(key("narrow", "aes-128", &[Mode::Gcm])).expect("a key");
    let copy = |new: NewKey| client.copy("narrow", made.id, new);
    let wide = same(&made, "wide");
    for (new, why) in [
        (NewKey { usage: vec![Usage::Encrypt, Usage::Decrypt, Usage::Derive], ..wide.clone() }, "derive"),
        (NewKey { modes: vec![Mode::Gcm, Mode::Ctr], ..wide.clone() }, "not for ctr"),
        (NewKey { wrappable: true, ..wide.clone() }, "leave the nodes"),
        (NewKey { caller_nonces: true, ..wide.clone() }, "nonces"),
        (NewKey { budget_blocks: (1 << 32) + 1, ..wide.clone() }, "budget"),
        (NewKey { cipher: "aes-256".into(), ..wide.clone() }, "one of aes-128"),
        (NewKey { attributes: vec![1; 4097], ..wide.clone() }, "at most 4096 bytes"),
        (NewKey { name: "narrow".into(), ..wide.clone() }, "already"),
    ] {
        refused(copy(new), Reason::Key, why);
    }
    refused(client.copy("narrow", [9; 16], wide.clone()), Reason::NoSuchKey, "not made under the key");
    refused(client.copy("no-such-key", made.id, wide.clone()), Reason::NoSuchKey, "there is no key");
    let what = Withdrawal { usage: vec![Usage::Encrypt], ..Withdrawal::default() };
    client.withdraw("narrow", (1, true), &what).expect("withdrawn");
    refused(copy(wide.clone()), Reason::Key, "not for the usage encrypt");
    copy(NewKey { usage: vec![Usage::Decrypt], ..wide.clone() }).expect("what remains");
    client.delete("wide").expect("deleted");
    for state in [VersionState::Deactivated, VersionState::Compromised] {
        client.retire("narrow", 1, state).expect("retired");
        refused(copy(NewKey { usage: vec![Usage::Decrypt], ..wide.clone() }), Reason::Key, "narrow");
    }
    client.delete("narrow").expect("deleted");
}

/// The rules for the copy are those of its name, so its maker needs all rights that it is for under the name
/// of the key.
#[test]
fn a_client_copies_only_what_it_may_use() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let made = client.generate(key("payroll-of-all", "aes-128", &[Mode::Gcm])).expect("a key");
    let rights = [Right::Generate, Right::Encrypt, Right::Decrypt];
    let owner = cluster.client_with("owner", &rights, &["mine.*"]);
    let denied = owner.copy("payroll-of-all", made.id, same(&made, "mine.copy"));
    refused(denied, Reason::Denied, "does not allow");
    let reader = cluster.client_with("reader", &[Right::Generate, Right::Decrypt], &["*"]);
    refused(reader.copy("payroll-of-all", made.id, same(&made, "mine.copy")), Reason::Denied, "encrypt");
    let only = NewKey { usage: vec![Usage::Decrypt], ..same(&made, "mine.copy") };
    reader.copy("payroll-of-all", made.id, only).expect("for what it may do");
    client.delete("payroll-of-all").expect("deleted");
    client.delete("mine.copy").expect("deleted");
}

#[test]
fn a_key_and_its_copies_spend_one_budget_together() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let poor = NewKey { budget_blocks: 60, ..key("poor-model", "aes-128", &[Mode::Gcm]) };
    let made = client.generate(poor).expect("a key");
    client.copy("poor-model", made.id, same(&made, "poor-copy")).expect("copied");
    let mut spent = 0;
    let until = Instant::now() + Duration::from_secs(60);
    for name in ["poor-model", "poor-copy"].into_iter().cycle() {
        assert!(Instant::now() < until);
        // One block, and the one that masks the tag.
        match gcm(&client, name, b"", &[7; 16]) {
            Ok(_) => spent += 2,
            Err(Error::Refused { refusal, .. }) => {
                assert_eq!(refusal.reason, Reason::Spent, "{refusal}");
                break;
            }
            Err(e) => panic!("{e}"),
        }
    }
    assert!((2..=60).contains(&spent), "{spent}");
    for name in ["poor-model", "poor-copy"] {
        gcm(&client, name, b"", &[7; 64]).expect_err("both are spent");
    }
    // The record of what was spent outlives the key.
    client.delete("poor-model").expect("deleted");
    gcm(&client, "poor-copy", b"", &[7; 64]).expect_err("it is spent");
    client.delete("poor-copy").expect("deleted");
}

#[test]
fn a_session_key_is_copied_to_stay_and_a_wrappable_copy_can_leave() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let session = NewKey {
        lifetime: Lifetime::Session { seconds: 3600 },
        wrappable: true,
        ..key("for-a-while", "aes-128", &[Mode::Gcm])
    };
    let made = client.generate(session).expect("a key");
    let sealed = gcm(&client, "for-a-while", b"", b"stays").expect("encrypted");
    let stored = NewKey { lifetime: Lifetime::Stored, ..same(&made, "for-ever") };
    client.copy("for-a-while", made.id, stored).expect("copied");
    client.delete("for-a-while").expect("deleted");
    assert_eq!(ungcm(&client, "for-ever", b"", &sealed).expect("decrypted"), b"stays");
    let kek = NewKey { usage: vec![Usage::Wrap], ..key("copy-kek", "aes-128", &[]) };
    client.generate(kek).expect("a key");
    client.wrap("copy-kek", "for-ever", Wrapping::Kw).expect("it has its raw bits");
    ["for-ever", "copy-kek"].iter().for_each(|name| drop(client.delete(name).expect("deleted")));
}

/// Under other protocols, through a refresh, and from an older version; a node is restored from a backup.
#[test]
fn copies_live_under_all_kinds_of_protocols_and_survive_a_refresh() {
    for (protocol, nodes) in [("shamir", 3), ("shamir-active", 4), ("spdz-lt", 2), ("tinytable-linear64", 2)]
    {
        let mut cluster = TestCluster::define_with(protocol, nodes, 1);
        cluster.set_stock(256, 0);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let client = cluster.client();
        let made = insist(&|| client.generate(key("k", "aes-128", &[Mode::Gcm])));
        let message = insist(&|| gcm(&client, "k", b"", b"old"));
        insist(&|| client.rotate("k"));
        let copy = insist(&|| client.copy("k", made.id, same(&made, "old-k")));
        assert_eq!(copy.check_value, made.check_value, "{protocol}");
        cluster.refresh();
        let client = cluster.client();
        insist(&|| client.delete("k"));
        assert_eq!(insist(&|| ungcm(&client, "old-k", b"", &message)), b"old", "{protocol}");
        let sealed = insist(&|| seal(&client, "old-k", b"new"));
        assert_eq!(insist(&|| open(&client, "old-k", &sealed)), b"new", "{protocol}");
    }
}

/// Nodes are stopped somewhere while copies are made. Every copy that was promised is at all nodes, and is
/// the key.
#[test]
fn no_copy_is_lost_or_half_made_whenever_a_node_dies() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    let made = client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    let message = gcm(&client, "k", b"", b"of the key").expect("encrypted");
    for round in 0..6_u64 {
        let victim = (round % 3) as usize;
        let node = cluster.nodes[victim].take().expect("it runs");
        let dying = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(10 + round * 37 % 100));
            drop(node);
        });
        let mut promised = Vec::new();
        let mut number = 0;
        let name_of = |number: u64| format!("copy-{round}-{number}");
        while let Ok(copy) = client.copy("k", made.id, same(&made, &name_of(number))) {
            promised.push(copy);
            number += 1;
        }
        dying.join().expect("it stopped");
        cluster.restart(victim);
        cluster.wait_until_ready();
        let listed = client.keys().expect("a list");
        for copy in &promised {
            let at = listed.keys.iter().find(|listed| listed.info == *copy).map(|listed| listed.at.len());
            assert_eq!(at, Some(3), "it was promised");
        }
        // What was interrupted is completed, or can be made again.
        let interrupted = name_of(number);
        if insist(&|| client.keys()).keys.iter().all(|l| l.info.properties.name != interrupted) {
            insist(&|| client.copy("k", made.id, same(&made, &interrupted)));
        }
        assert_eq!(insist(&|| ungcm(&client, &interrupted, b"", &message)), b"of the key");
    }
}

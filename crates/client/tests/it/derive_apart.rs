//! No key that is derived shows a part of another: one base derives keys of one cipher, and of no block
//! twice.

use std::collections::BTreeMap;

use polyclave_api::{Derivation, KeyInfo, Mode, NewKey, Reason, Usage};
use polyclave_client::{Client, Error, Result};

use crate::common::from_keys::{only_for, refused};
use crate::common::{TestCluster, data, key};

fn counter(label: &[u8]) -> Derivation {
    Derivation::Counter { before: label.to_vec(), counter_bits: 8, after: b"context".to_vec() }
}

fn ways() -> [Derivation; 3] {
    [
        counter(b"label"),
        Derivation::EcbData { data: data(32) },
        Derivation::CbcData { iv: vec![7; 16], data: data(32) },
    ]
}

fn child(client: &Client, base: &str, name: &str, cipher: &str, how: Derivation) -> Result<KeyInfo> {
    client.derive(base, key(name, cipher, &[Mode::Ecb]), how)
}

/// As somebody does who may derive and encrypt: a key of DES is found by trying all, one of PRESENT goes on
/// from there, and one of AES has the bytes of both.
#[test]
fn a_base_derives_keys_of_one_cipher_in_every_way_and_so_do_its_copies() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (number, how) in ways().into_iter().enumerate() {
        let base = format!("apart-{number}");
        let made = client.generate(only_for(&base, "aes-128", &[Usage::Derive])).expect("a key");
        let early = NewKey { name: format!("{base}-copy"), ..made.properties.clone() };
        client.copy(&base, made.id, early).expect("copied before anything is derived");
        let of_aes =
            child(&client, &base, &format!("{base}-aes"), "aes-128", how.clone()).expect("the first");
        for shorter in ["des", "present-80", "3des-ede3", "aes-256"] {
            for base in [base.clone(), format!("{base}-copy")] {
                for how in ways() {
                    let made = child(&client, &base, "apart-not", shorter, how);
                    refused(
                        made,
                        Reason::Key,
                        &format!("keys of aes-128 were derived from the key '{base}'"),
                    );
                }
            }
        }
        let same = child(&client, &format!("{base}-copy"), &format!("{base}-same"), "aes-128", how.clone());
        assert_eq!(same.expect("the same cipher").check_value, of_aes.check_value);
        // What is gone was there.
        for name in [format!("{base}-aes"), format!("{base}-same"), base.clone()] {
            client.delete(&name).expect("deleted");
        }
        refused(child(&client, &format!("{base}-copy"), "apart-not", "des", how), Reason::Key, "of aes-128");
    }
    assert!(client.info("apart-not").is_err());
}

#[test]
fn each_version_of_a_base_is_a_base_of_its_own() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(only_for("apart-turned", "aes-128", &[Usage::Derive])).expect("a key");
    child(&client, "apart-turned", "apart-des", "des", counter(b"l")).expect("the first");
    client.rotate("apart-turned").expect("rotated");
    child(&client, "apart-turned", "apart-new", "aes-128", counter(b"l")).expect("of another key");
    let versions = client.versions("apart-turned").expect("two");
    let old = versions.iter().find(|info| info.version == 1).expect("the first");
    let new = key("apart-not", "aes-128", &[Mode::Ecb]);
    refused(client.derive(old, new, counter(b"l")), Reason::Key, "keys of des were derived");
}

/// Every node knows it by itself, after all that can happen to its store.
#[test]
fn every_node_remembers_the_cipher_across_refreshes_starts_and_backups() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    let base = client.generate(only_for("base", "aes-128", &[Usage::Derive])).expect("a key");
    child(&client, "base", "child", "des", counter(b"l")).expect("derived");
    client.delete("child").expect("deleted");
    cluster.refresh();
    cluster.restore_from_backup(1);
    refused(child(&cluster.client(), "base", "not", "aes-128", counter(b"l")), Reason::Key, "keys of des");
    (0..3).for_each(|node| cluster.stop(node));
    for node in 0..3 {
        let known: Vec<String> =
            cluster.store_of(node).children(base.account).expect("read").into_iter().collect();
        assert_eq!(known, ["des"], "node {node}");
    }
    // One that remembers is enough.
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    child(&cluster.client(), "base", "again", "des", counter(b"l")).expect("the same cipher");
}

/// Whatever the order in which nodes come to them, not both are made.
#[test]
fn of_two_first_keys_of_different_ciphers_at_once_one_at_most_is_made() {
    let cluster = TestCluster::shared();
    cluster.client().generate(only_for("apart-raced", "aes-128", &[Usage::Derive])).expect("a key");
    let ciphers = ["des", "aes-128", "present-80"];
    let mut made: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let racing = ciphers.map(|cipher| {
            let client = cluster.client();
            let run = move || {
                let name = format!("apart-raced-{cipher}");
                let outcome = child(&client, "apart-raced", &name, cipher, counter(b"l"));
                assert!(matches!(outcome, Ok(_) | Err(Error::Refused { .. })), "{outcome:?}");
                outcome.is_ok()
            };
            (cipher, scope.spawn(run))
        });
        for (cipher, thread) in racing {
            made.entry(cipher).or_default().push(thread.join().expect("no panic"));
        }
    });
    let which = made.values().flatten().filter(|made| **made).count();
    assert!(which <= 1, "{made:?}");
}

/// Three equal blocks would make a key of Triple DES that is one of DES.
#[test]
fn no_key_has_two_equal_parts() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(only_for("apart-3des", "3des-ede3", &[Usage::Derive])).expect("a key");
    let ecb = |blocks: [u8; 3]| Derivation::EcbData { data: blocks.map(|b| [b; 8]).concat() };
    for blocks in [[1; 3], [1, 2, 1], [2, 2, 1]] {
        let made = child(&client, "apart-3des", "apart-not", "3des-ede3", ecb(blocks));
        refused(made, Reason::Key, "take blocks that differ");
    }
    child(&client, "apart-3des", "apart-parts", "3des-ede3", ecb([1, 2, 3])).expect("derived");
}

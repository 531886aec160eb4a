//! A key comes in sealed to the nodes. Whoever carries the file learns nothing, and nothing is kept of a file
//! that is wrong.

use polyclave_api::{KeyInfo, Mode, NewKey, Origin, Reason, Right, SealedImport, Wrapping};
use polyclave_client::{Client, Error};
use polyclave_config::{Cluster, Moment, seal_import};
use polyclave_node::Cheat;
use polyclave_transport::CertificateDer;

use crate::common::active::start_cheating;
use crate::common::from_keys::{check_value, code, kek, wrappable, wrapped_by_oracle};
use crate::common::messages::cmac;
use crate::common::{TestCluster, data, insist, key};

const KEY: [u8; 16] = [0x2b, 0x7e, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];

fn seal_as(file: &Cluster, new: NewKey, key: &[u8], check: Vec<u8>, not_after: u64) -> SealedImport {
    let certificates: Vec<&CertificateDer<'_>> =
        file.cards().iter().map(|card| &card.certificates[0]).collect();
    let cluster = (file.fingerprint().bytes(), &certificates[..]);
    seal_import(new, key, check, cluster, not_after).expect("sealed")
}

fn seal(cluster: &TestCluster, new: NewKey, key: &[u8]) -> SealedImport {
    let check = check_value(&new.cipher, key);
    seal_as(&cluster.file(), new, key, check, Moment::now().seconds() + 3600)
}

fn refused(outcome: Result<KeyInfo, Error>) -> String {
    match outcome {
        Err(Error::Refused { refusal, .. }) => refusal.message,
        other => panic!("{other:?}"),
    }
}

fn not_there(client: &Client, name: &str) {
    assert!(client.info(name).is_err(), "{name} was kept");
}

#[test]
fn a_sealed_key_is_the_key_that_was_sealed_under_every_protocol_and_its_file_counts_once() {
    for (protocol, nodes, threshold) in [
        ("shamir", 3, 1),
        ("shamir-active", 4, 1),
        ("replicated-four", 4, 1),
        ("spdz-lt", 2, 1),
        ("tinytable-linear64", 2, 1),
    ] {
        let mut cluster = TestCluster::define_with(protocol, nodes, threshold);
        cluster.set_stock(256, 0);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let client = cluster.client();
        let sealed = seal(&cluster, key("k", "aes-128", &[Mode::Cmac]), &KEY);
        let info = insist(&|| client.import_sealed(sealed.clone()));
        assert_eq!((info.origin, &info.check_value), (Origin::Imported, &check_value("aes-128", &KEY)));
        let message = data(40);
        cluster.wait_until(|| match cmac(&client, "k", &message) {
            Ok(computed) => {
                assert_eq!(computed, code("aes-128", &KEY, &message), "{protocol}");
                true
            }
            Err(e) => {
                assert!(e.may_pass(), "{protocol}: {e}");
                false
            }
        });

        assert!(refused(client.import_sealed(sealed.clone())).contains("there is a key 'k' already"));
        client.delete("k").expect("deleted").expect("it was there");
        // Its nodes may have been started anew since.
        (0..nodes).for_each(|node| cluster.stop(node));
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let text = refused(cluster.client().import_sealed(sealed));
        assert!(text.contains("was imported before"), "{protocol}: {text}");
        not_there(&cluster.client(), "k");
    }
}

#[test]
fn nothing_is_kept_of_a_file_that_is_altered_expired_of_another_cluster_or_of_another_key() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let new = || key("sealed-wrong", "aes-128", &[Mode::Cmac]);
    let good = || seal(&cluster, new(), &KEY);
    let altered = |change: &dyn Fn(&mut SealedImport)| {
        let mut sealed = good();
        change(&mut sealed);
        sealed
    };
    let (file, check, later) = (cluster.file(), check_value("aes-128", &KEY), Moment::now().seconds() + 3600);
    let mut others = file.cards().to_vec();
    others.swap(0, 1);
    let elsewhere = Cluster::define(file.protocol(), file.threshold(), others).expect("it fits");
    let ended = seal_as(&file, new(), &KEY, check.clone(), Moment::now().seconds() - 1);
    let mixed = altered(&|sealed| sealed.parts[1] = good().parts[1].clone());
    let cannot = "cannot open its part of this sealed key";
    for (what, sealed, message) in [
        ("another cluster", seal_as(&elsewhere, new(), &KEY, check.clone(), later), "for the cluster file"),
        ("expired", ended, "could be imported until"),
        ("an altered part", altered(&|s| s.parts[2].ciphertext[3] ^= 1), cannot),
        ("an altered key of a part", altered(&|s| s.parts[0].encapsulated[3] ^= 1), cannot),
        ("a longer time", altered(&|s| s.not_after += 9), cannot),
        ("another name", altered(&|s| s.new.name = "sealed-other".into()), cannot),
        ("another budget", altered(&|s| s.new.budget_blocks -= 1), cannot),
        ("another check value", altered(&|s| s.check[0] ^= 1), cannot),
        ("a part of another file", mixed, "node-2 cannot open"),
        ("a shorter part", altered(&|s| s.parts[0].ciphertext.truncate(31)), cannot),
    ] {
        let outcome = refused(client.import_sealed(sealed));
        assert!(outcome.contains(message), "{what}: {outcome}");
        not_there(&client, "sealed-wrong");
        not_there(&client, "sealed-other");
    }
    let fewer = altered(&|s| s.parts.truncate(2));
    assert!(matches!(client.import_sealed(fewer), Err(Error::Refused { .. })));

    // As if a node shared another part than it was given: the sum is another key.
    let mut other = KEY;
    other[5] ^= 1;
    let wrong = seal_as(&file, new(), &other, check, later);
    for _ in 0..8 {
        let message = refused(client.import_sealed(wrong.clone()));
        assert!(message.contains("was expected") && message.contains("nothing was kept"), "{message}");
        not_there(&client, "sealed-wrong");
    }
    let message = refused(client.import_sealed(wrong));
    assert!(message.contains("in 8 attempts"), "{message}");
    client.import_sealed(good()).expect("the name is free, and this file is right");
}

/// Two nodes that do not trust each other make material ahead; here they keep none at first.
#[test]
fn imports_for_which_the_stock_is_dry_use_up_no_tries() {
    let mut cluster = TestCluster::define_with("spdz-lt", 2, 1);
    cluster.set_stock(0, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let sealed = seal(&cluster, key("k", "aes-128", &[Mode::Cmac]), &KEY);
    let client = cluster.client();
    (0..9).for_each(|_| finds_the_stock_dry(&client, &sealed));
    (0..2).for_each(|node| cluster.stop(node));
    cluster.set_stock(8, 0);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let info = insist(&|| client.import_sealed(sealed.clone()));
    assert_eq!(info.check_value, check_value("aes-128", &KEY));
}

/// Imports a file until the nodes refuse it for want of material. Nodes that have just started may be busy.
fn finds_the_stock_dry(client: &Client, sealed: &SealedImport) {
    insist(&|| match client.import_sealed(sealed.clone()) {
        Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::OutOfMaterial => Ok(()),
        Err(e) => Err(e),
        Ok(_) => panic!("there is no material for it"),
    });
}

/// The check value of a key of DES does not depend on its parity bits. A key that leaves wrapped shows them.
#[test]
fn a_node_that_flips_parity_bits_of_its_part_changes_no_bit_of_the_key() {
    let (des, all) = (&[("des", 8)][..], &[("3des-ede2", 16), ("3des-ede3", 24)][..]);
    for (protocol, nodes, ciphers) in [
        ("shamir", 3, all),
        ("shamir-active", 4, des),
        ("replicated", 3, all),
        ("replicated-active", 3, des),
        ("replicated-four", 4, des),
        ("spdz-lt", 2, des),
        ("spdz-tower", 2, des),
        ("tinytable-linear64", 2, des),
    ] {
        let mut cluster = TestCluster::define_with(protocol, nodes, 1);
        cluster.set_stock(16, 8);
        start_cheating(&mut cluster, 0, Cheat::FlipsParity);
        (1..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let client = cluster.client();
        insist(&|| client.import(kek("kek", 16), &KEY));
        for (cipher, bytes) in ciphers {
            let odd = |x: u8| (x & 0xfe) | (1 ^ ((x >> 1).count_ones() as u8 & 1));
            let key: Vec<u8> = data(*bytes).into_iter().map(odd).collect();
            let sealed = seal(&cluster, wrappable(cipher, cipher, &[Mode::Ctr]), &key);
            let made = insist(&|| client.import_sealed(sealed.clone()));
            assert_eq!(made.check_value, check_value(cipher, &key), "{cipher} under {protocol}");
            let wrapped = insist(&|| client.wrap("kek", *cipher, Wrapping::Kwp));
            assert_eq!(wrapped, wrapped_by_oracle(&KEY, &key, Wrapping::Kwp), "{cipher} under {protocol}");
        }
    }
}

#[test]
fn only_a_client_that_may_import_the_key_carries_its_file() {
    let cluster = TestCluster::shared();
    let sealed = |name: &str| seal(&cluster, key(name, "aes-128", &[Mode::Cmac]), &KEY);
    let carrier = cluster.client_with("carrier", &[Right::Import, Right::List], &["carried-*"]);
    let other = cluster.client_with("no-carrier", &[Right::Generate, Right::List], &["carried-*"]);
    assert!(other.import_sealed(sealed("carried-1")).is_err());
    assert!(carrier.import_sealed(sealed("foreign-1")).is_err());
    let info = carrier.import_sealed(sealed("carried-1")).expect("it may");
    assert_eq!(info.properties.name, "carried-1");
}

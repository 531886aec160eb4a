//! Keys for HMAC derive keys and bytes as NIST's vectors and another program say, under every protocol except
//! `shamir-active`, which has no test yet, and compute no codes for a client beside that.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use polyclave_api::{Derivation, Mode, NewKey, Origin, Reason, Right, Usage};
use polyclave_cipher::hmac::{Sha2, name};
use polyclave_client::Client;
use polyclave_node::Cheat;

use crate::common::active::start_cheating;
use crate::common::from_keys::{bytes, check_value, only_for, refused};
use crate::common::vectors::{KBKDF, Vector, vectors};
use crate::common::{TestCluster, data, insist, key};
use crate::hmac::with_hash;

/// What keys for HMAC-SHA-256 name as their cipher.
const NAME: &str = name(Sha2::Sha256);

fn counter(before: &[u8], counter_bits: u8, after: &[u8]) -> Derivation {
    Derivation::Counter { before: before.to_vec(), counter_bits, after: after.to_vec() }
}

fn expand(info: &[u8]) -> Derivation {
    Derivation::HkdfExpand { info: info.to_vec() }
}

/// SP 800-108 in counter mode and HKDF-Expand, over another implementation of HMAC.
fn of_another_program(hash: Sha2, secret: &[u8], how: &Derivation, bytes: usize) -> Vec<u8> {
    let mut code = Vec::new();
    let of = |i: u32| {
        let message = match how {
            Derivation::Counter { before, counter_bits, after } => {
                [before, &i.to_be_bytes()[4 - usize::from(*counter_bits) / 8..], after].concat()
            }
            Derivation::HkdfExpand { info } => [&code[..], info, &[i as u8]].concat(),
            _ => panic!("no codes"),
        };
        code = with_hash(hash, secret, &message);
        code.clone()
    };
    (1..).flat_map(of).take(bytes).collect()
}

#[test]
fn vectors_of_nist_come_out_as_bytes_and_as_keys() {
    let all = vectors(KBKDF, "");
    let (cluster, next, keys) = (TestCluster::shared(), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = cluster.client();
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    let Some(vector) = all.get(number) else { break };
                    keys.fetch_add(usize::from(comes_out(&client, number, vector)), Relaxed);
                }
            });
        }
    });
    // Of each hash 12 with one code and 12 with the most bytes, and of four block ciphers 4 each.
    assert_eq!((all.len(), keys.into_inner()), (3 * 24 + 4 * 4, 3 * 12));
}

/// Whether it was also a key that came out.
fn comes_out(client: &Client, number: usize, vector: &Vector) -> bool {
    let (cipher, secret, expected) = (vector.text("cipher"), vector.bytes("key"), vector.bytes("derived"));
    let bits = vector.text("counter_bits").parse().expect("a number");
    let how = || counter(&vector.bytes("before"), bits, &vector.bytes("after"));
    let of_vector = format!("kbkdf-{number}");
    client.import(only_for(&of_vector, cipher, &[Usage::Kdf]), &secret).expect("a key");
    let derived = client.kdf(&of_vector, how(), expected.len()).expect("derived");
    assert_eq!(derived[..], expected[..], "{vector:?}");
    let is_key = expected.len() == 16;
    if is_key {
        let base = format!("{of_vector}-base");
        client.import(only_for(&base, cipher, &[Usage::Derive]), &secret).expect("a key");
        let child = key(&format!("{of_vector}-child"), "aes-128", &[Mode::Gcm]);
        let child = client.derive(&base, child, how()).expect("derived");
        assert_eq!(child.check_value, check_value("aes-128", &expected), "{vector:?}");
        assert_eq!(child.origin, Origin::Derived);
    }
    is_key
}

/// RFC 5869, appendix A.1 to A.3: PRK, info and OKM. (Another has SHA-1.)
const HKDF: [(&str, &str, &str); 3] = [
    (
        "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
        "f0f1f2f3f4f5f6f7f8f9",
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
        "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4\
         e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c\
         2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    (
        "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
        "",
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
];

#[test]
fn vectors_of_hkdf_come_out_as_bytes_and_as_keys() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (number, (prk, info, expected)) in HKDF.into_iter().enumerate() {
        let [prk, info, expected] = [prk, info, expected].map(bytes);
        let [seeds, base] = ["seeds", "base"].map(|name| format!("hkdf-{name}-{number}"));
        client.import(only_for(&seeds, NAME, &[Usage::Kdf]), &prk).expect("a key");
        let derived = client.kdf(&seeds, expand(&info), expected.len()).expect("derived");
        assert_eq!(derived[..], expected[..]);
        client.import(only_for(&base, NAME, &[Usage::Derive]), &prk).expect("a key");
        let child = key(&format!("{base}-child"), "aes-256", &[Mode::Gcm]);
        let child = client.derive(&base, child, expand(&info)).expect("derived");
        assert_eq!(child.check_value, check_value("aes-256", &expected[..32]));
    }
}

#[test]
fn a_key_of_a_block_cipher_computes_no_hkdf() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(only_for("hkdf-aes", "aes-256", &[Usage::Derive])).expect("a key");
    let made = client.derive("hkdf-aes", key("hkdf-not", "aes-256", &[Mode::Gcm]), expand(b"info"));
    refused(made, Reason::Key, "hkdf is computed under keys for hmac, not of aes-256");
}

/// Keys that take a part of a code and several codes, of ciphers with cells of every width, and for HMAC.
#[test]
fn keys_of_every_cipher_are_those_of_another_program() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let secret = data(70);
    for (number, (hash, cipher, len)) in [
        (Sha2::Sha256, "aes-256", 32),
        (Sha2::Sha256, "present-80", 10),
        (Sha2::Sha256, "hmac-sha-512", 128),
        (Sha2::Sha384, "3des-ede3", 24),
        (Sha2::Sha384, "hmac-sha-256", 64),
        (Sha2::Sha512, "aes-192", 24),
    ]
    .into_iter()
    .enumerate()
    {
        let base = format!("apart-hmac-{number}");
        client.import(only_for(&base, name(hash), &[Usage::Derive]), &secret).expect("a key");
        let modes = [if cipher.starts_with("hmac") { Mode::Hmac } else { Mode::Ctr }];
        // Empty, up to the end of a block of either size, and behind it, also with the code before.
        let counters =
            [0, 53, 54, 109, 110, 200].map(|given| counter(&data(given / 2), 16, &data(given.div_ceil(2))));
        let infos = [0, 22, 23, 46, 47, 62, 63].map(|given| expand(&data(given)));
        // Every length with the first base; with the others some, since each takes two keys.
        let some = |i: &usize| number == 0 || [4, 7, 12].contains(i);
        for (i, how) in counters.into_iter().chain(infos).enumerate().filter(|(i, _)| some(i)) {
            let child = key(&format!("{base}-child-{i}"), cipher, &modes);
            let child = client.derive(&base, child, how.clone()).expect("derived");
            let expected = of_another_program(hash, &secret, &how, len);
            let imported = key(&format!("{base}-imported-{i}"), cipher, &modes);
            let imported = client.import(imported, &expected).expect("a key");
            assert_eq!(child.check_value, imported.check_value, "{hash:?} to {cipher}, {how:?}");
        }
    }
}

/// A code of the base would be the derived key.
#[test]
fn a_key_that_derives_computes_no_codes_and_one_for_codes_derives_nothing() {
    let cluster = TestCluster::shared();
    let admin = cluster.client();
    let how = || counter(b"label\0context", 8, b"");
    let child = || key("hd-child", "aes-128", &[Mode::Gcm]);
    let uses = [("hd-derive", Usage::Derive), ("hd-kdf", Usage::Kdf)];
    for (name, usage) in uses {
        admin.generate(only_for(name, NAME, &[usage])).expect("a key");
        let code = admin.key(name).and_then(|key| key.hmac(&[b"label\0context\x01"], 32));
        refused(code, Reason::NotForThis, "not for hmac");
        let mut usage = vec![Usage::Mac, usage];
        usage.sort();
        let both = NewKey { usage, ..key("hd-both", NAME, &[Mode::Hmac]) };
        refused(admin.generate(both), Reason::Key, "serves nothing else");
    }
    let both = only_for("hd-both", NAME, &[Usage::Derive, Usage::Kdf]);
    refused(admin.generate(both), Reason::Key, "kdf undoes derive");
    let made = admin.info("hd-derive").expect("shown");
    let copy = key("hd-copy", NAME, &[Mode::Hmac]);
    refused(admin.copy("hd-derive", made.id, copy), Reason::Key, "");

    admin.import(key("hd-codes", NAME, &[Mode::Hmac]), &data(32)).expect("a key");
    refused(admin.derive("hd-codes", child(), how()), Reason::NotForThis, "for the usage mac, not derive");
    refused(admin.kdf("hd-codes", how(), 16), Reason::NotForThis, "not kdf");
    refused(admin.kdf("hd-derive", how(), 16), Reason::NotForThis, "for the usage derive, not kdf");
    refused(admin.derive("hd-kdf", child(), how()), Reason::NotForThis, "for the usage kdf, not derive");

    // The reason for it.
    admin.import(only_for("hd-same", NAME, &[Usage::Derive]), &data(32)).expect("a key");
    let child = admin.derive("hd-same", child(), how()).expect("derived");
    let code = admin.key("hd-codes").and_then(|key| key.hmac(&[b"label\0context\x01"], 32));
    assert_eq!(child.check_value, check_value("aes-128", &code.expect("a code")[0][..16]));

    let others = [Right::Mac, Right::Kdf, Right::Encrypt, Right::Decrypt, Right::Generate, Right::List];
    let without = cluster.client_with("hd-without", &others, &["hd-*"]);
    let more = || key("hd-more", "aes-128", &[Mode::Gcm]);
    refused(without.derive("hd-same", more(), how()), Reason::Denied, "");
    let with = cluster.client_with("hd-with", &[Right::Derive, Right::Generate], &["hd-*"]);
    with.derive("hd-same", more(), how()).expect("it may");
    refused(with.kdf("hd-kdf", how(), 16), Reason::Denied, "");
}

#[test]
fn a_base_for_hmac_derives_keys_of_one_cipher_and_encrypts_no_blocks() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(only_for("ho-base", NAME, &[Usage::Derive])).expect("a key");
    let how = || counter(b"label", 8, b"");
    let child = |name: &str, cipher: &str| key(name, cipher, &[Mode::Ctr]);
    for blocks in
        [Derivation::EcbData { data: data(32) }, Derivation::CbcData { iv: data(32), data: data(32) }]
    {
        let made = client.derive("ho-base", child("ho-not", "aes-128"), blocks);
        refused(made, Reason::Key, "hmac-sha-256 encrypts no blocks");
    }
    client.derive("ho-base", child("ho-first", "aes-128"), how()).expect("the first");
    for other in ["des", "present-80", "aes-256"] {
        let made = client.derive("ho-base", child("ho-not", other), how());
        refused(made, Reason::Key, "keys of aes-128 were derived from the key 'ho-base'");
    }
}

#[test]
fn the_compressions_are_paid_for() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let poor = |name: &str, usage| NewKey { budget_blocks: 7, ..only_for(name, NAME, &[usage]) };
    client.generate(poor("hp-base", Usage::Derive)).expect("a key");
    client.generate(poor("hp-kdf", Usage::Kdf)).expect("a key");
    let child = |i: usize| key(&format!("hp-child-{i}"), "aes-256", &[Mode::Gcm]);
    client.derive("hp-base", child(0), counter(&data(54), 8, b"")).expect("two");
    client.derive("hp-base", child(1), counter(&data(55), 8, b"")).expect("three");
    refused(client.derive("hp-base", child(2), counter(&data(55), 8, b"")), Reason::Spent, "");
    client.derive("hp-base", child(3), counter(&data(54), 8, b"")).expect("the other two");
    client.kdf("hp-kdf", counter(b"l", 8, b""), 65).expect("six");
    refused(client.kdf("hp-kdf", counter(b"l", 8, b""), 1), Reason::Spent, "");
}

/// A key is derived from one that was imported, and one from a key that nobody ever had.
fn works(cluster: &TestCluster) {
    let client = cluster.client();
    let how = counter(b"label\0", 32, b"\0context");
    insist(&|| client.import(only_for("base", NAME, &[Usage::Derive]), &data(40)));
    let child = insist(&|| client.derive("base", key("child", "aes-256", &[Mode::Gcm]), how.clone()));
    let expected = of_another_program(Sha2::Sha256, &data(40), &how, 32);
    assert_eq!(child.check_value, check_value("aes-256", &expected));
    insist(&|| client.generate(only_for("seeds", NAME, &[Usage::Kdf])));
    let [first, again] = [(); 2].map(|()| insist(&|| client.kdf("seeds", how.clone(), 40)));
    assert_eq!(first, again);
    assert_ne!(first[..], of_another_program(Sha2::Sha256, &data(40), &how, 40));
    insist(&|| client.import(only_for("prk", NAME, &[Usage::Kdf]), &data(32)));
    let bytes = insist(&|| client.kdf("prk", expand(b"info"), 40));
    assert_eq!(bytes[..], of_another_program(Sha2::Sha256, &data(32), &expand(b"info"), 40));
}

fn works_among(protocol: &str, nodes: usize) {
    let mut cluster = TestCluster::define_with(protocol, nodes, 1);
    cluster.set_stock(1024, 64);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    works(&cluster);
}

#[test]
fn it_works_under_replicated() {
    works_among("replicated", 3);
}

#[test]
fn it_works_under_replicated_active() {
    works_among("replicated-active", 3);
}

#[test]
fn it_works_under_replicated_four() {
    works_among("replicated-four", 4);
}

#[test]
fn it_works_under_spdz_lt() {
    works_among("spdz-lt", 2);
}

#[test]
fn it_works_under_spdz_tower() {
    works_among("spdz-tower", 2);
}

#[test]
fn it_works_under_tinytable_linear64() {
    works_among("tinytable-linear64", 2);
}

/// No key has subkeys of CMAC that was made to derive with HMAC, nor is one looked for.
#[test]
fn keys_are_derived_after_a_refresh_and_bytes_while_a_node_is_away() {
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let how = counter(b"label", 8, b"context");
    for (name, usage) in [("base", Usage::Derive), ("seeds", Usage::Kdf)] {
        insist(&|| cluster.client().import(only_for(name, NAME, &[usage]), &data(32)));
    }
    cluster.refresh();
    let expected = of_another_program(Sha2::Sha256, &data(32), &how, 33);
    let new = || key("child", "aes-256", &[Mode::Gcm]);
    let child = insist(&|| cluster.client().derive("base", new(), how.clone()));
    assert_eq!(child.check_value, check_value("aes-256", &expected[..32]));
    cluster.wait_until(|| {
        let pairs = cluster.nodes.iter().flatten().flat_map(|node| node.standby());
        pairs.into_iter().all(|pair| pair.ready && pair.keys == 3 && pair.lacking == 0)
    });
    cluster.stop(1);
    let client = cluster.client();
    assert_eq!(insist(&|| client.kdf("seeds", how.clone(), 33))[..], expected[..]);
}

/// Wrong products of one node: under `replicated-four` the key is right, under `replicated-active` there is
/// none.
#[test]
fn a_node_that_cheats_makes_no_derived_key_wrong() {
    for (protocol, nodes) in [("replicated-four", 4), ("replicated-active", 3)] {
        let mut cluster = TestCluster::define_with(protocol, nodes, 1);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        cluster.client().import(only_for("base", NAME, &[Usage::Derive]), &data(32)).expect("a key");
        cluster.stop(1);
        start_cheating(&mut cluster, 1, Cheat::InProducts);
        cluster.wait_until_ready();
        let how = counter(b"label", 8, b"");
        let made = cluster.client().derive("base", key("child", "aes-128", &[Mode::Gcm]), how.clone());
        match nodes {
            4 => {
                let expected = of_another_program(Sha2::Sha256, &data(32), &how, 16);
                assert_eq!(made.expect("a key").check_value, check_value("aes-128", &expected));
            }
            _ => refused(made, Reason::Quarantined, ""),
        }
    }
}

//! Keys are derived on shares as other programs do it in the clear, and all that is done with two keys works
//! under every kind of protocol.

use std::time::Instant;

use polyclave_api::{
    BlockHeader, Derivation, KeyInfo, Mode, NewKey, Origin, Reason, Usage, Wrapping, usage_of,
};

use crate::common::from_keys::{
    COUNTING, DATA, KW, bytes, check_value, code, kek, only_for, refused, wrappable, wrapped_by_oracle,
};
use crate::common::messages::{cmac, gcm, rewrap_gcm};
use crate::common::oracle::Oracle;
use crate::common::{TestCluster, active, data, key};
use polyclave_client::{Client, Error};

#[test]
fn derived_keys_are_what_other_programs_compute() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (base, base_len) in [("aes-128", 16), ("aes-256", 32), ("3des-ede3", 24)] {
        let secret: Vec<u8> = (0..base_len).map(|i: u8| i.wrapping_mul(29) ^ 0x71).collect();
        let oracle = Oracle::new(base, &secret);
        let iv = data(oracle.block);
        for (cipher, len) in [("aes-128", 16), ("3des-ede3", 24), ("aes-256", 32), ("present-80", 10)] {
            let name = format!("base-{base}-{cipher}");
            client.import(only_for(&name, base, &[Usage::Derive]), &secret).expect("a key");
            let whole = data(48);
            let counter = |bits: u8, before: &[u8], after: &[u8]| {
                let how = Derivation::Counter {
                    before: before.to_vec(),
                    counter_bits: bits,
                    after: after.to_vec(),
                };
                let of = |i: u32| [before, &i.to_be_bytes()[4 - usize::from(bits) / 8..], after].concat();
                (how, (1..=4).flat_map(|i| code(base, &secret, &of(i))).collect())
            };
            // Whole blocks, part of a block, and several.
            let derivations: [(Derivation, Vec<u8>); 5] = [
                (Derivation::EcbData { data: whole.clone() }, oracle.ecb(&whole)),
                (Derivation::CbcData { iv: iv.clone(), data: whole.clone() }, oracle.cbc(&iv, &whole)),
                counter(8, b"label\0context", b""),
                counter(32, b"", &data(2 * oracle.block - 4)),
                counter(16, &data(20), &data(33)),
            ];
            for (i, (how, output)) in derivations.into_iter().enumerate() {
                let child = format!("{name}-{cipher}-{i}");
                let new = wrappable(&child, cipher, &[Mode::Ctr]);
                let info = client.derive(&name, new, how).expect("derived");
                assert_eq!((info.origin, info.properties.wrappable), (Origin::Derived, true));
                if cipher != "present-80" {
                    assert_eq!(info.check_value, check_value(cipher, &output[..len]), "{child}");
                    continue;
                }
                let imported = key(&format!("{child}-imported"), cipher, &[Mode::Ctr]);
                let imported = client.import(imported, &output[..len]).expect("a key");
                assert_eq!(info.check_value, imported.check_value, "{child}");
            }
        }
    }
}

#[test]
fn a_derived_key_is_wrapped_as_what_it_is() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(only_for("chain-base", "aes-128", &[Usage::Derive]), &[3; 16]).expect("a key");
    client.import(kek("chain-kek", 16), &[4; 16]).expect("a key");
    let new = wrappable("chain-child", "3des-ede3", &[Mode::Cbc]);
    client.derive("chain-base", new, Derivation::EcbData { data: data(32) }).expect("derived");
    let child = &Oracle::new("aes-128", &[3; 16]).ecb(&data(32))[..24];
    let wrapped = client.wrap("chain-kek", "chain-child", Wrapping::Kw).expect("wrapped");
    assert_eq!(wrapped, wrapped_by_oracle(&[4; 16], child, Wrapping::Kw), "parity bits as they come");
}

#[test]
fn the_blocks_are_paid_for_by_the_key_that_computes_them() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    // Wrapping takes 12 blocks. Each node holds all of the budget, since all three serve.
    let poor = |name: &str, usage| NewKey { budget_blocks: 25, ..only_for(name, "aes-128", usage) };
    client.generate(poor("poor-kek", &[Usage::Wrap, Usage::Unwrap])).expect("a key");
    client.generate(poor("poor-base", &[Usage::Derive])).expect("a key");
    client.generate(wrappable("poor-key", "aes-128", &[Mode::Gcm])).expect("a key");
    let wrapped = client.wrap("poor-kek", "poor-key", Wrapping::Kw).expect("12 blocks");
    let new = |name: &str| key(name, "aes-128", &[Mode::Gcm]);
    client.unwrap("poor-kek", &wrapped, Wrapping::Kw, new("poor-back")).expect("12 more");
    refused(client.unwrap("poor-kek", &wrapped, Wrapping::Kw, new("poor-more")), Reason::Spent, "");
    refused(client.wrap("poor-kek", "poor-key", Wrapping::Kw), Reason::Spent, "");
    let counter = Derivation::Counter { before: vec![1; 399], counter_bits: 8, after: vec![] };
    client.derive("poor-base", new("poor-child"), counter.clone()).expect("25 blocks");
    refused(client.derive("poor-base", new("poor-another"), counter), Reason::Spent, "");
}

#[test]
fn attributes_and_usage_come_back_and_long_lists_have_more_pages() {
    let cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    for i in 0..300 {
        let attributes = vec![i as u8; 4096];
        let new = NewKey { attributes, ..key(&format!("attributed-{i:03}"), "aes-128", &[Mode::Ctr]) };
        client.generate(new).expect("a key");
    }
    let listing = client.keys().expect("listed");
    assert!(listing.missing.is_empty(), "{:?}", listing.missing);
    assert_eq!(listing.keys.len(), 300);
    assert!(listing.keys.iter().enumerate().all(|(i, listed)| {
        listed.at.len() == 3 && listed.info.properties.attributes == vec![i as u8; 4096]
    }));
    let info: KeyInfo = client.info("attributed-007").expect("shown");
    assert_eq!(info.properties.usage, usage_of(&[Mode::Ctr]));
}

/// Wraps, unwraps and derives, and refuses a forged key. `settled` waits for material, if there is a stock.
fn works_at(cluster: &TestCluster, settled: &dyn Fn()) {
    let client = cluster.client();
    client.import(kek("kek", 16), &bytes(COUNTING)[..16]).expect("a key");
    settled();
    client.import(wrappable("k", "aes-128", &[Mode::Cmac]), &bytes(DATA)[..16]).expect("a key");
    settled();
    client.import(only_for("base", "aes-128", &[Usage::Derive]), &[3; 16]).expect("a key");
    settled();
    let wrapped = client.wrap("kek", "k", Wrapping::Kw).expect("wrapped");
    assert_eq!(wrapped, bytes(KW[0].2));
    settled();
    let back = client.unwrap("kek", &wrapped, Wrapping::Kw, key("back", "aes-128", &[Mode::Cmac]));
    assert_eq!(back.expect("unwrapped").check_value, check_value("aes-128", &bytes(DATA)[..16]));
    settled();
    assert_eq!(cmac(&client, "back", b"x").expect("a code"), code("aes-128", &bytes(DATA)[..16], b"x"));
    let mut altered = wrapped.clone();
    altered[9] ^= 4;
    settled();
    let forged = client.unwrap("kek", &altered, Wrapping::Kw, key("forged", "aes-128", &[Mode::Cmac]));
    assert!(matches!(forged, Err(Error::Unauthentic(_))), "{forged:?}");
    settled();
    let how = Derivation::Counter { before: b"l".to_vec(), counter_bits: 8, after: b"c".to_vec() };
    let child = client.derive("base", key("child", "aes-128", &[Mode::Gcm]), how).expect("derived");
    let expected = code("aes-128", &[3; 16], b"l\x01c");
    assert_eq!(child.check_value, check_value("aes-128", &expected));
    settled();
    client.import(only_for("base-3des", "aes-128", &[Usage::Derive]), &[3; 16]).expect("a key");
    settled();
    let how = Derivation::CbcData { iv: vec![7; 16], data: data(32) };
    let child =
        client.derive("base-3des", key("child-3des", "3des-ede3", &[Mode::Ctr]), how).expect("derived");
    let expected = Oracle::new("aes-128", &[3; 16]).cbc(&[7; 16], &data(32));
    assert_eq!(child.check_value, check_value("3des-ede3", &expected[..24]));
}

fn works_under(protocol: &str) {
    let mut cluster = TestCluster::define_with(protocol, 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    works_at(&cluster, &|| ());
}

#[test]
fn keys_are_wrapped_and_derived_under_shamir_active() {
    let cluster = active::start(64, &[]);
    works_at(&cluster, &|| active::fill(&cluster));
}

#[test]
fn keys_are_wrapped_and_derived_under_spdz_tower() {
    works_under("spdz-tower");
}

#[test]
fn keys_are_wrapped_and_derived_under_spdz_lt() {
    works_under("spdz-lt");
}

#[test]
fn keys_are_wrapped_and_derived_under_tinytable() {
    works_under("tinytable-linear64");
}

/// What is measured: the number of times that it ran before makes its names.
type Step<'s> = &'s dyn Fn(&Client, usize);

/// No speed is asserted:
/// `cargo test --release -p polyclave-client --test it medians -- --ignored --nocapture`.
#[test]
#[ignore = "it measures"]
fn medians_of_rotating_wrapping_unwrapping_rewrapping_and_deriving() {
    let cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(kek("kek", 16)).expect("a key");
    client.generate(wrappable("k", "aes-128", &[Mode::Gcm])).expect("a key");
    client.generate(only_for("base", "aes-128", &[Usage::Derive])).expect("a key");
    let wrapped = client.wrap("kek", "k", Wrapping::Kw).expect("wrapped");
    let new = |name: &str, i: usize| key(&format!("{name}-{i}"), "aes-128", &[Mode::Ctr]);
    let counter = || Derivation::Counter { before: b"label".to_vec(), counter_bits: 8, after: b"".to_vec() };
    client.generate(key("kbpk", "aes-128", &[Mode::Tr31])).expect("a key");
    client.generate(only_for("seeds", "aes-128", &[Usage::Kdf])).expect("a key");
    let header = BlockHeader::of(&client.info("k").expect("there").properties).expect("it fits");
    let block = client.wrap_block("kbpk", "k", header.clone()).expect("wrapped");
    let new_of_block = |i: usize| key(&format!("from-block-{i}"), "aes-128", &[Mode::Gcm]);
    client.generate(key("turning", "aes-128", &[Mode::Ctr])).expect("a key");
    client.generate(key("old", "aes-128", &[Mode::Gcm])).expect("a key");
    client.generate(key("new", "aes-128", &[Mode::Gcm])).expect("a key");
    let value = gcm(&client, "old", b"", &data(32)).expect("encrypted");
    client.generate(kek("next-kek", 16)).expect("a key");
    let what: [(&str, Step<'_>); 10] = [
        ("generate", &|client, i| drop(client.generate(new("made", i)).expect("made"))),
        ("rotate", &|client, _| drop(client.rotate("turning").expect("rotated"))),
        ("wrap", &|client, _| drop(client.wrap("kek", "k", Wrapping::Kw).expect("wrapped"))),
        ("unwrap", &|client, i| {
            drop(client.unwrap("kek", &wrapped, Wrapping::Kw, new("back", i)).expect("unwrapped"))
        }),
        ("rewrap 32 bytes of gcm", &|client, _| {
            drop(rewrap_gcm(client, ("old", "new"), b"", &value).expect("rewrapped"))
        }),
        ("rewrap a wrapped key", &|client, _| {
            let keys = ("kek", "next-kek");
            drop(client.rewrap_key(keys, Wrapping::Kw, &wrapped).expect("rewrapped"))
        }),
        ("derive", &|client, i| drop(client.derive("base", new("child", i), counter()).expect("derived"))),
        ("kdf of 32 bytes", &|client, _| drop(client.kdf("seeds", counter(), 32).expect("derived"))),
        ("wrap in a key block", &|client, _| {
            drop(client.wrap_block("kbpk", "k", header.clone()).expect("wrapped"))
        }),
        ("unwrap a key block", &|client, i| {
            drop(client.unwrap_block("kbpk", &block, new_of_block(i)).expect("unwrapped"))
        }),
    ];
    for (name, run) in what {
        let mut times: Vec<f64> = (0..31)
            .map(|i| {
                let began = Instant::now();
                run(&client, i);
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name}: median {:.1} ms, of {:.1} to {:.1}", times[15], times[0], times[30]);
    }
}

//! Bytes are derived for a client as other programs compute them, for who may, from keys that are for it.

use polyclave_api::{Derivation, Mode, NewKey, Reason, Right, Usage};

use crate::common::from_keys::{code, only_for, refused};
use crate::common::{TestCluster, active, data, key};
use polyclave_client::Client;

fn counter(before: &[u8], counter_bits: u8, after: &[u8]) -> Derivation {
    Derivation::Counter { before: before.to_vec(), counter_bits, after: after.to_vec() }
}

/// SP 800-108 in counter mode, over another implementation of CMAC.
fn by_oracle(cipher: &str, key: &[u8], (before, bits, after): (&[u8], u8, &[u8]), bytes: usize) -> Vec<u8> {
    let of = |i: u32| [before, &i.to_be_bytes()[4 - usize::from(bits) / 8..], after].concat();
    (1..).flat_map(|i| code(cipher, key, &of(i))).take(bytes).collect()
}

fn derives_as_others(client: &Client, ciphers: &[(&str, usize)], settled: &dyn Fn()) {
    let secret: Vec<u8> = (0..32).map(|i: u8| i.wrapping_mul(29) ^ 0x71).collect();
    for &(cipher, len) in ciphers {
        let name = format!("kdf-{cipher}");
        settled();
        client.import(only_for(&name, cipher, &[Usage::Kdf]), &secret[..len]).expect("a key");
        for (before, bits, after, bytes) in [
            (&b"label\0context"[..], 8, &b""[..], 1),
            (b"", 32, &data(28)[..], 16),
            (&data(20), 16, &data(33), 50),
        ] {
            settled();
            let derived = client.kdf(&name, counter(before, bits, after), bytes).expect("derived");
            let expected = by_oracle(cipher, &secret[..len], (before, bits, after), bytes);
            assert_eq!(*derived, expected, "{cipher}, {bytes} bytes");
        }
    }
}

#[test]
fn derived_bytes_are_what_other_programs_compute() {
    let cluster = TestCluster::shared();
    derives_as_others(&cluster.client(), &[("aes-128", 16), ("aes-256", 32), ("3des-ede3", 24)], &|| ());
}

#[test]
fn bytes_are_derived_under_shamir_active() {
    let cluster = active::start(64, &[]);
    derives_as_others(&cluster.client(), &[("aes-128", 16)], &|| active::fill(&cluster));
}

fn derives_among_two(protocol: &str) {
    let mut cluster = TestCluster::define_with(protocol, 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    derives_as_others(&cluster.client(), &[("aes-128", 16)], &|| ());
}

#[test]
fn bytes_are_derived_under_spdz_tower() {
    derives_among_two("spdz-tower");
}

#[test]
fn bytes_are_derived_under_spdz_lt() {
    derives_among_two("spdz-lt");
}

#[test]
fn bytes_are_derived_under_tinytable_linear64() {
    derives_among_two("tinytable-linear64");
}

#[test]
fn bytes_are_derived_only_from_keys_for_it_and_for_who_has_the_right() {
    let cluster = TestCluster::shared();
    let admin = cluster.client();
    let how = || counter(b"label", 8, b"");
    admin.generate(only_for("bytes-kdf", "aes-128", &[Usage::Kdf])).expect("a key");
    admin.generate(only_for("bytes-derive", "aes-128", &[Usage::Derive])).expect("a key");
    admin.generate(key("bytes-mac", "aes-128", &[Mode::Cmac])).expect("a key");
    refused(admin.kdf("bytes-derive", how(), 16), Reason::NotForThis, "for the usage derive, not kdf");
    refused(admin.kdf("bytes-mac", how(), 16), Reason::NotForThis, "not kdf");
    let new = || key("bytes-child", "aes-128", &[Mode::Gcm]);
    refused(admin.derive("bytes-kdf", new(), how()), Reason::NotForThis, "for the usage kdf, not derive");
    let both = only_for("bytes-both", "aes-128", &[Usage::Derive, Usage::Kdf]);
    refused(admin.generate(both), Reason::Key, "kdf undoes derive");
    let ecb = Derivation::EcbData { data: vec![1; 16] };
    refused(admin.kdf("bytes-kdf", ecb, 16), Reason::Key, "gives no codes");
    refused(admin.kdf("bytes-kdf", how(), 0), Reason::Key, "1 to 1024 bytes");
    assert!(admin.kdf("bytes-kdf", how(), 1025).is_err());

    let others = [Right::Derive, Right::Mac, Right::Encrypt, Right::Decrypt, Right::Wrap, Right::List];
    let without = cluster.client_with("without-kdf", &others, &["*"]);
    refused(without.kdf("bytes-kdf", how(), 16), Reason::Denied, "");
    let with = cluster.client_with("with-kdf", &[Right::Kdf], &["bytes-*"]);
    assert_eq!(
        with.kdf("bytes-kdf", how(), 16).expect("it may"),
        admin.kdf("bytes-kdf", how(), 16).expect("so may it")
    );
    refused(with.derive("bytes-derive", new(), how()), Reason::Denied, "");
}

#[test]
fn the_blocks_of_derived_bytes_are_paid_for() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let poor = NewKey { budget_blocks: 10, ..only_for("poor-kdf", "aes-128", &[Usage::Kdf]) };
    client.generate(poor).expect("a key");
    client.kdf("poor-kdf", counter(b"l", 8, b""), 96).expect("six blocks");
    client.kdf("poor-kdf", counter(b"l", 8, b""), 64).expect("the other four");
    refused(client.kdf("poor-kdf", counter(b"l", 8, b""), 1), Reason::Spent, "");
}

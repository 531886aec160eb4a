//! Check values that nodes compute anew are those that other programs compute, and are shown only where no
//! secret follows from them.

use polyclave_api::{CheckKind, Derivation, KeyInfo, Mode, NewKey, Reason, Right, Usage, VersionState};

use crate::common::from_keys::{COUNTING, bytes, check_value, only_for, refused};
use crate::common::messages::ctr;
use crate::common::{TestCluster, active, data, key};
use polyclave_client::{Client, Error, Withdrawal};

fn imported(client: &Client, new: NewKey, len: usize) -> KeyInfo {
    client.import(new, &bytes(COUNTING)[..len]).expect("a key")
}

/// The encryption of zeros under the bytes 00, 01, 02 .., and the CMAC of zeros, by another program (OpenSSL
/// 3).
const KNOWN: [(&str, usize, &str, &str); 4] = [
    ("aes-128", 16, "c6a13b", "be7ed6ae78"),
    ("aes-192", 24, "916251", "d4ffb80ebf"),
    ("aes-256", 32, "f29000", "377822c093"),
    ("3des-ede3", 24, "894bc3", "8519e6"),
];

#[test]
fn check_values_are_those_of_other_programs() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (cipher, len, zeros, cmac) in KNOWN {
        let info = imported(&client, key(&format!("kcv-{cipher}"), cipher, &[Mode::Cbc]), len);
        assert_eq!(client.check(&info, CheckKind::Zeros).expect("shown"), bytes(zeros), "{cipher}");
        assert_eq!(client.check(&info, CheckKind::Cmac).expect("shown"), bytes(cmac), "{cipher}");
    }
}

/// A cipher with a tweak has the check value by CMAC alone, and a key of two parts has that of both.
#[test]
fn every_key_has_a_check_value_by_cmac() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let tweaked = client.generate(key("kcv-tweak", "mantis7", &[Mode::Ecb])).expect("a key");
    assert_eq!(client.check(&tweaked, CheckKind::Cmac).expect("shown"), tweaked.check_value);
    refused(client.check(&tweaked, CheckKind::Zeros), Reason::NotForThis, "takes a tweak");
    let info = imported(&client, key("kcv-siv", "aes-128", &[Mode::Siv]), 32);
    let halves = bytes(COUNTING);
    let both = [&halves[..16], &halves[16..]].map(|half| check_value("aes-128", half)).concat();
    assert_eq!(client.check(&info, CheckKind::Cmac).expect("shown"), both);
}

fn is_computed(cluster: &TestCluster, settled: &dyn Fn()) {
    let client = cluster.client();
    settled();
    let info = imported(&client, key("kcv", "aes-128", &[Mode::Ctr]), 16);
    for (kind, value) in [(CheckKind::Zeros, KNOWN[0].2), (CheckKind::Cmac, KNOWN[0].3)] {
        settled();
        assert_eq!(client.check(&info, kind).expect("shown"), bytes(value));
    }
}

#[test]
fn check_values_are_computed_under_shamir_active() {
    let cluster = active::start(64, &[]);
    is_computed(&cluster, &|| active::fill(&cluster));
}

#[test]
fn check_values_are_computed_under_spdz_tower() {
    let mut cluster = TestCluster::define_with("spdz-tower", 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    is_computed(&cluster, &|| ());
}

#[test]
fn the_encryption_of_zeros_is_not_shown_where_a_secret_follows_from_it() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let zeros = |info: &KeyInfo| client.check(info, CheckKind::Zeros);
    for modes in [&[Mode::Gcm][..], &[Mode::Cmac], &[Mode::Gcm, Mode::Ctr], &[Mode::Ccm], &[Mode::Ff1]] {
        let info = client.generate(key("kcv-secret", "aes-128", modes)).expect("a key");
        refused(zeros(&info), Reason::NotForThis, "is not shown");
        assert_eq!(client.check(&info, CheckKind::Cmac).expect("shown"), info.check_value);
        client.delete("kcv-secret").expect("deleted");
    }
    // A copy is for less than its key, and the key for what follows from E(0).
    let info = client.generate(key("kcv-whole", "aes-128", &[Mode::Gcm, Mode::Ctr])).expect("a key");
    let copy = client.copy("kcv-whole", info.id, key("kcv-part", "aes-128", &[Mode::Ctr])).expect("a copy");
    refused(zeros(&copy), Reason::NotForThis, "is a copy");
    // A key that was derived from zeros begins with E(0), whatever its base is for since.
    let base = only_for("kcv-base", "aes-128", &[Usage::Wrap, Usage::Derive]);
    let base = client.generate(base).expect("a key");
    let how = Derivation::EcbData { data: vec![0; 16] };
    client.derive("kcv-base", key("kcv-child", "des", &[Mode::Ctr]), how).expect("derived");
    refused(zeros(&base), Reason::NotForThis, "is not shown");
    let less = Withdrawal { usage: vec![Usage::Derive], ..Default::default() };
    client.withdraw("kcv-base", (1, true), &less).expect("withdrawn");
    refused(zeros(&base), Reason::NotForThis, "has derived keys");
}

#[test]
fn a_check_takes_the_right_to_list_and_an_active_version_and_nothing_of_the_budget() {
    let cluster = TestCluster::shared();
    let admin = cluster.client();
    let new = NewKey { budget_blocks: 1, ..key("kcv-rights", "aes-128", &[Mode::Ctr]) };
    let info = admin.generate(new).expect("a key");
    let lists = cluster.client_with("kcv-lists", &[Right::List], &["kcv-rights"]);
    for kind in [CheckKind::Cmac, CheckKind::Zeros] {
        assert_eq!(lists.check(&info, kind).expect("it may"), admin.check(&info, kind).expect("so may it"));
    }
    let others: Vec<Right> = Right::ALL.into_iter().filter(|right| *right != Right::List).collect();
    let without = cluster.client_with("kcv-no-list", &others, &["*"]);
    refused(without.check(&info, CheckKind::Cmac), Reason::Denied, "");
    // All of the budget is left.
    ctr(&admin, "kcv-rights", &data(16)).expect("one block");

    let stored = KeyInfo { check_value: vec![0; 5], ..info.clone() };
    match admin.check(&stored, CheckKind::Cmac) {
        Err(Error::Answers(message)) => assert!(message.contains("was recorded"), "{message}"),
        other => panic!("{other:?}"),
    }
    let next = admin.rotate("kcv-rights").expect("a version");
    admin.retire("kcv-rights", 1, VersionState::Compromised).expect("retired");
    refused(admin.check(&info, CheckKind::Cmac), Reason::NotForThis, "compromised");
    assert_eq!(admin.check(&next, CheckKind::Cmac).expect("shown"), next.check_value);
}

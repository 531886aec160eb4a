//! A key comes in as components that several people give. Nobody sees it, and nothing else is made of them.

use polyclave_api::{CheckKind, KeyCheck, KeyInfo, Mode, NewKey, Origin, Parity, Reason, Right};

use crate::common::from_keys::{check_value, code, only_for, refused};
use crate::common::messages::cmac;
use crate::common::oracle::Oracle;
use crate::common::{TestCluster, active, data, key};
use polyclave_client::{Client, Error};

/// Custodians with certificates of their own, who may only import keys whose names begin so.
fn custodians(cluster: &TestCluster, of: &str, count: usize) -> Vec<Client> {
    let keys = format!("{of}*");
    (1..=count)
        .map(|i| cluster.client_with(&format!("{of}-custodian-{i}"), &[Right::Import, Right::List], &[&keys]))
        .collect()
}

fn components(len: usize, seed: u8) -> [Vec<u8>; 3] {
    [3, 5, 7]
        .map(|factor| (0..len).map(|i| (i as u8).wrapping_mul(factor) ^ seed.wrapping_mul(factor)).collect())
}

fn sum(parts: &[Vec<u8>]) -> Vec<u8> {
    (0..parts[0].len()).map(|i| parts.iter().fold(0, |sum, part| sum ^ part[i])).collect()
}

fn by_cmac(cipher: &str, key: &[u8]) -> Option<KeyCheck> {
    Some(KeyCheck { kind: CheckKind::Cmac, value: check_value(cipher, key) })
}

fn by_zeros(cipher: &str, key: &[u8]) -> Option<KeyCheck> {
    let oracle = Oracle::new(cipher, key);
    let value = oracle.encrypted(&vec![0; oracle.block])[..3].to_vec();
    Some(KeyCheck { kind: CheckKind::Zeros, value })
}

fn with_odd_parity(key: &[u8]) -> Vec<u8> {
    key.iter().map(|byte| byte ^ (1 ^ (byte.count_ones() as u8 & 1))).collect()
}

/// Three people bring a key in.
fn a_key_comes_in(cluster: &TestCluster, settled: &dyn Fn()) -> KeyInfo {
    let parts = components(16, 0x41);
    let whole = sum(&parts);
    let people = custodians(cluster, "three", 3);
    for (i, (person, part)) in people.iter().zip(&parts).enumerate() {
        settled();
        let new = key("three", "aes-128", &[Mode::Cmac]);
        let given = person
            .import_component(new, (i as u8 + 1, 3), by_cmac("aes-128", part), part)
            .expect("a component");
        assert_eq!(given.check_value, check_value("aes-128", part));
        assert_eq!(given.component.map(|c| (c.number, c.of)), Some((i as u8 + 1, 3)));
    }
    settled();
    let info = people[1].combine("three", by_cmac("aes-128", &whole), Parity::Ignore).expect("combined");
    assert_eq!((info.origin, info.component.clone()), (Origin::Combined, None));
    assert_eq!(info.check_value, check_value("aes-128", &whole));
    settled();
    let admin = cluster.client();
    assert_eq!(cmac(&admin, "three", &data(40)).expect("a code"), code("aes-128", &whole, &data(40)));
    assert!(admin.info("three.component-1").is_err(), "its components are gone");
    info
}

#[test]
fn three_people_bring_a_key_in_and_nobody_sees_it() {
    a_key_comes_in(&TestCluster::shared(), &|| ());
}

#[test]
fn components_are_combined_under_shamir_active() {
    let cluster = active::start(64, &[]);
    a_key_comes_in(&cluster, &|| active::fill(&cluster));
}

#[test]
fn components_are_combined_under_spdz_tower() {
    let mut cluster = TestCluster::define_with("spdz-tower", 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    a_key_comes_in(&cluster, &|| ());
}

#[test]
fn a_component_or_key_with_another_check_value_is_not_kept() {
    let cluster = TestCluster::shared();
    let people = custodians(&cluster, "check", 2);
    let [one, two, other] = components(24, 0x17);
    let new = || key("check", "3des-ede3", &[Mode::Cbc]);
    let give =
        |i: usize, expected, part: &[u8]| people[i].import_component(new(), (i as u8 + 1, 2), expected, part);
    refused(give(0, by_cmac("3des-ede3", &other), &one), Reason::Key, "nothing was kept");
    refused(give(0, by_zeros("3des-ede3", &other), &one), Reason::Key, "nothing was kept");
    let short = Some(KeyCheck { kind: CheckKind::Cmac, value: vec![1; 5] });
    refused(give(0, short, &one), Reason::Key, "has 3 bytes, not 5");
    assert!(people[0].info("check.component-1").is_err(), "nothing was kept");
    give(0, by_zeros("3des-ede3", &one), &one).expect("the legacy check value fits");
    refused(
        people[0].combine("check", None, Parity::Ignore),
        Reason::Key,
        "component 2 of 2 of the key 'check' is not there yet",
    );
    give(1, by_cmac("3des-ede3", &two), &two).expect("it fits");
    refused(
        people[0].combine("check", by_zeros("3des-ede3", &other), Parity::Ignore),
        Reason::Key,
        "nothing was kept",
    );
    assert!(people[0].info("check").is_err(), "no key was made");
    let whole = sum(&[one, two]);
    let info = people[0].combine("check", by_zeros("3des-ede3", &whole), Parity::Ignore).expect("it fits");
    assert_eq!(info.check_value, check_value("3des-ede3", &whole));
    let gone = people[0].combine("check", None, Parity::Ignore);
    refused(gone, Reason::Key, "there is a key 'check' already");
}

#[test]
fn the_encryption_of_zeros_is_not_shown_of_keys_for_gcm_or_cmac() {
    let cluster = TestCluster::shared();
    let people = custodians(&cluster, "zeros", 2);
    let [one, two, _] = components(16, 0x29);
    for (i, part) in [&one, &two].into_iter().enumerate() {
        let new = key("zeros", "aes-128", &[Mode::Gcm]);
        people[i]
            .import_component(new, (i as u8 + 1, 2), by_zeros("aes-128", part), part)
            .expect("a component computes nothing");
    }
    let whole = sum(&[one, two]);
    refused(people[0].combine("zeros", by_zeros("aes-128", &whole), Parity::Ignore), Reason::Key, "by CMAC");
    people[0].combine("zeros", by_cmac("aes-128", &whole), Parity::Ignore).expect("combined");
}

#[test]
fn duties_are_separated_and_components_can_be_used_for_nothing() {
    let cluster = TestCluster::shared();
    let people = custodians(&cluster, "duty", 3);
    let stranger = cluster.client_with("duty-stranger", &[Right::Import], &["other-*"]);
    let parts = components(16, 0x53);
    let new = || key("duty", "aes-128", &[Mode::Ctr]);
    let give = |i: usize, which, new: NewKey| people[i].import_component(new, which, None, &parts[i]);
    refused(give(0, (0, 2), new()), Reason::Key, "2 to 9 components");
    refused(give(0, (3, 2), new()), Reason::Key, "2 to 9 components");
    refused(give(0, (1, 1), new()), Reason::Key, "2 to 9 components");
    refused(give(0, (1, 10), new()), Reason::Key, "2 to 9 components");
    refused(stranger.import_component(new(), (1, 2), None, &parts[0]), Reason::Denied, "");
    give(0, (1, 2), new()).expect("a component");
    refused(give(0, (2, 2), new()), Reason::Key, "this client gave component 1");
    refused(give(1, (1, 2), new()), Reason::Key, "is there already");
    refused(give(1, (2, 3), new()), Reason::Key, "give all of them alike");
    refused(give(1, (2, 2), key("duty", "aes-128", &[Mode::Ecb])), Reason::Key, "give all of them alike");
    // Components of other sizes are of other ciphers.
    let long = people[1].import_component(key("duty", "aes-256", &[Mode::Ctr]), (2, 2), None, &[1; 32]);
    refused(long, Reason::Key, "give all of them alike");
    // Under another name: nodes that were left alone hold the name for a moment.
    let cut =
        people[1].import_component(key("duty-cut", "aes-128", &[Mode::Ctr]), (2, 2), None, &parts[1][..8]);
    assert!(matches!(cut, Err(Error::Misuse(_))), "{cut:?}");

    let admin = cluster.client();
    let used = crate::common::messages::ctr(&admin, "duty.component-1", &data(16));
    refused(used, Reason::NotForThis, "is a component of a key");
    // Neither by its id, which any version is found by.
    let used = crate::common::messages::ctr(&admin, "duty.component-1@1", &data(16));
    refused(used, Reason::NotForThis, "is a component of a key");
    refused(
        admin.generate(key("x.component-1", "aes-128", &[Mode::Gcm])),
        Reason::Key,
        "how a component of a key is called",
    );
    assert!(people[1].delete("duty.component-1").is_err(), "another person's");
    people[0].delete("duty.component-1").expect("its own");
    give(2, (1, 2), new()).expect("another person gives it");
    give(1, (2, 2), new()).expect("a component");
    refused(stranger.combine("duty", None, Parity::Ignore), Reason::Denied, "");
    refused(people[0].combine("duty", None, Parity::Set), Reason::Key, "no parity bits");
    let info = people[0].combine("duty", None, Parity::Ignore).expect("combined");
    assert_eq!(info.check_value, check_value("aes-128", &sum(&[parts[2].clone(), parts[1].clone()])));
}

#[test]
fn parity_bits_are_required_or_set_without_showing_the_key() {
    let cluster = TestCluster::shared();
    let people = custodians(&cluster, "parity", 3);
    let admin = cluster.client();
    admin.import(only_for("parity-kek", "aes-128", &[polyclave_api::Usage::Wrap]), &[4; 16]).expect("a key");
    let odd = components(24, 0x35).map(|part| with_odd_parity(&part));
    // The sum of two keys with odd parity has even parity; the sum of three has odd parity again.
    for (count, fits) in [(2, false), (3, true)] {
        let name = format!("parity-{count}");
        for (i, part) in odd.iter().take(count).enumerate() {
            let new = NewKey { wrappable: true, ..key(&name, "3des-ede3", &[Mode::Cbc]) };
            people[i].import_component(new, (i as u8 + 1, count as u8), None, part).expect("a component");
        }
        let whole = sum(&odd[..count]);
        let required = people[0].combine(&name, None, Parity::Require);
        match fits {
            true => drop(required.expect("odd parity")),
            false => {
                refused(required, Reason::Key, "does not have odd parity");
                people[0].combine(&name, None, Parity::Set).expect("made odd");
            }
        }
        let wrapped = admin.wrap("parity-kek", &name, polyclave_api::Wrapping::Kw).expect("wrapped");
        let expected = crate::common::from_keys::wrapped_by_oracle(
            &[4; 16],
            &with_odd_parity(&whole),
            polyclave_api::Wrapping::Kw,
        );
        assert_eq!(wrapped, expected, "{count} components");
    }
}

#[test]
fn components_survive_restarts_and_are_deleted_with_their_key() {
    let mut cluster = TestCluster::start(3, 1);
    let people = custodians(&cluster, "late", 2);
    let [one, two, _] = components(16, 0x61);
    let new = || key("late", "aes-128", &[Mode::Cmac]);
    people[0].import_component(new(), (1, 2), None, &one).expect("a component");
    for node in 0..3 {
        cluster.stop(node);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
    people[1].import_component(new(), (2, 2), None, &two).expect("a component");
    let admin = cluster.client();
    admin.delete("late").expect("nothing of it is left");
    refused(
        people[0].combine("late", None, Parity::Ignore),
        Reason::Key,
        "component 1 of the key 'late' is not there",
    );
    people[0].import_component(new(), (1, 2), None, &one).expect("given again");
    people[1].import_component(new(), (2, 2), None, &two).expect("given again");
    let info = people[1].combine("late", None, Parity::Ignore).expect("combined");
    assert_eq!(info.check_value, check_value("aes-128", &sum(&[one, two])));
}

//! Rules with conditions at running nodes: modes, limits, and that a running node takes changes and refuses
//! bad files.

use std::num::NonZeroU64;

use polyclave_api::{Mode, Reason, Right};
use polyclave_client::{Error, Padding};
use polyclave_config::{NodeDir, Rule};

use crate::common::messages::{cbc, ctr};
use crate::common::{TestCluster, data, key};

/// Has all nodes take these rules for a client, beside what it may do already.
fn set_rules(cluster: &TestCluster, rules: &[Rule]) {
    for path in &cluster.local.nodes {
        let node = NodeDir::open(path).expect("its directory");
        let mut policy = node.policy().expect("its policy");
        rules.iter().for_each(|rule| policy.set_rule(rule.clone()).expect("it fits"));
        node.save_policy(&policy).expect("saved");
    }
}

fn rule(name: &str, client: &str, rights: &[Right]) -> Rule {
    Rule {
        name: name.into(),
        clients: vec![client.into()],
        rights: rights.to_vec(),
        keys: vec!["k*".into()],
        ..Rule::default()
    }
}

fn refused(outcome: Result<impl Sized, Error>) -> (Reason, String) {
    match outcome {
        Err(Error::Refused { refusal, .. }) => (refusal.reason, refusal.message),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was done"),
    }
}

#[test]
fn a_client_may_use_a_key_in_the_modes_of_its_rule_and_in_no_other() {
    let cluster = TestCluster::start(3, 1);
    cluster.client().generate(key("k", "aes-128", &[Mode::Ctr, Mode::Cbc])).expect("a key");
    let eve = cluster.client_with("eve", &[], &[]);
    let in_ctr = Rule { modes: vec![Mode::Ctr], ..rule("in-ctr", "eve", &[Right::Encrypt]) };
    set_rules(&cluster, &[in_ctr]);
    cluster.wait_until(|| ctr(&eve, "k", &data(32)).is_ok());
    let (reason, message) = refused(cbc(&eve, "k", Padding::Pkcs7, &data(32)));
    assert_eq!(reason, Reason::Denied);
    assert!(
        message.contains("eve to encrypt with the key 'k' in cbc: it is for ctr, not for cbc (rule in-ctr)"),
        "{message}"
    );
    // What is denied is denied, whatever allows it.
    cluster.allow("eve", &[Right::Encrypt], &["*"]);
    cluster.wait_until(|| cbc(&eve, "k", Padding::Pkcs7, &data(32)).is_ok());
    let denied = Rule { deny: true, clients: vec!["*".into()], ..rule("stopped", "*", &[Right::Encrypt]) };
    set_rules(&cluster, &[denied]);
    cluster.wait_until(|| cbc(&eve, "k", Padding::Pkcs7, &data(32)).is_err());
    let (reason, message) = refused(ctr(&cluster.client(), "k", &data(32)));
    assert!(reason == Reason::Denied && message.contains("the rule stopped denies it"), "{message}");
}

#[test]
fn what_is_beyond_the_limits_of_a_rule_is_refused_until_another_rule_allows_it() {
    let cluster = TestCluster::start(3, 1);
    cluster.client().generate(key("k", "aes-128", &[Mode::Ctr, Mode::Cbc])).expect("a key");
    let eve = cluster.client_with("eve", &[], &[]);
    let limited =
        Rule { blocks_per_day: NonZeroU64::new(6), ..rule("six", "eve", &[Right::Encrypt, Right::List]) };
    set_rules(&cluster, std::slice::from_ref(&limited));
    // Listing counts against no limit.
    let listed = || eve.keys().is_ok_and(|listing| listing.keys.iter().any(|key| key.at.len() == 3));
    cluster.wait_until(listed);
    // Each of these takes two blocks of the day's six. Midnight may fall between them, but not twice.
    let mut done = 0;
    let (reason, message) = loop {
        match ctr(&eve, "k", &data(32)) {
            Ok(_) => done += 1,
            refusal => break refused(refusal),
        }
        assert!(done < 7, "more than two days' blocks");
    };
    assert!(done >= 3, "{done}");
    assert_eq!(reason, Reason::Denied);
    assert!(
        message.contains("eve has used up") && message.contains("the rule six has blocks_per_day = 6"),
        "{message}"
    );
    let more = Rule { name: "more".into(), blocks_per_day: None, modes: vec![Mode::Ctr], ..limited };
    set_rules(&cluster, &[more]);
    cluster.wait_until(|| ctr(&eve, "k", &data(32)).is_ok());
    (0..4).for_each(|_| drop(ctr(&eve, "k", &data(32)).expect("without limits")));
}

/// The file is read when it changes; a bad one leaves the rules as they are.
#[test]
fn a_running_node_keeps_its_rules_if_the_changed_file_is_not_in_order() {
    let cluster = TestCluster::start(3, 1);
    cluster.client().generate(key("k", "aes-128", &[Mode::Ctr, Mode::Cbc])).expect("a key");
    let eve = cluster.client_with("eve", &[Right::Encrypt], &["k"]);
    ctr(&eve, "k", &data(16)).expect("allowed");
    let good: Vec<_> = cluster
        .local
        .nodes
        .iter()
        .map(|path| {
            let file = NodeDir::open(path).expect("its directory").policy_path();
            let text = std::fs::read_to_string(&file).expect("read");
            std::fs::write(&file, "[[client]]\nname = 7\n").expect("written");
            (file, text)
        })
        .collect();
    // Longer than a node takes to notice.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    ctr(&eve, "k", &data(16)).expect("the rules from before are in force");
    for (file, text) in good {
        std::fs::write(&file, text.replace("\"encrypt\"", "\"decrypt\"")).expect("written");
    }
    cluster.wait_until(|| ctr(&eve, "k", &data(16)).is_err());
}

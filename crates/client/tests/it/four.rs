//! Four nodes under replicated-four, of which one may cheat, be silent or be gone: answers stay right, and
//! come.

use std::time::Duration;

use polyclave_api::Mode;
use polyclave_node::{Cheat, Running};
use polyclave_protocol::{Party, PartySet};

use crate::common::active::{AES_KEY, ecb_is_right, listening, start_cheating, within};
use crate::common::messages::{gcm, open, seal, ungcm};
use crate::common::{TestCluster, data, insist, key};

/// Four nodes, of which one may cheat.
fn start(cheat: Option<(usize, Cheat)>) -> TestCluster {
    let mut cluster = TestCluster::define_with("replicated-four", 4, 1);
    for node in 0..4 {
        match cheat.filter(|(cheater, _)| *cheater == node) {
            None => cluster.restart(node),
            Some((_, how)) => start_cheating(&mut cluster, node, how),
        }
    }
    cluster.wait_until_ready();
    cluster
}

/// Every answer about keys that were made here is right.
fn serves(cluster: &TestCluster) {
    let client = cluster.client();
    client.import(key("k", "aes-128", &[Mode::Ecb]), &AES_KEY).expect("imported");
    client.generate(key("g", "aes-128", &[Mode::Gcm])).expect("generated");
    ecb_is_right(&client, "k");
    let sealed = seal(&client, "g", &data(40_000)).expect("sealed");
    assert_eq!(open(&client, "g", &sealed).expect("opened"), data(40_000));
    let message = gcm(&client, "g", b"more", &data(70)).expect("encrypted");
    assert_eq!(ungcm(&client, "g", b"more", &message).expect("decrypted"), data(70));
}

/// The nodes that the others have found to cheat.
fn outvoted(cluster: &TestCluster) -> PartySet {
    cluster.nodes.iter().flatten().fold(PartySet::default(), |all, node| all.and(node.status().outvoted))
}

#[test]
fn all_answers_are_right_and_nobody_is_accused() {
    let cluster = start(None);
    serves(&cluster);
    let faults = cluster.nodes.iter().flatten().map(Running::status);
    assert!(faults.into_iter().all(|s| s.outvoted.is_empty() && s.silent.is_empty()));
}

#[test]
fn wrong_products_of_any_node_stop_nothing() {
    for cheater in 0..4 {
        let cluster = start(Some((cheater, Cheat::InProducts)));
        serves(&cluster);
        let found = outvoted(&cluster).without([Party(cheater as u8)].into_iter().collect());
        assert!(found.is_empty(), "node {} cheats, and {found} were accused", cheater + 1);
    }
}

#[test]
fn wrong_shares_in_openings_and_in_answers_are_corrected() {
    for how in [Cheat::InOpenings, Cheat::InAnswers] {
        serves(&start(Some((2, how))));
    }
}

#[test]
fn answers_are_right_without_any_one_node() {
    let mut cluster = start(None);
    let client = cluster.client();
    client.import(key("k", "aes-128", &[Mode::Ecb]), &AES_KEY).expect("imported");
    client.generate(key("g", "aes-128", &[Mode::Gcm])).expect("generated");
    let sealed = seal(&client, "g", &data(300)).expect("sealed");
    for node in 0..4 {
        let (client, heard) = listening(&cluster);
        ecb_is_right(&client, "k");
        cluster.stop(node);
        // Over connections that it had with that node, and others.
        within(Duration::from_secs(20), "with old connections", || ecb_is_right(&client, "k"));
        within(Duration::from_secs(20), "without it", || {
            assert_eq!(open(&client, "g", &sealed).expect("opened"), data(300));
        });
        let heard = heard.lock().join("\n");
        assert!(
            heard.contains(&format!("node-{}", node + 1)) && heard.contains("Correction is off"),
            "{heard}"
        );
        assert!(!heard.contains("in stock"), "there is none: {heard}");
        cluster.restart(node);
        cluster.wait_until_ready();
    }
}

/// A refresh gives all nodes fresh shares, also the one that was away, and old keys go on.
#[test]
fn keys_go_on_after_a_refresh() {
    let mut cluster = start(None);
    let client = cluster.client();
    client.generate(key("g", "aes-128", &[Mode::Gcm])).expect("generated");
    let sealed = seal(&client, "g", &data(300)).expect("sealed");
    cluster.refresh();
    let client = cluster.client();
    assert_eq!(insist(&|| open(&client, "g", &sealed)), data(300));
    cluster.stop(0);
    assert_eq!(insist(&|| open(&client, "g", &sealed)), data(300));
}

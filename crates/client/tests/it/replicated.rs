//! Three nodes under `replicated-active`, of which one cheats: no answer is wrong, the others stop, and two
//! nodes are named of which one cheats.

use polyclave_api::{Mode, Reason};
use polyclave_client::Error;
use polyclave_config::NodeDir;
use polyclave_node::Cheat;
use polyclave_node::admin::{Answer, Instruction, Status, order};

use crate::common::active::start_cheating;
use crate::common::messages::{gcm, ungcm};
use crate::common::{TestCluster, insist, key};

const CHEATER: usize = 1;

/// Three nodes with a key, and a message that was encrypted under it.
fn start() -> (TestCluster, Vec<u8>) {
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("made");
    let message = gcm(&client, "k", b"to", b"a message").expect("encrypted");
    (cluster, message)
}

fn status(cluster: &TestCluster, node: usize) -> Status {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    match order(&dir, &Instruction::Status) {
        Ok(Some(Answer::Status(status))) => *status,
        other => panic!("{other:?}"),
    }
}

fn audit_log(cluster: &TestCluster, node: usize) -> String {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    std::fs::read_to_string(dir.audit_path()).expect("it is there")
}

#[test]
fn a_wrong_product_stops_the_nodes_and_names_two_of_which_one_cheats() {
    let (mut cluster, message) = start();
    cluster.stop(CHEATER);
    start_cheating(&mut cluster, CHEATER, Cheat::InProducts);
    cluster.wait_until_ready();
    match ungcm(&cluster.client(), "k", b"to", &message) {
        Err(Error::Refused { refusal, .. }) => assert_eq!(refusal.reason, Reason::Quarantined, "{refusal}"),
        other => panic!("{other:?}"),
    }
    for (node, suspects) in [(0, ["node-2", "node-3"]), (2, ["node-1", "node-2"])] {
        cluster.wait_until(|| status(&cluster, node).quarantine.is_some());
        let reason = status(&cluster, node).quarantine.expect("it is").reason;
        assert!(
            reason.contains(&suspects.join(" or ")) && reason.contains("cannot be found out"),
            "{reason}"
        );
        assert!(reason.contains("shamir-active"), "{reason}");
        let log = audit_log(&cluster, node);
        assert!(log.contains(&format!("one-of={}", suspects.join(","))), "{log}");
        let status = status(&cluster, node);
        assert_eq!((status.checks_failed, status.checks_unanswered), (0, 0), "there is no MAC key");
    }

    // Over a restart, until all operators have ordered fresh shares.
    for node in [0, CHEATER] {
        cluster.stop(node);
        cluster.restart(node);
    }
    assert!(status(&cluster, 0).quarantine.is_some());
    cluster.refresh();
    let client = cluster.client();
    assert_eq!(insist(&|| ungcm(&client, "k", b"to", &message)), b"a message");
}

#[test]
fn a_wrong_answer_of_a_node_is_not_accepted_by_the_client() {
    let (mut cluster, message) = start();
    cluster.stop(CHEATER);
    start_cheating(&mut cluster, CHEATER, Cheat::InAnswers);
    cluster.wait_until_ready();
    match ungcm(&cluster.client(), "k", b"to", &message) {
        Err(Error::Answers(text)) => {
            assert!(text.contains("node-2") || text.contains("one of them"), "{text}")
        }
        other => panic!("{other:?}"),
    }
    cluster.stop(CHEATER);
    cluster.restart(CHEATER);
    cluster.wait_until_ready();
    let client = cluster.client();
    assert_eq!(insist(&|| ungcm(&client, "k", b"to", &message)), b"a message", "no node has stopped");
}

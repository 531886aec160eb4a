//! A client that asks for others: the audit logs of the nodes name them, and connections are shared.

use polyclave_api::{Mode, Operation, Reason, Request, operations};
use polyclave_config::NodeDir;

use crate::common::messages::{gcm, ungcm};
use crate::common::raw::{Raw, request};
use crate::common::{TestCluster, key};

/// The lines of a node's audit log that are about a key.
fn lines(cluster: &TestCluster, node: usize, key: &str) -> Vec<serde_json::Value> {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    let log = std::fs::read_to_string(dir.audit_path()).expect("it is there");
    let lines = log.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
    lines.filter(|line: &serde_json::Value| line["key"] == key).collect()
}

#[test]
fn the_audit_log_of_every_node_names_for_whom_a_client_asks() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("behalf", "aes-128", &[Mode::Gcm])).expect("a key");
    let billing = client.on_behalf_of("billing").expect("a name");
    let message = gcm(&billing, "behalf", b"", b"a message").expect("encrypted");
    billing.configure("behalf", 1, true).expect("configured");
    assert_eq!(ungcm(&client, "behalf", b"", &message).expect("decrypted"), b"a message");
    // The second line of a request is written when it is over, which the client does not wait for.
    let is_over = |node, operation: &str| {
        lines(&cluster, node, "behalf").iter().any(|l| l["outcome"] == "done" && l["operation"] == operation)
    };
    cluster.wait_until(|| {
        (0..3).all(|node| ["encrypt", "configure", "decrypt"].iter().all(|o| is_over(node, o)))
    });
    for node in 0..3 {
        let details = |operation: &str| -> Vec<String> {
            let of =
                lines(&cluster, node, "behalf").into_iter().filter(|line| line["operation"] == operation);
            of.map(|line| line["detail"].as_str().expect("text").to_owned()).collect()
        };
        assert_eq!(details("encrypt"), ["for=billing", "for=billing"]);
        assert_eq!(details("configure"), ["for=billing least_version=1 deletable=true"; 2]);
        assert_eq!(details("decrypt"), ["", ""], "the client itself");
    }
}

#[test]
fn what_is_no_name_is_refused() {
    let cluster = TestCluster::shared();
    for wrong in ["", "two words", "a=b", "-", &"x".repeat(65)] {
        assert!(cluster.client().on_behalf_of(wrong).is_err(), "{wrong}");
    }
    for wrong in ["two words", "a for=b", &"x".repeat(1000)] {
        let mut raw = Raw::call(&cluster);
        let operation = Operation::Delete(operations::Delete { key: "nothing".into(), version: None });
        raw.tell_all(&Request { on_behalf_of: wrong.into(), ..request(operation, None) });
        for ending in raw.endings() {
            assert_eq!(ending.refusal.expect("refused").reason, Reason::Malformed);
        }
    }
}

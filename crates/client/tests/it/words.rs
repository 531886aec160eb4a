//! What a person is told: of nodes by their names, each thing once, and what to do.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use polyclave_api::{Reason, Refusal, Reply};

use crate::common::fake::{FakeNode, Say};
use crate::common::messages::seal;
use crate::common::{TestCluster, nothing};
use polyclave_client::Error;
use polyclave_transport::Identity;

fn refused(reason: Reason, message: &str) -> Reply {
    Reply::Refused(Refusal::new(reason, message))
}

#[test]
fn a_client_that_is_not_allowed_yet_is_told_to_ask_every_operator() {
    let cluster = TestCluster::start(3, 1);
    let identity = Identity::generate_named("stranger", 1).expect("an identity");
    let stranger = cluster.client_of("stranger", &identity);
    let listed = stranger.keys().expect_err("nobody knows it").to_string();
    let sealed = seal(&stranger, "k", b"x").expect_err("nobody knows it").to_string();
    for message in [listed, sealed] {
        assert!(message.contains("polyclave node allow") && message.contains("every node"), "{message}");
        assert_eq!(message.matches("node allow").count(), 1, "{message}");
        assert!(
            ["node-1", "node-2", "node-3"].iter().all(|node| message.matches(node).count() == 1),
            "{message}"
        );
        assert!(!message.contains("party"), "{message}");
    }
    let status = stranger.status();
    assert!(status.iter().all(|(_, s)| matches!(s, Err(Error::NotAdmitted { .. }))), "{status:?}");
    // Nothing but this is told to it: the same client is let in once it is allowed.
    cluster.allow("stranger", &[], &[]);
    cluster.wait_until(|| stranger.status().iter().all(|(_, s)| s.is_ok()));
}

#[test]
fn nodes_that_cannot_be_reached_are_told_by_name_and_once() {
    let cluster = TestCluster::define(3, 1);
    let client = cluster.client();
    let message = seal(&client, "k", b"x").expect_err("none runs").to_string();
    assert!(
        ["node-1", "node-2", "node-3"].iter().all(|node| message.matches(node).count() == 1),
        "{message}"
    );
    assert!(
        message.contains("cannot be reached: no connection to 127.0.0.1:") && !message.contains("party"),
        "{message}"
    );
    let message = client.keys().expect_err("none runs").to_string();
    assert!(message.starts_with("node-1 cannot be reached") && !message.contains("party"), "{message}");
}

/// An input that pauses until something is the case.
struct Pausing(Duration);

impl Read for Pausing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        std::thread::sleep(std::mem::take(&mut self.0));
        buffer.fill(1);
        Ok(buffer.len())
    }
}

#[test]
fn an_input_that_pauses_too_long_gets_the_reason_that_the_nodes_gave() {
    const TOLD: &str = "the client sent nothing for 20 s in the middle of its request";
    let cluster = TestCluster::define(3, 1);
    let accepted = Reply::Accepted { key: None, start: vec![7; 16], mask: Vec::new(), blind: Vec::new() };
    let _nodes: Vec<FakeNode> = (0..3)
        .map(|node| {
            let replies = vec![accepted.clone(), refused(Reason::Unavailable, TOLD)];
            FakeNode::start(&cluster, node, move |_| Say::Last(replies.clone()))
        })
        .collect();
    let mut input = Pausing(Duration::from_secs(1)).take(100);
    let client = cluster.client();
    let key = client.key("k").expect("nothing is asked");
    let outcome = key.ctr().encrypt_stream(&mut input, &mut Vec::new(), &mut nothing);
    match outcome {
        Err(Error::Refused { node, refusal }) => {
            assert_eq!((node.as_str(), refusal.message.as_str()), ("node-1", TOLD));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_that_has_spent_its_part_of_a_budget_is_not_asked_first_again() {
    let cluster = TestCluster::define(5, 1);
    let asked = Arc::<AtomicUsize>::default();
    let _nodes: Vec<FakeNode> = (0..5)
        .map(|node| {
            let asked = asked.clone();
            FakeNode::start(&cluster, node, move |_| {
                if node == 0 {
                    asked.fetch_add(1, Relaxed);
                    return Say::All(Box::new(refused(Reason::Spent, "its part of the budget is spent")));
                }
                Say::All(Box::new(refused(Reason::Unauthentic, "it does not authenticate")))
            })
        })
        .collect();
    let client = cluster.client();
    for _ in 0..2 {
        let error = seal(&client, "k", b"x").expect_err("the others have their own reason");
        assert!(matches!(error, Error::Unauthentic(_)), "{error}");
    }
    assert_eq!(asked.load(Relaxed), 1);
}

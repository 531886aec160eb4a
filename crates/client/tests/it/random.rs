//! Random bytes from all nodes that answer.

use polyclave_api::{MAX_RANDOM, Right};

use crate::common::{TestCluster, active};
use polyclave_client::Error;

#[test]
fn random_bytes_are_as_many_as_asked_for_differ_and_have_all_values() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let draws: Vec<_> = (0..4).map(|_| client.random(32).expect("drawn")).collect();
    assert!(draws.iter().all(|drawn| drawn.len() == 32));
    assert!((0..4).all(|i| (0..i).all(|j| draws[i] != draws[j])));
    let many = client.random(MAX_RANDOM).expect("drawn");
    let mut counts = [0; 256];
    many.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    // 256 are expected of each, with a deviation of 16.
    assert!(counts.iter().all(|count| (96..=416).contains(count)), "{counts:?}");
    for wrong in [0, MAX_RANDOM + 1] {
        assert!(matches!(client.random(wrong), Err(Error::Misuse(_))));
    }
}

#[test]
fn random_bytes_take_a_right_of_their_own_and_no_key() {
    let cluster = TestCluster::shared();
    let with = cluster.client_with("random-with", &[Right::Random], &[]);
    assert!(with.random(16).is_ok());
    let without = cluster.client_with("random-without", &[Right::Encrypt, Right::Mac], &["*"]);
    let error = without.random(16).expect_err("refused").to_string();
    assert!(error.contains("does not allow random-without to random"), "{error}");
}

#[test]
fn random_bytes_come_while_as_many_nodes_are_there_as_serve() {
    let mut cluster = active::start(4, &[]);
    cluster.stop(2);
    assert!(cluster.client().random(16).is_ok());
    cluster.stop(1);
    let error = cluster.client().random(16).expect_err("too few");
    assert!(matches!(error, Error::TooFewNodes { reached: 2, needed: 3, .. }), "{error}");
}

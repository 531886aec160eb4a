//! Three nodes under `replicated-active` with standby pairs: two go on with the keys while the third one is
//! away.

use polyclave_api::Mode;
use polyclave_client::Error;

use crate::common::messages::{gcm, ungcm};
use crate::common::{TestCluster, insist, key};

/// Three nodes whose pairs have shares of a key, and a message that was encrypted under it by all three.
fn start() -> (TestCluster, Vec<u8>) {
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("made");
    let message = gcm(&client, "k", b"to", b"a message").expect("encrypted");
    wait_until_pairs_have(&cluster, 1);
    (cluster, message)
}

/// Waits until both pairs of each node are ready and have so many keys.
fn wait_until_pairs_have(cluster: &TestCluster, keys: u64) {
    cluster.wait_until(|| {
        cluster.nodes.iter().flatten().all(|node| {
            let pairs = node.standby();
            pairs.len() == 2 && pairs.iter().all(|pair| pair.ready && pair.keys == keys && pair.lacking == 0)
        })
    });
}

#[test]
fn two_nodes_go_on_with_a_key_while_the_third_one_is_away_whichever_it_is() {
    let (mut cluster, message) = start();
    for away in 0..3 {
        cluster.stop(away);
        let client = cluster.client();
        assert_eq!(insist(&|| ungcm(&client, "k", b"to", &message)), b"a message");
        let of_two = insist(&|| gcm(&client, "k", b"to", b"of two"));
        let refused = client.generate(key("other", "aes-128", &[Mode::Gcm])).expect_err("it takes all");
        assert!(matches!(refused, Error::TooFewNodes { .. }), "{refused}");
        cluster.restart(away);
        cluster.wait_until_ready();
        wait_until_pairs_have(&cluster, 1);
        assert_eq!(insist(&|| ungcm(&client, "k", b"to", &of_two)), b"of two", "all three read it");
    }
}

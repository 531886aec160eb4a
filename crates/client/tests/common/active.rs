//! Nodes under shamir-active, with material in stock, of which some may cheat.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_client::{Client, Padding};
use polyclave_config::NodeDir;
use polyclave_node::{Cheat, Running};

use super::messages::ecb;
use super::oracle::Oracle;
use super::{TestCluster, data};

pub const AES_KEY: [u8; 16] = [0x2b; 16];

/// Four nodes with material for so many blocks, of which some may cheat.
pub fn start(blocks: usize, cheats: &[(usize, Cheat)]) -> TestCluster {
    let mut cluster = TestCluster::define_with("shamir-active", 4, 1);
    cluster.set_stock(blocks, blocks.div_ceil(4));
    for node in 0..4 {
        match cheats.iter().find(|(cheater, _)| *cheater == node) {
            None => cluster.restart(node),
            Some((_, how)) => start_cheating(&mut cluster, node, *how),
        }
    }
    cluster.wait_until_ready();
    fill(&cluster);
    cluster
}

/// Starts a node that cheats.
pub fn start_cheating(cluster: &mut TestCluster, node: usize, how: Cheat) {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    cluster.nodes[node] = Some(Running::start_cheating(dir, how).expect("it starts"));
}

/// Waits until all that run have all their material.
pub fn fill(cluster: &TestCluster) {
    let full = |node: &Running| {
        let stock = node.status().stock;
        !stock.is_empty() && stock.iter().all(|kind| kind.blocks >= kind.level)
    };
    cluster.wait_until(|| cluster.nodes.iter().flatten().all(full));
}

/// A client, and what it was told beside its answers.
pub fn listening(cluster: &TestCluster) -> (Client, Arc<Mutex<Vec<String>>>) {
    let message = Arc::new(Mutex::new(Vec::new()));
    let heard = message.clone();
    let client = cluster.client().on_remark(move |remark| {
        heard.lock().push(remark.to_owned());
    });
    (client, message)
}

pub fn ecb_is_right(client: &Client, name: &str) {
    let block = ecb(client, name, Padding::None, &data(32)).expect("encrypted");
    let other = Oracle::new("aes-128", &AES_KEY).ecb(&data(32));
    assert_eq!(block, other, "{name}");
}

/// Within a time that says that nobody waited for anybody who does not come.
pub fn within<T>(limit: Duration, what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = work();
    assert!(began.elapsed() < limit, "{what} took {:?}", began.elapsed());
    outcome
}

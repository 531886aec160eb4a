//! Real nodes and a client in one process.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_node::Running;
use polyclave_node::local::{Local, create};
use polyclave_transport::wire::{Mode, NewKey};

/// A cluster that is gone when dropped.
pub struct TestCluster {
    pub nodes: Vec<Option<Running>>,
    pub local: Local,
    _dir: tempfile::TempDir,
}

impl TestCluster {
    /// Starts all nodes and waits until they are ready.
    pub fn start(nodes: usize, threshold: usize) -> TestCluster {
        let _ = tracing_subscriber::fmt().with_test_writer().try_init();
        let dir = tempfile::tempdir().expect("a temporary directory");
        let local = create(&dir.path().join("cluster"), "shamir", nodes, threshold).expect("a new cluster");
        let mut cluster = TestCluster { nodes: Vec::new(), local, _dir: dir };
        for path in cluster.local.nodes.clone() {
            cluster.nodes.push(Some(run(path)));
        }
        cluster.wait_until_ready();
        cluster
    }

    /// Waits until all running nodes can serve.
    pub fn wait_until_ready(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.nodes.iter().flatten().all(Running::is_ready) {
            assert!(Instant::now() < until, "the nodes are not ready: {:?}", self.statuses());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn statuses(&self) -> Vec<polyclave_transport::wire::NodeStatus> {
        self.nodes.iter().flatten().map(Running::status).collect()
    }

    /// The client that may do everything.
    pub fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.local.client).expect("its directory")).expect("a client")
    }

    /// Stops a node.
    pub fn stop(&mut self, node: usize) {
        self.nodes[node].take().expect("it runs").stop();
    }

    /// Starts a node that was stopped.
    pub fn restart(&mut self, node: usize) {
        self.nodes[node] = Some(run(self.local.nodes[node].clone()));
    }
}

fn run(path: PathBuf) -> Running {
    Running::start(NodeDir::open(&path).expect("its directory")).expect("it starts")
}

/// A key for some modes.
pub fn key(name: &str, cipher: &str, modes: &[Mode]) -> NewKey {
    let budget_blocks = if cipher.starts_with("aes") { 1 << 32 } else { 1 << 20 };
    NewKey { name: name.into(), cipher: cipher.into(), modes: modes.to_vec(), budget_blocks }
}

pub fn nothing(_: u64) {}

//! Nodes of a test, and their client.

use std::path::PathBuf;
use std::time::Duration;

use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir, NodeSettings, PinOwner, SealedClient, StockSettings};
use polyclave_node::local::{Local, create};
use polyclave_node::{Cheat, Running};

use super::*;

pub const USER_PIN: &[u8] = b"user pin";
pub const SO_PIN: &[u8] = b"officer pin";

/// Nodes in this process, and a client whose key is sealed.
pub struct TestCluster {
    pub nodes: Vec<Option<Running>>,
    pub local: Local,
    dir: tempfile::TempDir,
}

impl TestCluster {
    /// Three nodes under `shamir`.
    pub fn start() -> TestCluster {
        TestCluster::start_under("shamir", 3)
    }

    /// So many nodes, of which one may be corrupt.
    pub fn start_under(protocol: &str, nodes: usize) -> TestCluster {
        let mut cluster = TestCluster::define(protocol, nodes, 1);
        cluster.change_settings(|settings| {
            settings.limits.requests_at_once_per_client = 64;
            // All tokens of all tests are the same client.
            settings.limits.connections_per_client = 512;
        });
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        cluster
    }

    /// Makes the directories and starts nothing.
    pub fn define(protocol: &str, nodes: usize, threshold: usize) -> TestCluster {
        let dir = tempfile::tempdir().expect("a directory");
        let local = create(&dir.path().join("cluster"), protocol, nodes, threshold).expect("a cluster");
        let client = ClientDir::open(&local.client).expect("its directory");
        SealedClient::at(&local.client).seal(client.identity(), SO_PIN, Some(USER_PIN)).expect("sealed");
        TestCluster { nodes: (0..nodes).map(|_| None).collect(), local, dir }
    }

    /// Changes the settings of all nodes, which they read when they start.
    pub fn change_settings(&self, change: impl Fn(&mut NodeSettings)) {
        for path in &self.local.nodes {
            let mut node = NodeDir::open(path).expect("its directory");
            let mut settings = node.settings().clone();
            change(&mut settings);
            node.set_settings(settings).expect("saved");
        }
    }

    /// For how many blocks the nodes keep material.
    pub fn set_stock(&self, blocks: usize) {
        self.change_settings(|settings| settings.stock = StockSettings::of(blocks, 0));
    }

    /// Starts a node that waits no longer than this for a peer that is silent while a key is used.
    pub fn start_impatient(&mut self, node: usize, how: Option<Cheat>, silence: Duration) {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("its directory");
        self.nodes[node] = Some(Running::start_impatient(dir, how, silence).expect("it starts"));
    }

    pub fn stop(&mut self, node: usize) {
        self.nodes[node].take().expect("it runs").stop();
    }

    /// Waits until the nodes are ready and have all their material.
    pub fn wait_until_full(&self) {
        self.wait_until_ready();
        let is_full = |node: &Running| {
            let stock = node.status().stock;
            !stock.is_empty() && stock.iter().all(|kind| kind.blocks >= kind.level)
        };
        wait_until(|| self.nodes.iter().flatten().all(is_full));
    }

    pub fn restart(&mut self, node: usize) {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("its directory");
        self.nodes[node] = Some(Running::start(dir).expect("it starts"));
    }

    pub fn wait_until_ready(&self) {
        let running = || self.nodes.iter().flatten();
        wait_until(|| {
            running().all(|node| node.is_ready() && node.status().connected.len() >= running().count())
        });
    }

    /// The client itself, as the command line would use it.
    pub fn client(&self) -> Client {
        let dir = SealedClient::at(&self.local.client).unseal(PinOwner::User, USER_PIN).expect("its PIN");
        Client::open(&dir).expect("a client")
    }

    /// A configuration of so many tokens of the same client, with settings for all of them. Each has a prefix
    /// of its own.
    pub fn configuration(&self, name: &str, tokens: usize, settings: &str) -> PathBuf {
        let client = self.local.client.display();
        let token = |n: usize| {
            format!(
                "[[token]]\nlabel = \"{name}-{n}\"\nclient = \"{client}\"\nprefix = \"{name}{n}.\"\n{settings}\n"
            )
        };
        let path = self.dir.path().join(format!("{name}.toml"));
        std::fs::write(&path, (0..tokens).map(token).collect::<String>()).expect("written");
        path
    }
}

/// Keeps a cluster of a test's own alive together with its configuration.
pub struct Own {
    pub cluster: TestCluster,
    pub configuration: PathBuf,
}

pub fn own(settings: &str) -> Own {
    let cluster = TestCluster::start();
    let configuration = cluster.configuration("own", 1, settings);
    Own { cluster, configuration }
}

//! A cluster of node processes on this machine. The processes and their files are removed when it is dropped.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use polyclave_api::Right;
use polyclave_client::Client;
use polyclave_config::{ClientDir, Cluster, Consent, NodeDir, NodeSettings, StockSettings};
use polyclave_node::local::{Local, create};
use polyclave_transport::Identity;

use super::Liar;
use crate::protocols::{Properties, properties};

/// The time limit for nodes to start, find each other and agree on common secrets.
const START: Duration = Duration::from_secs(60);
/// The time limit for nodes to read a changed policy.
const RELOAD: Duration = Duration::from_secs(5);

/// The running nodes.
pub struct Throwaway {
    nodes: Vec<Child>,
    local: Local,
    dir: tempfile::TempDir,
    /// How many nodes must remain.
    least: usize,
    liar: Option<Liar>,
    /// Whom the protocol protects against.
    pub adversary: String,
}

impl Throwaway {
    /// Makes all directories and starts the nodes with these levels of the stock.
    pub fn start(protocol: &str, nodes: usize, threshold: usize, stock: &StockSettings) -> Result<Throwaway> {
        Throwaway::start_with(protocol, nodes, threshold, stock, None)
    }

    /// The same, with one node that lies.
    pub fn start_with(
        protocol: &str,
        nodes: usize,
        threshold: usize,
        stock: &StockSettings,
        liar: Option<Liar>,
    ) -> Result<Throwaway> {
        let Properties { quorum, adversary, .. } = properties(protocol, nodes, threshold)?;
        let dir = tempfile::tempdir().context("cannot make a temporary directory")?;
        let local = create(&dir.path().join("cluster"), protocol, nodes, threshold)?;
        for path in &local.nodes {
            let mut node = NodeDir::open(path)?;
            let settings = NodeSettings { stock: stock.clone(), ..node.settings().clone() };
            node.set_settings(settings)?;
        }
        let least = quorum;
        let mut cluster = Throwaway { nodes: Vec::new(), local, dir, least, liar, adversary };
        let (ready, readiness) = channel();
        for number in 0..nodes {
            let child = cluster.start_node(number, ready.clone())?;
            cluster.nodes.push(child);
        }
        cluster.wait_for(nodes, &readiness)?;
        Ok(cluster)
    }

    fn start_node(&self, number: usize, ready: Sender<(usize, bool)>) -> Result<Child> {
        let program = std::env::current_exe().context("cannot find this program to start nodes with")?;
        let mut child = Command::new(&program)
            .args(["node", "run", "--log", "error", "--until-input-ends"])
            .args(self.liar.filter(|liar| liar.node == number).map_or(&[][..], |liar| liar.arguments))
            .arg(&self.local.nodes[number])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a node")?;
        let said = child.stdout.take().context("a node has no output")?;
        std::thread::spawn(move || {
            let is_ready = BufReader::new(said)
                .lines()
                .map_while(std::result::Result::ok)
                .any(|line| line.ends_with("is ready"));
            // The command may have given up.
            let _ = ready.send((number, is_ready));
        });
        Ok(child)
    }

    /// Waits until as many nodes as were started are ready.
    fn wait_for(&mut self, nodes: usize, readiness: &Receiver<(usize, bool)>) -> Result<()> {
        let until = Instant::now() + START;
        for _ in 0..nodes {
            match readiness.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((_, true)) => {}
                Ok((number, false)) => {
                    bail!("node {} ended: {}", number + 1, self.last_words(number))
                }
                Err(_) => bail!("the nodes were not ready within {START:?}"),
            }
        }
        Ok(())
    }

    /// Starts a node again that was killed.
    pub fn restart(&mut self, node: usize) -> Result<()> {
        let (ready, readiness) = channel();
        self.nodes[node] = self.start_node(node, ready)?;
        self.wait_for(1, &readiness)
    }

    fn last_words(&mut self, node: usize) -> String {
        let child = &mut self.nodes[node];
        let _ = child.kill();
        let mut words = String::new();
        if let Some(stderr) = &mut child.stderr {
            // The lines that can be read are better than nothing.
            let _ = stderr.read_to_string(&mut words);
        }
        words.trim().to_owned()
    }

    /// The client that has all rights.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::open(&ClientDir::open(&self.local.client)?)?)
    }

    /// A new client that has some rights for all keys.
    pub fn other_client(&self, name: &str, rights: &[Right]) -> Result<Client> {
        let path: PathBuf = self.dir.path().join(name);
        let identity = Identity::generate_named(name, 1)?;
        let card = ClientDir::init(&path, name, &identity.certificate(), &identity.reveal_private_key())?;
        let dir = ClientDir::open(&path)?;
        dir.set_cluster(
            &Cluster::load(&self.dir.path().join("cluster").join("cluster.toml"))?,
            Consent::None,
        )?;
        for path in &self.local.nodes {
            let node = NodeDir::open(path)?;
            let mut policy = node.policy()?;
            policy.allow(&card, rights, &["*".into()])?;
            node.save_policy(&policy)?;
        }
        let client = Client::open(&dir)?;
        let until = Instant::now() + RELOAD;
        while client.status().iter().filter(|(_, status)| status.is_ok()).count() < self.least {
            if Instant::now() > until {
                bail!("the nodes did not take the new policy within {RELOAD:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(client)
    }

    /// A node that the others can do without.
    pub fn spare(&self) -> Option<usize> {
        (self.nodes.len() > self.least).then_some(0)
    }

    /// Kills a node, without warning.
    pub fn kill(&mut self, node: usize) -> Result<()> {
        self.nodes[node].kill().and_then(|()| self.nodes[node].wait()).context("cannot kill a node")?;
        Ok(())
    }
}

impl Drop for Throwaway {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            // A process that has already ended cannot be killed.
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}

//! A cluster of simulated machines, one for each node.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use anyhow::{Context, Result};
use polyclave_client::Client;
use polyclave_config::{Card, ClientDir, NodeDir, StockSettings};
use polyclave_node::local::{Local, create};
use polyclave_node::{Cheat, Running};

use crate::machines::clock::sleep;
use crate::machines::world::{self, Machine};

/// How often a node's keeper looks at it.
const LOOK: Duration = Duration::from_secs(1);
/// After how long a node that could not start is started again, as a service manager does.
const RESTART: Duration = Duration::from_secs(2);

/// Which cluster.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The protocol's name.
    pub protocol: &'static str,
    /// Nodes.
    pub nodes: usize,
    /// For how many blocks the nodes have material in stock, under protocols that need some.
    pub stock: usize,
    /// Whether every request needs all nodes.
    pub needs_all: bool,
    /// Whether the protocol withstands a node that cheats.
    pub has_checks: bool,
    /// Whether any two nodes go on while the third one is away.
    pub standby: bool,
}

/// One node, as its keeper knows it.
#[derive(Default)]
struct Node {
    ready: AtomicBool,
    stop: AtomicBool,
    up: AtomicBool,
    /// How it cheats, if it does.
    cheat: Option<Cheat>,
}

/// All nodes.
pub struct Cluster {
    /// Which cluster it is.
    pub kind: Kind,
    local: Local,
    nodes: Vec<Arc<Node>>,
    starts: Vec<u64>,
}

impl Cluster {
    /// Makes the directories, and starts nothing. After so many days, if that is given, a refresh is due.
    pub fn define(dir: &Path, kind: Kind, refresh_days: Option<u32>) -> Result<Cluster> {
        let local = create(&dir.join("cluster"), kind.protocol, kind.nodes, 1).context("a new cluster")?;
        local.change_cluster(|file| Ok::<(), anyhow::Error>(file.set_standby(kind.standby)?))?;
        for path in &local.nodes {
            let mut node = NodeDir::open(path)?;
            let mut settings = node.settings().clone();
            // The HTTP server waits by what is not simulated.
            settings.http_listen = None;
            settings.processors = Some(2);
            settings.stock = StockSettings::of(kind.stock, 0);
            settings.refresh.every_days = refresh_days;
            node.set_settings(settings)?;
        }
        let nodes = local.nodes.iter().map(|_| Arc::default()).collect();
        let starts = vec![0; local.nodes.len()];
        Ok(Cluster { kind, local, nodes, starts })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The machine of a node.
    pub fn machine(&self, node: usize) -> Machine {
        Machine(node as u16)
    }

    /// Starts a node that does not run. A keeper on its machine starts it again when it cannot start.
    pub fn start(&mut self, node: usize) {
        self.start_as(node, None);
    }

    /// The same of a node that cheats, if this says how.
    pub fn start_as(&mut self, node: usize, cheat: Option<Cheat>) {
        let state = Arc::new(Node { cheat, ..Node::default() });
        state.up.store(true, SeqCst);
        self.nodes[node] = state.clone();
        self.starts[node] += 1;
        let (path, machine) = (self.local.nodes[node].clone(), self.machine(node));
        world::spawn_on(machine, move || keep(&path, &state));
    }

    /// Ends a node at once.
    pub fn crash(&self, node: usize) {
        world::crash(self.machine(node));
        self.note_crash(node);
    }

    /// Notes that a node's machine has crashed by itself.
    pub fn note_crash(&self, node: usize) {
        self.nodes[node].up.store(false, SeqCst);
        self.nodes[node].ready.store(false, SeqCst);
    }

    /// Stops a node as an operator does, and waits for it.
    pub fn stop(&self, node: usize) {
        self.nodes[node].stop.store(true, SeqCst);
        while self.is_up(node) {
            sleep(LOOK);
        }
    }

    /// Whether a node was started and has not ended.
    pub fn is_up(&self, node: usize) -> bool {
        self.nodes[node].up.load(SeqCst)
    }

    /// Whether a node can serve.
    pub fn serves(&self, node: usize) -> bool {
        self.nodes[node].ready.load(SeqCst)
    }

    /// How often a node was started, or was to be.
    pub fn starts(&self, node: usize) -> u64 {
        self.starts[node]
    }

    /// Where a node's directory is.
    pub fn dir(&self, node: usize) -> PathBuf {
        self.local.nodes[node].clone()
    }

    /// Whether all nodes can serve.
    pub fn is_ready(&self) -> bool {
        self.nodes.iter().all(|node| node.ready.load(SeqCst))
    }

    /// A client that may do everything, on the machine of the calling thread.
    pub fn client(&self) -> Result<Client> {
        client(&self.local.client)
    }

    /// Gives all nodes and the client a file with another card of a node. Nodes use it from their next start.
    pub fn update(&self, card: Card) -> Result<()> {
        self.local.change_cluster(|file| Ok(file.update(card)?))
    }

    /// Where the client's directory is.
    pub fn client_dir(&self) -> PathBuf {
        self.local.client.clone()
    }
}

/// A client of a directory.
pub fn client(dir: &Path) -> Result<Client> {
    Ok(Client::open(&ClientDir::open(dir)?)?)
}

/// Runs a node until it is stopped.
fn keep(path: &Path, state: &Node) {
    while !state.stop.load(SeqCst) {
        let begin = |dir| match state.cheat {
            Some(cheat) => Running::start_cheating(dir, cheat),
            None => Running::start(dir),
        };
        match NodeDir::open(path).map_err(anyhow::Error::from).and_then(|dir| Ok(begin(dir)?)) {
            Ok(running) => {
                while !state.stop.load(SeqCst) {
                    state.ready.store(running.is_ready(), SeqCst);
                    sleep(LOOK);
                }
                state.ready.store(false, SeqCst);
                running.stop();
            }
            Err(error) => {
                eprintln!("{}: cannot start: {error:#}", path.display());
                sleep(RESTART);
            }
        }
    }
    state.up.store(false, SeqCst);
}

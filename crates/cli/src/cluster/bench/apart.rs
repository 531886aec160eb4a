//! `cluster bench --network` without workers: what a client gets from nodes that are far from each other. It
//! makes a cluster in a temporary folder, and puts a slower network between its nodes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_node::admin::{Answer, Instruction, order};
use polyclave_node::local::{Local, create};
use polyclave_transport::Shape;

use super::Arguments;
use super::delay::Ways;
use super::growth::{Far, STARTING, take_ways};
use crate::cluster::run::Quiet;
use crate::protocols::threshold;

/// How often a node is asked how its pairs stand.
const LOOK: Duration = Duration::from_millis(100);

/// A cluster that runs for a measurement.
pub(super) struct Apart {
    /// The way from node to node and back, as measured.
    pub(super) round_trip: Duration,
    local: Local,
    nodes: Quiet,
    _ways: Ways,
    // Removed last.
    _folder: tempfile::TempDir,
}

impl Apart {
    /// A new cluster with this network between its nodes, and between the client and the nodes if it is far
    /// too. Also returns the client.
    pub(super) fn start(arguments: &Arguments, network: Shape) -> Result<(Apart, Client)> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let (parties, place) = (usize::from(arguments.parties), folder.path().join("try"));
        let threshold = threshold(&arguments.protocol, parties, None, 1)?;
        let local = create(&place, &arguments.protocol, parties, threshold)?;
        let mut ways = Ways::new(network);
        let far = if arguments.far_client { Far::NodesAndClient } else { Far::Nodes };
        take_ways(&local, &place, &mut ways, far)?;
        let mut nodes = Quiet::start(local.nodes.iter().map(PathBuf::as_path))?;
        nodes.wait_until_ready(STARTING, || false)?;
        let client = Client::open(&ClientDir::open(&local.client)?)?;
        let round_trip = ways.measured()?;
        Ok((Apart { round_trip, local, nodes, _ways: ways, _folder: folder }, client))
    }

    /// Ends the last node, once the others can do without it.
    pub(super) fn end_last(&mut self) -> Result<()> {
        let until = Instant::now() + STARTING;
        for node in &self.local.nodes {
            while !has_ready_pairs(&NodeDir::open(node)?)? {
                if Instant::now() > until {
                    bail!("standby pairs are not ready after {} s", STARTING.as_secs());
                }
                std::thread::sleep(LOOK);
            }
        }
        self.nodes.end(self.local.nodes.len() - 1)
    }
}

/// Whether all standby pairs of a node, if it has some, have all keys.
fn has_ready_pairs(node: &NodeDir) -> Result<bool> {
    match order(node, &Instruction::Status)? {
        Some(Answer::Status(status)) => Ok(status.standby.iter().all(|pair| pair.ready && pair.lacking == 0)),
        _ => bail!("a node does not tell its status"),
    }
}

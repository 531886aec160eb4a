//! `cluster bench --round-trip` without workers: what a client gets from nodes that are far from each other.
//! It makes a cluster in a temporary folder, and puts a delay between its nodes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use polyclave_client::Client;
use polyclave_config::ClientDir;
use polyclave_node::local::create;

use super::Arguments;
use super::delay::Ways;
use super::growth::{STARTING, take_ways};
use crate::cluster::run::Quiet;
use crate::protocols::threshold;

/// Runs something with a client of a new cluster. Also returns how long the way between nodes and back takes,
/// as measured.
pub(super) fn with_client<T>(
    arguments: &Arguments,
    round_trip: Duration,
    work: impl FnOnce(&Client) -> Result<T>,
) -> Result<(Duration, T)> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let (parties, place) = (usize::from(arguments.parties), folder.path().join("try"));
    let threshold = threshold(&arguments.protocol, parties, None, 1)?;
    let local = create(&place, &arguments.protocol, parties, threshold)?;
    let mut ways = Ways::new(round_trip / 2);
    take_ways(&local, &place, &mut ways)?;
    let mut nodes = Quiet::start(local.nodes.iter().map(PathBuf::as_path))?;
    nodes.wait_until_ready(STARTING, || false)?;
    let client = Client::open(&ClientDir::open(&local.client)?)?;
    let measured = ways.measured()?;
    let outcome = work(&client);
    client.end();
    Ok((measured, outcome?))
}

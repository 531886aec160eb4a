//! `cluster check`: whether the logs of all workers fit the stores, in a trial on one host.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use polyclave_config::{Cluster, NodeDir};
use polyclave_node::balance::balance;
use polyclave_node::local::worker_dir;

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "No node may be running. For each node it verifies the audit logs of all workers, and compares them with the store: \
    a key that a log says was made is there unless its deletion has begun, and at least as many blocks of each key count as spent as the \
    logs have together. Ends with 0 if that is so at all nodes, else with 1."
)]
pub struct Arguments {
    /// The directory that `cluster new` has made
    dir: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let cluster = Cluster::load(&arguments.dir.join("cluster.toml"))
        .context("this is no directory that `polyclave cluster new` has made")?;
    let mut all_right = true;
    for card in cluster.cards() {
        let dirs = (0..)
            .take(cluster.worker_groups())
            .map(|number| crate::node::open(&arguments.dir.join(worker_dir(&card.name, number))));
        let dirs: Vec<NodeDir> = dirs.collect::<Result<_>>()?;
        let found = balance(&dirs).with_context(|| format!("at {}", card.name))?;
        let (lines, kills) =
            found.workers.iter().fold((0, 0), |(lines, kills), of| (lines + of.lines, kills + of.kills));
        say!(
            "{}: {} workers, {lines} lines of audit logs, {kills} starts after a kill; {} keys made and kept; {} blocks logged, {} counted",
            card.name,
            dirs.len(),
            found.made,
            found.logged,
            found.counted
        );
        found.lost.iter().for_each(|key| say!("  LOST: the key {key}"));
        found.overspent.iter().for_each(|key| say!("  SPENT TWICE: blocks of the key {key}"));
        all_right &= found.is_right();
    }
    say!(
        "{}",
        if all_right {
            "nothing is lost, and nothing was spent twice"
        } else {
            "the stores do not fit the logs"
        }
    );
    Ok(if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! `cluster features`: the features of all nodes of one host.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use polyclave_config::{Cluster, NodeDir};

use crate::node::features::{ask, tell};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "Nodes with operators of their own: each runs polyclave node features DIR, whose --help says what a feature is."
)]
pub struct Arguments {
    /// The directory that `cluster new` has made
    dir: PathBuf,

    /// Switch a feature on at all nodes, for ever; they run
    #[arg(long, value_name = "NAME")]
    switch_on: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let cluster = Cluster::load(&arguments.dir.join("cluster.toml"))
        .context("this is no directory that `polyclave cluster new` has made")?;
    for card in cluster.cards() {
        let dir = NodeDir::open(&arguments.dir.join(&card.name))?;
        let features = ask(&dir, arguments.switch_on.clone())?;
        say!("{}", card.name);
        tell(&features);
    }
    Ok(ExitCode::SUCCESS)
}

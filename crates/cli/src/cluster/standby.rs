//! `cluster standby`: whether two of three nodes go on while the third one is away.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::Cluster;

use super::list;
use crate::fingerprint;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave cluster standby cluster.toml          (two nodes go on while one is away)\n  \
    polyclave cluster standby cluster.toml --off\n\n\
    Under replicated-active each pair of nodes then also has shares of each key, with MACs, and serves the uses of keys while \
    the third node is away: encryption, decryption, MACs. Making, deleting and refreshing keys takes all three. Keys that are \
    there already get their shares in the background.\n\n\
    Give the file to all nodes (node join, and restart them one after the other) and clients (client join). Its fingerprint is another one \
    now: compare it anew.")]
pub struct Arguments {
    /// The cluster's file, which is changed
    cluster: PathBuf,

    /// All three nodes are needed for everything
    #[arg(long)]
    off: bool,
}

/// What is said of it when a cluster is made.
#[derive(clap::Args)]
pub struct Options {
    /// Under replicated-active: all three nodes are needed for everything. Otherwise two go on with the keys
    /// while the third one is away
    #[arg(long)]
    no_standby: bool,
}

impl Options {
    /// Puts it into a new cluster.
    pub fn apply(&self, cluster: &mut Cluster) -> Result<()> {
        Ok(cluster.set_standby(!self.no_standby && cluster.can_have_standby())?)
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut cluster = Cluster::load(&arguments.cluster)?;
    cluster.set_standby(!arguments.off)?;
    cluster.save(&arguments.cluster)?;
    say!("{} is changed", arguments.cluster.display());
    fingerprint::show(&cluster);
    list(&cluster);
    say!(
        "Next: give it to every node (polyclave node join, then restart it) and client (polyclave client join)"
    );
    Ok(ExitCode::SUCCESS)
}

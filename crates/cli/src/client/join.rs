//! `client join`: the cluster's file at a client.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::Cluster;

use crate::protocols::adversary;
use crate::say;

/// What a person can choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// The client's directory
    dir: PathBuf,

    /// The cluster's file
    cluster: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let cluster = Cluster::load(&arguments.cluster)?;
    let adversary = adversary(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
    dir.set_cluster(&cluster)?;
    let fingerprint = hex::encode(&cluster.fingerprint()[..8]);
    say!("{} uses the cluster with the fingerprint {fingerprint}", dir.name());
    say!("{}: {adversary}", cluster.protocol());
    say!("Next: polyclave client status --client {}", arguments.dir.display());
    Ok(ExitCode::SUCCESS)
}

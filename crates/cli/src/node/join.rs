//! `node join`: the cluster's file at a node.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::Cluster;

use crate::protocols::adversary;
use crate::say;

/// What a person can choose.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  polyclave node join /var/lib/polyclave cluster.toml\n\n\
    The file must be the one that all other nodes have. Compare its fingerprint, which this command prints, with theirs.")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// The cluster's file
    cluster: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let cluster = Cluster::load(&arguments.cluster)?;
    let adversary = adversary(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
    let first = dir.cluster()?.is_none();
    dir.set_cluster(&cluster)?;
    let (path, name) = (arguments.dir.display(), &dir.settings().name);
    say!("{name} belongs to the cluster with the fingerprint {}", hex::encode(&cluster.fingerprint()[..8]));
    say!("{}: {adversary}", cluster.protocol());
    match first {
        true => say!(
            "Next: let clients in, at every node by its own operator, then run it:\n  \
             polyclave node allow {path} CLIENT-CARD --rights encrypt,decrypt,list --keys '*'\n  \
             polyclave node run {path}"
        ),
        false => say!("The node takes the changed file when it is started the next time."),
    }
    Ok(ExitCode::SUCCESS)
}

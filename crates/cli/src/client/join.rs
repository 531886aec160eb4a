//! `client join`: gives a client the file of its cluster.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{ClientDir, Consent};

use crate::fingerprint::names;
use crate::fingerprint::{self, Expected};
use crate::protocols::adversary;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave client join ~/.polyclave cluster.toml\n  \
    polyclave client join ~/.polyclave cluster.toml --expect 'acorn zigzag ..'\n\n\
    Compare the fingerprint that this command prints with the one that the operators of the nodes have: who could replace the \
    file could take the nodes' places, and would be sent what this client encrypts. A file of the same cluster that replaces a \
    certificate is taken with --expect only.")]
pub struct Arguments {
    /// The client's directory
    dir: PathBuf,

    /// The cluster's file
    cluster: PathBuf,

    #[command(flatten)]
    expected: Expected,

    /// Replace the client's cluster file even if the new file is of another cluster
    #[arg(long)]
    replace: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let cluster = arguments.expected.load(&arguments.cluster)?;
    let adversary = adversary(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
    let consent = if arguments.replace { Consent::Cluster } else { arguments.expected.consent() };
    // A sealed client can, too: that takes no key.
    ClientDir::set_cluster_of(&arguments.dir, &cluster, consent)?;
    say!("{} uses the cluster of {}", ClientDir::name_of(&arguments.dir)?, names(&cluster));
    fingerprint::show(&cluster);
    arguments.expected.advise();
    say!("{}: {adversary}", cluster.protocol());
    say!("Next: polyclave client status --client {}", arguments.dir.display());
    Ok(ExitCode::SUCCESS)
}

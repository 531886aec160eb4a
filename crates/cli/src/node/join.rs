//! `node join`: gives a node the file of its cluster.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::fingerprint::names;
use crate::fingerprint::{self, Expected};
use crate::protocols::adversary;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave node join /var/lib/polyclave cluster.toml\n  \
    polyclave node join /var/lib/polyclave cluster.toml --expect 'acorn zigzag ..'\n\n\
    The file must be the one that all other nodes have. Compare its fingerprint, which this command prints, with theirs, or give \
    the one that you were told: it covers every node's name, addresses and certificates. A file that replaces a certificate \
    is taken with --expect only.")]
pub struct Arguments {
    /// The node's directory
    dir: PathBuf,

    /// The cluster's file
    cluster: PathBuf,

    #[command(flatten)]
    expected: Expected,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let dir = super::open(&arguments.dir)?;
    let cluster = arguments.expected.load(&arguments.cluster)?;
    let adversary = adversary(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
    let first = dir.cluster()?.is_none();
    dir.set_cluster(&cluster, arguments.expected.consent())?;
    let (path, name) = (arguments.dir.display(), &dir.settings().name);
    say!("{name} belongs to the cluster of {}", names(&cluster));
    fingerprint::show(&cluster);
    arguments.expected.advise();
    say!("{}: {adversary}", cluster.protocol());
    match first {
        true => say!(
            "Next, every operator at their own node: allow clients, then run the node:\n  \
             polyclave node allow {path} CLIENT-CARD --rights encrypt,decrypt,list --keys '*'\n  \
             polyclave node run {path}"
        ),
        false => say!("The node uses the changed file after its next start."),
    }
    Ok(ExitCode::SUCCESS)
}

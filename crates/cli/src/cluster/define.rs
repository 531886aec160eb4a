//! `cluster define`: makes the file that all nodes and clients have.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::{Card, Cluster};

use super::{list, standby};
use crate::fingerprint;
use crate::protocols::{self, adversary, needs_threshold, threshold};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave cluster define --threshold 1 --out cluster.toml alpha.toml beta.toml gamma.toml\n\n\
    The file is public, but everything rests on it: who can replace it or a card on its way can take a node's place. All nodes \
    must have the same file: the fingerprint that this command prints covers all of it, each card with its certificates; compare \
    it at every node and client (`node join`, `client join` --expect).")]
pub struct Arguments {
    /// The nodes' cards, in the order of their numbers
    #[arg(required = true)]
    cards: Vec<PathBuf>,

    #[arg(long, value_name = "T", help = protocols::threshold_help("to be chosen"))]
    threshold: Option<usize>,

    #[arg(long, value_name = "P", help = protocols::option_help())]
    protocol: Option<String>,

    /// The file to write; it must not exist yet
    #[arg(long, value_name = "FILE", default_value = "cluster.toml")]
    out: PathBuf,

    #[command(flatten)]
    standby: standby::Options,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let out = &arguments.out;
    if out.symlink_metadata().is_ok() {
        bail!("{} is there already; to change a node's card use `polyclave cluster update`", out.display());
    }
    let nodes = arguments.cards.len();
    let chosen = protocols::chosen(arguments.protocol.as_deref(), Some(nodes), nodes);
    let protocol = &chosen.protocol;
    if arguments.threshold.is_none() && needs_threshold(protocol) {
        bail!("say with --threshold how many nodes together are to learn nothing");
    }
    let threshold = threshold(protocol, nodes, arguments.threshold, 1)?;
    let adversary = adversary(protocol, nodes, threshold)?;
    let cards = arguments.cards.iter().map(|path| Card::load(path)).collect::<Result<Vec<_>, _>>()?;
    let mut cluster = Cluster::define(protocol, threshold, cards)?;
    arguments.standby.apply(&mut cluster)?;
    cluster.save(out)?;
    say!("{} defines a cluster", out.display());
    fingerprint::show(&cluster);
    chosen.tell();
    say!("{protocol}: {adversary}");
    list(&cluster);
    say!("Next: give this file to every node and client, and tell them its fingerprint over another way:");
    say!(
        "  polyclave node join DIR {0} --expect FINGERPRINT\n  polyclave client join DIR {0} --expect FINGERPRINT",
        out.display()
    );
    Ok(ExitCode::SUCCESS)
}

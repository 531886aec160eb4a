//! `cluster update`: replaces a node's card in the cluster's file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{Card, Cluster};

use crate::fingerprint::{self, Expected};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example, after `polyclave node rotate` at alpha:\n  \
    polyclave cluster update cluster.toml alpha.toml\n\n\
    Then give the file to all nodes (node join, and restart them one after the other) and clients (client join). Its \
    fingerprint is another one now: compare it anew. --expect is of the changed file.")]
pub struct Arguments {
    /// The cluster's file, which is changed
    cluster: PathBuf,

    /// The node's new card
    card: PathBuf,

    /// Accept a card that has none of the certificates by which the cluster knows the node
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    expected: Expected,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut cluster = Cluster::load(&arguments.cluster)?;
    let card = Card::load(&arguments.card)?;
    let (name, count) = (card.name.clone(), card.certificates.len());
    match arguments.replace {
        true => cluster.replace(card)?,
        false => cluster.update(card)?,
    }
    arguments.expected.check(&cluster)?;
    cluster.save(&arguments.cluster)?;
    let known = if count == 1 { "one certificate".into() } else { format!("{count} certificates") };
    say!("{} has the new card of {name}, with {known}", arguments.cluster.display());
    fingerprint::show(&cluster);
    say!(
        "Next: give it to every node (polyclave node join, then restart it) and client (polyclave client join)"
    );
    Ok(ExitCode::SUCCESS)
}

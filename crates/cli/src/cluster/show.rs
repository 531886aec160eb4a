//! `cluster show`: prints the contents of a cluster file, and its fingerprint.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::certificate_fingerprint;

use super::list;
use crate::fingerprint::{self, Expected};
use crate::protocols::adversary;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave cluster show cluster.toml\n  \
    polyclave cluster show /var/lib/polyclave/cluster.toml --expect 'acorn zigzag ..'\n\n\
    Ends with 1 if the file has another fingerprint than is expected.")]
pub struct Arguments {
    /// The cluster's file
    cluster: PathBuf,

    #[command(flatten)]
    expected: Expected,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let cluster = arguments.expected.load(&arguments.cluster)?;
    let adversary = adversary(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
    if arguments.json {
        let nodes: Vec<_> = cluster
            .cards()
            .iter()
            .map(|card| {
                serde_json::json!({
                    "name": card.name, "address": card.address, "client_address": card.client_address,
                    "workers": card.workers, "certificates": card.certificates.iter().map(certificate_fingerprint).collect::<Vec<_>>(),
                })
            })
            .collect();
        let document = serde_json::json!({
            "fingerprint": cluster.fingerprint().to_string(), "words": cluster.fingerprint().words(),
            "id": hex::encode(cluster.id()), "protocol": cluster.protocol(), "threshold": cluster.threshold(),
            "nodes": nodes, "workers": cluster.roles(), "standby": cluster.has_standby(),
        });
        say!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(ExitCode::SUCCESS);
    }
    say!("{}", arguments.cluster.display());
    fingerprint::show(&cluster);
    say!("{}: {adversary}", cluster.protocol());
    list(&cluster);
    Ok(ExitCode::SUCCESS)
}

//! `key configure`: which versions of a key compute, and whether it may be deleted.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::ValueEnum;

use crate::client::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key configure invoices --least-version 3\n  \
    polyclave key configure invoices --deletable no\n\n\
    Versions older than the least one compute nothing. The least version can be lowered again, which a state cannot. A key that is not \
    deletable is deleted by no client until it is made deletable again. What is not given stays as it is. The client needs the right \
    configure. All nodes take part; if the command fails in the middle, repeat it.")]
pub struct Arguments {
    /// The key's name
    name: String,

    /// The oldest version that computes anything
    #[arg(long, value_name = "N")]
    least_version: Option<u32>,

    /// Whether clients may delete the key
    #[arg(long, value_name = "yes|no")]
    deletable: Option<Answer>,

    #[command(flatten)]
    client: ClientOption,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Answer {
    Yes,
    No,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { name, least_version, deletable, client } = arguments;
    ensure!(
        least_version.is_some() || deletable.is_some(),
        "say what to set: --least-version or --deletable"
    );
    let client = client.open()?;
    let now = client.info(name)?;
    let least_version = least_version.unwrap_or(now.least_version);
    let deletable = deletable.map_or(now.deletable, |answer| answer == Answer::Yes);
    client.configure(name, least_version, deletable)?;
    say!("{name}: least version {least_version}, {}", if deletable { "deletable" } else { "not deletable" });
    Ok(ExitCode::SUCCESS)
}

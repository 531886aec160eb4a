//! `key configure`: which versions of a key compute, whether it may be deleted, and what it is not for any
//! more.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use polyclave_client::Withdrawal;

use crate::client_option::ClientOption;
use crate::names::parse_usage;
use crate::say;

/// The word for what lets a key leave the nodes.
const WRAPPABLE: &str = "wrappable";

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key configure invoices --least-version 3\n  \
    polyclave key configure invoices --deletable no\n  \
    polyclave key configure movable --withdraw wrappable\n\n\
    What is withdrawn is gone for ever, for all versions of the key and those to come. Versions older than the least one compute nothing. The least version can be lowered again, which a state cannot. A key that is not \
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

    /// What the key is not for any more, for ever: wrappable, and usages (encrypt, decrypt, mac, wrap,
    /// unwrap, derive, kdf, tokenize)
    #[arg(long, value_name = "W,..", value_delimiter = ',', num_args = 1)]
    withdraw: Vec<String>,

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
    let Arguments { name, least_version, deletable, withdraw, client } = arguments;
    ensure!(
        least_version.is_some() || deletable.is_some() || !withdraw.is_empty(),
        "say what to set: --least-version, --deletable or --withdraw"
    );
    let usage: Vec<&str> = withdraw.iter().map(String::as_str).filter(|word| *word != WRAPPABLE).collect();
    let what = Withdrawal {
        wrappable: usage.len() < withdraw.len(),
        usage: if usage.is_empty() { Vec::new() } else { parse_usage(&usage.join(","))? },
    };
    let client = client.open()?;
    let now = client.info(name)?;
    let least_version = least_version.unwrap_or(now.least_version);
    let deletable = deletable.map_or(now.deletable, |answer| answer == Answer::Yes);
    client.withdraw(name, (least_version, deletable), &what)?;
    let withdrawn =
        if withdraw.is_empty() { String::new() } else { format!(", withdrawn: {}", withdraw.join(" ")) };
    let deletable = if deletable { "deletable" } else { "not deletable" };
    say!("{name}: least version {least_version}, {deletable}{withdrawn}");
    Ok(ExitCode::SUCCESS)
}

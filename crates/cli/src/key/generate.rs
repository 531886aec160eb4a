//! `key generate`: makes a key that no single machine knows.

use std::process::ExitCode;

use anyhow::Result;

use super::made::{Properties, json, tell};
use crate::client_option::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key generate invoices\n  \
    polyclave key generate tags --modes cmac --budget 1000000\n  \
    polyclave key generate transport --cipher aes-256 --usage wrap,unwrap\n  \
    polyclave key generate movable --wrappable\n\n\
    Every node draws a part; the key is the sum, and is never in one place. Only its check value is opened, the first bytes of \
    the CMAC of one block of zeros.")]
pub struct Arguments {
    #[command(flatten)]
    properties: Properties,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (key, _) = arguments.properties.check()?;
    let info = arguments.client.open()?.generate(key)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}

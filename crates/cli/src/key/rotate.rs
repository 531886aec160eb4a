//! `key rotate`: makes the next version of a key.

use std::process::ExitCode;

use anyhow::Result;

use super::made::{json, tell};
use crate::client_option::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key rotate invoices\n  \
    polyclave key show invoices\n\n\
    The nodes generate version n + 1 under the same name, with an id, shares and a budget of its own. From then on `encrypt` takes it. What was \
    encrypted before names its version, and `decrypt` finds it; with --raw give --key-version. A version with an expiry is followed by one that \
    lives as long. The client needs the right generate.")]
pub struct Arguments {
    /// The key's name
    name: String,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let info = arguments.client.open()?.rotate(&arguments.name)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}

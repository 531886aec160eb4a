//! `key deactivate` and `key compromise`: a version moves on to a later state.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use polyclave_api::VersionState;

use crate::client_option::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key rotate invoices\n  \
    polyclave key deactivate invoices --key-version 1\n  \
    polyclave key compromise invoices --key-version 1 --yes\n\n\
    A deactivated version decrypts, verifies and unwraps, and nothing else. A compromised version does so only for clients that have the \
    right configure, too: to save data, after which it should be deleted. A version never becomes active again. The client needs the \
    right configure. All nodes take part; if the command fails in the middle, repeat it.")]
pub struct Arguments {
    /// The key's name
    name: String,

    /// The version
    #[arg(long, value_name = "N")]
    key_version: u32,

    /// Confirm it: it cannot be undone
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    client: ClientOption,
}

/// Runs the command.
pub fn run(arguments: &Arguments, state: VersionState) -> Result<ExitCode> {
    let Arguments { name, key_version: version, yes, client } = arguments;
    ensure!(
        *yes || state != VersionState::Compromised,
        "no client without the right configure can decrypt anything any more that was encrypted under version {version} of '{name}'; if \
         that is what you want, add --yes"
    );
    client.open()?.retire(name, *version, state)?;
    say!("version {version} of {name} is {state}");
    Ok(ExitCode::SUCCESS)
}

//! `key delete`.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use crate::client_option::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "All nodes take part. What was encrypted under the key can never be decrypted again, unless more nodes \
    than the threshold keep backups from before. With --key-version only that version is deleted, which must not be the current one."
)]
pub struct Arguments {
    /// The key's name
    name: String,

    /// Delete only this version
    #[arg(long, value_name = "N")]
    key_version: Option<u32>,

    /// Confirm that the key is deleted permanently
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    client: ClientOption,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (name, version) = (&arguments.name, arguments.key_version);
    let what =
        version.map_or(format!("'{name}', with all its versions,"), |v| format!("version {v} of '{name}'"));
    ensure!(
        arguments.yes,
        "this deletes {what} for ever, and with it everything that was encrypted under it; if that is what you want, add \
         --yes"
    );
    let client = arguments.client.open()?;
    match version {
        None => match client.delete(name)? {
            Some(info) => say!("{name} is deleted (id {})", hex::encode(info.id)),
            None => bail!("there is no key '{name}'; nothing was deleted"),
        },
        Some(version) => match client.delete_version(name, version)? {
            Some(info) => say!("version {version} of {name} is deleted (id {})", hex::encode(info.id)),
            None => bail!("there is no version {version} of '{name}'; nothing was deleted"),
        },
    }
    Ok(ExitCode::SUCCESS)
}

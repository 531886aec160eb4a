//! `key delete`.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use crate::client::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "All nodes take part. What was encrypted under the key can never be decrypted again, unless more nodes \
    than the threshold keep backups from before."
)]
pub struct Arguments {
    /// The key's name
    name: String,

    /// Confirm that the key is deleted permanently
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    client: ClientOption,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let name = &arguments.name;
    ensure!(
        arguments.yes,
        "this deletes '{name}' for ever, and with it everything that was encrypted under it; if that is what you want, add \
         --yes"
    );
    match arguments.client.open()?.delete(name)? {
        Some(info) => say!("{name} is deleted (id {})", hex::encode(info.id)),
        None => bail!("there is no key '{name}'; nothing was deleted"),
    }
    Ok(ExitCode::SUCCESS)
}

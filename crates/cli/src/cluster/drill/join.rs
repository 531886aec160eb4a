//! `cluster drill join`: a restored node takes part in a drill.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::ClientCard;

use super::part;
use crate::fingerprint::{self, Expected};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave cluster drill join /dev/shm/drill drill.toml drill-client.toml --expect 'acorn zigzag ..'\n\n\
    The file decides whom the restored node works with. It is refused if it names an address or a certificate of a real node.")]
pub struct Arguments {
    /// The directory that `cluster drill restore` made
    dir: PathBuf,

    /// The file of the drill's cluster
    drill: PathBuf,

    /// The card of the drill's client
    client: PathBuf,

    #[command(flatten)]
    expected: Expected,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { dir, drill, client, expected } = arguments;
    let drill = expected.load(drill)?;
    part::join(dir, &drill, &ClientCard::load(client)?)?;
    fingerprint::show(&drill);
    expected.advise();
    say!(
        "Next:\n  polyclave node run {}\nWhen the drill is over, end it and remove the directory:\n  rm -r {0}",
        dir.display()
    );
    Ok(ExitCode::SUCCESS)
}

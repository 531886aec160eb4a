//! `cluster drill restore`: one node, on a machine of its operator.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::Place;

use super::{loss, part};
use crate::node::card_path;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave cluster drill restore alpha.backup /dev/shm/drill --key backup.key \\\n      \
    --address drill-a.example:7000 --client-address drill-a.example:7001\n\n\
    The directory is then worth as much as the node: it has its shares. Use a machine that only this operator controls, one for each node, and \
    a directory in memory (/dev/shm). The restored node has a certificate of its own, which the real nodes do not know. It learns whom to work with \
    from `cluster drill join`. Remove the directory when the drill is over.")]
pub struct Arguments {
    /// The backup
    backup: PathBuf,

    /// The directory to make
    dir: PathBuf,

    /// The file with the backup's key
    #[arg(long, value_name = "KEYFILE")]
    key: PathBuf,

    /// Where the other nodes of the drill reach it: host:port, at which no real node is
    #[arg(long, value_name = "ADDRESS")]
    address: String,

    /// Where the client of the drill reaches it: host:port
    #[arg(long, value_name = "ADDRESS")]
    client_address: String,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { backup, dir, key, address, client_address, json } = arguments;
    let place = Place { address: address.clone(), client_address: client_address.clone() };
    let part = part::unpack(backup, key, dir, &place)?;
    let card = card_path(dir);
    part::card(dir)?.save(&card)?;
    if *json {
        say!("{}", serde_json::to_string_pretty(&part)?);
        return Ok(ExitCode::SUCCESS);
    }
    loss::tell_part(&part);
    say!(
        "Next: give {} to the person who makes the file of the drill (polyclave cluster drill define)",
        card.display()
    );
    Ok(ExitCode::SUCCESS)
}

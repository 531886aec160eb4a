//! `key combine`: a key is made of the components that several people gave.

use std::process::ExitCode;

use anyhow::Result;

use super::kcv::{CheckOptions, ParityOption};
use super::made::{json, tell};
use crate::client_option::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key combine zone-master --kcv 8ca64de9c1\n  \
    polyclave key combine zone-master --kcv 08d7b4 --kcv-by zeros --parity set\n\n\
    The components were given with `polyclave key import NAME --component 1 --of 3 ..`, each by another client. The key is their sum \
    (XOR), and has the properties that all of them were given with. The nodes compute it on shares: nobody sees it. Nothing is kept if the check value is another \
    one. The components are gone as soon as the key is there.")]
pub struct Arguments {
    /// The name of the key
    name: String,

    #[command(flatten)]
    check: CheckOptions,

    #[command(flatten)]
    parity: ParityOption,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (expected, parity) = (arguments.check.expected()?, arguments.parity.parity());
    let info = arguments.client.open()?.combine(&arguments.name, expected, parity)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}

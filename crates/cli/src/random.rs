//! `polyclave random`: random bytes from all nodes.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::client_option::{ClientOption, persist};
use crate::files::{Output, Readers};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave random 32 --hex\n  \
    polyclave random 32 --out seed.bin\n\n\
    Every node that answers draws bytes of its own, and this program adds them up: as long as one of these nodes is honest, nobody else \
    knows the result or could choose any of it. Needs the right random.")]
pub struct Arguments {
    /// How many bytes, from 1 to 65536
    #[arg(value_name = "N")]
    bytes: usize,

    /// Print them in hexadecimal
    #[arg(long, conflicts_with = "out")]
    hex: bool,

    /// Write them to this file, which only you can read [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    client: ClientOption,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let client = arguments.client.open()?;
    let output = match arguments.hex {
        true => None,
        false => Some(Output::begin(arguments.out.as_deref(), Readers::Owner, arguments.force)?),
    };
    let drawn = persist(&client, || true, || Ok(client.random(arguments.bytes)?))?;
    match output {
        None => say!("{}", hex::encode(&*drawn)),
        Some(mut output) => {
            output.write_all(&drawn)?;
            output.finish()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

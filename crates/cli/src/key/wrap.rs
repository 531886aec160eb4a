//! `key wrap`: a wrappable key leaves the nodes under another key.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_transport::wire::Wrapping;

use crate::client::ClientOption;
use crate::files::{Output, Readers};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key generate transport --cipher aes-256 --usage wrap,unwrap\n  \
    polyclave key generate payroll --wrappable\n  \
    polyclave key wrap transport payroll --out payroll.wrapped\n\n\
    The key that wraps needs the usage wrap, the other one must be wrappable, and the client needs the right wrap for both names. \
    Whoever has the wrapping key in the clear can open the result: under a key that somebody holds, such as an imported one, this is \
    export. The nodes' audit logs name both keys.")]
pub struct Arguments {
    /// The name of the key that wraps: one of AES
    wrapping: String,

    /// The name of the key that is wrapped
    key: String,

    /// Take AES key wrap with padding (RFC 5649), for keys of any length, in place of AES key wrap (RFC 3394)
    #[arg(long)]
    kwp: bool,

    /// Write the wrapped key to this file, as bytes [default: print it in hexadecimal]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "out")]
    force: bool,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long, conflicts_with = "out")]
    json: bool,
}

/// The way of wrapping that `--kwp` chooses.
pub fn wrapping(kwp: bool) -> Wrapping {
    if kwp { Wrapping::Kwp } else { Wrapping::Kw }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (by, key, how) = (&arguments.wrapping, &arguments.key, wrapping(arguments.kwp));
    let client = arguments.client.open()?;
    let output = match arguments.out.as_deref() {
        Some(path) => Some(Output::begin(Some(path), Readers::All, arguments.force)?),
        None => None,
    };
    let wrapped = client.wrap(by, key, how)?;
    match output {
        Some(mut output) => {
            output.write_all(&wrapped)?;
            output.finish()?;
        }
        None if arguments.json => {
            let wrapped = hex::encode(&wrapped);
            let document = serde_json::json!({ "wrapping": by, "key": key, "how": how, "wrapped": wrapped });
            say!("{}", serde_json::to_string_pretty(&document)?);
        }
        None => say!("{}", hex::encode(&wrapped)),
    }
    Ok(ExitCode::SUCCESS)
}

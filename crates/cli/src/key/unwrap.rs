//! `key unwrap`: a wrapped key becomes a key of the nodes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use super::made::{Properties, json, tell};
use super::wrap::wrapping;
use crate::client::ClientOption;
use crate::say;

/// The most bytes of a wrapped key: more than any cipher here takes.
const MOST: u64 = 1 << 10;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key unwrap transport payroll.wrapped payroll --modes gcm\n  \
    polyclave key unwrap transport old.wrapped old --kwp --cipher 3des-ede3 --modes cbc\n\n\
    The key is never in one place: the nodes unwrap it on shares. What it is for is said here and not in the wrapped key. A file that \
    was altered or cut, or belongs to another key or cipher, is refused with one message for all of these. The key that unwraps needs the usage unwrap, \
    and the client the right unwrap for both names.")]
pub struct Arguments {
    /// The name of the key that unwraps: one of AES
    unwrapping: String,

    /// The file with the wrapped key, as bytes
    file: PathBuf,

    #[command(flatten)]
    properties: Properties,

    /// It was wrapped with padding (RFC 5649)
    #[arg(long)]
    kwp: bool,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (new, _) = arguments.properties.check()?;
    let wrapped = read(&arguments.file)?;
    let client = arguments.client.open()?;
    let info = client.unwrap(&arguments.unwrapping, &wrapped, wrapping(arguments.kwp), new)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", path.display());
    let mut wrapped = Vec::new();
    File::open(path).with_context(cannot)?.take(MOST + 1).read_to_end(&mut wrapped).with_context(cannot)?;
    ensure!(wrapped.len() as u64 <= MOST, "{} is longer than any wrapped key", path.display());
    Ok(wrapped)
}

//! `key unwrap`: a wrapped key becomes a key of the nodes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use super::made::{Properties, json, tell};
use super::wrap::wrapping;
use crate::client_option::ClientOption;
use crate::say;

/// The most bytes of a wrapped key: more than any cipher here takes.
const MAX: u64 = 1 << 10;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key unwrap transport payroll.wrapped payroll --modes gcm\n  \
    polyclave key unwrap transport old.wrapped old --kwp --cipher 3des-ede3 --modes cbc\n  \
    polyclave key unwrap kbpk theirs.tr31 theirs --tr31 --modes gcm\n\n\
    The key is never in one place: the nodes unwrap it on shares. What it is for is said here and not in the wrapped key. A file that \
    was altered or cut, or belongs to another key or cipher, is refused with one message for all of these. A key block says itself \
    what its key is for: the new key may be for less, not for more. The key that unwraps needs the usage unwrap, \
    and the client the right unwrap for both names.")]
pub struct Arguments {
    /// The name of the key that unwraps: one of AES, or with mode tr31 one of Triple DES
    unwrapping: String,

    /// The file with the wrapped key, as bytes, or with a key block, as text
    file: PathBuf,

    #[command(flatten)]
    properties: Properties,

    /// It was wrapped with padding (RFC 5649)
    #[arg(long, conflicts_with = "tr31")]
    kwp: bool,

    /// It is a key block of TR-31 (ANSI X9.143), version B or D
    #[arg(long)]
    tr31: bool,

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
    let info = match arguments.tr31 {
        // A file of one line may end as lines do.
        true => client.unwrap_block(&arguments.unwrapping, wrapped.trim_ascii_end(), new)?,
        false => client.unwrap(&arguments.unwrapping, &wrapped, wrapping(arguments.kwp), new)?,
    };
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", path.display());
    let mut wrapped = Vec::new();
    File::open(path).with_context(cannot)?.take(MAX + 1).read_to_end(&mut wrapped).with_context(cannot)?;
    ensure!(wrapped.len() as u64 <= MAX, "{} is longer than any wrapped key", path.display());
    Ok(wrapped)
}

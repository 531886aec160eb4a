//! `key kdf`: bytes derived from a key, for this client alone.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use zeroize::Zeroizing;

use super::derive::{Counter, hkdf};
use crate::client_option::ClientOption;
use crate::files::{Output, Readers};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key generate seeds --usage kdf\n  \
    polyclave key kdf seeds --bytes 32 --before 6469736b2d3700 --after 00000100 --out disk-7.key\n\n\
    SP 800-108 in counter mode: code i is that of --before, the counter i and --after, and the output is the first bytes of the \
    codes. A key of AES, DES or Triple DES computes codes by CMAC, one for hmac (--cipher hmac-sha-256) by HMAC. \
    --hkdf-info is the step Expand of HKDF (RFC 5869), with the key as PRK. \
    The nodes compute the codes on shares; this client alone learns the output. The same key and data give the same bytes \
    again, to every client with the right kdf for the key. The key needs the usage kdf, which no key has together with derive.")]
pub struct Arguments {
    /// The name of the key
    key: String,

    /// How many bytes: 1 to 1024
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    bytes: u32,

    #[command(flatten)]
    counter: Counter,

    /// HKDF-Expand with this info, in hexadecimal, in place of SP 800-108; for a key for hmac
    #[arg(long, value_name = "HEX", conflicts_with_all = ["before", "after", "counter_bits"])]
    hkdf_info: Option<String>,

    /// Write the bytes to this file, readable only by you [default: print them in hexadecimal]
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

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let how = match &arguments.hkdf_info {
        Some(info) => hkdf(info)?,
        None => arguments.counter.derivation()?,
    };
    let client = arguments.client.open()?;
    let output = match arguments.out.as_deref() {
        Some(path) => Some(Output::begin(Some(path), Readers::Owner, arguments.force)?),
        None => None,
    };
    let derived = client.kdf(&arguments.key, how, arguments.bytes as usize)?;
    match output {
        Some(mut output) => {
            output.write_all(&derived)?;
            output.finish()?;
        }
        None => {
            let digits = Zeroizing::new(hex::encode(&*derived));
            match arguments.json {
                true => say!("{}", serde_json::json!({ "key": arguments.key, "derived": *digits })),
                false => say!("{}", *digits),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

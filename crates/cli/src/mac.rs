//! `polyclave mac`: message authentication codes.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use subtle::ConstantTimeEq;

use crate::client_option::{ClientOption, persist};
use crate::files::{Output, Readers, Source, progress};
use crate::options::hexadecimal;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave mac --key tags message.txt\n  \
    polyclave mac --key tags message.txt --verify 070a16b46b4d4144f79bdd9dd04a287c\n  \
    polyclave mac --key webhooks --bytes 16 message.txt\n\n\
    CMAC (SP 800-38B) or HMAC with SHA-256, SHA-384 or SHA-512 (FIPS 198-1), whichever the key was made for; \
    `openssl mac -cipher AES-128-CBC -macopt hexkey:$KEY CMAC` and `openssl mac -digest SHA256 -macopt hexkey:$KEY HMAC` compute the same. \
    The nodes compute block after block: this is slow for large inputs, and HMAC takes at most 64 KiB.")]
pub struct Arguments {
    /// The key's name
    #[arg(long, value_name = "N")]
    key: String,

    /// The version of the key [default: the current one]
    #[arg(long, value_name = "N")]
    key_version: Option<u32>,

    /// Compare with this code, in hexadecimal, and print nothing; exits with status 1 if it differs
    #[arg(long, value_name = "HEX", conflicts_with = "output")]
    verify: Option<String>,

    /// Cut the code to so many bytes, 16 or more; for keys for hmac [default: the whole code, or as many as
    /// --verify has]
    #[arg(long, value_name = "N")]
    bytes: Option<usize>,

    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    client: ClientOption,

    /// The input; - for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// Write the code to this file, as bytes [default: print it in hexadecimal]
    #[arg(value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let expected = arguments.verify.as_deref().map(|text| hexadecimal("--verify", text)).transpose()?;
    if let (Some(code), Some(bytes)) = (&expected, arguments.bytes)
        && code.len() != bytes
    {
        bail!("--verify has a code of {} bytes, and --bytes says {bytes}: leave out --bytes", code.len());
    }
    let key = match arguments.key_version {
        Some(version) => format!("{}@{version}", arguments.key),
        None => arguments.key.clone(),
    };
    let client = arguments.client.open()?;
    let source = Source::new(&arguments.input);
    source.open()?;
    let output = match arguments.output.as_deref() {
        Some(path) => Some(Output::begin(Some(path), Readers::All, arguments.force)?),
        None => None,
    };
    let code = persist(
        &client,
        || source.can_begin_anew(),
        || {
            let mut input = source.open()?;
            let bar = progress(input.len());
            let code = client.key(&key).and_then(|key| {
                let of_expected = expected.as_ref().map(Vec::len);
                let bytes = match (of_expected, key.computes_hmac()?) {
                    (Some(bytes), true) => Some(bytes),
                    _ => arguments.bytes,
                };
                key.mac_stream(&mut input, bytes, &mut |done| bar.set_position(done))
            });
            bar.finish_and_clear();
            Ok(code?)
        },
    )?;
    match (expected, output) {
        (Some(expected), _) if bool::from(expected.ct_eq(&code)) => say!("the code fits"),
        (Some(_), _) => {
            bail!("the code does not fit: the message was altered, or the code belongs to another key")
        }
        (None, Some(mut output)) => {
            output.write_all(&code)?;
            output.finish()?;
        }
        (None, None) => say!("{}", hex::encode(&code)),
    }
    Ok(ExitCode::SUCCESS)
}

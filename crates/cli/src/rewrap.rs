//! `rewrap`: a short ciphertext under another key or version, without showing what is in it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use polyclave_api::Wrapping;

use crate::client_option::ClientOption;
use crate::files::{Output, Readers};
use crate::options::hexadecimal;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave rewrap --key invoices token.sealed token.new.sealed\n  \
    polyclave rewrap --key invoices --old archive --raw --aad 0001 value.gcm value.new.gcm\n  \
    polyclave rewrap --key kek --old old-kek --kw data-key.wrapped data-key.new.wrapped\n\n\
    The nodes verify the ciphertext and encrypt what is in it under the newest version of the key. Neither they nor this client see it. Sealed \
    files and GCM messages of at most 1024 bytes, and wrapped keys of 16, 24 or 32 bytes. The client needs the right rewrap for both keys, and \
    no other.")]
pub struct Arguments {
    /// The key under which it is encrypted anew
    #[arg(long, value_name = "N")]
    key: String,

    /// The key under which it was encrypted [default: the same, which is of use after `key rotate`]
    #[arg(long, value_name = "N")]
    old: Option<String>,

    /// The version of the old key. A sealed file says it itself [default: the current one]
    #[arg(long, value_name = "N")]
    old_version: Option<u32>,

    /// The input is a GCM message: nonce, ciphertext, tag
    #[arg(long)]
    raw: bool,

    /// The input is a key, wrapped by AES key wrap (RFC 3394)
    #[arg(long, conflicts_with_all = ["raw", "kwp"])]
    kw: bool,

    /// The input is a key, wrapped by AES key wrap with padding (RFC 5649)
    #[arg(long, conflicts_with = "raw")]
    kwp: bool,

    /// Additional data, in hexadecimal: those of the input, and of the output
    #[arg(long, value_name = "HEX", conflicts_with_all = ["kw", "kwp"])]
    aad: Option<String>,

    #[command(flatten)]
    client: ClientOption,

    /// The input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The output, or - for standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { key, old, old_version, raw, kw, kwp, aad, client, input, output, force } = arguments;
    let mut out = Output::begin(Some(output), Readers::All, *force)?;
    let data = std::fs::read(input).with_context(|| format!("cannot read {}", input.display()))?;
    let additional = aad.as_deref().map(|text| hexadecimal("--aad", text)).transpose()?;
    let client = client.open()?;
    let name = old.as_ref().unwrap_or(key);
    let named = old_version.map_or(name.clone(), |version| format!("{name}@{version}"));
    let anew = match (raw, kw, kwp) {
        (true, ..) => {
            let additional = additional.as_deref().unwrap_or_default();
            client.key(&named)?.gcm().aad(additional).rewrap(key, &data)?.0
        }
        (_, true, _) => client.rewrap_key((&named, key), Wrapping::Kw, &data)?,
        (_, _, true) => client.rewrap_key((&named, key), Wrapping::Kwp, &data)?,
        _ => {
            ensure!(old_version.is_none(), "a sealed file says itself which version it was sealed under");
            client.rewrap_sealed((name, key), additional.as_deref(), &data)?
        }
    };
    out.write_all(&anew)?;
    out.finish()?;
    if output.as_os_str() != "-" {
        say!("{} is encrypted under the newest version of {key}", output.display());
    }
    Ok(ExitCode::SUCCESS)
}

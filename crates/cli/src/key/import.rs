//! `key import`: imports a key that exists already.

use std::io::{Read, stdin};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use polyclave_cipher::{Cipher, hmac};
use polyclave_client::hmac_key_block;
use polyclave_config::private;
use zeroize::Zeroizing;

use super::kcv::{CheckOptions, ParityOption};
use super::made::{Properties, json, tell};
use crate::client_option::ClientOption;
use crate::say;

/// The most hexadecimal digits of a key.
const MAX_DIGITS: u64 = 4096;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key import old --cipher aes-128 --modes cbc --key-file old.hex\n  \
    some-program | polyclave key import old --cipher 3des-ede3 --modes cbc --key-file -\n  \
    polyclave key import zone-master --modes tr31 --component 2 --of 3 --kcv 1a2b3c4d5e --key-file component-2.hex\n\n\
    A key for siv is the key for the tag and then the one for the ciphertext, as RFC 5297 writes it: 32, 48 or 64 bytes. \
    A key for hmac has 16 to 256 bytes; a component of one has 64, or 128 for hmac-sha-384 and hmac-sha-512.\n\n\
    The key is never given on the command line, which other users of this host can see. An imported key was in one place: \
    whoever had it there can use it without the nodes. Nothing that the nodes do makes that undone. With --component each of several \
    people brings a part, with a certificate of its own, and `polyclave key combine` makes the key, which nobody sees. The nodes keep a component for a week; \
    whoever gave it can take it back with `polyclave key delete NAME.component-N`. A key that must not be on any machine with a network: \
    `polyclave key seal-import`.")]
pub struct Arguments {
    #[command(flatten)]
    properties: Properties,

    /// The file with the key, in hexadecimal, readable only by you; `-` for standard input
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,

    /// It is a component of the key, with this number; the key is made with `polyclave key combine`
    #[arg(long, value_name = "N", requires = "of")]
    component: Option<u8>,

    /// How many components the key has
    #[arg(long, value_name = "M", requires = "component")]
    of: Option<u8>,

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
    let (new, cipher) = arguments.properties.check()?;
    let mut key = match hmac::is_hmac(&cipher) && arguments.component.is_some() {
        // The key is the sum of its components as they are.
        true => read_bytes(&arguments.key_file, cipher.key_bytes..=cipher.key_bytes)?,
        false => read(&arguments.key_file, &cipher, new.parts())?,
    };
    arguments.parity.apply(&cipher, &mut key)?;
    let expected = arguments.check.expected()?;
    let client = arguments.client.open()?;
    let part = arguments.component.zip(arguments.of);
    ensure!(part.is_some() || expected.is_none(), "--kcv belongs to --component; leave it out");
    let info = match part {
        Some(part) => client.import_component(new, part, expected, &key)?,
        None => client.import(new, &key)?,
    };
    let note = match part {
        Some(_) => "note: whoever has all components has the key.",
        None => "note: this key was in one place. Somebody who has a copy of it needs no node;",
    };
    eprintln!(
        "{note} Destroy {}.",
        if is_stdin(&arguments.key_file) {
            "the source".into()
        } else {
            arguments.key_file.display().to_string()
        }
    );
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a key of a cipher, or so many of them, in hexadecimal: as the nodes keep it.
pub fn read(path: &Path, cipher: &Cipher, parts: usize) -> Result<Zeroizing<Vec<u8>>> {
    match hmac::hash_of(&cipher.name) {
        Some(hash) => Ok(hmac_key_block(hash, &read_bytes(path, hmac::KEY_BYTES)?)?),
        None => read_bytes(path, parts * cipher.key_bytes..=parts * cipher.key_bytes),
    }
}

fn read_bytes(path: &Path, allowed: RangeInclusive<usize>) -> Result<Zeroizing<Vec<u8>>> {
    let text = if is_stdin(path) {
        // Allocated at its full size, so that growing leaves no copy behind.
        let mut text = Zeroizing::new(Vec::with_capacity(MAX_DIGITS as usize + 1));
        stdin().lock().take(MAX_DIGITS).read_to_end(&mut text).context("cannot read standard input")?;
        text
    } else {
        private::read(path)?
    };
    let digits = text.trim_ascii();
    let bytes = digits.len() / 2;
    let expected = match allowed.start() == allowed.end() {
        true => (2 * allowed.start()).to_string(),
        false => format!("{} to {}", 2 * allowed.start(), 2 * allowed.end()),
    };
    ensure!(
        digits.len() == 2 * bytes && allowed.contains(&bytes),
        "the key has {} characters; a key of this cipher and mode has {expected} hexadecimal digits",
        digits.len()
    );
    let mut key = Zeroizing::new(vec![0; bytes]);
    // The parser's error would quote the key.
    let decoded = hex::decode_to_slice(digits, &mut key).is_ok();
    ensure!(decoded, "the key has a character that is no hexadecimal digit");
    Ok(key)
}

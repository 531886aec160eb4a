//! `polyclave encrypt` and `polyclave decrypt`.

mod decrypt;
mod encrypt;

use std::path::PathBuf;

use anyhow::{Result, anyhow, ensure};
use polyclave_client::{Client, Padding};
use polyclave_transport::wire::Mode;

pub use decrypt::{Arguments as DecryptArguments, run as decrypt};
pub use encrypt::{Arguments as EncryptArguments, run as encrypt};

use crate::client::ClientOption;
use crate::files::can_be_taken_back;
use crate::names::parse_mode;
use crate::options::{cipher, hexadecimal};

/// Options of both encryption and decryption.
#[derive(clap::Args)]
pub struct Common {
    /// The key's name
    #[arg(long, value_name = "N")]
    key: String,

    /// gcm, ctr, cbc or ecb. CTR, CBC and ECB authenticate nothing
    #[arg(long, value_name = "M", default_value = "gcm", value_parser = parse_mode)]
    mode: Mode,

    /// Use the plain standard format of the mode, for other programs, instead of a sealed file
    #[arg(long)]
    raw: bool,

    /// Additional data, in hexadecimal, that is authenticated but not encrypted (gcm with --raw)
    #[arg(long, value_name = "HEX")]
    aad: Option<String>,

    /// The tweak of the first block, in hexadecimal, such as its address; each block after it has the next number (ecb with a cipher that
    /// takes a tweak)
    #[arg(long, value_name = "HEX")]
    tweak: Option<String>,

    /// Use no padding: the data are whole blocks (cbc and ecb)
    #[arg(long)]
    no_padding: bool,

    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    client: ClientOption,

    /// The input; - for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The output; - for standard output, which is the default unless it is a terminal
    #[arg(value_name = "OUT")]
    output: Option<PathBuf>,
}

impl Common {
    /// Refuses options that contradict each other.
    fn check(&self) -> Result<()> {
        let mode = self.mode;
        ensure!(mode != Mode::Cmac, "cmac encrypts nothing; use `polyclave mac`");
        ensure!(mode != Mode::Tr31, "tr31 encrypts no data; use `polyclave key wrap` and `key unwrap`");
        ensure!(
            self.raw || mode == Mode::Gcm,
            "{mode} authenticates nothing, so there are no sealed files with it; give --raw for its plain format if you need \
             it, or make a key for gcm"
        );
        ensure!(
            self.aad.is_none() || (self.raw && mode == Mode::Gcm),
            "--aad is for gcm with --raw; sealed files have additional data of their own"
        );
        ensure!(
            self.tweak.is_none() || mode == Mode::Ecb,
            "--tweak is for ecb; with ctr the nodes choose the first tweak, and it is at the beginning of the ciphertext"
        );
        ensure!(!self.no_padding || matches!(mode, Mode::Cbc | Mode::Ecb), "--no-padding is for cbc and ecb");
        Ok(())
    }

    fn padding(&self) -> Padding {
        if self.no_padding { Padding::None } else { Padding::Pkcs7 }
    }

    fn additional(&self) -> Result<Vec<u8>> {
        self.aad.as_deref().map_or(Ok(Vec::new()), |text| hexadecimal("--aad", text))
    }

    /// The tweak of the first block; empty if none was given.
    fn first_tweak(&self) -> Result<Vec<u8>> {
        self.tweak.as_deref().map_or(Ok(Vec::new()), |text| hexadecimal("--tweak", text))
    }

    /// Whether the output of the mode begins with a block that is not encrypted.
    fn has_initial_block(&self) -> bool {
        matches!(self.mode, Mode::Ctr | Mode::Cbc)
    }
}

/// How many bytes the output of a mode begins with: one block; in counter mode with a tweak the tweak before it, too.
fn initial_bytes(client: &Client, key: &str, mode: Mode) -> Result<usize> {
    let cipher = cipher(&client.info(key)?.properties.cipher)?;
    Ok(cipher.block_bytes + if mode == Mode::Ctr { cipher.tweak_bytes } else { 0 })
}

/// An error, with a hint about what is already on standard output.
fn outcome(done: Result<u64, polyclave_client::Error>) -> Result<u64> {
    done.map_err(|e| match can_be_taken_back() {
        false => anyhow!("{e}; what was written to standard output is incomplete: throw it away"),
        true => e.into(),
    })
}

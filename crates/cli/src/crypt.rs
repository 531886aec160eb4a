//! `polyclave encrypt` and `polyclave decrypt`.

mod decrypt;
mod encrypt;
mod envelope;
mod waiting;

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use polyclave_api::{MessageOption, Mode};
use polyclave_client::{Aead, Blocks, Client, KeyHandle, Padding};

pub use decrypt::{Arguments as DecryptArguments, run as decrypt};
pub use encrypt::{Arguments as EncryptArguments, run as encrypt};

use crate::client_option::ClientOption;
use crate::files::can_be_taken_back;
use crate::names::{modes_that, parse_mode, words};
use crate::options::{cipher, hexadecimal};

fn mode_help() -> String {
    format!(
        "{}. {} authenticate nothing [default: envelope or gcm if the key is for it, else the only mode that the key is for]",
        modes_that(Mode::encrypts),
        modes_that(|mode| mode.encrypts() && !mode.authenticates())
    )
}

fn aad_help() -> String {
    format!(
        "Additional data, in hexadecimal, that is authenticated and neither encrypted nor stored: decryption needs the same ({}). With {} it may \
         be given several times, and the order counts",
        modes_that(|mode| mode.takes(MessageOption::Additional)),
        modes_that(|mode| mode.takes(MessageOption::SeveralAdditional))
    )
}

fn tag_bytes_help() -> String {
    let of_mode = |mode: &Mode| format!("{} ({mode})", words(mode.tag_bytes()));
    let cut: Vec<String> = Mode::ALL.iter().filter(|mode| mode.tag_bytes().len() > 1).map(of_mode).collect();
    format!("Bytes of the tag: {}; with gcm only with --raw. A short tag is easier to forge", cut.join("; "))
}

/// Options of both encryption and decryption.
#[derive(clap::Args)]
pub struct Common {
    /// The key's name
    #[arg(long, value_name = "N")]
    key: String,

    #[arg(long, value_name = "M", value_parser = parse_mode, help = mode_help())]
    mode: Option<Mode>,

    /// Use the plain standard format of the mode, for other programs, instead of a sealed file
    #[arg(long)]
    raw: bool,

    #[arg(long, value_name = "HEX", group = "additional", help = aad_help())]
    aad: Vec<String>,

    /// The same as text
    #[arg(long, value_name = "TEXT", group = "additional")]
    aad_text: Option<String>,

    /// The same from a file; of any size for a sealed file
    #[arg(long, value_name = "FILE", group = "additional")]
    aad_file: Option<PathBuf>,

    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 16,
        value_parser = clap::value_parser!(u8).range(8..=16),
        help = tag_bytes_help()
    )]
    tag_bytes: u8,

    /// The tweak of the first block, in hexadecimal, such as its address; each block after it has the next
    /// number (ecb with a cipher that takes a tweak)
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
    /// The mode that the key is for, where none was named.
    fn mode_of_key(&self, client: &Client) -> Result<Mode> {
        let modes = client.info(&self.key)?.properties.modes;
        if modes.contains(&Mode::Envelope) && !self.raw && !self.has_additional() {
            return Ok(Mode::Envelope);
        }
        let others: Vec<Mode> = modes.into_iter().filter(|mode| mode.encrypts()).collect();
        match others[..] {
            [only] => Ok(only),
            // Of a key for no such mode the nodes say so.
            _ if others.is_empty() || others.contains(&Mode::Gcm) => Ok(Mode::Gcm),
            _ => {
                let words: Vec<String> = others.iter().map(Mode::to_string).collect();
                bail!("the key '{}' is for {}; say which with --mode", self.key, words.join(", "))
            }
        }
    }

    /// Refuses options that contradict each other.
    fn check(&self, mode: Mode) -> Result<()> {
        ensure!(!matches!(mode, Mode::Cmac | Mode::Hmac), "{mode} encrypts nothing; use `polyclave mac`");
        ensure!(mode != Mode::Tr31, "tr31 encrypts no data; use `polyclave key wrap` and `key unwrap`");
        ensure!(
            mode != Mode::Ff1,
            "ff1 encrypts no files; use `polyclave tokenize` and `polyclave detokenize`"
        );
        ensure!(
            !self.raw || mode.takes(MessageOption::Plain),
            "there is no --raw for envelope: the format of such a file is in docs/use/envelope.md"
        );
        ensure!(
            self.raw || mode.authenticates(),
            "{mode} authenticates nothing, so there are no sealed files with it; give --raw for its plain format if you need \
             it, or make a key for gcm"
        );
        ensure!(
            !self.has_additional() || mode.takes(MessageOption::Additional),
            "--aad, --aad-text and --aad-file are for {}{}",
            modes_that(|mode| mode.takes(MessageOption::Additional)),
            if mode.takes(MessageOption::Header) { "; an envelope has a --header" } else { "" }
        );
        ensure!(
            self.aad.len() < 2 || mode.takes(MessageOption::SeveralAdditional),
            "{mode} takes one --aad; only siv takes several"
        );
        if self.tag_bytes != 16 {
            ensure!(self.has_tag(mode), "--tag-bytes is for gcm with --raw, and for ccm");
            mode.check_tag(self.tag_bytes.into()).map_err(anyhow::Error::msg)?;
        }
        ensure!(
            self.tweak.is_none() || mode.takes(MessageOption::Tweak),
            "--tweak is for ecb; with ctr the nodes choose the first tweak, and it is at the beginning of the ciphertext"
        );
        ensure!(!self.no_padding || mode.takes(MessageOption::Padding), "--no-padding is for cbc and ecb");
        Ok(())
    }

    /// Whether the format has a nonce of its own. A sealed file has none.
    fn has_nonce(&self, mode: Mode) -> bool {
        mode.takes(MessageOption::Nonce) && self.is_plain(mode)
    }

    /// Whether the format has a tag of its own, which may be cut.
    fn has_tag(&self, mode: Mode) -> bool {
        mode.tag_bytes().len() > 1 && self.is_plain(mode)
    }

    fn is_plain(&self, mode: Mode) -> bool {
        self.raw || !mode.takes(MessageOption::Sealed)
    }

    fn aead<'k>(&self, key: &'k KeyHandle<'k>, mode: Mode, additional: &'k [Vec<u8>]) -> Result<Aead<'k>> {
        Ok(key.aead(mode)?.aads(additional).tag_bytes(usize::from(self.tag_bytes)))
    }

    fn blocks<'k>(&self, key: &'k KeyHandle<'k>, mode: Mode, tweak: &'k [u8]) -> Blocks<'k> {
        let blocks = if mode == Mode::Cbc { key.cbc() } else { key.ecb().tweak(tweak) };
        blocks.padding(if self.no_padding { Padding::None } else { Padding::Pkcs7 })
    }

    fn has_additional(&self) -> bool {
        !self.aad.is_empty() || self.aad_text.is_some() || self.aad_file.is_some()
    }

    /// The additional data, if any were given; for siv in strings.
    fn additional(&self) -> Result<Vec<Vec<u8>>> {
        if let Some(path) = &self.aad_file {
            return Ok(vec![std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?]);
        }
        if let Some(text) = &self.aad_text {
            return Ok(vec![text.as_bytes().to_vec()]);
        }
        self.aad.iter().map(|text| hexadecimal("--aad", text)).collect()
    }

    /// Refuses options about the nonce where the plain format has none.
    fn check_nonce(&self, mode: Mode, option: &str, is_given: bool) -> Result<()> {
        let others =
            modes_that(|mode| mode.takes(MessageOption::Nonce) && !mode.takes(MessageOption::Sealed));
        ensure!(!is_given || self.has_nonce(mode), "{option} is for gcm with --raw, and for {others}");
        Ok(())
    }

    /// The tweak of the first block; empty if none was given.
    fn first_tweak(&self) -> Result<Vec<u8>> {
        self.tweak.as_deref().map_or(Ok(Vec::new()), |text| hexadecimal("--tweak", text))
    }
}

/// How many bytes the output of a mode begins with before the first encrypted block.
fn initial_bytes(key: &KeyHandle<'_>, mode: Mode) -> Result<usize> {
    Ok(mode.initial_bytes(&cipher(&key.info()?.properties.cipher)?))
}

/// An error, with a hint about what is already on standard output.
fn outcome(done: Result<u64, polyclave_client::Error>) -> Result<u64> {
    done.map_err(|e| match can_be_taken_back() {
        false => anyhow!("{e}; what was written to standard output is incomplete: throw it away"),
        true => e.into(),
    })
}

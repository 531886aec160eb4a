//! `polyclave encrypt`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use polyclave_api::{MessageOption, Mode};
use polyclave_client::Client;
use polyclave_config::private::Draft;

use super::{Common, envelope, outcome, waiting};
use crate::client_option::persist;
use crate::files::{Output, Readers, Source, can_be_taken_back, progress};
use crate::key::warn;
use crate::options::hexadecimal;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave encrypt --key invoices report.pdf report.pdf.sealed\n  \
    tar c photos | polyclave encrypt --key backups - - > photos.tar.sealed\n  \
    polyclave encrypt --key old --mode cbc --raw --iv-out iv.hex plain.txt cipher.bin\n    \
    openssl enc -d -aes-128-cbc -K $KEY -iv $(cat iv.hex) -in cipher.bin\n  \
    polyclave encrypt --key names --mode siv --aad 0001 name.txt name.siv\n\n\
    Without --raw: a sealed file, which cannot be altered, cut or reordered unnoticed, of any size. Under a key made for envelope: a file \
    that this program encrypts by itself, fast, under a key of its own that the nodes derive (docs/use/envelope.md).\n\
    With --raw: gcm is nonce (12 bytes), ciphertext, tag (16 bytes). The other modes that authenticate are written so without --raw, too, for \
    short messages; siv is tag (16 bytes) and ciphertext, and needs no nonce: equal messages have equal ciphertexts; xaes has nonces of 24 bytes and messages of any size. ctr and cbc are the initial block and the ciphertext (or \
    with --iv-out the ciphertext alone); ecb is the ciphertext. \
    With ciphers that take a tweak ctr counts the tweak, and begins with the first tweak and a block; ecb takes --tweak. CTR, CBC and ECB authenticate nothing: who can change the \
    ciphertext can change the data.")]
pub struct Arguments {
    /// Write the initial block to this file, in hexadecimal, and only the ciphertext to OUT (ctr and cbc)
    #[arg(long, value_name = "FILE")]
    iv_out: Option<PathBuf>,

    /// Encrypt under this nonce, in hexadecimal, instead of one of the nodes (gcm with --raw, ccm, gcm-siv,
    /// xaes).
    /// The key must have been made with --caller-nonces. A nonce that is used twice gives the messages away,
    /// and lets others forge; with gcm-siv it shows only which messages are equal
    #[arg(long, value_name = "HEX")]
    nonce: Option<String>,

    /// A text about the file that is stored beside it, readable by all, also by the nodes, which log its hash
    /// (envelope)
    #[arg(long, value_name = "TEXT")]
    header: Option<String>,

    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let common = &arguments.common;
    // Before the nodes are asked, if that is known.
    common.mode.map_or(Ok(()), |mode| arguments.check(mode))?;
    if let Some(path) = arguments.iv_out.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        ensure!(
            common.force,
            "{} is there already; give another name, or --force to replace it",
            path.display()
        );
    }
    let additional = common.additional()?;
    let nonce = arguments.nonce.as_deref().map(|text| hexadecimal("--nonce", text)).transpose()?;
    let client = common.client.open()?;
    let source = Source::new(&common.input);
    let again = || source.can_begin_anew() && can_be_taken_back();
    let additional = (&additional[..], nonce.as_deref());
    let mode = match common.mode {
        Some(mode) => mode,
        None => persist(&client, || true, || common.mode_of_key(&client))?,
    };
    arguments.check(mode)?;
    warn(mode);
    let header = arguments.header.as_deref().unwrap_or_default();
    persist(&client, again, || match mode {
        Mode::Envelope => envelope::write(common, header, &source, &client),
        _ => attempt(arguments, mode, &source, &client, additional),
    })
}

impl Arguments {
    /// Refuses options that the mode does not have.
    fn check(&self, mode: Mode) -> Result<()> {
        self.common.check(mode)?;
        ensure!(self.iv_out.is_none() || mode.takes(MessageOption::Initial), "--iv-out is for ctr and cbc");
        self.common.check_nonce(mode, "--nonce", self.nonce.is_some())?;
        ensure!(
            self.header.is_none() || mode.takes(MessageOption::Header),
            "--header is for keys of the mode envelope"
        );
        Ok(())
    }
}

fn attempt(
    arguments: &Arguments,
    mode: Mode,
    source: &Source,
    client: &Client,
    (additional, nonce): (&[Vec<u8>], Option<&[u8]>),
) -> Result<ExitCode> {
    let common = &arguments.common;
    let (key, apart) = (&common.key, arguments.iv_out.is_some());
    let mut input = source.open()?;
    let mut output = Output::begin(common.output.as_deref(), Readers::All, common.force)?;
    let tweak = common.first_tweak()?;
    waiting::announce(client, mode, input.len());
    let bar = progress(input.len());
    let handle = client.key(key)?;
    let mut initial = Vec::new();
    let mut start = |block: &[u8], output: &mut dyn Write| {
        initial = block.to_vec();
        if apart { Ok(()) } else { output.write_all(block) }
    };
    let mut tell = |done| bar.set_position(done);
    let (from, to) = (&mut input, &mut output);
    let done = match mode {
        Mode::Gcm if !common.raw => {
            client.seal_bound(key, additional.first().map(Vec::as_slice), from, to, &mut tell)
        }
        mode if !mode.tag_bytes().is_empty() => {
            common.aead(&handle, mode, additional)?.nonce(nonce).encrypt_stream(from, to, &mut tell)
        }
        Mode::Ctr => handle.ctr().on_start(&mut start).encrypt_stream(from, to, &mut tell),
        Mode::Cbc | Mode::Ecb => {
            common.blocks(&handle, mode, &tweak).on_start(&mut start).encrypt_stream(from, to, &mut tell)
        }
        _ => bail!("{mode} is no mode of this"),
    };
    bar.finish_and_clear();
    outcome(done)?;
    if let Some(path) = &arguments.iv_out {
        let mut file = Draft::public(path)?;
        writeln!(file, "{}", hex::encode(&initial))?;
        file.commit()?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

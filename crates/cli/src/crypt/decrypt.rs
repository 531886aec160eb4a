//! `polyclave decrypt`.

use std::io::{Cursor, ErrorKind, Read};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail, ensure};
use polyclave_api::{MessageOption, Mode};
use polyclave_client::{Client, ENVELOPE_MAGIC, MAGIC, MAGIC_BOUND};

use super::{Common, envelope, initial_bytes, outcome, waiting};
use crate::client_option::persist;
use crate::files::{Output, Readers, Source, can_be_taken_back, progress};
use crate::key::warn;
use crate::options::hexadecimal;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave decrypt --key invoices report.pdf.sealed report.pdf\n  \
    polyclave decrypt --key backups - - < photos.tar.sealed | tar x\n  \
    polyclave decrypt --key invoices --raw --key-version 1 message.gcm message\n  \
    polyclave decrypt --key old --mode cbc --raw --iv 000102030405060708090a0b0c0d0e0f cipher.bin plain.txt\n\n\
    OUT appears only when all of IN has been decrypted (and, in modes that authenticate, authenticated). On standard output a sealed file appears \
    chunk by chunk, each authenticated; that it is complete shows in the exit code. A file in an envelope is recognised, and appears only \
    when all of it is verified; on its way to standard output it waits in TMPDIR, encrypted. CTR, CBC and ECB authenticate nothing: what \
    comes out may be what somebody else wanted you to see.")]
pub struct Arguments {
    /// The initial block, in hexadecimal, if IN has only the ciphertext (ctr and cbc)
    #[arg(long, value_name = "HEX")]
    iv: Option<String>,

    /// The version of the key under which IN was encrypted (with --raw; a sealed file names its own)
    /// [default: the current one]
    #[arg(long, value_name = "N", requires = "raw")]
    key_version: Option<u32>,

    /// Bytes of the nonce that IN begins with (gcm with --raw, and ccm) [default: 12, and 24 for xaes, which
    /// has no other]. With gcm and another length than 12, messages have at most 64 KiB
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..=1024))]
    nonce_bytes: Option<u16>,

    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let common = &arguments.common;
    // Before the nodes are asked, if that is known.
    common.mode.map_or(Ok(()), |mode| arguments.check(mode))?;
    let given = arguments.iv.as_deref().map(|text| hexadecimal("--iv", text)).transpose()?;
    let additional = common.additional()?;
    let client = common.client.open()?;
    let mode = match common.mode {
        None if common.raw => Some(persist(&client, || true, || common.mode_of_key(&client))?),
        named => named,
    };
    mode.iter().for_each(|mode| warn(*mode));
    let source = Source::new(&common.input);
    let again = || source.can_begin_anew() && can_be_taken_back();
    persist(&client, again, || attempt((arguments, mode), &source, &client, given.as_deref(), &additional))
}

impl Arguments {
    /// Refuses options that the mode does not have.
    fn check(&self, mode: Mode) -> Result<()> {
        self.common.check(mode)?;
        ensure!(self.iv.is_none() || mode.takes(MessageOption::Initial), "--iv is for ctr and cbc");
        self.common.check_nonce(mode, "--nonce-bytes", self.nonce_bytes.is_some())
    }
}

/// Without a mode a sealed file or a file in an envelope says what it is, and anything else is what the key
/// is for.
fn attempt(
    (arguments, mode): (&Arguments, Option<Mode>),
    source: &Source,
    client: &Client,
    given: Option<&[u8]>,
    additional: &[Vec<u8>],
) -> Result<ExitCode> {
    let common = &arguments.common;
    let key = &match arguments.key_version {
        Some(version) => format!("{}@{version}", common.key),
        None => common.key.clone(),
    };
    let mut input = source.open()?;
    let says_itself = matches!(mode, None | Some(Mode::Gcm | Mode::Envelope)) && !common.raw;
    let beginning = if says_itself { beginning(&mut input)? } else { Vec::new() };
    let is_envelope = says_itself && beginning == ENVELOPE_MAGIC;
    if is_envelope {
        ensure!(mode != Some(Mode::Gcm), "this is a file in an envelope, not a sealed file of gcm");
        ensure!(
            !common.has_additional(),
            "this is a file in an envelope, which has a header and no additional data"
        );
        return envelope::open(common, beginning, input, client);
    }
    let is_sealed = [MAGIC, MAGIC_BOUND].iter().any(|magic| beginning == magic[..]);
    let mode = match mode {
        Some(mode) => mode,
        None if is_sealed => Mode::Gcm,
        None => common.mode_of_key(client)?,
    };
    arguments.check(mode)?;
    if says_itself && mode == Mode::Gcm {
        ensure!(
            is_sealed,
            "this is no sealed file, or its beginning is lost; for plain formats of other programs give --raw"
        );
        ensure!(
            beginning != MAGIC_BOUND || common.has_additional(),
            "this file was sealed with additional data: give the same (--aad)"
        );
    }
    ensure!(mode != Mode::Envelope, "this is no file in an envelope, or its beginning is lost");
    let mut output = Output::begin(common.output.as_deref(), Readers::Owner, common.force)?;
    let handle = client.key(key)?;
    let initial = match (mode.takes(MessageOption::Initial), given) {
        (false, _) => Vec::new(),
        (true, Some(given)) => {
            let bytes = initial_bytes(&handle, mode)?;
            ensure!(given.len() == bytes, "--iv has {} bytes; this key takes {bytes}", given.len());
            given.to_vec()
        }
        (true, None) => {
            let mut first = vec![0; initial_bytes(&handle, mode)?];
            input.read_exact(&mut first).map_err(|e| match e.kind() {
                ErrorKind::UnexpectedEof => anyhow!(
                    "the input is shorter than the initial block that it begins with; if that is elsewhere, give it as --iv"
                ),
                _ => anyhow!("cannot read the input: {e}"),
            })?;
            first
        }
    };
    let tweak = common.first_tweak()?;
    let nonce_bytes = arguments.nonce_bytes.map(usize::from);
    let aead = || Ok::<_, anyhow::Error>(common.aead(&handle, mode, additional)?.nonce_bytes(nonce_bytes));
    waiting::announce(client, mode, input.len());
    let bar = progress(input.len());
    let mut tell = |done| bar.set_position(done);
    let to = &mut output;
    let done = match mode {
        Mode::Gcm if !common.raw => {
            let mut all = Cursor::new(beginning).chain(input);
            client.open_bound(key, additional.first().map(Vec::as_slice), &mut all, to, &mut tell)
        }
        Mode::Gcm | Mode::Xaes => aead()?.decrypt_stream(&mut input.seekable(beginning)?, to, &mut tell),
        mode if mode.most_whole().is_some() => {
            aead()?.decrypt_gathered(&mut Cursor::new(beginning).chain(input), to)
        }
        Mode::Ctr => handle.ctr().decrypt_stream(&initial, &mut input, to, &mut tell),
        Mode::Cbc => {
            common.blocks(&handle, mode, &tweak).initial(&initial).decrypt_stream(&mut input, to, &mut tell)
        }
        Mode::Ecb => common.blocks(&handle, mode, &tweak).decrypt_stream(&mut input, to, &mut tell),
        _ => bail!("{mode} is no mode of this"),
    };
    bar.finish_and_clear();
    outcome(done)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The first bytes of an input, which say what it is.
fn beginning(input: &mut dyn Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = input.take(ENVELOPE_MAGIC.len() as u64).read_to_end(&mut bytes);
    read.map_err(|e| anyhow!("cannot read the input: {e}"))?;
    Ok(bytes)
}

//! Files in envelopes on the command line.

use std::io::{self, Cursor, Read};
use std::process::ExitCode;

use anyhow::{Context, Result};
use polyclave_client::{Client, Spool};

use super::{Common, outcome};
use crate::files::{Input, Output, Readers, Source, progress};

/// Encrypts. The input is read twice, so standard input waits in a file first, encrypted.
pub fn write(common: &Common, header: &str, source: &Source, client: &Client) -> Result<ExitCode> {
    let mut output = Output::begin(common.output.as_deref(), Readers::All, common.force)?;
    let input = source.open()?;
    let bar = progress(input.len());
    let mut tell = |done| bar.set_position(done / 2);
    let (key, header, to) = (&common.key, header.as_bytes(), &mut output);
    let done = match input {
        Input::File(mut file, _) => client.write_envelope(key, header, &mut file, to, &mut tell),
        Input::Stdin(stdin) => {
            let mut spool = spooled(stdin)?;
            client.write_envelope(key, header, &mut spool, to, &mut tell)
        }
    };
    bar.finish_and_clear();
    outcome(done)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Decrypts. On its way to standard output the data waits in a file, encrypted, until all of it is verified.
pub fn open(common: &Common, beginning: Vec<u8>, input: Input, client: &Client) -> Result<ExitCode> {
    let mut output = Output::begin(common.output.as_deref(), Readers::Owner, common.force)?;
    let bar = progress(input.len());
    let mut tell = |done| bar.set_position(done);
    let (key, mut input) = (&common.key, Cursor::new(beginning).chain(input));
    match &mut output {
        to @ Output::File { .. } => {
            client.open_envelope(key, &mut input, to, &mut tell)?;
        }
        to @ Output::Stdout { .. } => {
            let mut spool = Spool::new()?;
            client.open_envelope(key, &mut input, &mut spool, &mut tell)?;
            io::copy(&mut spool.finish()?, to).context("cannot write the output")?;
        }
    }
    bar.finish_and_clear();
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn spooled(mut input: impl Read) -> Result<Spool> {
    let mut spool = Spool::new()?;
    io::copy(&mut input, &mut spool).context("cannot keep standard input")?;
    Ok(spool.finish()?)
}

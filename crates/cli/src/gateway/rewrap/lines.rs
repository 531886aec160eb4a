//! The input: lines, read a batch at a time.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result, ensure};

use crate::files::Input;

/// The most bytes of a line, and about the most of a batch: a gateway takes requests of 32 MiB.
const MAX_LINE: usize = 24 << 20;
const MAX_BATCH: usize = 4 << 20;

/// The lines of the input.
pub(super) struct Lines {
    input: BufReader<Input>,
    hash: blake3::Hasher,
    bytes: u64,
    number: u64,
}

/// A line, without its end.
pub(super) struct Line {
    bytes: Vec<u8>,
}

impl Line {
    /// What is in it as text; `None` if nothing is to be asked for.
    pub(super) fn ciphertext(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().map(str::trim).filter(|text| !text.is_empty())
    }

    /// Whether it has nothing but spaces. It stays as it is.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Lines {
    pub(super) fn new(input: Input) -> Lines {
        Lines { input: BufReader::new(input), hash: blake3::Hasher::new(), bytes: 0, number: 0 }
    }

    /// Reads over so many lines, and returns the [digest](Self::digest).
    pub(super) fn skip(&mut self, lines: u64) -> Result<String> {
        while self.number < lines && self.next()?.is_some() {}
        Ok(self.digest())
    }

    /// The next lines; none at the end.
    pub(super) fn next_batch(&mut self, most: usize) -> Result<Vec<Line>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < most && bytes < MAX_BATCH {
            let Some(line) = self.next()? else { break };
            bytes += line.bytes.len();
            batch.push(line);
        }
        Ok(batch)
    }

    /// A digest of all lines that were read.
    pub(super) fn digest(&self) -> String {
        self.hash.finalize().to_hex().to_string()
    }

    /// The bytes that were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn next(&mut self) -> Result<Option<Line>> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.input).take(MAX_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut bytes).context("cannot read the input")?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        ensure!(read <= MAX_LINE, "line {} has more than {} MiB", self.number, MAX_LINE >> 20);
        self.bytes += read as u64;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        self.hash.update(&bytes).update(b"\n");
        Ok(Some(Line { bytes }))
    }
}

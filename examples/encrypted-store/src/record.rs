//! A record, and how it lies in the store: AES-128-GCM (SP 800-38D), so that the key's holder, if there were
//! one, could read it with any library.
//!
//! What is authenticated along with a record is its number and its version: a record under another's number,
//! or an older one under its own, does not pass for it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::disk::Versions;

/// Bytes of a block of AES, of a nonce and of a tag.
pub const BLOCK: usize = 16;
/// Bytes of a nonce of GCM.
pub const NONCE_BYTES: usize = 12;
/// Blocks of a record: the name, and the numbers.
pub const BLOCKS: usize = 2;
/// Bytes of a record.
pub const RECORD_BYTES: usize = BLOCKS * BLOCK;
/// Which block has the numbers: 64 bits each, income and debts.
pub const NUMBERS: usize = 1;
/// Numbers below this: sums of as many as there can be stay below 2^64.
const MAX: u64 = 1 << 48;

/// A customer's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// At most 16 bytes of text.
    pub name: String,
    /// A year's.
    pub income: u64,
    /// In all.
    pub debts: u64,
}

impl Record {
    /// In bytes.
    pub fn to_bytes(&self) -> Result<Zeroizing<[u8; RECORD_BYTES]>> {
        ensure!(self.name.len() <= BLOCK, "the name '{}' has more than {BLOCK} bytes", self.name);
        ensure!(self.income.max(self.debts) < MAX, "the numbers of {} are too large", self.name);
        let mut bytes = Zeroizing::new([0; RECORD_BYTES]);
        bytes[..self.name.len()].copy_from_slice(self.name.as_bytes());
        bytes[BLOCK..BLOCK + 8].copy_from_slice(&self.income.to_be_bytes());
        bytes[BLOCK + 8..].copy_from_slice(&self.debts.to_be_bytes());
        Ok(bytes)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.name.zeroize();
        self.income.zeroize();
        self.debts.zeroize();
    }
}

/// A record as it lies in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Its number.
    pub number: u32,
    /// How often it was written before.
    pub version: u32,
    /// Never the same twice.
    pub nonce: [u8; NONCE_BYTES],
    /// As long as the record.
    pub ciphertext: [u8; RECORD_BYTES],
    /// Of additional data and ciphertext.
    pub tag: [u8; BLOCK],
}

impl Sealed {
    /// The next version of a record, which still lacks its tag.
    pub fn untagged(
        number: u32,
        newest: &Versions,
        nonce: [u8; NONCE_BYTES],
        ciphertext: [u8; RECORD_BYTES],
    ) -> Sealed {
        let version = newest.get(&number).map_or(0, |newest| newest + 1);
        Sealed { number, version, nonce, ciphertext, tag: [0; BLOCK] }
    }

    /// What is authenticated and not encrypted: one block.
    pub fn additional(number: u32, version: u32) -> [u8; BLOCK] {
        let mut block = *b"record: ........";
        block[8..12].copy_from_slice(&number.to_be_bytes());
        block[12..].copy_from_slice(&version.to_be_bytes());
        block
    }

    /// Counter block `i`: 1 is J0, and 2 covers the first block of the record.
    pub fn counter(nonce: &[u8; NONCE_BYTES], i: u32) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block[..NONCE_BYTES].copy_from_slice(nonce);
        block[NONCE_BYTES..].copy_from_slice(&i.to_be_bytes());
        block
    }

    /// What GCM hashes: additional data, ciphertext, and the lengths of both in bits.
    pub fn hashed(&self) -> Vec<u8> {
        let mut blocks = Sealed::additional(self.number, self.version).to_vec();
        blocks.extend(self.ciphertext);
        blocks.extend((8 * BLOCK as u64).to_be_bytes());
        blocks.extend((8 * RECORD_BYTES as u64).to_be_bytes());
        blocks
    }

    /// The file of a record in a store.
    pub fn file(store: &Path, number: u32) -> PathBuf {
        store.join(format!("record-{number}.sealed"))
    }

    /// Writes it into a store.
    pub fn write(&self, store: &Path) -> Result<()> {
        let file = Sealed::file(store, self.number);
        let mut bytes = self.nonce.to_vec();
        bytes.extend(self.ciphertext);
        bytes.extend(self.tag);
        std::fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Reads what lies in a store under a number. The version is not in the file: the nodes know which one
    /// they expect.
    pub fn read(store: &Path, number: u32, version: u32) -> Result<Sealed> {
        let file = Sealed::file(store, number);
        let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let due = NONCE_BYTES + RECORD_BYTES + BLOCK;
        ensure!(bytes.len() == due, "{} has {} bytes; a record has {due}", file.display(), bytes.len());
        let (nonce, rest) = bytes.split_at(NONCE_BYTES);
        let (ciphertext, tag) = rest.split_at(RECORD_BYTES);
        Ok(Sealed {
            number,
            version,
            nonce: nonce.try_into()?,
            ciphertext: ciphertext.try_into()?,
            tag: tag.try_into()?,
        })
    }
}

//! The chunks of a file in an envelope: AES-256-GCM under the file's key, each chunk with its number and
//! whether it is the last in its nonce (the STREAM construction: Hoang, Reyhanitabar, Rogaway and Vizár,
//! Online authenticated-encryption and its nonce-reuse misuse-resistance, CRYPTO 2015, section 7), and the
//! digest of the head as additional data. The key encrypts one file, once, so no nonce repeats.

use std::io::Read;

use polyclave_api::FILE_KEY;
use polyclave_kernels::process::Process;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::commitment::RHO;
use crate::{Error, Result};

/// Bytes of plaintext in a chunk; only the last is shorter.
pub(super) const CHUNK: usize = 1 << 20;
/// Bytes of a tag.
pub(super) const TAG: usize = 16;
/// The most bytes under one key: 2^16 chunks, 2^32 blocks of AES.
pub(super) const MAX_FILE: u64 = 64 << 30;

/// Seals and opens the chunks of one file.
pub(super) struct Sealer {
    /// Only this process seals: a child of it would use the same numbers for other chunks.
    process: Process,
    key: LessSafeKey,
    head: [u8; 32],
}

impl Sealer {
    pub(super) fn new(key: &[u8; FILE_KEY], head: &[u8]) -> Result<Sealer> {
        let head = blake3::derive_key("polyclave 2026 head of an envelope", head);
        Ok(Sealer { process: Process::current(), key: aes(key)?, head })
    }

    /// Encrypts a chunk in place and appends its tag.
    pub(super) fn seal(&self, number: u64, last: bool, chunk: &mut Vec<u8>) -> Result<()> {
        if !self.process.is_current() {
            return Err(Error::Misuse(
                "the process was forked while it wrote a file; only its parent goes on".into(),
            ));
        }
        let sealed = self.key.seal_in_place_append_tag(nonce(number, last), Aad::from(&self.head), chunk);
        sealed.map_err(|_| Error::Misuse("a chunk that is too long".into()))
    }

    /// Decrypts a chunk with its tag in place, and cuts the tag off. Nothing is left of a chunk that is not
    /// authentic.
    pub(super) fn open(&self, number: u64, last: bool, chunk: &mut Vec<u8>) -> Result<()> {
        let bytes = chunk.len().checked_sub(TAG).ok_or_else(cut)?;
        if self.key.open_in_place(nonce(number, last), Aad::from(&self.head), chunk).is_err() {
            zeroize::Zeroize::zeroize(chunk);
            return Err(unauthentic());
        }
        chunk.truncate(bytes);
        Ok(())
    }

    /// The random value of the commitment, which is the first chunk.
    pub(super) fn open_rho(&self, input: &mut dyn Read) -> Result<Zeroizing<[u8; RHO]>> {
        let mut chunk = Zeroizing::new(vec![0; RHO + TAG]);
        input.read_exact(&mut chunk).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => cut(),
            _ => Error::reading(e),
        })?;
        self.open(0, false, &mut chunk)?;
        let mut rho = Zeroizing::new([0; RHO]);
        rho.copy_from_slice(&chunk);
        Ok(rho)
    }
}

fn aes(key: &[u8; FILE_KEY]) -> Result<LessSafeKey> {
    let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| Error::Misuse("no key of AES-256".into()))?;
    Ok(LessSafeKey::new(key))
}

/// 1 for the last chunk or 0, three bytes of 0, and the chunk's number.
fn nonce(number: u64, last: bool) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[0] = u8::from(last);
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

pub(super) fn cut() -> Error {
    Error::Unauthentic("the file was cut: it ends where no chunk ends".into())
}

fn unauthentic() -> Error {
    Error::Unauthentic(
        "the file does not authenticate: it was altered, cut or reordered, or its head was altered".into(),
    )
}

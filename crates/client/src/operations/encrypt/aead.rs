//! Messages of GCM and CCM: nonce, ciphertext, tag.

use std::io::{Read, Seek, Write};

use polyclave_api::{KeyInfo, MAX_CHAINED, MAX_NONCE, Mode};
use zeroize::Zeroizing;

use super::KeyHandle;
use super::pieces::Source;
use crate::{Error, Result};

/// Bytes of a nonce of the nodes.
pub(crate) const NONCE: usize = 12;

/// Encrypts and decrypts messages of GCM or CCM under a key. A message is written as nonce, ciphertext, tag.
#[derive(Clone, Copy)]
pub struct Aead<'k> {
    pub(crate) key: &'k KeyHandle<'k>,
    mode: Mode,
    pub(crate) additional: &'k [u8],
    pub(crate) nonce: Option<&'k [u8]>,
    pub(crate) nonce_bytes: usize,
    pub(crate) tag_bytes: usize,
}

impl<'k> Aead<'k> {
    pub(crate) fn new(key: &'k KeyHandle<'k>, mode: Mode) -> Aead<'k> {
        Aead { key, mode, additional: &[], nonce: None, nonce_bytes: NONCE, tag_bytes: 16 }
    }

    /// Additional data: authenticated with the message, and not encrypted.
    pub fn aad(self, additional: &'k [u8]) -> Aead<'k> {
        Aead { additional, ..self }
    }

    /// Encrypts under this nonce, if there is one; the key must take those of its clients, and a nonce must
    /// never be used twice. Otherwise the nodes draw it.
    pub fn nonce(self, nonce: impl Into<Option<&'k [u8]>>) -> Aead<'k> {
        Aead { nonce: nonce.into(), ..self }
    }

    /// Decrypts messages that begin with a nonce of so many bytes, not of 12.
    pub fn nonce_bytes(self, nonce_bytes: usize) -> Aead<'k> {
        Aead { nonce_bytes, ..self }
    }

    /// Tags of so many bytes, not of 16. GCM: 12 to 16; CCM: 8, 10, 12, 14 or 16.
    pub fn tag_bytes(self, tag_bytes: usize) -> Aead<'k> {
        Aead { tag_bytes, ..self }
    }

    /// Encrypts a message.
    pub fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>> {
        Ok(self.encrypt_memory(message)?.0)
    }

    /// Encrypts a message, and says under which version of the key.
    pub fn encrypt_with_info(&self, message: &[u8]) -> Result<(Vec<u8>, KeyInfo)> {
        let (encrypted, info) = self.encrypt_memory(message)?;
        Ok((encrypted, info.ok_or_else(no_key)?))
    }

    fn encrypt_memory(&self, message: &[u8]) -> Result<(Vec<u8>, Option<KeyInfo>)> {
        match self.mode {
            Mode::Ccm => self.encrypt_ccm(message),
            _ => {
                let mut out = Vec::with_capacity(MAX_NONCE + message.len() + self.tag_bytes);
                let (_, info) = self.encrypt_gcm(Source::Memory(message), &mut out, &mut |_| ())?;
                Ok((out, info))
            }
        }
    }

    /// Decrypts a message. The nodes give no keystream unless it is authentic; anything else is
    /// [`Error::Unauthentic`].
    pub fn decrypt(&self, message: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        match self.mode {
            Mode::Ccm => self.decrypt_ccm(message),
            _ => self.decrypt_gcm(message),
        }
    }

    /// Encrypts a message from a stream; one of CCM is gathered. `progress` receives the number of bytes
    /// done.
    pub fn encrypt_stream(
        &self,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        if self.mode != Mode::Ccm {
            return Ok(self.encrypt_gcm(Source::Stream(input), output, progress)?.0);
        }
        let mut message = Zeroizing::new(Vec::with_capacity(MAX_CHAINED + 1));
        input.take(MAX_CHAINED as u64 + 1).read_to_end(&mut message).map_err(Error::reading)?;
        output.write_all(&self.encrypt(&message)?).and_then(|()| output.flush()).map_err(Error::writing)?;
        Ok(message.len() as u64)
    }

    /// Decrypts a message of GCM. It is read twice, so that nothing of its size is kept. Nothing is written
    /// unless it is authentic.
    pub fn decrypt_stream(
        &self,
        input: &mut (impl Read + Seek),
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        match self.mode {
            Mode::Ccm => Err(Error::Misuse("messages of CCM are decrypted from memory".into())),
            _ => self.decrypt_gcm_stream(input, output, progress),
        }
    }

    /// What a new message begins with, by what the nodes said.
    pub(crate) fn first_bytes<'n>(&self, start: &'n [u8]) -> Result<&'n [u8]>
    where
        'k: 'n,
    {
        match self.nonce {
            Some(nonce) => Ok(nonce),
            None if start.len() == NONCE => Ok(start),
            None => Err(Error::Answers("they gave no nonce".into())),
        }
    }

    /// Nonce, ciphertext and tag of a message.
    pub(crate) fn parts<'m>(&self, message: &'m [u8]) -> Result<(&'m [u8], &'m [u8], &'m [u8])> {
        let ciphertext = self.ciphertext_bytes(message.len() as u64)? as usize;
        let (nonce, rest) = message.split_at(self.nonce_bytes);
        let (ciphertext, tag) = rest.split_at(ciphertext);
        Ok((nonce, ciphertext, tag))
    }

    /// The bytes of the ciphertext in a message of so many bytes.
    pub(crate) fn ciphertext_bytes(&self, message: u64) -> Result<u64> {
        let short = || Error::Unauthentic("the input is shorter than a nonce and a tag".into());
        message.checked_sub((self.nonce_bytes + self.tag_bytes) as u64).ok_or_else(short)
    }
}

/// The error if the nodes did not say which key they use.
pub(crate) fn no_key() -> Error {
    Error::Answers("they did not say which key they use".into())
}

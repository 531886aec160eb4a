//! Messages of modes that authenticate what they encrypt: nonce, ciphertext and tag.

use std::io::{Read, Seek, Write};

use polyclave_api::{KeyInfo, MAX_NONCE, Mode, XAES_NONCE};
use zeroize::Zeroizing;

use super::KeyHandle;
use super::pieces::Source;
use crate::{Error, Result};

/// Bytes of a nonce of the nodes.
pub(crate) const NONCE: usize = 12;

/// Encrypts and decrypts messages of GCM, XAES-256-GCM, CCM, SIV or GCM-SIV under a key. A message is written
/// as nonce, ciphertext, tag; one of SIV as tag and ciphertext.
#[derive(Clone)]
pub struct Aead<'k> {
    pub(crate) key: &'k KeyHandle<'k>,
    pub(crate) mode: Mode,
    pub(crate) additional: Vec<&'k [u8]>,
    pub(crate) nonce: Option<&'k [u8]>,
    pub(crate) nonce_bytes: usize,
    pub(crate) tag_bytes: usize,
}

impl<'k> Aead<'k> {
    pub(crate) fn new(key: &'k KeyHandle<'k>, mode: Mode) -> Aead<'k> {
        let nonce_bytes = nonce_of_nodes(mode);
        Aead { key, mode, additional: Vec::new(), nonce: None, nonce_bytes, tag_bytes: 16 }
    }

    /// Additional data: authenticated with the message, and not encrypted. With SIV it may be called several
    /// times, and the order counts.
    pub fn aad(mut self, additional: &'k [u8]) -> Aead<'k> {
        self.additional.push(additional);
        self
    }

    /// The same for several strings.
    pub fn aads(mut self, additional: &'k [Vec<u8>]) -> Aead<'k> {
        self.additional.extend(additional.iter().map(Vec::as_slice));
        self
    }

    /// Encrypts under this nonce, if there is one; the key must take those of its clients, and a nonce must
    /// never be used twice (with GCM-SIV that shows only which messages are equal). Otherwise the nodes draw
    /// it.
    pub fn nonce(self, nonce: impl Into<Option<&'k [u8]>>) -> Aead<'k> {
        Aead { nonce: nonce.into(), ..self }
    }

    /// Decrypts messages that begin with a nonce of so many bytes, not of as many as nodes draw. In modes
    /// without nonces it has no effect.
    pub fn nonce_bytes(self, nonce_bytes: impl Into<Option<usize>>) -> Aead<'k> {
        match (self.mode.nonce_bytes(), nonce_bytes.into()) {
            (Some(_), Some(nonce_bytes)) => Aead { nonce_bytes, ..self },
            _ => self,
        }
    }

    /// Tags of so many bytes, not of 16 ([`Mode::tag_bytes`]).
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
            mode if mode.most_whole().is_some() => self.encrypt_whole(message),
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
        match self.mode.most_whole() {
            Some(_) => self.decrypt_whole(message),
            None => self.decrypt_gcm(message),
        }
    }

    /// Encrypts a message from a stream; one that the nodes take whole is gathered. `progress` receives the
    /// number of bytes done.
    pub fn encrypt_stream(
        &self,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let Some(most) = self.mode.most_whole() else {
            return Ok(self.encrypt_gcm(Source::Stream(input), output, progress)?.0);
        };
        let mut message = Zeroizing::new(Vec::with_capacity(most + 1));
        input.take(most as u64 + 1).read_to_end(&mut message).map_err(Error::reading)?;
        output.write_all(&self.encrypt(&message)?).and_then(|()| output.flush()).map_err(Error::writing)?;
        Ok(message.len() as u64)
    }

    /// Decrypts a message. One of GCM or XAES-256-GCM is read twice, so that nothing of its size is kept.
    /// Nothing is written unless it is authentic.
    pub fn decrypt_stream(
        &self,
        input: &mut (impl Read + Seek),
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        match self.mode.most_whole() {
            Some(_) => self.decrypt_gathered(input, output),
            None => self.decrypt_gcm_stream(input, output, progress),
        }
    }

    /// Decrypts a message that the nodes take whole, from a stream that can be read once.
    pub fn decrypt_gathered(&self, input: &mut dyn Read, output: &mut dyn Write) -> Result<u64> {
        let long = || Error::Misuse(format!("messages of {} are read twice", self.mode));
        let most = self.mode.most_whole().ok_or_else(long)? + self.nonce_bytes + self.tag_bytes;
        let mut message = Vec::new();
        input.take(most as u64 + 1).read_to_end(&mut message).map_err(Error::reading)?;
        let plain = self.decrypt(&message)?;
        output.write_all(&plain).and_then(|()| output.flush()).map_err(Error::writing)?;
        Ok(plain.len() as u64)
    }

    /// What a new message begins with, by what the nodes said.
    pub(crate) fn first_bytes<'n>(&self, start: &'n [u8]) -> Result<&'n [u8]>
    where
        'k: 'n,
    {
        match self.nonce {
            Some(nonce) => Ok(nonce),
            None if start.len() == nonce_of_nodes(self.mode) => Ok(start),
            None => Err(Error::Answers("they gave no nonce".into())),
        }
    }

    /// Nonce, ciphertext and tag of a message.
    pub(crate) fn parts<'m>(&self, message: &'m [u8]) -> Result<(&'m [u8], &'m [u8], &'m [u8])> {
        let ciphertext = self.ciphertext_bytes(message.len() as u64)? as usize;
        if self.mode.begins_with_tag() {
            let (tag, ciphertext) = message.split_at(self.tag_bytes);
            return Ok((&[], ciphertext, tag));
        }
        let (nonce, rest) = message.split_at(self.nonce_bytes);
        let (ciphertext, tag) = rest.split_at(ciphertext);
        Ok((nonce, ciphertext, tag))
    }

    /// The bytes of the ciphertext in a message of so many bytes.
    pub(crate) fn ciphertext_bytes(&self, message: u64) -> Result<u64> {
        let short = || Error::Unauthentic("the input is shorter than its nonce and its tag".into());
        message.checked_sub((self.nonce_bytes + self.tag_bytes) as u64).ok_or_else(short)
    }
}

/// Bytes of a nonce that the nodes draw.
fn nonce_of_nodes(mode: Mode) -> usize {
    match mode {
        Mode::Xaes => XAES_NONCE,
        _ if mode.nonce_bytes().is_some() => NONCE,
        _ => 0,
    }
}

/// The error if the nodes did not say which key they use.
pub(crate) fn no_key() -> Error {
    Error::Answers("they did not say which key they use".into())
}

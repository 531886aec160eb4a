//! Rewrapping: a short message, or a wrapped key, under another key or version. Neither this client nor any
//! node sees what is in it.

use polyclave_api::{KeyInfo, KeyVersion, MAX_REWRAPPED, Operation, Rewrapped, Step, Wrapping, operations};
use polyclave_cipher::key_wrap;

use crate::client::Client;
use crate::operations::encrypt::KeyHandle;
use crate::operations::encrypt::aead::{Aead, NONCE, no_key};
use crate::operations::encrypt::pieces::add;
use crate::operations::sealed::{cut, digest, head_of};
use crate::session::conversation::{Accepted, Conversation};
use crate::session::first::First;
use crate::{Error, Result};

/// Bytes of a tag.
const TAG: usize = 16;
/// The shortest key that is wrapped.
const MIN_KEY: usize = 16;

impl Aead<'_> {
    /// Encrypts a message of GCM under this key, of at most 1,024 bytes, under the current version of the key
    /// `new`. The new message has the same additional data, a nonce of the nodes and a tag of 16 bytes. Says
    /// under which version of the new key it is.
    pub fn rewrap(&self, new: &str, message: &[u8]) -> Result<(Vec<u8>, KeyInfo)> {
        let (nonce, ciphertext, tag) = self.parts(message)?;
        let additional = self.one_additional()?;
        let what = Rewrapped::Gcm {
            nonce: nonce.to_vec(),
            additional,
            ciphertext: ciphertext.to_vec(),
            tag: tag.to_vec(),
        };
        let (fresh, encrypted, key) = self.key.rewrap_to(new, what, ciphertext)?;
        match fresh.len() {
            NONCE => Ok(([fresh, encrypted].concat(), key)),
            _ => Err(Error::Answers("they gave no nonce".into())),
        }
    }
}

impl Client {
    /// Seals a sealed file of at most 1,024 bytes anew, under the current version of the key `new`. `old` is
    /// the name of the key under which it was sealed; the file says which version. It is bound to the same
    /// additional data as before, if to any.
    pub fn rewrap_sealed(
        &self,
        (old, new): (&str, &str),
        additional: Option<&[u8]>,
        sealed: &[u8],
    ) -> Result<Vec<u8>> {
        let (head, chunk) = head_of(sealed, additional.is_some())?;
        let (ciphertext, tag) = chunk.split_last_chunk::<TAG>().ok_or_else(cut)?;
        let additional = additional.map(digest);
        let (file, tag, ciphertext) = (head.file, *tag, ciphertext.to_vec());
        let what = Rewrapped::Sealed { file, additional, ciphertext: ciphertext.clone(), tag };
        let (fresh, encrypted, key) = self
            .key_with_id(KeyVersion { name: old.into(), id: Some(head.id) })
            .rewrap_to(new, what, &ciphertext)?;
        match fresh.len() {
            32 => Ok([head.magic().as_slice(), &key.id, &fresh, &encrypted].concat()),
            _ => Err(Error::Answers("they gave no file id".into())),
        }
    }

    /// Wraps a wrapped key of 16, 24 or 32 bytes under the current version of the key `new`, in the same way.
    /// `old` is the key under which it was wrapped, `name` or `name@version`.
    pub fn rewrap_key(&self, (old, new): (&str, &str), how: Wrapping, wrapped: &[u8]) -> Result<Vec<u8>> {
        if wrapped.len() < key_wrap::wrapped_bytes(MIN_KEY) {
            return Err(Error::Misuse("wrapped keys of 16, 24 and 32 bytes are rewrapped".into()));
        }
        let what = Rewrapped::Key { wrapped: wrapped.to_vec(), how };
        let (mut conversation, _) = self.key(old)?.begin_rewrap(new, what)?;
        let anew = conversation.bytes(wrapped.len())?;
        conversation.finish()?;
        Ok(anew.to_vec())
    }
}

impl<'c> KeyHandle<'c> {
    fn begin_rewrap(&self, new: &str, what: Rewrapped) -> Result<(Conversation<'c>, Accepted)> {
        let KeyVersion { name: old, id } = self.key.clone();
        let operation = Operation::Rewrap(operations::Rewrap { key: new.into(), old, id, what });
        self.client.begin(&operation, First::Step(&Step::Rewrapped))
    }

    /// What the message begins with, the new ciphertext with its tag, and the new key.
    fn rewrap_to(
        &self,
        new: &str,
        what: Rewrapped,
        ciphertext: &[u8],
    ) -> Result<(Vec<u8>, Vec<u8>, KeyInfo)> {
        if ciphertext.len() > MAX_REWRAPPED {
            let given = ciphertext.len();
            return Err(Error::Misuse(format!(
                "{given} bytes are too many: at most {MAX_REWRAPPED} are rewrapped; decrypt and encrypt longer messages"
            )));
        }
        let (mut conversation, accepted) = self.begin_rewrap(new, what)?;
        let key = accepted.key.ok_or_else(no_key)?;
        let mut encrypted = ciphertext.to_vec();
        match ciphertext.is_empty() {
            true => conversation.nothing()?,
            false => {
                let change = conversation.bytes(ciphertext.len())?;
                add(&mut encrypted, &change);
            }
        }
        conversation.step(&Step::Tag)?;
        encrypted.extend(conversation.tag()?);
        conversation.finish()?;
        Ok((accepted.start, encrypted, key))
    }
}

//! Rewrapping: a short message, or a wrapped key, under another key or version. Neither this client nor any node sees what is in it.

use polyclave_api::{KeyInfo, KeyVersion, MAX_REWRAPPED, Operation, Rewrapped, Step, Wrapping, operations};
use polyclave_cipher::key_wrap;

use crate::client::Client;
use crate::conversation::Conversation;
use crate::sealed::{cut, digest, head_of};
use crate::{AeadDecryption, Error, Result};

/// Bytes of a nonce.
const NONCE: usize = 12;
/// Bytes of a tag.
const TAG: usize = 16;
/// The shortest key that is wrapped.
const MIN_KEY: usize = 16;

impl Client {
    /// Encrypts a GCM message (nonce, ciphertext, tag) of at most 1,024 bytes under the current version of the key `new`. `old` is the key under
    /// which it was encrypted, `name` or `name@version`. The new message has the same additional data, a nonce of the nodes and a tag of 16
    /// bytes.
    pub fn rewrap_gcm(
        &self,
        (old, new): (&str, &str),
        how: &AeadDecryption<'_>,
        message: &[u8],
    ) -> Result<Vec<u8>> {
        let (old, id) = self.named_version(old)?;
        Ok(self.rewrap_known_gcm((&KeyVersion { name: old, id }, new), how, message)?.0)
    }

    /// The same for a version of the old key of which the id is known. Says under which version of the new key the message is then.
    pub fn rewrap_known_gcm(
        &self,
        (old, new): (&KeyVersion, &str),
        how: &AeadDecryption<'_>,
        message: &[u8],
    ) -> Result<(Vec<u8>, KeyInfo)> {
        let bytes = how.ciphertext_bytes(message.len() as u64)? as usize;
        let (nonce, rest) = message.split_at(how.nonce_bytes);
        let (ciphertext, tag) = rest.split_at(bytes);
        let additional = how.additional.to_vec();
        let what = Rewrapped::Gcm {
            nonce: nonce.to_vec(),
            additional,
            ciphertext: ciphertext.to_vec(),
            tag: tag.to_vec(),
        };
        let (fresh, encrypted, key) = self.rewrap_by_id((&old.name, old.id), new, what, ciphertext)?;
        match fresh.len() {
            NONCE => Ok(([fresh, encrypted].concat(), key)),
            _ => Err(Error::Answers("they gave no nonce".into())),
        }
    }

    /// Seals a sealed file of at most 1,024 bytes anew, under the current version of the key `new`. `old` is the name of the key under
    /// which it was sealed; the file says which version. It is bound to the same additional data as before, if to any.
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
        let (fresh, encrypted, key) = self.rewrap_by_id((old, Some(head.id)), new, what, &ciphertext)?;
        match fresh.len() {
            32 => Ok([head.magic().as_slice(), &key.id, &fresh, &encrypted].concat()),
            _ => Err(Error::Answers("they gave no file id".into())),
        }
    }

    /// Wraps a wrapped key of 16, 24 or 32 bytes under the current version of the key `new`, in the same way. `old` is the key under which it was
    /// wrapped, `name` or `name@version`.
    pub fn rewrap_key(&self, (old, new): (&str, &str), how: Wrapping, wrapped: &[u8]) -> Result<Vec<u8>> {
        if wrapped.len() < key_wrap::wrapped_bytes(MIN_KEY) {
            return Err(Error::Misuse("wrapped keys of 16, 24 and 32 bytes are rewrapped".into()));
        }
        let (old, id) = self.named_version(old)?;
        let what = Rewrapped::Key { wrapped: wrapped.to_vec(), how };
        let operation = Operation::Rewrap(operations::Rewrap { key: new.into(), old, id, what });
        let (mut conversation, _) = Conversation::begin(self, &operation, Some(&Step::Rewrapped))?;
        let anew = conversation.bytes(wrapped.len())?;
        conversation.finish()?;
        Ok(anew.to_vec())
    }

    /// What the message begins with, the new ciphertext with its tag, and the new key.
    fn rewrap_by_id(
        &self,
        (old, id): (&str, Option<[u8; 16]>),
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
        let operation = Operation::Rewrap(operations::Rewrap { key: new.into(), old: old.into(), id, what });
        let (mut conversation, accepted) = Conversation::begin(self, &operation, Some(&Step::Rewrapped))?;
        let key = accepted.key.ok_or_else(|| Error::Answers("they did not say which key they use".into()))?;
        let mut encrypted = ciphertext.to_vec();
        match ciphertext.is_empty() {
            true => conversation.nothing()?,
            false => {
                let change = conversation.bytes(ciphertext.len())?;
                encrypted.iter_mut().zip(change.iter()).for_each(|(byte, change)| *byte ^= change);
            }
        }
        conversation.step(&Step::Tag)?;
        encrypted.extend(conversation.tag()?);
        conversation.finish()?;
        Ok((accepted.start, encrypted, key))
    }

    /// A key's name, and the id of the version that is named behind it.
    fn named_version(&self, key: &str) -> Result<(String, Option<[u8; 16]>)> {
        let Some((name, version)) = key.split_once('@') else { return Ok((key.into(), None)) };
        let version =
            version.parse().map_err(|_| Error::Misuse(format!("'{version}' is no version of a key")))?;
        Ok((name.into(), Some(self.version(name, version)?.id)))
    }
}

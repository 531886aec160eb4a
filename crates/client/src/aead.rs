//! How a single authenticated message is written in the plain format: nonce, ciphertext, tag.

use crate::{Error, Result};

/// What is chosen when a message is encrypted with GCM or CCM.
#[derive(Clone, Copy)]
pub struct AeadEncryption<'a> {
    /// Authenticated with the message, and not encrypted.
    pub additional: &'a [u8],
    /// A nonce for a key that takes those of its clients; it must never be used twice. `None` for a nonce of the nodes.
    pub nonce: Option<&'a [u8]>,
    /// Bytes of the tag. GCM: 12 to 16; CCM: 8, 10, 12, 14 or 16.
    pub tag_bytes: usize,
}

/// What has to be known to decrypt it.
#[derive(Clone, Copy)]
pub struct AeadDecryption<'a> {
    /// Authenticated with the message.
    pub additional: &'a [u8],
    /// Bytes of the nonce, with which the message begins.
    pub nonce_bytes: usize,
    /// Bytes of the tag, with which it ends.
    pub tag_bytes: usize,
}

impl Default for AeadEncryption<'_> {
    fn default() -> Self {
        AeadEncryption { additional: &[], nonce: None, tag_bytes: 16 }
    }
}

impl Default for AeadDecryption<'_> {
    fn default() -> Self {
        AeadDecryption { additional: &[], nonce_bytes: 12, tag_bytes: 16 }
    }
}

impl AeadDecryption<'_> {
    /// The bytes of the ciphertext in a message of so many bytes.
    pub(crate) fn ciphertext_bytes(&self, message: u64) -> Result<u64> {
        let short = || Error::Unauthentic("the input is shorter than a nonce and a tag".into());
        message.checked_sub((self.nonce_bytes + self.tag_bytes) as u64).ok_or_else(short)
    }
}

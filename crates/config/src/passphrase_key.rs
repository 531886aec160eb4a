//! A key from what a person remembers: Argon2id (RFC 9106) gives a key of XChaCha20-Poly1305. A file says what it costs, so that later
//! versions can raise the costs, and authenticates that.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use zeroize::Zeroizing;

use crate::{Error, Result};

/// What a guess costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
}

/// The most that a file may ask for.
const MOST: Cost = Cost { memory_kib: 4 << 20, passes: 64 };

impl Cost {
    /// Refuses what no program writes.
    pub(crate) fn refuse_excessive(self) -> Result<()> {
        if self.memory_kib > MOST.memory_kib || self.passes > MOST.passes {
            return Err(Error::misuse(format!(
                "asks for {} KiB and {} passes, more than any node writes; restore it from a copy",
                self.memory_kib, self.passes
            )));
        }
        Ok(())
    }

    /// The cipher under a passphrase or PIN.
    pub(crate) fn cipher(self, secret: &[u8], salt: &[u8; 16]) -> Result<XChaCha20Poly1305> {
        let costs = Params::new(self.memory_kib, self.passes, 1, Some(32));
        let costs = costs.map_err(|e| Error::misuse(format!("has costs that do not fit: {e}")))?;
        let mut key = Zeroizing::new([0; 32]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, costs)
            .hash_password_into(secret, salt, &mut *key)
            .map_err(|e| Error::misuse(format!("no key could be made from the passphrase: {e}")))?;
        Ok(XChaCha20Poly1305::new((&*key).into()))
    }
}

//! A secret of 32 bytes, wiped when it is dropped.

use std::path::Path;

use polyclave_config::private;
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use super::Result;

/// The secret under which a store or a backup is sealed.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// A secret from bytes that nobody can guess.
    pub fn from_bytes(bytes: [u8; 32]) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    /// A fresh secret.
    pub fn generate() -> Result<Secret> {
        let mut secret = Zeroizing::new([0; 32]);
        random_bytes(&mut *secret)?;
        Ok(Secret(secret))
    }

    /// A fresh secret, written to a private file that must not exist yet.
    pub fn generate_file(path: &Path) -> Result<Secret> {
        Ok(Secret(private::generate_secret(path)?))
    }

    /// Reads the private file that [`Secret::generate_file`] wrote.
    pub fn load_file(path: &Path) -> Result<Secret> {
        Ok(Secret(private::load_secret(path)?))
    }

    /// As [`Secret::generate_file`] writes it.
    pub(super) fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(*self.0))
    }

    /// A key for one purpose.
    pub(super) fn derive(&self, purpose: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(blake3::derive_key(purpose, &*self.0))
    }
}

impl From<Zeroizing<[u8; 32]>> for Secret {
    fn from(bytes: Zeroizing<[u8; 32]>) -> Secret {
        Secret(bytes)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

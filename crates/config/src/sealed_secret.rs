//! A node's secret under a passphrase: the file `secret.sealed`.
//!
//! The key is Argon2id of the passphrase (RFC 9106) with a salt of 16 bytes; XChaCha20-Poly1305 under it
//! seals the secret. The costs are in the file, so that later versions can raise them, and they are
//! authenticated with it.

use std::path::Path;

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, Payload};
use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::passphrase_key::Cost;
use crate::{Error, Result, private, text};

/// The version of the file.
const VERSION: u32 = 1;
/// The fewest characters of a passphrase.
const MIN_PASSPHRASE: usize = 12;
/// What a guess costs: half a second and this much memory.
const COST: Cost = Cost { memory_kib: 256 << 10, passes: 3, lanes: 1 };

/// A passphrase, wiped when it is dropped.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// As a person gave it, without the end of the line. To seal, it has to have 12 characters or more.
    pub fn new(text: Zeroizing<String>) -> Passphrase {
        Passphrase(Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// The first line of a private file.
    pub fn load(path: &Path) -> Result<Passphrase> {
        let bytes = private::read(path)?;
        let text = str::from_utf8(&bytes).map_err(|_| Error::malformed(path, "is not text"))?;
        let line = text.lines().next().unwrap_or_default();
        Ok(Passphrase(Zeroizing::new(line.to_owned())))
    }
}

impl PartialEq for Passphrase {
    /// For a person who types it twice: not in constant time.
    fn eq(&self, other: &Passphrase) -> bool {
        self.0 == other.0
    }
}

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passphrase")
    }
}

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealedSecret {
    version: u32,
    memory_kib: u32,
    passes: u32,
    #[serde(with = "hex::serde")]
    salt: [u8; 16],
    #[serde(with = "hex::serde")]
    nonce: [u8; 24],
    /// The secret's 32 bytes and the tag's 16.
    #[serde(with = "hex::serde")]
    sealed: [u8; 48],
}

impl SealedSecret {
    /// Seals a secret.
    pub(crate) fn seal(secret: &[u8; 32], passphrase: &Passphrase) -> Result<SealedSecret> {
        SealedSecret::seal_at(COST, secret, passphrase)
    }

    fn seal_at(cost: Cost, secret: &[u8; 32], passphrase: &Passphrase) -> Result<SealedSecret> {
        if passphrase.0.chars().count() < MIN_PASSPHRASE {
            return Err(Error::misuse(format!(
                "a passphrase has at least {MIN_PASSPHRASE} characters; take some words that nobody would guess together"
            )));
        }
        let (mut salt, mut nonce) = ([0; 16], [0; 24]);
        for drawn in [&mut salt[..], &mut nonce[..]] {
            random_bytes(drawn).map_err(|e| Error::misuse(e.to_string()))?;
        }
        let Cost { memory_kib, passes, lanes: _ } = cost;
        let mut file = SealedSecret { version: VERSION, memory_kib, passes, salt, nonce, sealed: [0; 48] };
        let payload = Payload { msg: secret, aad: &file.head() };
        let sealed = file.cipher(passphrase)?.encrypt(&nonce.into(), payload);
        let sealed = sealed.map_err(|_| Error::misuse("the secret could not be sealed"))?;
        file.sealed = sealed.try_into().map_err(|_| Error::misuse("the secret could not be sealed"))?;
        Ok(file)
    }

    /// The secret.
    pub(crate) fn open(&self, passphrase: &Passphrase) -> Result<Zeroizing<[u8; 32]>> {
        let payload = Payload { msg: &self.sealed, aad: &self.head() };
        let opened = self.cipher(passphrase)?.decrypt(&self.nonce.into(), payload).map(Zeroizing::new);
        let opened = opened.map_err(|_| {
            Error::misuse(
                "does not open under this passphrase; the passphrase is wrong, or the file was changed",
            )
        })?;
        let mut secret = Zeroizing::new([0; 32]);
        secret.copy_from_slice(&opened);
        Ok(secret)
    }

    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let text = text::render("The secret of a node of Polyclave, sealed under a passphrase.", self);
        private::write(path, text.as_bytes())
    }

    pub(crate) fn load(path: &Path) -> Result<SealedSecret> {
        let bytes = private::read(path)?;
        let text = str::from_utf8(&bytes).map_err(|_| Error::malformed(path, "is not text"))?;
        SealedSecret::parse(text).map_err(|e| e.in_file(path))
    }

    pub(crate) fn parse(text: &str) -> Result<SealedSecret> {
        let file: SealedSecret = text::parse(text)?;
        if file.version != VERSION {
            return Err(Error::misuse(format!(
                "has version {}, and this program reads version {VERSION}; use the program that wrote it",
                file.version
            )));
        }
        file.cost().refuse_excessive()?;
        Ok(file)
    }

    /// What is authenticated with the secret.
    fn head(&self) -> Vec<u8> {
        let words = [self.version, self.memory_kib, self.passes].map(u32::to_le_bytes);
        [b"polyclave sealed secret", &words.concat()[..], &self.salt].concat()
    }

    fn cost(&self) -> Cost {
        Cost { memory_kib: self.memory_kib, passes: self.passes, lanes: 1 }
    }

    fn cipher(&self, passphrase: &Passphrase) -> Result<XChaCha20Poly1305> {
        self.cost().cipher(passphrase.0.as_bytes(), &self.salt)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn passphrase(text: &str) -> Passphrase {
        Passphrase::new(Zeroizing::new(text.into()))
    }

    /// Sealed at little cost.
    pub(crate) fn sealed() -> SealedSecret {
        let cost = Cost { memory_kib: 8, passes: 1, lanes: 1 };
        SealedSecret::seal_at(cost, &[7; 32], &passphrase("correct horse battery")).expect("sealed")
    }

    #[test]
    fn a_secret_comes_back_under_its_passphrase_only() {
        let file = sealed();
        assert_eq!(*file.open(&passphrase("correct horse battery\n")).expect("opened"), [7; 32]);
        for wrong in ["correct horse batterz", "", "correct horse battery "] {
            let error = file.open(&passphrase(wrong)).expect_err("wrong").to_string();
            assert!(error.contains("passphrase is wrong"), "{error}");
        }
        assert_ne!(sealed(), file, "a fresh salt and nonce each time");
    }

    #[test]
    fn a_changed_file_opens_under_nothing() {
        let file = sealed();
        let with = |change: &dyn Fn(&mut SealedSecret)| {
            let mut changed = file.clone();
            change(&mut changed);
            assert!(changed.open(&passphrase("correct horse battery")).is_err());
        };
        with(&|file| file.salt[0] ^= 1);
        with(&|file| file.nonce[23] ^= 1);
        (0..48).for_each(|i| with(&|file| file.sealed[i] ^= 1));
        with(&|file| file.passes += 1);
        with(&|file| file.memory_kib += 8);
        with(&|file| file.passes = 0);
    }

    #[test]
    fn short_passphrases_other_versions_and_excessive_costs_are_refused() {
        let short = SealedSecret::seal(&[7; 32], &passphrase("eleven char")).expect_err("too short");
        assert!(short.to_string().contains("at least 12"), "{short}");
        let file = sealed();
        let text = text::render("x", &file);
        assert_eq!(SealedSecret::parse(&text).expect("read"), file);
        let refused = |from: &str, to: &str| {
            let changed = text.replace(from, to);
            assert_ne!(changed, text);
            SealedSecret::parse(&changed).expect_err("refused").to_string()
        };
        assert!(refused("version = 1", "version = 2").contains("version 2"));
        assert!(refused("memory_kib = 8", "memory_kib = 8000000").contains("8000000 KiB"));
        assert!(refused("passes = 1", "passes = 65").contains("65 passes"));
        refused("salt", "sält");
    }
}

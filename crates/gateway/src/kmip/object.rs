//! Versions of keys of the nodes as objects of KMIP.
//!
//! The unique identifier of an object is `NAME:ID`, with the id of the version in hexadecimal. `NAME` alone
//! means the current version, whichever that is. As after a Re-key in KMIP, only the current version has the
//! name as its attribute Name.

use polyclave_api::{KeyInfo, KeyVersion, Mode, Usage, VersionState};
use polyclave_cipher::hmac::{self, Sha2};
use polyclave_client::Client;

use super::codes::{self, mask};
use super::refused::{Reason, Refused};

/// The modes of keys that are objects here.
const MODES: [Mode; 6] = [Mode::Gcm, Mode::Ctr, Mode::Cbc, Mode::Cmac, Mode::Ecb, Mode::Hmac];

/// A kind of keys: its algorithm and length in bits, and the cipher of the nodes. Keys of 3DES have 168 bits,
/// or 192 with those of parity.
pub(super) const KINDS: [(u32, u32, &str); 8] = [
    (codes::AES, 128, "aes-128"),
    (codes::AES, 192, "aes-192"),
    (codes::AES, 256, "aes-256"),
    (codes::TRIPLE_DES, 168, "3des-ede3"),
    (codes::TRIPLE_DES, 192, "3des-ede3"),
    of_hmac(codes::HMAC_SHA_256, Sha2::Sha256),
    of_hmac(codes::HMAC_SHA_384, Sha2::Sha384),
    of_hmac(codes::HMAC_SHA_512, Sha2::Sha512),
];

/// Keys of HMAC have the length of a block of their hash.
const fn of_hmac(algorithm: u32, hash: Sha2) -> (u32, u32, &'static str) {
    (algorithm, 8 * hash.block_bytes() as u32, hmac::name(hash))
}

/// A version of a key.
#[derive(Clone)]
pub(super) struct Object {
    pub(super) info: KeyInfo,
    /// Whether it is the newest of its name.
    pub(super) is_current: bool,
    /// How many versions of the name there are.
    pub(super) versions: usize,
}

/// Why work with the nodes has ended.
pub(super) enum Stop {
    /// The nodes, or some of them, did not do it.
    Nodes(polyclave_client::Error),
    /// KMIP does not allow it.
    Refused(Refused),
}

impl From<polyclave_client::Error> for Stop {
    fn from(error: polyclave_client::Error) -> Stop {
        Stop::Nodes(error)
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        Stop::Refused(refused)
    }
}

/// Reads a unique identifier; `None` if it is none.
pub(super) fn read_identifier(identifier: &str) -> Option<KeyVersion> {
    let (name, id) = match identifier.split_once(':') {
        None => (identifier, None),
        Some((name, digits)) => {
            let mut id = [0; 16];
            hex::decode_to_slice(digits, &mut id).ok()?;
            (name, Some(id))
        }
    };
    polyclave_config::check_name("key", name).ok()?;
    Some(KeyVersion { name: name.into(), id })
}

/// The unique identifier of a version of a key.
pub(super) fn identifier(key: &KeyVersion) -> String {
    match key.id {
        None => key.name.clone(),
        Some(id) => format!("{}:{}", key.name, hex::encode(id)),
    }
}

impl Object {
    /// Asks the nodes for a version of a key.
    pub(super) fn find(client: &Client, key: &KeyVersion) -> Result<Object, Stop> {
        let mut objects = Object::all(client, &key.name)?.into_iter();
        let is_meant = |object: &Object| match key.id {
            None => object.is_current,
            Some(id) => object.info.id == id,
        };
        let none = || Reason::ItemNotFound.because("there is no such key");
        Ok(objects.find(is_meant).ok_or_else(none)?)
    }

    /// All versions of a key, the newest first; none if the key is for something that KMIP is not served for.
    pub(super) fn all(client: &Client, name: &str) -> Result<Vec<Object>, Stop> {
        Ok(Object::of(client.versions(name)?))
    }

    /// The objects among the versions of one name, the newest first. Where nodes differ about a version, what
    /// stands first is what most of them say. But it is as retired as one node says: a change of its state
    /// may have reached only some, and states are judged here for clients, since nodes judge the gateway.
    pub(super) fn of(mut shown: Vec<KeyInfo>) -> Vec<Object> {
        shown.dedup_by(|other, kept| {
            let is_same = other.version == kept.version;
            if is_same {
                kept.state = kept.state.max(other.state);
            }
            is_same
        });
        let versions = shown.len();
        let object = |(at, info)| Object { info, is_current: at == 0, versions };
        shown.into_iter().enumerate().map(object).filter(Object::is_served).collect()
    }

    fn is_served(&self) -> bool {
        let modes = &self.info.properties.modes;
        self.kind().is_some()
            && self.info.component.is_none()
            && modes.iter().any(|mode| MODES.contains(mode))
    }

    /// Its algorithm and its length in bits.
    pub(super) fn kind(&self) -> Option<(u32, u32)> {
        let of = KINDS.iter().find(|(.., cipher)| *cipher == self.info.properties.cipher)?;
        Some((of.0, of.1))
    }

    pub(super) fn identifier(&self) -> String {
        identifier(&(&self.info).into())
    }

    /// Its state. A key is active from the moment that it is made.
    pub(super) fn state(&self, now: i64) -> u32 {
        let is_over = self.info.properties.expires.is_some_and(|expires| now >= seconds(expires));
        match self.info.state {
            VersionState::Compromised => codes::COMPROMISED,
            VersionState::Deactivated => codes::DEACTIVATED,
            VersionState::Active if is_over => codes::DEACTIVATED,
            VersionState::Active => codes::ACTIVE,
        }
    }

    /// What it may be used for.
    pub(super) fn usage_mask(&self) -> u32 {
        let bit = |usage: &Usage| match usage {
            Usage::Encrypt => mask::ENCRYPT,
            Usage::Decrypt => mask::DECRYPT,
            Usage::Mac => mask::MAC_GENERATE | mask::MAC_VERIFY,
            Usage::Wrap => mask::WRAP,
            Usage::Unwrap => mask::UNWRAP,
            Usage::Derive => mask::DERIVE,
            _ => 0,
        };
        self.info.properties.usage.iter().map(bit).fold(0, |all, bit| all | bit)
    }

    /// When it was made.
    pub(super) fn made(&self) -> i64 {
        seconds(self.info.made)
    }

    /// When it is deactivated by itself, if it is.
    pub(super) fn expires(&self) -> Option<i64> {
        self.info.properties.expires.map(seconds)
    }

    /// Refuses what only active keys do: to protect data.
    pub(super) fn check_active(&self, now: i64) -> Result<(), Refused> {
        match self.state(now) {
            codes::ACTIVE => Ok(()),
            _ => Err(Reason::WrongState.because("the key is not active, and protects no data any more")),
        }
    }
}

fn seconds(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_names_with_or_without_the_id_of_a_version() {
        let id = [0xab; 16];
        for (text, of) in [("db-1", None), ("db-1:abababababababababababababababab", Some(id))] {
            let key = read_identifier(text).expect(text);
            assert_eq!((key.name.as_str(), key.id), ("db-1", of));
            assert_eq!(identifier(&key), text);
        }
        for text in ["", ":", "db:", "db:abab", "../db", "db 1", "db:abababababababababababababababab:"] {
            assert_eq!(read_identifier(text), None, "{text}");
        }
    }
}

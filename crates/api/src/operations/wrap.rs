//! Keys that are wrapped under other keys, and ciphertexts that move from one key to another.

use serde::{Deserialize, Serialize};

use super::{Describe, Detail, KeyRef, KeyVersion, Rewrapped};
use crate::{BlockHeader, Mode, NewKey, Permission, Right, Wrapping};

/// Wrap a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrap {
    /// The key that wraps it.
    pub wrapping: KeyVersion,
    /// The key that is wrapped.
    pub key: KeyVersion,
    /// How.
    pub how: Wrapping,
}

/// Unwrap a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwrap {
    /// The key under which it was wrapped.
    pub unwrapping: KeyVersion,
    /// The wrapped key.
    #[serde(with = "serde_bytes")]
    pub wrapped: Vec<u8>,
    /// How.
    pub how: Wrapping,
    /// The key that is made.
    pub new: NewKey,
}

/// Wrap a key in a key block of TR-31: the MAC, and the encrypted key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrapBlock {
    /// The key that protects the block.
    pub wrapping: KeyVersion,
    /// The key that is wrapped.
    pub key: KeyVersion,
    /// What the block says about it.
    pub header: BlockHeader,
}

/// Unwrap a key block of TR-31.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnwrapBlock {
    /// The key that protects it.
    pub unwrapping: KeyVersion,
    /// The block.
    #[serde(with = "serde_bytes")]
    pub block: Vec<u8>,
    /// The key that is made.
    pub new: NewKey,
}

/// Encrypt under the current version of a key what was encrypted under another key or version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewrap {
    /// The key under which it is encrypted anew.
    pub key: String,
    /// The name of the key under which it was encrypted.
    pub old: String,
    /// The id of its version; `None` for the current one.
    pub id: Option<[u8; 16]>,
    /// What was encrypted.
    pub what: Rewrapped,
}

/// What the rules have to allow for wrapping a key under another.
fn to_wrap(wrapping: &KeyVersion, key: &KeyVersion) -> Vec<Permission> {
    Permission::both(Right::Wrap, &wrapping.name, &key.name)
}

/// What the rules have to allow for unwrapping a new key: to unwrap is to import.
fn to_unwrap(unwrapping: &KeyVersion, new: &NewKey) -> Vec<Permission> {
    let own = Permission::both(Right::Unwrap, &unwrapping.name, &new.name);
    [own, vec![Permission::bound(Right::Import, &new.name)]].concat()
}

/// What the audit log says of a key that is wrapped.
fn wrapped<'o>(wrapping: &KeyVersion, key: &'o KeyVersion) -> Detail<'o> {
    let under = wrapping.audit("under", "under_id");
    let text = key.id.map_or(under.clone(), |id| format!("{under} id={}", hex::encode(id)));
    Detail { key: &key.name, text }
}

impl Describe for Wrap {
    fn kind(&self) -> &'static str {
        "wrap"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![self.wrapping.about(), self.key.about()]
    }

    fn permissions(&self) -> Vec<Permission> {
        to_wrap(&self.wrapping, &self.key)
    }

    fn audit(&self) -> Detail<'_> {
        wrapped(&self.wrapping, &self.key)
    }

    fn only_uses(&self) -> bool {
        true
    }

    fn in_words(&self) -> String {
        let (key, wrapping, how) = (self.key.in_words(), self.wrapping.in_words(), self.how);
        format!("let the key {key} leave the nodes, wrapped under {wrapping} ({how:?})")
    }
}

impl Describe for WrapBlock {
    fn kind(&self) -> &'static str {
        "wrap"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![self.wrapping.about(), self.key.about()]
    }

    fn permissions(&self) -> Vec<Permission> {
        to_wrap(&self.wrapping, &self.key)
    }

    fn audit(&self) -> Detail<'_> {
        wrapped(&self.wrapping, &self.key)
    }

    fn only_uses(&self) -> bool {
        true
    }
}

impl Describe for Unwrap {
    fn kind(&self) -> &'static str {
        "unwrap"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![self.unwrapping.about()]
    }

    fn permissions(&self) -> Vec<Permission> {
        to_unwrap(&self.unwrapping, &self.new)
    }

    fn audit(&self) -> Detail<'_> {
        Detail { key: &self.new.name, text: self.unwrapping.audit("under", "under_id") }
    }

    fn in_words(&self) -> String {
        let (kek, new) = (self.unwrapping.in_words(), &self.new.name);
        format!("unwrap a key under {kek} into the new key {new:?}")
    }
}

impl Describe for UnwrapBlock {
    fn kind(&self) -> &'static str {
        "unwrap"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![self.unwrapping.about()]
    }

    fn permissions(&self) -> Vec<Permission> {
        to_unwrap(&self.unwrapping, &self.new)
    }

    fn audit(&self) -> Detail<'_> {
        Detail { key: &self.new.name, text: self.unwrapping.audit("under", "under_id") }
    }
}

impl Describe for Rewrap {
    fn kind(&self) -> &'static str {
        "rewrap"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![KeyRef::current(&self.key), KeyRef::with_id(&self.old, self.id)]
    }

    fn permissions(&self) -> Vec<Permission> {
        let ([undo, redo], mode) = self.what.amounts_to();
        let amounts = [(undo, &self.old), (redo, &self.key)];
        let amounts = amounts.map(|(right, key)| Permission { mode, ..Permission::bound(right, key) });
        [Permission::both(Right::Rewrap, &self.key, &self.old), amounts.to_vec()].concat()
    }

    fn audit(&self) -> Detail<'_> {
        let from = format!("from={}", self.old);
        let text = self.id.map_or(from.clone(), |id| format!("{from} id={}", hex::encode(id)));
        Detail { key: &self.key, text }
    }

    fn only_uses(&self) -> bool {
        true
    }
}

impl Rewrapped {
    /// The rights to what a rewrap amounts to: under the old key, and under the new one; and in which mode.
    pub fn amounts_to(&self) -> ([Right; 2], Option<Mode>) {
        match self {
            Rewrapped::Gcm { .. } | Rewrapped::Sealed { .. } => {
                ([Right::Decrypt, Right::Encrypt], Some(Mode::Gcm))
            }
            Rewrapped::Key { .. } => ([Right::Unwrap, Right::Wrap], None),
        }
    }
}

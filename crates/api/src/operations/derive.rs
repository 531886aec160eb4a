//! Keys and bytes that are derived from a key.

use serde::{Deserialize, Serialize};

use super::{Describe, Detail, KeyRef, KeyVersion};
use crate::{Derivation, NewKey, Permission, Right};

/// Derive a key from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Derive {
    /// The key that it is derived from.
    pub base: KeyVersion,
    /// The key that is made.
    pub new: NewKey,
    /// From what.
    pub how: Derivation,
}

/// Bytes that are derived from a key and that the client learns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kdf {
    /// The key.
    pub key: KeyVersion,
    /// From what: [`Derivation::Counter`] or [`Derivation::HkdfExpand`].
    pub how: Derivation,
    /// How many: at most [`MAX_DERIVED`](crate::MAX_DERIVED).
    pub bytes: u32,
}

impl Describe for Derive {
    fn kind(&self) -> &'static str {
        "derive"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![self.base.about()]
    }

    fn permissions(&self) -> Vec<Permission> {
        let (base, new) = (&self.base.name, &self.new.name);
        [Permission::both(Right::Derive, base, new), vec![Permission::bound(Right::Generate, new)]].concat()
    }

    fn audit(&self) -> Detail<'_> {
        Detail { key: &self.new.name, text: self.base.audit("from", "id") }
    }

    fn in_words(&self) -> String {
        format!("derive the new key {:?} from {}", self.new.name, self.base.in_words())
    }
}

impl Describe for Kdf {
    fn kind(&self) -> &'static str {
        "kdf"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![self.key.about()]
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Kdf, &self.key.name)]
    }

    fn audit(&self) -> Detail<'_> {
        let text = self.key.id.map_or(String::new(), |id| format!("id={}", hex::encode(id)));
        Detail { key: &self.key.name, text }
    }

    fn only_uses(&self) -> bool {
        true
    }
}

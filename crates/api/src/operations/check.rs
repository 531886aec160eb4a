//! The check value of a key, computed anew.
//!
//! It shows what the nodes opened when they made the key, or 24 bits of the encryption of zeros: enough to
//! confirm a guess of the whole key, and nothing else of a random key. Check values are public to clients
//! that may list the key, so this takes the right `list` and no other. Its blocks are the same every time,
//! and were not counted when the key was made. So they are not taken from the key's budget: a client that may
//! only list keys cannot use them up. A rule's limit of requests holds.

use serde::{Deserialize, Serialize};

use super::{Describe, Detail, KeyRef, KeyVersion};
use crate::{CheckKind, Permission, Right};

/// Compute the check value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The key.
    pub key: KeyVersion,
    /// Which check value.
    pub kind: CheckKind,
}

impl Describe for Check {
    fn kind(&self) -> &'static str {
        "check"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![self.key.about()]
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::List, &self.key.name)]
    }

    fn audit(&self) -> Detail<'_> {
        let by = match self.kind {
            CheckKind::Cmac => "by=cmac",
            CheckKind::Zeros => "by=zeros",
        };
        let id = self.key.id.map_or(String::new(), |id| format!(" id={}", hex::encode(id)));
        Detail { key: &self.key.name, text: format!("{by}{id}") }
    }

    fn only_uses(&self) -> bool {
        true
    }
}

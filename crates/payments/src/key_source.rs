//! Where the key comes from under which something is encrypted or authenticated.

use serde::{Deserialize, Serialize};

use crate::dukpt::{Dukpt, DukptUsage};
use crate::payment::{KeyFacts, Role};
use crate::purpose::Purpose;
use crate::wiring::{Key, Wiring};

/// A key of the request, or one that is derived from it for a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySource {
    /// The key itself.
    Direct,
    /// The request names a base derivation key.
    Dukpt(Dukpt),
}

impl KeySource {
    /// The role of the request's key, if the key itself has to be for what `direct` says.
    pub(crate) fn role(&self, name: &'static str, direct: fn(&Purpose) -> bool) -> Role {
        let takes = match self {
            KeySource::Direct => direct,
            KeySource::Dukpt(_) => |purpose: &Purpose| *purpose == Purpose::DukptBase,
        };
        Role { name, takes }
    }

    pub(crate) fn check(&self, key: &KeyFacts<'_>) -> Result<(), String> {
        match self {
            KeySource::Direct => Ok(()),
            KeySource::Dukpt(dukpt) => dukpt.check(key.cipher),
        }
    }

    /// A part of the name of a circuit.
    pub(crate) fn name(&self) -> String {
        match self {
            KeySource::Direct => "direct".into(),
            KeySource::Dukpt(dukpt) => dukpt.name(),
        }
    }

    /// The name of the cipher that is used in the end.
    pub(crate) fn cipher<'a>(&self, key: &KeyFacts<'a>) -> &'a str {
        match self {
            KeySource::Direct => &key.cipher.name,
            KeySource::Dukpt(dukpt) => dukpt.working.cipher(),
        }
    }

    /// Bytes of a block of that cipher.
    pub(crate) fn block_bytes(&self, key: &KeyFacts<'_>) -> usize {
        match self {
            KeySource::Direct => key.cipher.block_bytes,
            KeySource::Dukpt(dukpt) => dukpt.working.block_bytes(),
        }
    }

    pub(crate) fn public(&self, key: &KeyFacts<'_>, usage: DukptUsage) -> Vec<u8> {
        match self {
            KeySource::Direct => Vec::new(),
            KeySource::Dukpt(dukpt) => dukpt.public(key.cipher, usage),
        }
    }

    /// The key that is used in the end.
    pub(crate) fn derive(&self, w: &mut Wiring, key: &Key, usage: DukptUsage) -> Key {
        match self {
            KeySource::Direct => key.clone(),
            KeySource::Dukpt(dukpt) => dukpt.derive(w, key, usage),
        }
    }

    /// Blocks of the derivation.
    pub(crate) fn blocks(&self, key: &KeyFacts<'_>, usage: DukptUsage) -> u64 {
        match self {
            KeySource::Direct => 0,
            KeySource::Dukpt(dukpt) => dukpt.blocks(key.cipher, usage),
        }
    }
}

//! The file `identity.pins`, and a key sealed in it.

use chacha20poly1305::aead::{Aead, Payload};
use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};

use super::{PinError, PinOwner};
use crate::passphrase_key::Cost;
use crate::{Error, Result, StoredIdentity, text};

/// The version of the file.
pub(super) const VERSION: u32 = 2;
/// The version without lanes.
pub(super) const WITHOUT_LANES: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pins {
    pub(super) version: u32,
    pub(super) memory_kib: u32,
    pub(super) passes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lanes: Option<u32>,
    pub(super) security_officer: SealedKey,
    pub(super) user: Option<SealedKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SealedKey {
    #[serde(with = "hex::serde")]
    pub(super) salt: [u8; 16],
    #[serde(with = "hex::serde")]
    pub(super) nonce: [u8; 24],
    /// Key and certificate as in `identity.key`, and the tag.
    #[serde(with = "hex::serde")]
    pub(super) sealed: Vec<u8>,
}

/// Reads the file. An error says what is wrong.
pub(crate) fn parse(text: &str) -> Result<Pins> {
    let pins: Pins = text::parse(text)?;
    match (pins.version, pins.lanes) {
        (WITHOUT_LANES, None) | (VERSION, Some(_)) => {}
        (WITHOUT_LANES | VERSION, _) => {
            return Err(Error::misuse("was changed: version 1 has no lanes, and version 2 does"));
        }
        (version, _) => {
            return Err(Error::misuse(format!(
                "has version {version}, and this program reads versions {WITHOUT_LANES} and {VERSION}; use the program that wrote it"
            )));
        }
    }
    pins.costs().cost.refuse_excessive()?;
    Ok(pins)
}

impl Pins {
    pub(super) fn costs(&self) -> Costs {
        let lanes = self.lanes.unwrap_or(1);
        let cost = Cost { memory_kib: self.memory_kib, passes: self.passes, lanes };
        Costs { version: self.version, cost }
    }
}

/// What keys cost, as a version of the file says it.
#[derive(Clone, Copy)]
pub(super) struct Costs {
    pub(super) version: u32,
    pub(super) cost: Cost,
}

impl Costs {
    /// What is authenticated with the key.
    pub(super) fn head(self, owner: PinOwner, salt: &[u8; 16]) -> Vec<u8> {
        let owner = match owner {
            PinOwner::User => 0,
            PinOwner::SecurityOfficer => 1,
        };
        let Cost { memory_kib, passes, lanes } = self.cost;
        let words = match self.version {
            WITHOUT_LANES => vec![WITHOUT_LANES, memory_kib, passes, owner],
            version => vec![version, memory_kib, passes, lanes, owner],
        };
        let words: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        [b"polyclave client pins", &words[..], salt].concat()
    }

    pub(super) fn seal(
        self,
        identity: &StoredIdentity,
        owner: PinOwner,
        pin: &[u8],
    ) -> std::result::Result<SealedKey, PinError> {
        self.cost.refuse_length(owner, pin)?;
        let (mut salt, mut nonce) = ([0; 16], [0; 24]);
        for drawn in [&mut salt[..], &mut nonce[..]] {
            random_bytes(drawn).map_err(|e| Error::misuse(e.to_string()))?;
        }
        let (pem, head) = (identity.to_pem(), self.head(owner, &salt));
        let payload = Payload { msg: pem.as_bytes(), aad: &head };
        let sealed = self.cost.cipher(pin, &salt)?.encrypt(&nonce.into(), payload);
        let sealed = sealed.map_err(|_| Error::misuse("the key could not be sealed"))?;
        Ok(SealedKey { salt, nonce, sealed })
    }
}

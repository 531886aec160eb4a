//! Keys as clients and nodes speak of them: their properties, and how one key makes, wraps or unwraps
//! another.

use polyclave_cipher::hmac::hash_of;
use polyclave_payments::Purpose;
use serde::{Deserialize, Serialize};

use super::{COMPONENT_SECONDS, Component, Mode, Usage, usage_of};

/// The most bytes of a key's attributes.
pub const MAX_ATTRIBUTES: usize = 4 << 10;

/// The longest life of a session key, in seconds.
pub const MAX_SESSION: u32 = 86_400;

/// The most session keys of one client.
pub const MAX_SESSION_KEYS: usize = 10_000;

/// The most bytes of a key's label.
pub const MAX_LABEL: usize = 128;

/// The most bytes of the public data that a key is derived from.
pub const MAX_DERIVATION_DATA: usize = 4 << 10;

/// The most derived bytes that a client gets at once.
pub const MAX_DERIVED: usize = 1 << 10;

/// How a key was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// It was generated from fresh randomness of every node, and never assembled.
    Generated,
    /// A client imported it, so it was in one place once.
    Imported,
    /// It was unwrapped on shares. The party that wrapped it, and every holder of the wrapping key, may know
    /// it.
    Unwrapped,
    /// It was derived on shares from a key of the nodes. An attacker that knows that key knows it.
    Derived,
    /// It is the sum of components that clients imported. All of them together know it.
    Combined,
    /// It is another key of the nodes under a second name and id.
    Copied,
}

/// How long a key is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifetime {
    /// Until it is deleted.
    Stored,
    /// For a number of seconds after it was made, by each node's own clock, at most [`MAX_SESSION`]. Then
    /// nothing is left of it. It is in no backup, and does not move to other nodes.
    Session {
        /// How many.
        seconds: u32,
    },
}

/// The properties of a key. They are fixed when it is made, except that `wrappable` and `usage` can be
/// withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKey {
    /// 1 to 64 letters, digits, `-`, `_` or `.`.
    pub name: String,
    /// Name of the cipher.
    pub cipher: String,
    /// In order, without repeats. None for a key that only wraps, unwraps or derives, or is for nothing.
    pub modes: Vec<Mode>,
    /// The most blocks that may ever be computed under it.
    pub budget_blocks: u64,
    /// In order, without repeats. None for a key that can only be wrapped, if that.
    pub usage: Vec<Usage>,
    /// Whether it may leave the nodes wrapped under another key.
    pub wrappable: bool,
    /// What its maker writes down beside it, for programs; at most [`MAX_ATTRIBUTES`] bytes. Nodes do not
    /// read them.
    #[serde(with = "serde_bytes")]
    pub attributes: Vec<u8>,
    /// Whether a client may choose the nonces and initial blocks under which it encrypts. For keys for gcm,
    /// ccm or cbc only.
    pub caller_nonces: bool,
    /// What people call it; at most [`MAX_LABEL`] bytes, no control characters. Nodes do not read it.
    pub label: String,
    /// Seconds since 1970 from which on it only decrypts and verifies, by each node's own clock; `None` if it
    /// does not expire.
    pub expires: Option<u64>,
    /// How long it is kept.
    pub lifetime: Lifetime,
}

impl NewKey {
    /// What it is for in payments, if it is for them.
    pub fn purpose(&self) -> Option<Purpose> {
        self.usage.iter().find_map(|usage| match usage {
            Usage::Payment(purpose) => Some(*purpose),
            _ => None,
        })
    }

    /// The number of keys of its cipher that this key consists of.
    pub fn parts(&self) -> usize {
        if self.modes.iter().any(|mode| mode.takes_two_keys()) { 2 } else { 1 }
    }

    /// Whether nodes keep the subkeys of CMAC with it. A key for HMAC has none.
    pub fn needs_subkeys(&self) -> bool {
        let computes_cmac = self.modes.iter().any(|mode| mode.needs_subkeys())
            || self.usage.iter().any(|usage| usage.needs_subkeys());
        computes_cmac && hash_of(&self.cipher).is_none()
    }

    /// Whether nodes keep the hash key of GHASH with it.
    pub fn needs_hash_key(&self) -> bool {
        self.modes.iter().any(|mode| mode.needs_hash_key())
    }

    /// A key for everything that its modes can do. It never leaves the nodes.
    pub fn for_modes(name: &str, cipher: &str, modes: &[Mode], budget_blocks: u64) -> NewKey {
        NewKey {
            name: name.into(),
            cipher: cipher.into(),
            modes: modes.to_vec(),
            budget_blocks,
            usage: usage_of(modes),
            wrappable: false,
            attributes: Vec::new(),
            caller_nonces: false,
            label: String::new(),
            expires: None,
            lifetime: Lifetime::Stored,
        }
    }
}

/// The public properties of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    /// As asked for.
    pub properties: NewKey,
    /// Drawn when the key was made. It distinguishes the key from others that had its name.
    pub id: [u8; 16],
    /// Where it comes from.
    pub origin: Origin,
    /// Seconds since 1970, by the clock of the first node.
    pub made: u64,
    /// The first bytes of the CMAC of one block of zeros.
    pub check_value: Vec<u8>,
    /// Versions of a name count from 1. Each has its own id, shares and budget.
    pub version: u32,
    /// What this version may still be used for.
    pub state: VersionState,
    /// The oldest version of this name that computes anything. All versions have the same.
    pub least_version: u32,
    /// Whether a client may delete keys of this name. All versions have the same.
    pub deletable: bool,
    /// Counts the changes of label and attributes.
    pub revision: u64,
    /// Set if this is a component of a key and not a key.
    pub component: Option<Component>,
    /// The account whose budget it spends: its own id; for a copy, the account of the original.
    pub account: [u8; 16],
}

impl KeyInfo {
    /// The first version of a key that was just made.
    pub fn first(
        properties: NewKey,
        id: [u8; 16],
        origin: Origin,
        made: u64,
        check_value: Vec<u8>,
    ) -> KeyInfo {
        KeyInfo {
            properties,
            id,
            origin,
            made,
            check_value,
            version: 1,
            state: VersionState::Active,
            least_version: 1,
            deletable: true,
            revision: 0,
            component: None,
            account: id,
        }
    }

    /// The same without what may change in a key's life. Nodes compare this, because some nodes may not know
    /// of an interrupted change. Each node judges permitted uses of a key by its own record, so a node that
    /// has withdrawn a use refuses it.
    pub fn identity(&self) -> KeyInfo {
        let properties = NewKey {
            label: String::new(),
            attributes: Vec::new(),
            usage: Vec::new(),
            wrappable: false,
            ..self.properties.clone()
        };
        let first = KeyInfo::first(properties, self.id, self.origin, self.made, self.check_value.clone());
        let (version, account) = (self.version, self.account);
        KeyInfo { version, account, component: self.component.clone(), ..first }
    }

    /// Whether it is kept for a while only.
    pub fn is_of_session(&self) -> bool {
        self.properties.lifetime != Lifetime::Stored
    }

    /// When nodes remove it by themselves, in seconds since 1970: a session key when its time is over, and a
    /// component of a key that was not combined until then.
    pub fn ends(&self) -> Option<u64> {
        match (self.properties.lifetime, &self.component) {
            (Lifetime::Session { seconds }, _) => Some(self.made.saturating_add(seconds.into())),
            (Lifetime::Stored, Some(_)) => Some(self.made.saturating_add(COMPONENT_SECONDS)),
            (Lifetime::Stored, None) => None,
        }
    }
}

/// What a version of a key may be used for (SP 800-57 part 1, section 7). It only ever moves down this list.
/// A version that was destroyed is gone, and its number is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VersionState {
    /// It protects data, and processes what it has protected.
    Active,
    /// It only processes what it has protected: it decrypts, verifies and unwraps.
    Deactivated,
    /// Somebody may know it. It processes what it has protected for clients with the right
    /// [`Configure`](super::Right::Configure) only.
    Compromised,
}

/// How a key is wrapped under another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wrapping {
    /// AES key wrap (RFC 3394): keys of 16 bytes and more, in whole halves of blocks.
    Kw,
    /// AES key wrap with padding (RFC 5649): keys of any length.
    Kwp,
}

/// How a key is derived from another: which blocks or codes the base key computes. Their first bytes are the
/// new key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Derivation {
    /// The encryption of public blocks, each by itself.
    EcbData {
        /// Whole blocks.
        #[serde(with = "serde_bytes")]
        data: Vec<u8>,
    },
    /// The encryption of public blocks in CBC.
    CbcData {
        /// One block.
        iv: Vec<u8>,
        /// Whole blocks.
        #[serde(with = "serde_bytes")]
        data: Vec<u8>,
    },
    /// SP 800-108, counter mode: the codes of `before`, a counter from 1 on, and `after`. A key of a block
    /// cipher computes them by CMAC, a key for HMAC by HMAC.
    Counter {
        /// What stands before the counter.
        #[serde(with = "serde_bytes")]
        before: Vec<u8>,
        /// The width of the counter, big-endian: 8, 16, 24 or 32.
        counter_bits: u8,
        /// What stands after the counter.
        #[serde(with = "serde_bytes")]
        after: Vec<u8>,
    },
    /// HKDF-Expand (RFC 5869, section 2.3), under a key for HMAC.
    HkdfExpand {
        /// Which of the keys or bytes that follow from the key it is to be.
        #[serde(with = "serde_bytes")]
        info: Vec<u8>,
    },
}

impl std::fmt::Display for VersionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            VersionState::Active => "active",
            VersionState::Deactivated => "deactivated",
            VersionState::Compromised => "compromised",
        })
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Origin::Generated => "generated",
            Origin::Imported => "imported",
            Origin::Unwrapped => "unwrapped",
            Origin::Derived => "derived",
            Origin::Combined => "combined",
            Origin::Copied => "copied",
        })
    }
}

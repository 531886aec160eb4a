//! What a request is about, and which keys it needs.

use serde::{Deserialize, Serialize};

use super::{
    BlockHeader, Derivation, KeyCheck, KeyInfo, NewKey, Parity, Rewrapped, SealedImport, Usage, Use,
    VersionState, Wrapping,
};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// The state of the node. Every node answers for itself.
    Status,
    /// The keys that this client may see, a page at a time. Answered by every node for itself.
    List {
        /// The page begins after this name, or with the first key if the name is empty.
        after: String,
        /// And after this version of that name.
        version: u32,
    },
    /// The versions of one key that this client may use in some way, the newest first. Answered by every node for itself.
    Show {
        /// Its name.
        key: String,
    },
    /// Make a key. All nodes must take part.
    Generate(NewKey),
    /// Import a key from the client. All nodes must take part. Steps: `Chi`, `Masked`.
    Import(NewKey),
    /// Delete a key. All nodes must take part.
    Delete {
        /// Its name.
        key: String,
        /// One version that is not the current one; `None` for all of them.
        version: Option<u32>,
    },
    /// Use a key.
    Use {
        /// Its name.
        key: String,
        /// The key's id, if the client knows it from the data that it wants decrypted.
        id: Option<[u8; 16]>,
        /// How.
        how: Use,
    },
    /// Derive a key from another. All nodes must take part.
    Derive {
        /// The key that it is derived from.
        base: KeyVersion,
        /// The key that is made.
        new: NewKey,
        /// From what.
        how: Derivation,
    },
    /// Wrap a key (`Wrapped`).
    Wrap {
        /// The key that wraps it.
        wrapping: KeyVersion,
        /// The key that is wrapped.
        key: KeyVersion,
        /// How.
        how: Wrapping,
    },
    /// Unwrap a key. All nodes must take part.
    Unwrap {
        /// The key under which it was wrapped.
        unwrapping: KeyVersion,
        /// The wrapped key.
        #[serde(with = "serde_bytes")]
        wrapped: Vec<u8>,
        /// How.
        how: Wrapping,
        /// The key that is made.
        new: NewKey,
    },
    /// Random bytes. Every node draws its own and answers for itself (`Random`); the client adds them up.
    Random {
        /// How many, at most [`MOST_RANDOM`](super::MOST_RANDOM).
        bytes: u32,
    },
    /// Bytes that are derived from a key and that the client learns (`Derived`).
    Kdf {
        /// The key.
        key: KeyVersion,
        /// From what: [`Derivation::CmacCounter`].
        how: Derivation,
        /// How many: at most [`MOST_DERIVED`](super::MOST_DERIVED).
        bytes: u32,
    },
    /// Wrap a key in a key block of TR-31 (`Wrapped`): the MAC, and the encrypted key.
    WrapBlock {
        /// The key that protects the block.
        wrapping: KeyVersion,
        /// The key that is wrapped.
        key: KeyVersion,
        /// What the block says about it.
        header: BlockHeader,
    },
    /// Unwrap a key block of TR-31. All nodes must take part.
    UnwrapBlock {
        /// The key that protects it.
        unwrapping: KeyVersion,
        /// The block.
        #[serde(with = "serde_bytes")]
        block: Vec<u8>,
        /// The key that is made.
        new: NewKey,
    },
    /// Give a component of a key. All nodes must take part. Steps: `Chi`, `Masked`.
    ImportComponent {
        /// The key, as it is to become.
        new: NewKey,
        /// Which component: from 1 on.
        number: u8,
        /// How many the key has.
        of: u8,
        /// The check value that the component must have.
        expected: Option<KeyCheck>,
    },
    /// Make a key of its components. All nodes must take part.
    Combine {
        /// The name of the key.
        key: String,
        /// The check value that the key must have.
        expected: Option<KeyCheck>,
        /// What becomes of its parity bits.
        parity: Parity,
    },
    /// Generate the next version of a key, which becomes the current one. All nodes must take part.
    Rotate {
        /// Its name.
        key: String,
    },
    /// Move a version on to a later state. All nodes must take part.
    Retire {
        /// The key's name.
        key: String,
        /// The version.
        version: u32,
        /// Its state from now on.
        state: VersionState,
    },
    /// Set which versions of a key compute, and whether it may be deleted, and withdraw what it was for. All nodes must take part.
    Configure {
        /// Its name.
        key: String,
        /// Older versions compute nothing. At most the current version.
        least_version: u32,
        /// Whether clients may delete it.
        deletable: bool,
        /// Whether it may not be wrapped any more, for ever.
        withdraw_wrappable: bool,
        /// What it may not be used for any more, for ever: in order, without repeats.
        withdraw_usage: Vec<Usage>,
    },
    /// Encrypt under the current version of a key what was encrypted under another key or version, without showing it (`Rewrapped`, and then
    /// `Tag` except for a wrapped key).
    Rewrap {
        /// The key under which it is encrypted anew.
        key: String,
        /// The name of the key under which it was encrypted.
        old: String,
        /// The id of its version; `None` for the current one.
        id: Option<[u8; 16]>,
        /// What was encrypted.
        what: Rewrapped,
    },
    /// Put a version of a key under a second name and id, for the same or less. All nodes must take part.
    Copy {
        /// Its name.
        key: String,
        /// The id of the version.
        id: [u8; 16],
        /// The key that is made. What it is for, and how long, is at most what the other one is for.
        new: NewKey,
    },
    /// Replace what is written down beside a version. All nodes must take part.
    Describe {
        /// The key's name.
        key: String,
        /// The id of the version.
        id: [u8; 16],
        /// The latest revision at any node. Refused if it is another one.
        revision: u64,
        /// The label.
        label: String,
        /// The attributes.
        #[serde(with = "serde_bytes")]
        attributes: Vec<u8>,
    },
    /// Import a key that was sealed to the nodes. All nodes must take part.
    ImportSealed(Box<SealedImport>),
    /// What concerns the operator of a node. Every node answers for itself.
    Report,
}

impl Operation {
    /// Whether it uses keys and changes none, so that it does not need all nodes.
    pub fn only_uses(&self) -> bool {
        use Operation::{Kdf, Rewrap, Use, Wrap, WrapBlock};
        matches!(self, Use { .. } | Wrap { .. } | WrapBlock { .. } | Kdf { .. } | Rewrap { .. })
    }
}

/// A key of the nodes, and which version of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyVersion {
    /// The key's name.
    pub name: String,
    /// The version's id; `None` for the current one.
    pub id: Option<[u8; 16]>,
}

impl KeyVersion {
    fn about(&self) -> (&str, About) {
        (&self.name, self.id.map_or(About::Current, About::Id))
    }
}

/// The current version.
impl From<&str> for KeyVersion {
    fn from(name: &str) -> KeyVersion {
        KeyVersion { name: name.into(), id: None }
    }
}

/// The current version.
impl From<&String> for KeyVersion {
    fn from(name: &String) -> KeyVersion {
        name.as_str().into()
    }
}

/// This version.
impl From<&KeyInfo> for KeyVersion {
    fn from(info: &KeyInfo) -> KeyVersion {
        KeyVersion { name: info.properties.name.clone(), id: Some(info.id) }
    }
}

/// Which version of a key an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The current one, or all of them.
    Current,
    /// The one with this number.
    Version(u32),
    /// The one with this id.
    Id([u8; 16]),
}

impl Operation {
    /// The keys that it uses, changes or deletes, which must exist: their names, and which version of each.
    pub fn existing_keys(&self) -> Vec<(&str, About)> {
        match self {
            Operation::Status
            | Operation::Report
            | Operation::List { .. }
            | Operation::Show { .. }
            | Operation::Random { .. }
            | Operation::Generate(_)
            | Operation::Import(_)
            | Operation::ImportComponent { .. }
            | Operation::ImportSealed(_)
            | Operation::Combine { .. } => Vec::new(),
            Operation::Delete { key, version: Some(version) } | Operation::Retire { key, version, .. } => {
                vec![(key, About::Version(*version))]
            }
            Operation::Use { key, id: Some(id), .. }
            | Operation::Describe { key, id, .. }
            | Operation::Copy { key, id, .. } => {
                vec![(key, About::Id(*id))]
            }
            Operation::Delete { key, version: None }
            | Operation::Rotate { key }
            | Operation::Configure { key, .. }
            | Operation::Use { key, id: None, .. } => vec![(key, About::Current)],
            Operation::Derive { base: key, .. }
            | Operation::Kdf { key, .. }
            | Operation::Unwrap { unwrapping: key, .. }
            | Operation::UnwrapBlock { unwrapping: key, .. } => vec![key.about()],
            Operation::Rewrap { key, old, id, .. } => {
                vec![(key, About::Current), (old, id.map_or(About::Current, About::Id))]
            }
            Operation::Wrap { wrapping, key, .. } | Operation::WrapBlock { wrapping, key, .. } => {
                vec![wrapping.about(), key.about()]
            }
        }
    }
}

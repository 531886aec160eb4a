//! What a client can ask for. At the wire an operation is an enum, so that nothing is forgotten. Everything
//! else about an operation stands with its type, in the file of its family: what it is called, which keys it
//! needs, what the rules have to allow, and what the audit log says ([`Describe`]).
//!
//! An operation needs a right of its own, for each of its keys. Some operations amount to others. Then the
//! rules for the others bind them as well ([`Demand::Bound`](crate::Demand::Bound)): rules that deny the
//! others, the times and limits of rules that allow them, and approvals. The other right itself is not
//! needed: a client with the right `rewrap` and without `decrypt` may rewrap.
//!
//! | operation | amounts to |
//! |---|---|
//! | rewrap a message | decrypt under the old key, encrypt under the new one |
//! | rewrap a wrapped key | unwrap under the old key, wrap under the new one |
//! | encrypt in gcm or ccm, nonce of the client | decrypt: an old nonce gives an old keystream |
//! | derive | generate the new key |
//! | unwrap | import the new key: the one who wrapped it may know it |
//! | copy | each use of the copy, with the key, at all times: the copy has rules of its own |
//!
//! Two operations are not in the table. To wrap: nodes have no say about a key that has left. To decrypt in
//! ctr or with `envelope`: this lets a client make ciphertexts, too, but neither mode promises that this
//! takes the right to encrypt.

mod check;
mod derive;
mod encrypt;
mod hmac;
mod import;
mod key_life;
mod key_make;
mod key_use;
mod observe;
mod pay;
#[cfg(test)]
mod tests;
mod tokenize;
mod wrap;

use serde::{Deserialize, Serialize};

pub use check::Check;
pub use derive::{Derive, Kdf};
pub use encrypt::UseKey;
pub use hmac::Hmac;
pub use import::{Combine, Import, ImportComponent};
pub use key_life::{Configure, Delete, DescribeKey, Retire};
pub use key_make::{CopyKey, Generate, Rotate};
pub use key_use::{Envelope, Message, Rewrapped, Use};
pub use observe::{List, Random, Report, Show, Status};
pub use pay::{MAX_PAYMENTS, Pay};
pub use tokenize::Tokenize;
pub use wrap::{Rewrap, Unwrap, UnwrapBlock, Wrap, WrapBlock};

use super::{KeyInfo, Permission, SealedImport};

/// What to do. The order of the operations is their number at the wire.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// The state of the node. Every node answers for itself.
    Status,
    /// The keys that this client may see, a page at a time. Answered by every node for itself.
    List(List),
    /// The versions of one key that this client may use in some way, the newest first. Answered by every node
    /// for itself.
    Show(Show),
    /// Make a key. All nodes must take part.
    Generate(Generate),
    /// Import a key from the client. All nodes must take part. Steps: `Chi`, `Masked`.
    Import(Import),
    /// Delete a key. All nodes must take part.
    Delete(Delete),
    /// Use a key.
    Use(UseKey),
    /// Derive a key from another. All nodes must take part.
    Derive(Derive),
    /// Wrap a key (`Wrapped`).
    Wrap(Wrap),
    /// Unwrap a key. All nodes must take part.
    Unwrap(Unwrap),
    /// Random bytes. Every node draws its own and answers for itself (`Random`); the client adds them up.
    Random(Random),
    /// Bytes that are derived from a key and that the client learns (`Derived`).
    Kdf(Kdf),
    /// Wrap a key in a key block of TR-31 (`Wrapped`): the MAC, and the encrypted key.
    WrapBlock(WrapBlock),
    /// Unwrap a key block of TR-31. All nodes must take part.
    UnwrapBlock(UnwrapBlock),
    /// Give a component of a key. All nodes must take part. Steps: `Chi`, `Masked`.
    ImportComponent(ImportComponent),
    /// Make a key of its components. All nodes must take part.
    Combine(Combine),
    /// Generate the next version of a key, which becomes the current one. All nodes must take part.
    Rotate(Rotate),
    /// Move a version on to a later state. All nodes must take part.
    Retire(Retire),
    /// Set which versions of a key compute, and whether it may be deleted, and withdraw what it was for. All
    /// nodes must take part.
    Configure(Configure),
    /// Encrypt under the current version of a key what was encrypted under another key or version, without
    /// showing it (`Rewrapped`, and then `Tag` except for a wrapped key).
    Rewrap(Rewrap),
    /// Put a version of a key under a second name and id, for the same or less. All nodes must take part.
    Copy(CopyKey),
    /// Replace what is written down beside a version. All nodes must take part.
    Describe(DescribeKey),
    /// Import a key that was sealed to the nodes. All nodes must take part.
    ImportSealed(Box<SealedImport>),
    /// What concerns the operator of a node. Every node answers for itself.
    Report,
    /// Compute the check value of a key, which comes with the first answer.
    Check(Check),
    /// Compute payment commands (`Answers`). Which of them hold comes with the first answer.
    Pay(Pay),
}

/// What nodes, clients and people have to know of an operation before it is done.
pub trait Describe: std::fmt::Debug {
    /// The kind of operation, for logs and metrics.
    fn kind(&self) -> &'static str;

    /// The keys that it uses, changes or deletes, which must exist.
    fn keys(&self) -> Vec<KeyRef<'_>> {
        Vec::new()
    }

    /// Everything that the rules have to allow for it. The first is its own right, for its main key. The list
    /// is empty for an operation that looks at the rules itself, or that shows only what the rules allow.
    fn permissions(&self) -> Vec<Permission>;

    /// What the audit log says.
    fn audit(&self) -> Detail<'_>;

    /// Whether it uses keys and changes none, so that it does not need all nodes.
    fn only_uses(&self) -> bool {
        false
    }

    /// What will be done, for a person who approves it. Names are shown with quotes and escapes: a foreign
    /// file can have any bytes in them.
    fn in_words(&self) -> String {
        "the operation that is shown in full below".into()
    }
}

/// What the audit log says of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail<'o> {
    /// The key that it is about: the one that is made, if one is. Empty if it is about none.
    pub key: &'o str,
    /// What is not said by the kind and the key: another key, which component or version, what is changed.
    pub text: String,
}

impl<'o> Detail<'o> {
    /// Of an operation of which the key says everything.
    pub fn of(key: &'o str) -> Detail<'o> {
        Detail { key, text: String::new() }
    }
}

impl Operation {
    /// The description of this operation.
    pub fn describe(&self) -> &dyn Describe {
        match self {
            Operation::Status => &Status,
            Operation::List(operation) => operation,
            Operation::Show(operation) => operation,
            Operation::Generate(operation) => operation,
            Operation::Import(operation) => operation,
            Operation::Delete(operation) => operation,
            Operation::Use(operation) => operation,
            Operation::Derive(operation) => operation,
            Operation::Wrap(operation) => operation,
            Operation::Unwrap(operation) => operation,
            Operation::Random(operation) => operation,
            Operation::Kdf(operation) => operation,
            Operation::WrapBlock(operation) => operation,
            Operation::UnwrapBlock(operation) => operation,
            Operation::ImportComponent(operation) => operation,
            Operation::Combine(operation) => operation,
            Operation::Rotate(operation) => operation,
            Operation::Retire(operation) => operation,
            Operation::Configure(operation) => operation,
            Operation::Rewrap(operation) => operation,
            Operation::Copy(operation) => operation,
            Operation::Describe(operation) => operation,
            Operation::ImportSealed(sealed) => sealed.as_ref(),
            Operation::Report => &Report,
            Operation::Check(operation) => operation,
            Operation::Pay(operation) => operation,
        }
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.describe().fmt(f)
    }
}

/// A key that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRef<'o> {
    /// Its name.
    pub name: &'o str,
    /// Which version of it.
    pub about: About,
}

impl<'o> KeyRef<'o> {
    /// The current version, or all of them.
    pub fn current(name: &'o str) -> KeyRef<'o> {
        KeyRef { name, about: About::Current }
    }

    /// The version with an id, if one is named.
    pub fn with_id(name: &'o str, id: Option<[u8; 16]>) -> KeyRef<'o> {
        KeyRef { name, about: id.map_or(About::Current, About::Id) }
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
    fn about(&self) -> KeyRef<'_> {
        KeyRef::with_id(&self.name, self.id)
    }

    /// As fields of a line of the audit log.
    fn audit(&self, name: &str, id: &str) -> String {
        let of_version = self.id.map_or(String::new(), |of| format!(" {id}={}", hex::encode(of)));
        format!("{name}={}{of_version}", self.name)
    }

    /// For people, with the id of its version if that is named.
    fn in_words(&self) -> String {
        let id = self.id.map(|id| format!(" (the version with the id {})", hex::encode(id)));
        format!("{:?}{}", self.name, id.unwrap_or_default())
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

//! The messages between clients and nodes, and how they are encoded.
//!
//! A message is four bytes of length, little-endian, and a postcard encoding. No more than [`MOST_MESSAGE`] bytes are ever allocated
//! because a peer announced them. A client sends one [`Request`] to every node that is to serve it, and then [`Step`]s; every node
//! gets the same. Every node answers each of them with one [`Reply`], and says meanwhile that it is working. The nodes compare digests
//! of the request and of each step with each other before they use them.

mod approval;
mod codec;
mod components;
pub mod key_block;
mod keys;
mod pairs;
mod sealed_import;

use polyclave_protocol::{Party, PartySet};
use serde::{Deserialize, Serialize};

pub use approval::{Approval, ApprovalSignature, MOST_PURPOSE, NamedKey, Statement, Subject};
pub use codec::{decode, encode, receive_bytes, send, version_of};
pub use components::{
    COMPONENT_SECONDS, CheckKind, Component, KeyCheck, MOST_COMPONENTS, Parity, component_name,
    key_of_component, why_no_zeros,
};
pub use key_block::BlockHeader;
pub use keys::{
    Derivation, KeyInfo, Lifetime, MOST_ATTRIBUTES, MOST_DERIVATION_DATA, MOST_DERIVED, MOST_LABEL,
    MOST_SESSION, MOST_SESSION_KEYS, Mode, NewKey, Origin, Usage, VersionState, Wrapping, usage_of,
};
pub use pairs::{warnings, why_apart, why_usages_apart};
pub use sealed_import::{SealedImport, SealedPart};

/// The version of the protocol between clients and nodes. It grows with every change of the types below. [`Reply::Refused`] keeps its
/// bytes, so that a client of another version can read why it is refused.
pub const VERSION: u16 = 8;

/// Bytes of plaintext in a full chunk of a sealed file, and the most that one step asks for.
pub const CHUNK: usize = 256 << 10;

/// The most bytes of a step under a mask. Its answer carries the next mask, too.
pub const MASKED: usize = CHUNK / 2;

/// The largest message. Data that a client verifies by itself is twice as long as what it learns and 52 bytes more, for a chunk or
/// for masked bytes and the next mask.
pub const MOST_MESSAGE: usize = 2 * CHUNK + (64 << 10);

/// The most keys on one page of a list.
pub const KEYS: usize = 1000;

/// The most additional data of one message.
pub const MOST_ADDITIONAL_DATA: usize = 32 << 10;

/// The most bytes of what a client says about a file in an envelope.
pub const MOST_HEADER: usize = 4 << 10;

/// Bytes of the key of a file in an envelope.
pub const FILE_KEY: usize = 32;

/// The most random bytes of one request.
pub const MOST_RANDOM: usize = 64 << 10;

/// The most bytes of a step whose blocks are computed one after the other: each takes as long as a whole chunk of a parallel mode, and
/// peers wait.
pub const CHAINED: usize = 2048;

/// The most bytes of a message of CCM or SIV, and of one of GCM whose nonce has not 12 bytes.
pub const MOST_CHAINED: usize = 64 << 10;

/// The most bytes of a nonce.
pub const MOST_NONCE: usize = 1 << 10;

/// The most bytes of a message that is rewrapped.
pub const MOST_REWRAPPED: usize = 1 << 10;

/// The most strings of additional data of one message of SIV.
pub const MOST_STRINGS: usize = 16;

/// What a client may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Make keys.
    Generate,
    /// Import keys.
    Import,
    /// See names and properties of keys.
    List,
    /// Delete keys.
    Delete,
    /// Encrypt.
    Encrypt,
    /// Decrypt.
    Decrypt,
    /// Compute message authentication codes.
    Mac,
    /// Have keys that may be wrapped leave the nodes, wrapped under another key.
    Wrap,
    /// Have wrapped keys unwrapped into keys of the nodes.
    Unwrap,
    /// Derive keys of the nodes from others.
    Derive,
    /// Have random bytes, to which every node contributes.
    Random,
    /// Be given bytes that are derived from a key.
    Kdf,
    /// Change what keys may still be used for, whether they may be deleted, and their labels; and process data under a version of which
    /// somebody may know the key.
    Configure,
    /// Have what was encrypted under one key encrypted under another, without seeing it.
    Rewrap,
}

impl Right {
    /// Whether it is a right to something with a key, or with keys of some names.
    pub fn is_about_keys(self) -> bool {
        self != Right::Random
    }

    /// What a key must be for, so that a client with this right can use it; `None` if the right is not about using keys.
    pub fn usage(self) -> Option<Usage> {
        match self {
            Right::Encrypt => Some(Usage::Encrypt),
            Right::Decrypt => Some(Usage::Decrypt),
            Right::Mac => Some(Usage::Mac),
            Right::Wrap => Some(Usage::Wrap),
            Right::Unwrap => Some(Usage::Unwrap),
            Right::Derive => Some(Usage::Derive),
            Right::Kdf => Some(Usage::Kdf),
            Right::Generate
            | Right::Import
            | Right::List
            | Right::Delete
            | Right::Random
            | Right::Configure
            | Right::Rewrap => None,
        }
    }
}

/// The first message of a client. It sends the same to every node that is to serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub version: u16,
    /// An id that the client draws, so that nodes know which requests belong together.
    pub id: [u8; 16],
    /// The nodes that are to serve.
    pub serving: PartySet,
    /// What to do.
    pub operation: Operation,
    /// The first step, if there is one already. This saves a round trip.
    pub first: Option<Step>,
    /// The approval of several people, if the client has one.
    pub approval: Option<Approval>,
}

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
        /// The name of the key that it is derived from.
        base: String,
        /// The key that is made.
        new: NewKey,
        /// From what.
        how: Derivation,
    },
    /// Wrap a key (`Wrapped`).
    Wrap {
        /// The name of the key that wraps it.
        wrapping: String,
        /// The name of the key that is wrapped.
        key: String,
        /// How.
        how: Wrapping,
    },
    /// Unwrap a key. All nodes must take part.
    Unwrap {
        /// The name of the key under which it was wrapped.
        unwrapping: String,
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
        /// How many, at most [`MOST_RANDOM`].
        bytes: u32,
    },
    /// Bytes that are derived from a key and that the client learns (`Derived`).
    Kdf {
        /// The name of the key.
        key: String,
        /// From what: [`Derivation::CmacCounter`].
        how: Derivation,
        /// How many: at most [`MOST_DERIVED`].
        bytes: u32,
    },
    /// Wrap a key in a key block of TR-31 (`Wrapped`): the MAC, and the encrypted key.
    WrapBlock {
        /// The name of the key that protects the block.
        wrapping: String,
        /// The name of the key that is wrapped.
        key: String,
        /// What the block says about it.
        header: BlockHeader,
    },
    /// Unwrap a key block of TR-31. All nodes must take part.
    UnwrapBlock {
        /// The name of the key that protects it.
        unwrapping: String,
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
}

impl Operation {
    /// Whether it uses keys and changes none, so that it does not need all nodes.
    pub fn only_uses(&self) -> bool {
        use Operation::{Kdf, Rewrap, Use, Wrap, WrapBlock};
        matches!(self, Use { .. } | Wrap { .. } | WrapBlock { .. } | Kdf { .. } | Rewrap { .. })
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
            | Operation::Use { key, id: None, .. }
            | Operation::Kdf { key, .. } => vec![(key, About::Current)],
            Operation::Derive { base, .. } => vec![(base, About::Current)],
            Operation::Rewrap { key, old, id, .. } => {
                vec![(key, About::Current), (old, id.map_or(About::Current, About::Id))]
            }
            Operation::Wrap { wrapping, key, .. } | Operation::WrapBlock { wrapping, key, .. } => {
                vec![(wrapping, About::Current), (key, About::Current)]
            }
            Operation::Unwrap { unwrapping, .. } | Operation::UnwrapBlock { unwrapping, .. } => {
                vec![(unwrapping, About::Current)]
            }
        }
    }
}

/// What is rewrapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rewrapped {
    /// A message of GCM. The new one has a nonce of the nodes and the same additional data.
    Gcm {
        /// 12 bytes.
        nonce: Vec<u8>,
        /// Authenticated with it.
        additional: Vec<u8>,
        /// At most [`MOST_REWRAPPED`] bytes.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
        /// 12 to 16 bytes.
        tag: Vec<u8>,
    },
    /// A sealed file of one chunk.
    Sealed {
        /// From the file's head.
        file: [u8; 32],
        /// Digest of the additional data, if it is bound to some.
        additional: Option<[u8; 32]>,
        /// At most [`MOST_REWRAPPED`] bytes.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
        /// The tag of the chunk.
        tag: [u8; 16],
    },
    /// A wrapped key of 16, 24 or 32 bytes.
    Key {
        /// The wrapped key.
        #[serde(with = "serde_bytes")]
        wrapped: Vec<u8>,
        /// How it was wrapped, and is again.
        how: Wrapping,
    },
}

/// How a key is used. The steps that follow are in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Use {
    /// Chunks of a sealed file (`Keystream`, then `Seal`, for each chunk).
    Seal,
    /// Chunks of a sealed file (`Open`).
    Open {
        /// From the file's head.
        file: [u8; 32],
    },
    /// One GCM message (`Keystream` and `Absorb` for each piece, then `Tag`).
    GcmEncrypt {
        /// Authenticated with it.
        additional: Vec<u8>,
        /// The client's nonce, 1 to [`MOST_NONCE`] bytes, for a key that takes one; `None` for a nonce of the nodes.
        nonce: Option<Vec<u8>>,
    },
    /// One GCM message (`Absorb` for each piece, then `Check`, then `Keystream` for each piece).
    GcmDecrypt {
        /// 1 to [`MOST_NONCE`] bytes. A message whose nonce has not 12 bytes has at most [`MOST_CHAINED`] bytes.
        nonce: Vec<u8>,
        /// Authenticated with it.
        additional: Vec<u8>,
    },
    /// Counter mode (`Keystream`).
    CtrEncrypt,
    /// Counter mode (`Keystream`).
    CtrDecrypt {
        /// The first counter block; for a cipher that takes a tweak the first tweak and the block that is encrypted under each.
        counter: Vec<u8>,
    },
    /// Cipher block chaining (`Masked`). The initial block comes with the first answer, and the last block of a step with the
    /// answer to the next one: the nodes reveal what is chained to a block only once that block is fixed.
    CbcEncrypt {
        /// Bytes of the first step's mask.
        mask: u32,
        /// The client's initial block, for a key that takes one; `None` for one of the nodes.
        initial: Option<Vec<u8>>,
    },
    /// Cipher block chaining (`Blocks`); the client adds the chain.
    CbcDecrypt,
    /// Single blocks (`Masked`).
    EcbEncrypt {
        /// Bytes of the first step's mask.
        mask: u32,
        /// The tweak of the first block, big-endian; every block after it has the next number. Empty if the cipher takes none.
        tweak: Vec<u8>,
    },
    /// Single blocks (`Blocks`).
    EcbDecrypt {
        /// As for encryption.
        tweak: Vec<u8>,
    },
    /// A message authentication code (`Masked`).
    Cmac {
        /// Bytes of the first step's mask.
        mask: u32,
    },
    /// The key of a file that is to be written (`FileKey`). The nodes draw the file's id, so this never gives the key of a file that is
    /// there already.
    EnvelopeWrite(Envelope),
    /// The key of a file that was written (`FileKey`).
    EnvelopeOpen {
        /// From the file's head.
        envelope: Envelope,
        /// The file's id, from there, too.
        file: [u8; 32],
    },
    /// Chunks of a sealed file with additional data (`Keystream`, then `Seal`, for each chunk).
    SealBound {
        /// Digest of the additional data.
        additional: [u8; 32],
    },
    /// Chunks of a sealed file with additional data (`Open`).
    OpenBound {
        /// From the file's head.
        file: [u8; 32],
        /// Digest of the additional data.
        additional: [u8; 32],
    },
    /// One message with CCM (`Masked` for each piece, whose answer is its keystream, then `Tag`).
    CcmEncrypt {
        /// The client's nonce, 7 to 13 bytes, for a key that takes one; `None` for a nonce of the nodes.
        nonce: Option<Vec<u8>>,
        /// Authenticated with it.
        additional: Vec<u8>,
        /// Bytes of the message, at most [`MOST_CHAINED`].
        bytes: u32,
        /// Bytes of the tag: 8, 10, 12, 14 or 16.
        tag: u8,
        /// Bytes of the first step's mask; 0 for an empty message.
        mask: u32,
    },
    /// One message with CCM (`Absorb` for each piece, then `Check`, then `Keystream` for each piece).
    CcmDecrypt {
        /// 7 to 13 bytes.
        nonce: Vec<u8>,
        /// Authenticated with it.
        additional: Vec<u8>,
        /// Bytes of the message, at most [`MOST_CHAINED`].
        bytes: u32,
        /// Bytes of the tag.
        tag: u8,
    },
    /// One message with SIV (`Masked` for each piece; the answer to the last is the tag; then `Keystream` for each piece).
    SivEncrypt {
        /// Strings that are authenticated with it, in their order.
        additional: Vec<Vec<u8>>,
        /// Bytes of the message, at most [`MOST_CHAINED`].
        bytes: u32,
        /// Bytes of the first step's mask.
        mask: u32,
    },
    /// One message with SIV (`Absorb` for each piece, then `Check`, then `Keystream` for each piece).
    SivDecrypt {
        /// As for encryption.
        additional: Vec<Vec<u8>>,
        /// Bytes of the message, at most [`MOST_CHAINED`].
        bytes: u32,
        /// The synthetic initial vector: counters come from it before it is compared.
        tag: [u8; 16],
    },
}

/// What the key of a file in an envelope depends on, besides the file's id. None of it is secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The client that writes the file, by its name in the rules of the nodes.
    pub owner: String,
    /// What it says about the file; at most [`MOST_HEADER`] bytes.
    #[serde(with = "serde_bytes")]
    pub header: Vec<u8>,
    /// The client's commitment to header and file.
    pub commitment: [u8; 32],
}

/// What a client sends after its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Asks for the next bytes of keystream, at most [`CHUNK`]. All parts of a message except the last are whole blocks.
    Keystream {
        /// How many.
        bytes: u32,
    },
    /// The ciphertext of the oldest chunk whose keystream was given, for its tag.
    Seal {
        /// As long as that keystream.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
        /// Whether the file ends here.
        last: bool,
    },
    /// The next chunk: its keystream, if the tag fits.
    Open {
        /// The ciphertext of the chunk.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
        /// The tag of the chunk.
        tag: [u8; 16],
        /// Whether the file ends here.
        last: bool,
    },
    /// The next piece of a message's ciphertext. All but the last are whole blocks.
    Absorb {
        /// At most [`CHUNK`] bytes; where blocks are chained at most [`CHAINED`].
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
    },
    /// The tag of the message.
    Tag,
    /// Compare the tag of the message.
    Check {
        /// As the client has it: its first bytes, if it was cut. For GCM 12 to 16.
        #[serde(with = "serde_bytes")]
        tag: Vec<u8>,
    },
    /// A client's secret under the mask it was given.
    Masked {
        /// Whole blocks, as long as the mask.
        #[serde(with = "serde_bytes")]
        data: Vec<u8>,
        /// Bytes of the next mask; 0 if there will be no more.
        next: u32,
        /// For CMAC: how the message ends.
        end: End,
    },
    /// Blocks to decrypt.
    Blocks {
        /// Whole blocks, at most [`CHUNK`] bytes.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
    },
    /// The client's coefficient for the check of its mask.
    Chi {
        /// Drawn at random.
        chi: [u8; 16],
    },
    /// The client has what it wanted.
    Finish,
    /// Asks for the wrapped key.
    Wrapped,
    /// Asks for the key of a file ([`FILE_KEY`] bytes).
    FileKey,
    /// Asks for the derived bytes.
    Derived,
    /// Asks for what was rewrapped: a wrapped key; of a message what has to be added to its ciphertext.
    Rewrapped,
}

/// How a message for CMAC goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// More is to come.
    No,
    /// Here, with a whole block.
    Whole,
    /// Here, with a block that the client has filled up.
    Filled,
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To `Status`.
    Status(NodeStatus),
    /// To `List` and `Show`.
    Keys {
        /// In the order of their names and versions (of `Show`: the newest version first), at most [`KEYS`], and fewer if their attributes
        /// are long.
        keys: Vec<KeyInfo>,
        /// Whether others come after them.
        more: bool,
    },
    /// The nodes have agreed to serve.
    Accepted {
        /// The key in use.
        key: Option<KeyInfo>,
        /// The start value of the session: a file id (32 bytes), nonce (12), or what counter mode begins with, as the use has it; empty
        /// if none.
        #[serde(with = "serde_bytes")]
        start: Vec<u8>,
        /// What this node sends of the first mask; empty where there is none.
        #[serde(with = "serde_bytes")]
        mask: Vec<u8>,
        /// What it sends of the blinding element of the mask's check; empty where there is none.
        #[serde(with = "serde_bytes")]
        blind: Vec<u8>,
    },
    /// To a step: this node's part of the values that the client learns, of the next mask, and of the initial block.
    Data {
        /// Bytes or elements.
        #[serde(with = "serde_bytes")]
        data: Vec<u8>,
        /// Empty where none was asked for.
        #[serde(with = "serde_bytes")]
        mask: Vec<u8>,
        /// With the first answer of CBC: what this node sends of the initial block. Else empty.
        #[serde(with = "serde_bytes")]
        initial: Vec<u8>,
    },
    /// Sent now and then before the reply to a request or step, while it is being computed.
    Working {
        /// Blocks that have been computed of it.
        done: u64,
        /// Blocks in all.
        of: u64,
    },
    /// Done, with the key that was made or deleted, if it was about one.
    Done(Option<KeyInfo>),
    /// Refused or failed. The conversation about this request is over.
    Refused(Refusal),
    /// To `Random`: fresh bytes of this node's operating system.
    Random(#[serde(with = "serde_bytes")] Vec<u8>),
}

/// The state of a node, as the node reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Version of the program.
    pub version: String,
    /// The cluster it belongs to.
    pub cluster: [u8; 16],
    /// The peers it is connected with.
    pub connected: PartySet,
    /// Whether the nodes have agreed on their common secrets.
    pub set_up: bool,
    /// Number of keys.
    pub keys: u64,
    /// Whether the material that the nodes make anew after each start of one of them is there, or not needed.
    pub prepared: bool,
    /// The material that the nodes keep in stock, by kind; none if the protocol needs none.
    pub stock: Vec<StockLevel>,
    /// Whether this node is in quarantine: it serves nothing because a check failed.
    pub quarantined: bool,
    /// The nodes whose operators have ordered fresh common secrets, as far as this one knows.
    pub rotating: PartySet,
    /// Nodes whose shares were wrong in some request since this node started, and were outvoted. This is what this node alone saw.
    pub outvoted: PartySet,
    /// Nodes that fell silent in the middle of some request since this node started.
    pub silent: PartySet,
    /// Keys of which this node cannot read a record. Other nodes have to serve them.
    pub damaged: u64,
    /// How many keys it lacks that other nodes have.
    pub lacking: u64,
}

/// How much there is of one kind of material.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockLevel {
    /// What it is.
    pub kind: String,
    /// The ciphers that it is for, as in the setting that says how much is kept; its own name, if all ciphers take of it.
    pub ciphers: String,
    /// For how many whole blocks it is enough.
    pub blocks: u64,
    /// How many are kept at most.
    pub level: u64,
}

/// Why a node refused a request or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Refusal {
    /// For programs.
    pub reason: Reason,
    /// For people: what is wrong and what to do.
    pub message: String,
    /// The node that this node takes for the cause, if any. This node may be wrong, and it may lie.
    pub blames: Option<Party>,
}

/// Kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// The message is malformed, or does not fit here.
    Malformed,
    /// The node's policy does not allow it to this client.
    Denied,
    /// There is no such key, or it is there already, or it is not made for this.
    Key,
    /// The key's budget is spent.
    Spent,
    /// Too much at once: try again later.
    Busy,
    /// The ciphertext, tag, nonce, key or additional data do not belong together.
    Unauthentic,
    /// The nodes were told different things, or hold different things.
    Disagreement,
    /// Other nodes are needed and did not answer.
    Unavailable,
    /// The node itself failed.
    Internal,
    /// The nodes have not made enough material yet.
    OutOfMaterial,
    /// A check failed: nothing is served before the operators have made fresh keys.
    Quarantined,
}

impl Refusal {
    /// With a message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        Refusal { reason, message: message.into(), blames: None }
    }

    /// The same, because of a node.
    pub fn because_of(self, node: Party) -> Refusal {
        Refusal { blames: Some(node), ..self }
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Right::Generate => "generate",
            Right::Import => "import",
            Right::List => "list",
            Right::Delete => "delete",
            Right::Encrypt => "encrypt",
            Right::Decrypt => "decrypt",
            Right::Mac => "mac",
            Right::Wrap => "wrap",
            Right::Unwrap => "unwrap",
            Right::Derive => "derive",
            Right::Random => "random",
            Right::Kdf => "kdf",
            Right::Configure => "configure",
            Right::Rewrap => "rewrap",
        })
    }
}

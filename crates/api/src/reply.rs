//! What nodes answer.

use polyclave_protocol::PartySet;
use serde::{Deserialize, Serialize};

use super::{KeyInfo, Refusal, Report};

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To `Status`.
    Status(NodeStatus),
    /// To `List` and `Show`.
    Keys {
        /// In the order of their names and versions (of `Show`: the newest version first), at most
        /// [`KEYS`](super::KEYS), and fewer if their attributes are long.
        keys: Vec<KeyInfo>,
        /// Whether others come after them.
        more: bool,
    },
    /// The nodes have agreed to serve.
    Accepted {
        /// The key in use.
        key: Option<KeyInfo>,
        /// The start value of the session: a file id (32 bytes), nonce (12), or what counter mode begins
        /// with, as the use has it; empty if none.
        #[serde(with = "serde_bytes")]
        start: Vec<u8>,
        /// This node's part of the first mask; empty where there is none.
        #[serde(with = "serde_bytes")]
        mask: Vec<u8>,
        /// Its part of the blinding element of the mask's check; empty where there is none.
        #[serde(with = "serde_bytes")]
        blind: Vec<u8>,
    },
    /// To a step: this node's part of the values that the client learns, of the next mask, and of the initial
    /// block.
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
        /// The ciphertext of a [`Message`](super::Step::Message), which the nodes have opened among
        /// themselves: the same from each. Else empty.
        #[serde(with = "serde_bytes")]
        opened: Vec<u8>,
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
    /// To `Report`.
    Report(Box<Report>),
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
    /// Nodes whose shares were wrong in some request since this node started, and were outvoted. This is what
    /// this node alone saw.
    pub outvoted: PartySet,
    /// Nodes that fell silent in the middle of some request since this node started.
    pub silent: PartySet,
    /// Keys with a record that this node cannot read. Other nodes have to serve them.
    pub damaged: u64,
    /// How many keys it lacks that other nodes have.
    pub lacking: u64,
}

/// How much there is of one kind of material.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockLevel {
    /// What it is.
    pub kind: String,
    /// The ciphers that it is for, as in the setting that says how much is kept; its own name, if all ciphers
    /// take of it.
    pub ciphers: String,
    /// For how many whole blocks it is enough.
    pub blocks: u64,
    /// How many are kept at most.
    pub level: u64,
}

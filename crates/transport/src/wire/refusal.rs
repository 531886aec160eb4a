//! Why nodes refuse.

use polyclave_protocol::Party;
use serde::{Deserialize, Serialize};

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

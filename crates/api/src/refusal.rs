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
    /// The key cannot be made or changed like that, or is there already.
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
    /// There is no such key, or no such version of it.
    NoSuchKey,
    /// The key, or this version of it, is not for this use.
    NotForThis,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 13] = [
        Reason::Malformed,
        Reason::Denied,
        Reason::Key,
        Reason::Spent,
        Reason::Busy,
        Reason::Unauthentic,
        Reason::Disagreement,
        Reason::Unavailable,
        Reason::Internal,
        Reason::OutOfMaterial,
        Reason::Quarantined,
        Reason::NoSuchKey,
        Reason::NotForThis,
    ];

    /// What audit logs and metrics call it.
    pub fn code(self) -> &'static str {
        match self {
            Reason::Malformed => "malformed",
            Reason::Denied => "denied",
            Reason::Key => "key",
            Reason::Spent => "spent",
            Reason::Busy => "busy",
            Reason::Unauthentic => "unauthentic",
            Reason::Disagreement => "disagreement",
            Reason::Unavailable => "unavailable",
            Reason::Internal => "internal",
            Reason::OutOfMaterial => "dry",
            Reason::Quarantined => "quarantined",
            Reason::NoSuchKey => "no-such-key",
            Reason::NotForThis => "not-for-this",
        }
    }

    /// The same for people who count refusals.
    pub fn in_words(self) -> &'static str {
        match self {
            Reason::Malformed => "request not understood",
            Reason::Denied => "not allowed to the client",
            Reason::Key => "key cannot be made or changed so",
            Reason::Spent => "budget of the key is spent",
            Reason::Busy => "too much at once",
            Reason::Unauthentic => "text, key or additional data do not fit together",
            Reason::Disagreement => "nodes were told different things",
            Reason::Unavailable => "other nodes did not answer",
            Reason::Internal => "the node itself failed",
            Reason::OutOfMaterial => "not enough material yet",
            Reason::Quarantined => "under quarantine",
            Reason::NoSuchKey => "no such key or version",
            Reason::NotForThis => "key is not for this use",
        }
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_a_code_and_words_of_its_own() {
        // A new reason does not compile without a code; this finds one that is missing in the list.
        let last = postcard::to_stdvec(&(Reason::ALL.len() as u8)).expect("a number");
        assert!(postcard::from_bytes::<Reason>(&last).is_err(), "a reason is not in the list");
        let codes: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        let words: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.in_words()).collect();
        assert_eq!((codes.len(), words.len()), (Reason::ALL.len(), Reason::ALL.len()));
    }
}

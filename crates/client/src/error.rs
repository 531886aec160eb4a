//! Errors of a client, and whose fault they are.

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::Party;

/// The result of a fallible operation of a client.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a client did not get what it wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A node refused.
    #[error("{node} refused: {refusal}")]
    Refused {
        /// Its name.
        node: String,
        /// The refusal.
        refusal: Refusal,
    },
    /// Too few nodes can be reached.
    #[error("{reached} of {nodes} nodes can be asked, {needed} are needed: {why}")]
    TooFewNodes {
        /// How many can be asked.
        reached: usize,
        /// How many there are.
        nodes: usize,
        /// How many are needed.
        needed: usize,
        /// What was wrong with the others.
        why: String,
    },
    /// The connection with the nodes failed in the middle of a request. Nodes are called by their names.
    #[error("{message}; nothing was lost, ask again")]
    Connection {
        /// What happened.
        message: String,
        /// The node at the other end, if known.
        peer: Option<Party>,
    },
    /// The request was under way, or was to begin, when its caller ended it
    /// ([`Client::halt`](crate::Client::halt)).
    #[error(
        "the request was ended by its caller; if it was to make or change a key, look whether the nodes have done so"
    )]
    Ended,
    /// The client only writes down what it would ask for ([`Client::drafting`](crate::Client::drafting)), and
    /// has done so.
    #[error("nothing was asked of the nodes: the request for approval is written")]
    Drafted,
    /// A node's operator has not allowed this client anything.
    #[error("this client is not admitted by {node}: {ASK_TO_BE_ALLOWED}")]
    NotAdmitted {
        /// Its name, or those of several.
        node: String,
    },
    /// There is no connection with a node.
    #[error("{node} cannot be reached: {detail}")]
    Unreached {
        /// Its name.
        node: String,
        /// What the transport saw.
        detail: String,
    },
    /// Under a protocol that guarantees the output, the nodes did not agree, or too few remained in the
    /// middle of a request. Any of them may be the one that is wrong.
    #[error("the nodes did not agree: {0}; ask again, which leaves out those that are suspected")]
    Contested(String),
    /// The nodes' answers do not fit together.
    #[error("the nodes' answers do not fit together: {0}")]
    Answers(String),
    /// The input of a decryption is not authentic or not well-formed.
    #[error("{0}")]
    Unauthentic(String),
    /// The caller asked for something impossible.
    #[error("{0}")]
    Misuse(String),
    /// An error in the files of the client.
    #[error(transparent)]
    Config(#[from] polyclave_config::Error),
    /// Reading or writing data failed.
    #[error("{what}: {error}")]
    Io {
        /// What was read or written.
        what: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
}

/// What a client's user does about it.
const ASK_TO_BE_ALLOWED: &str = "give its card to the operator of every node, who lets it in with `polyclave node allow`; no node takes another's word for it";

impl From<polyclave_protocol::Error> for Error {
    fn from(error: polyclave_protocol::Error) -> Error {
        use polyclave_protocol::Error::{Closed, Peer, Timeout};
        let peer = match &error {
            Closed { peer, .. } | Timeout { peer, .. } | Peer { peer, .. } => Some(*peer),
            _ => None,
        };
        Error::Connection { message: error.to_string(), peer }
    }
}

impl Error {
    /// Whether other nodes, or the same nodes later, might succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } => {
                matches!(refusal.reason, Reason::Unavailable | Reason::Busy | Reason::OutOfMaterial)
            }
            Error::Connection { .. } | Error::TooFewNodes { .. } | Error::Contested(_) => true,
            // Another node may know this client and be reachable.
            Error::NotAdmitted { .. } | Error::Unreached { .. } => true,
            _ => false,
        }
    }

    /// The error if two nodes could not go on either.
    pub(crate) fn and_two_nodes(self, names: &str, error: &Error) -> Error {
        match self {
            Error::TooFewNodes { reached, nodes, needed, why } => {
                let why = format!("{why}; and {names} could not go on alone: {error}");
                Error::TooFewNodes { reached, nodes, needed, why }
            }
            other => other,
        }
    }

    /// Whether other nodes might succeed. Not if material is lacking: making it takes longer than a request
    /// should wait.
    pub(crate) fn others_might(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } if refusal.reason == Reason::OutOfMaterial => false,
            _ => self.may_pass(),
        }
    }

    /// Whether the nodes found that they were told, or hold, different things. The cause may be a single
    /// node.
    pub(crate) fn is_disagreement(&self) -> bool {
        matches!(self, Error::Refused { refusal, .. } if refusal.reason == Reason::Disagreement)
    }

    /// The node that is blamed for a failure, or with which a connection failed.
    pub(crate) fn blamed(&self) -> Option<Party> {
        match self {
            Error::Refused { refusal, .. } => refusal.blames,
            other => other.peer(),
        }
    }

    /// The node with which a connection failed.
    pub(crate) fn peer(&self) -> Option<Party> {
        if let Error::Connection { peer, .. } = self { *peer } else { None }
    }

    /// Whether to repeat the whole request at once with other nodes: the failure comes from a node, or from
    /// between nodes, and not from the request itself.
    pub fn may_be_repeated(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } => matches!(refusal.reason, Reason::Spent | Reason::Unavailable),
            Error::Connection { .. } | Error::Contested(_) => true,
            _ => false,
        }
    }

    /// Whether a node was not there, or the others say so: they serve again when it is back.
    pub fn says_a_node_is_gone(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } => refusal.reason == Reason::Unavailable,
            Error::Connection { .. } | Error::TooFewNodes { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Error::Refused { refusal, .. } if refusal.reason == Reason::Busy)
    }

    pub(crate) fn reading(error: std::io::Error) -> Error {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return Error::Misuse("the input became shorter while it was read".into());
        }
        Error::Io { what: "cannot read the input", error }
    }

    pub(crate) fn writing(error: std::io::Error) -> Error {
        Error::Io { what: "cannot write the output", error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_material_may_pass_later_and_is_not_asked_again_at_once() {
        let refused = |reason| Error::Refused { node: "a".into(), refusal: Refusal::new(reason, "") };
        let judged = |reason| (refused(reason).may_pass(), refused(reason).others_might());
        assert_eq!(judged(Reason::Busy), (true, true));
        assert_eq!(judged(Reason::OutOfMaterial), (true, false));
        assert_eq!(judged(Reason::Quarantined), (false, false));
        let repeated = |reason| refused(reason).may_be_repeated();
        assert!(repeated(Reason::Spent) && repeated(Reason::Unavailable));
        assert!(!repeated(Reason::OutOfMaterial) && !repeated(Reason::Denied) && !repeated(Reason::Key));
    }
}

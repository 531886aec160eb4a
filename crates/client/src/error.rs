//! What can go wrong at a client, and whose fault it is.

use polyclave_protocol::Party;
use polyclave_transport::wire::{Reason, Refusal};

/// What every fallible operation of a client returns.
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
        /// Why.
        refusal: Refusal,
    },
    /// Too few nodes can be reached.
    #[error("{reached} of {nodes} nodes can be asked, {needed} are needed: {why}")]
    TooFewNodes {
        /// How many answered.
        reached: usize,
        /// How many there are.
        nodes: usize,
        /// How many it takes.
        needed: usize,
        /// What was wrong with the others.
        why: String,
    },
    /// The connection with the nodes failed in the middle of a request: what happened, with the nodes by their names.
    #[error("{told}; nothing was lost, ask again")]
    Connection {
        /// What happened.
        told: String,
        /// The node with which it failed, where that is known.
        peer: Option<Party>,
    },
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
    /// Nodes that correct each other could not agree, or too few of them were left in the middle of a request: each may be the
    /// one that is wrong.
    #[error("the nodes did not agree: {0}; ask again, which leaves out those that are suspected")]
    Contested(String),
    /// The nodes' answers do not fit together.
    #[error("the nodes' answers do not fit together: {0}")]
    Answers(String),
    /// What was to be decrypted is not what it should be.
    #[error("{0}")]
    Unauthentic(String),
    /// The caller asked for what cannot be done.
    #[error("{0}")]
    Misuse(String),
    /// The files of the client.
    #[error(transparent)]
    Config(#[from] polyclave_config::Error),
    /// Reading or writing data.
    #[error("{what}: {error}")]
    Io {
        /// What was read or written.
        what: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
}

/// What a client does about it.
const ASK_TO_BE_ALLOWED: &str = "give its card to the operator of every node, who lets it in with `polyclave node allow`; no node takes another's word for it";

impl From<polyclave_protocol::Error> for Error {
    fn from(error: polyclave_protocol::Error) -> Error {
        use polyclave_protocol::Error::{Closed, Peer, Timeout};
        let peer = match &error {
            Closed { peer, .. } | Timeout { peer, .. } | Peer { peer, .. } => Some(*peer),
            _ => None,
        };
        Error::Connection { told: error.to_string(), peer }
    }
}

impl Error {
    /// Whether other nodes, or the same ones later, might do it.
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } => {
                matches!(refusal.reason, Reason::Unavailable | Reason::Busy | Reason::OutOfMaterial)
            }
            Error::Connection { .. } | Error::TooFewNodes { .. } | Error::Contested(_) => true,
            // Another node may know this client, and may be there.
            Error::NotAdmitted { .. } | Error::Unreached { .. } => true,
            _ => false,
        }
    }

    /// Whether other nodes might do it. Material takes the nodes longer to make than anybody should wait within a request.
    pub(crate) fn others_might(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } if refusal.reason == Reason::OutOfMaterial => false,
            _ => self.may_pass(),
        }
    }

    /// Whether the nodes found that they were told, or hold, different things: perhaps one of them alone does.
    pub(crate) fn is_disagreement(&self) -> bool {
        matches!(self, Error::Refused { refusal, .. } if refusal.reason == Reason::Disagreement)
    }

    /// The node with which a connection failed.
    pub(crate) fn peer(&self) -> Option<Party> {
        if let Error::Connection { peer, .. } = self { *peer } else { None }
    }

    /// Whether the whole request may be asked again at once, of other nodes: what is the trouble of a node, or between nodes, and not
    /// the request's own.
    pub fn may_be_repeated(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } => matches!(refusal.reason, Reason::Spent | Reason::Unavailable),
            Error::Connection { .. } | Error::Contested(_) => true,
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

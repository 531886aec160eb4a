//! What can go wrong at a client, and whose fault it is.

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
    #[error("{reached} of {nodes} nodes can be reached, {needed} are needed: {why}")]
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
    /// The connection with the nodes failed in the middle of a request.
    #[error("{0}; nothing was lost, ask again")]
    Connection(#[from] polyclave_protocol::Error),
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

impl Error {
    /// Whether other nodes, or the same ones later, might do it.
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } => {
                matches!(refusal.reason, Reason::Unavailable | Reason::Busy | Reason::Dry)
            }
            Error::Connection(_) | Error::TooFewNodes { .. } | Error::Contested(_) => true,
            _ => false,
        }
    }

    /// Whether other nodes might do it: each has its own part of a key's budget. Material takes the nodes longer to make than
    /// anybody should wait within a request.
    pub(crate) fn others_might(&self) -> bool {
        match self {
            Error::Refused { refusal, .. } if refusal.reason == Reason::Spent => true,
            Error::Refused { refusal, .. } if refusal.reason == Reason::Dry => false,
            _ => self.may_pass(),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Error::Refused { refusal, .. } if refusal.reason == Reason::Busy)
    }

    pub(crate) fn reading(error: std::io::Error) -> Error {
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
        assert_eq!(judged(Reason::Dry), (true, false));
        assert_eq!(judged(Reason::Quarantined), (false, false));
    }
}

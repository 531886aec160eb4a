//! Errors. Each says who caused it: a peer, the caller, or the machine.

use std::time::Duration;

use crate::{Party, PartySet};

/// What every fallible operation of a protocol returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What a [`Error::CheckFailed`] says that is none of its own: a check of another session under the same secrets (a MAC key, the
/// Delta of transfers) failed, and they were given up with it.
pub const EARLIER_CHECK: &str = "an earlier check under the same secrets";

/// Why a session ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer closed the connection or its process ended.
    #[error("{peer} closed the connection ({detail}); see whether it is still running, and its own error")]
    Closed {
        /// Who.
        peer: Party,
        /// What the transport saw.
        detail: String,
    },
    /// The peer sent nothing (or took nothing) for the whole of the time limit.
    #[error("{peer} did not answer within {waited:?}; see whether it is running and reachable")]
    Timeout {
        /// Who.
        peer: Party,
        /// The limit that ran out.
        waited: Duration,
    },
    /// The peer sent what the protocol does not allow at this point. **Whoever is named deserves it**: what does not fit came from
    /// that party itself, over its own authenticated channel to this one, and no message of a third party could have made one
    /// that follows the protocol send it. Where a third party could have, the error is [`Error::Equivocation`] or
    /// [`Error::CheckFailed`], which name nobody. This party knows it; to others it is its word against the peer's. (So under protocols
    /// that verify. A passive one assumes that all follow it: whoever does not can lead two others apart, whose messages to each other
    /// then do not fit.)
    #[error(
        "{peer} sent something that does not fit: {detail}; both sides must run the same version and command"
    )]
    Peer {
        /// Who.
        peer: Party,
        /// What was wrong with it.
        detail: String,
    },
    /// The hello round found that a peer wants to run something else.
    #[error("{peer} runs with another {field} than this party; start all parties with the same settings")]
    Disagreement {
        /// Who.
        peer: Party,
        /// The setting that differs.
        field: &'static str,
    },
    /// This party and a peer were told different things by some party, which may be a third one. Nobody is named: the peer that
    /// said what does not fit may have been lied to.
    #[error(
        "parties were told different {what}: some party cheats, and this one cannot tell which. What depends on it is given up; see \
         the errors of the others"
    )]
    Equivocation {
        /// What all should have been told alike.
        what: &'static str,
    },
    /// The peer fell silent in the middle of a check, after it could know the coins and before it answered. Nothing says that it
    /// cheats; but one whose guess at a secret was wrong could do the same, so what was checked is given up, and it counts.
    #[error(
        "{peer} did not answer a check that was under way ({detail}); see whether it is still running, and its own error"
    )]
    Unanswered {
        /// Who.
        peer: Party,
        /// What this party saw.
        detail: String,
    },
    /// A check found that some party departed from the protocol, or that a message was damaged. It does not say who: with
    /// a dishonest majority that cannot be told. Nothing was revealed, and what was checked must not be used again.
    #[error(
        "a check failed: {what}. A party departed from the protocol; nothing is revealed, and the material in use is given \
         up, and a MAC key with it if there is one"
    )]
    CheckFailed {
        /// What was checked.
        what: &'static str,
    },
    /// Two parties contradict each other about what one sent the other over their private channel, before all. One of them cheats;
    /// the others cannot tell which.
    #[error(
        "{dealer} and {receiver} contradict each other about what {dealer} sent {receiver}: one of these two cheats, or its memory or \
         connection is damaged. No material is made until it is found out which, and left away or mended"
    )]
    Disputed {
        /// The party that says that it sent one thing.
        dealer: Party,
        /// The party that says that it received another.
        receiver: Party,
    },
    /// Too few parties are there, or can be relied on, for what is to be done.
    #[error(
        "{needed} parties are needed to {purpose}, and only {there} are there; see whether the others are running and \
         reachable, and their own errors"
    )]
    Missing {
        /// The parties that are there.
        there: PartySet,
        /// How many must be.
        needed: usize,
        /// What for.
        purpose: &'static str,
    },
    /// The stock does not hold enough material. All parties come to it at the same place; nothing was used.
    #[error("{detail}")]
    OutOfMaterial {
        /// What was asked for, and what is there.
        detail: String,
    },
    /// The caller asked for what cannot be done.
    #[error("{0}")]
    Misuse(String),
    /// The machine failed: no randomness, no socket, no thread.
    #[error("{0}")]
    System(String),
}

impl Error {
    /// The same, of a message that answers a check or opens its coins: silence is [`Error::Unanswered`].
    pub(crate) fn in_a_check(self) -> Self {
        match self {
            Error::Closed { peer, detail } => Error::Unanswered { peer, detail },
            Error::Timeout { peer, waited } => {
                Error::Unanswered { peer, detail: format!("it sent nothing within {waited:?}") }
            }
            other => other,
        }
    }

    /// Whether it can be that of a cheater whose guess at a secret was wrong, so that the secret must be given up: a check failed, a
    /// peer sent what cannot be, some party told others different things, or a check was left without an answer.
    pub fn may_be_a_wrong_guess(&self) -> bool {
        matches!(
            self,
            Error::CheckFailed { .. }
                | Error::Peer { .. }
                | Error::Equivocation { .. }
                | Error::Unanswered { .. }
        )
    }

    /// A [`Error::Misuse`].
    pub fn misuse(what: impl Into<String>) -> Self {
        Error::Misuse(what.into())
    }
}

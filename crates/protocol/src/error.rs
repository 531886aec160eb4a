//! Errors that say whose fault it is: a peer's, the caller's, or the machine's.

use std::time::Duration;

use crate::{Party, PartySet};

/// What every fallible operation of a protocol returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What a [`Error::CheckFailed`] says that is none of its own: a check of another session under the same MAC key failed, and the
/// key was given up with it.
pub const EARLIER_CHECK: &str = "an earlier check under the same MAC key";

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
    /// The peer sent what the protocol does not allow at this point.
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
    /// In the hello round all settings are the same, but this party and a peer come to different sessions.
    #[error(
        "this party and {peer} were told different things in the first round: some party cheats, perhaps neither of the two; \
         nothing secret was used"
    )]
    Equivocation {
        /// Whose session is another one.
        peer: Party,
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
        /// Who says that it sent one thing.
        dealer: Party,
        /// Who says that it got another.
        receiver: Party,
    },
    /// Too few parties are there, or can be relied on, for what is to be done.
    #[error(
        "{needed} parties are needed to {purpose}, and only {there} are there; see whether the others are running and \
         reachable, and their own errors"
    )]
    Missing {
        /// Who is.
        there: PartySet,
        /// How many must be.
        needed: usize,
        /// What for.
        purpose: &'static str,
    },
    /// The stock does not hold enough material. All parties come to it at the same place; nothing was used.
    #[error("{detail}")]
    Dry {
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
    /// A [`Error::Misuse`].
    pub fn misuse(what: impl Into<String>) -> Self {
        Error::Misuse(what.into())
    }
}

//! Errors. Each names its cause: a peer, the caller, or the machine.

use std::time::Duration;

use crate::{Party, PartySet};

/// What every fallible operation of a protocol returns.
pub type Result<T> = std::result::Result<T, Error>;

/// The text of an [`Error::CheckFailed`] if the check that failed was one of another session under the same
/// secrets (a MAC key, the Delta of transfers), which were given up with it.
pub const EARLIER_CHECK: &str = "an earlier check under the same secrets";

/// Why a session ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer closed the connection or its process ended.
    #[error("{peer} closed the connection ({detail}); see whether it is still running, and its own error")]
    Closed {
        /// The peer.
        peer: Party,
        /// What the transport saw.
        detail: String,
    },
    /// The peer sent nothing (or took nothing) for the whole of the time limit.
    #[error("{peer} did not answer within {waited:?}; see whether it is running and reachable")]
    Timeout {
        /// The peer.
        peer: Party,
        /// The limit that ran out.
        waited: Duration,
    },
    /// The peer sent something that the protocol does not allow at this point. **The named party did
    /// deviate**: the wrong message came from that party itself, over its own authenticated channel to this
    /// one, and no message of a third party could have made an honest party send it. If a third party could
    /// have caused it, the error is [`Error::Equivocation`] or [`Error::CheckFailed`], which name nobody.
    /// This party knows that the peer deviated. For others it is this party's word against the peer's. (This
    /// holds under protocols that verify. A passive protocol assumes that all parties follow it. A party that
    /// does not can mislead two others, so that their messages to each other do not fit.)
    #[error(
        "{peer} sent something that does not fit: {detail}; both sides must run the same version and command"
    )]
    Peer {
        /// The peer.
        peer: Party,
        /// What was wrong with it.
        detail: String,
    },
    /// What a peer says does not fit what this party holds or has heard from others, and **that proves
    /// nothing against the peer**: it may have started again, or a third party may have told one of the two
    /// something else. It is named because the next try can do without it, or has to wait for it.
    #[error(
        "{peer} and this party are out of step: {detail}. One of them has started again, or was told other things by a third, or cheats; \
         see its own error"
    )]
    OutOfStep {
        /// The peer.
        peer: Party,
        /// What does not fit.
        detail: String,
    },
    /// The hello round found that a peer wants to run something else.
    #[error("{peer} runs with another {field} than this party; start all parties with the same settings")]
    Disagreement {
        /// The peer.
        peer: Party,
        /// The setting that differs.
        field: &'static str,
    },
    /// Some party told this party and a peer different things. It may be a third party. Nobody is named,
    /// because the peer whose message does not fit may have been lied to.
    #[error(
        "parties were told different {what}: some party cheats, and this one cannot tell which. What depends on it is given up; see \
         the errors of the others"
    )]
    Equivocation {
        /// What all parties should have been told in the same way.
        what: &'static str,
    },
    /// The peer fell silent in the middle of a check, after it could know the coins and before it answered.
    /// That does not show that it cheats. But a cheater whose guess at a secret was wrong could do the same,
    /// so what was checked is given up, and the silence counts.
    #[error(
        "{peer} did not answer a check that was under way ({detail}); see whether it is still running, and its own error"
    )]
    Unanswered {
        /// The peer.
        peer: Party,
        /// What this party saw.
        detail: String,
    },
    /// A check found that some party departed from the protocol, or that a message was damaged. It does not
    /// say which party, because with a dishonest majority that cannot be found out. Nothing was revealed, and
    /// what was checked must not be used again.
    #[error(
        "a check failed: {what}. A party departed from the protocol; nothing is revealed, and the material in use is given \
         up, and a MAC key with it if there is one"
    )]
    CheckFailed {
        /// What was checked.
        what: &'static str,
    },
    /// A check failed, with this error, and a [`GuessGuard`](crate::GuessGuard) has counted it as a guess at
    /// a bit of a secret.
    #[error("{0}")]
    Counted(Box<Error>),
    /// Two parties each gave this one something that should fit and does not. **One of the two deviated, or
    /// one of all three is damaged**: its memory, or the shares on its disk. It cannot be found out which. A
    /// party that knows of itself that it is sound knows that it was one of the two.
    #[error(
        "a check failed: {what}. {first} or {second} departed from the protocol, or the memory or disk of one of them is damaged, or of \
         this party. It cannot be found out which; nothing is revealed"
    )]
    OneOfTwo {
        /// One of them.
        first: Party,
        /// The other.
        second: Party,
        /// What does not fit.
        what: &'static str,
    },
    /// Two parties hold different shares of stored values, where both should hold the same ones. One of the
    /// two has lost or changed its shares, or cheats. Nothing was taken into use. It would end like this
    /// again, until the shares are mended or the values are given up.
    #[error(
        "{first} and {second} hold different shares of values that are stored (numbers {values:?}, from 0): the memory or disk of one of \
         them is damaged or was changed, or it cheats"
    )]
    SharesDiffer {
        /// One of them.
        first: Party,
        /// The other.
        second: Party,
        /// Which of the values, in the order in which they were given, from 0.
        values: Vec<usize>,
    },
    /// Two parties contradict each other before all about what one sent the other over their private channel.
    /// One of them cheats; the others cannot find out which.
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
    /// Too few parties are present, or can be relied on, for the operation.
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
    /// The stock does not hold enough material. All parties get this error at the same place, and nothing was
    /// used.
    #[error("{detail}")]
    OutOfMaterial {
        /// What was asked for, and what is there.
        detail: String,
    },
    /// The caller asked for something that cannot be done.
    #[error("{0}")]
    Misuse(String),
    /// The machine failed: no randomness, no socket, no thread.
    #[error("{0}")]
    System(String),
}

impl Error {
    /// The error of a message that answers a check or opens its coins: silence becomes [`Error::Unanswered`].
    pub(crate) fn in_a_check(self) -> Self {
        match self {
            Error::Closed { peer, detail } => Error::Unanswered { peer, detail },
            Error::Timeout { peer, waited } => {
                Error::Unanswered { peer, detail: format!("it sent nothing within {waited:?}") }
            }
            other => other,
        }
    }

    /// Whether a cheater whose wrong guess at a secret was detected could have caused this error, so that the
    /// secret must be given up. This holds if a check failed, a peer sent something impossible, some party
    /// told others different things, or a check was left without an answer.
    pub fn may_be_a_wrong_guess(&self) -> bool {
        matches!(
            self,
            Error::CheckFailed { .. }
                | Error::Peer { .. }
                | Error::Equivocation { .. }
                | Error::OneOfTwo { .. }
                | Error::Unanswered { .. }
                | Error::Counted(_)
        )
    }

    /// Ranks the errors of several sessions of one setup that ran side by side, by how much each says about
    /// why they ended: the lowest says most. A failed check comes first, in any of the sessions, and errors
    /// that only follow from it come last.
    pub fn rank(&self) -> u8 {
        match self {
            Error::CheckFailed { what } if *what == EARLIER_CHECK => 3,
            Error::Unanswered { .. } => 1,
            error if error.may_be_a_wrong_guess() => 0,
            _ => 2,
        }
    }

    /// A [`Error::Misuse`].
    pub fn misuse(what: impl Into<String>) -> Self {
        Error::Misuse(what.into())
    }
}

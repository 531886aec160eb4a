//! Why a caller of the gateway does not get an answer, for all APIs.

use polyclave_api::Reason;
use polyclave_client::Error;

/// What went wrong, and whose fault it is. The texts contain nothing of a message, a token or a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The request cannot be meant like that.
    Bad(String),
    /// The ciphertext is not authentic. There is one text for all its faults.
    Unauthentic,
    /// Nobody is known by this token.
    Stranger,
    /// The token does not have the right.
    NotAllowed,
    /// The nodes do not allow it to the gateway itself.
    Denied(String),
    /// There is no such key.
    NoKey,
    /// There is nothing under this path.
    NoPath,
    /// Not with this method.
    NoMethod,
    /// The request is longer than this.
    TooLong(usize),
    /// Too many requests of this token wait.
    Full,
    /// The token has too many connections.
    Crowded,
    /// Too many logins from its address failed, or there were too many of its subject; the text says when
    /// more are taken.
    Hasty(String),
    /// It took too long.
    Late,
    /// The nodes cannot serve at the moment.
    Unavailable(String),
    /// The cause is neither the caller nor a missing node.
    Internal(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::Unauthentic(_) => Failure::Unauthentic,
            Error::Misuse(message) => Failure::Bad(message),
            Error::Refused { refusal, .. } => match refusal.reason {
                Reason::Denied => Failure::Denied(message),
                Reason::NoSuchKey => Failure::NoKey,
                Reason::Unauthentic => Failure::Unauthentic,
                Reason::Key | Reason::NotForThis | Reason::Spent | Reason::Malformed => Failure::Bad(message),
                Reason::Busy
                | Reason::OutOfMaterial
                | Reason::Unavailable
                | Reason::Disagreement
                | Reason::Quarantined => Failure::Unavailable(message),
                Reason::Internal => Failure::Internal(message),
            },
            Error::TooFewNodes { .. }
            | Error::Connection { .. }
            | Error::NotAdmitted { .. }
            | Error::Unreached { .. }
            | Error::Contested(_) => Failure::Unavailable(message),
            _ => Failure::Internal(message),
        }
    }
}

impl Failure {
    /// Whether it concerns the whole of a batch, and not one item.
    pub(crate) fn is_of_all(&self) -> bool {
        !matches!(
            self,
            Failure::Bad(_) | Failure::Unauthentic | Failure::Unavailable(_) | Failure::Internal(_)
        )
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Failure::TooLong(most) => return write!(f, "the request is longer than {} KiB", most >> 10),
            Failure::Bad(message)
            | Failure::Hasty(message)
            | Failure::Denied(message)
            | Failure::Unavailable(message)
            | Failure::Internal(message) => message,
            Failure::Unauthentic => "invalid ciphertext: unable to decrypt",
            Failure::Stranger | Failure::NotAllowed => "permission denied",
            Failure::NoKey => "encryption key not found",
            Failure::NoPath => "unsupported path",
            Failure::NoMethod => "unsupported operation",
            Failure::Full => "too many requests of this token wait for the nodes; ask again later",
            Failure::Crowded => {
                "this token has as many connections as there is room for; use one for several requests"
            }
            Failure::Late => "the nodes did not answer in time",
        })
    }
}

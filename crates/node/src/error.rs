//! How errors of the store and of the system appear to protocols and clients.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::{Reason, Refusal};
use polyclave_protocol::{Error, Party};
use polyclave_store::{Store, StoreError};

use crate::SAYS_REFRESHING;

/// How often the log tells that the server of the store is gone.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Turns an error of the store into a protocol's error.
pub(crate) fn system(e: impl std::fmt::Display) -> Error {
    Error::System(e.to_string())
}

/// Turns an error of the store into a refusal.
pub(crate) fn of_store(e: StoreError) -> Refusal {
    match e {
        StoreError::Spent { .. } | StoreError::TooManyFailures { .. } => {
            Refusal::new(Reason::Spent, e.to_string())
        }
        // Another request has changed the record first.
        StoreError::Taken { .. } => Refusal::new(Reason::Key, e.to_string()),
        StoreError::Busy { .. } | StoreError::VerificationsUnderWay => {
            Refusal::new(Reason::Busy, e.to_string())
        }
        StoreError::Refreshing | StoreError::Renewed => Refusal::new(Reason::Unavailable, SAYS_REFRESHING),
        StoreError::NoKey { .. } | StoreError::Deleted { .. } => {
            Refusal::new(Reason::NoSuchKey, e.to_string())
        }
        StoreError::Server { .. } => {
            tell_of_server(&e);
            Refusal::new(
                Reason::Unavailable,
                "the server of its store does not answer, or cannot write; ask again, or another worker or node",
            )
        }
        other => {
            tracing::error!(error = %other, "the store failed");
            Refusal::new(Reason::Internal, other.reason())
        }
    }
}

/// The refusal of a node that stops: its client asks others at once.
pub(crate) fn stops(me: Party) -> Refusal {
    let message = "this node is about to stop; ask other nodes, or this one when it is back";
    Refusal::new(Reason::Unavailable, message).because_of(me)
}

/// While a server is gone every request fails: the log says so now and then.
fn tell_of_server(e: &StoreError) {
    static TOLD: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = TOLD.lock();
    if last.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
        *last = Some(Instant::now());
        tracing::error!(error = %e, "the store failed, and requests are refused until it is back");
    }
}

/// Refuses requests of clients and other nodes while the store cannot be used.
pub(crate) fn refuse_damaged(store: &Store) -> Result<(), Refusal> {
    match store.file_damage() {
        None => Ok(()),
        Some(damage) => {
            let message = format!("{}; its operator has to act; ask other nodes", damage.reason());
            Err(Refusal::new(Reason::Internal, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why_the_store_failed_and_nothing_of_where_it_is() {
        let path = std::path::PathBuf::from("/var/lib/secret-place/store.redb");
        let (file, place) = (path.display().to_string(), "polyclave at db.inside.example".to_owned());
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let cases = [
            (StoreError::Failed("no space left".into()), "no space left"),
            (StoreError::Io { path: path.clone(), cause: full }, "disk full"),
            (
                StoreError::Damaged { file: file.clone(), detail: "a page makes no sense".into() },
                "a page makes no sense",
            ),
            (StoreError::Corrupt { what: "the record k of keys".into() }, "the record k of keys is damaged"),
            (StoreError::PutBack { what: "the record k of keys".into() }, "put back to an older state"),
            (StoreError::Lost { known: 9, found: 7 }, "mark 7"),
            (StoreError::TakenOver { place: place.clone() }, "another process"),
            (StoreError::Unusable { place, detail: "runs with fsync = off".into() }, "fsync = off"),
            (StoreError::Missing { path }, "its store"),
        ];
        for (error, why) in cases {
            let text = of_store(error).message;
            assert!(text.contains(why), "{text}");
            assert!(!text.contains("secret-place") && !text.contains("inside.example"), "{text}");
        }
    }
}

//! How errors of the store and of the system appear to protocols and clients.

use polyclave_protocol::Error;
use polyclave_transport::wire::{Reason, Refusal};

use crate::SAYS_ROTATING;
use crate::store::{Store, StoreError};

/// Turns an error of the store into a protocol's error.
pub(crate) fn system(e: impl std::fmt::Display) -> Error {
    Error::System(e.to_string())
}

/// Turns an error of the store into a refusal.
pub(crate) fn of_store(e: StoreError) -> Refusal {
    match e {
        StoreError::Spent { .. } => Refusal::new(Reason::Spent, e.to_string()),
        // Another request has changed the record first.
        StoreError::Taken { .. } => Refusal::new(Reason::Key, e.to_string()),
        StoreError::Busy { .. } => Refusal::new(Reason::Busy, e.to_string()),
        StoreError::Rotating | StoreError::Renewed => Refusal::new(Reason::Unavailable, SAYS_ROTATING),
        StoreError::NoKey { .. } | StoreError::Deleted { .. } => {
            Refusal::new(Reason::NoSuchKey, e.to_string())
        }
        other => {
            tracing::error!(error = %other, "the store failed");
            Refusal::new(Reason::Internal, "its store failed; see the log of that node")
        }
    }
}

/// What clients and other nodes are told while the store cannot be used.
pub(crate) fn refuse_damaged(store: &Store) -> Result<(), Refusal> {
    let told = "its store is damaged, or another process has taken it over, and its operator has to act; ask other nodes";
    match store.file_damage() {
        None => Ok(()),
        Some(_) => Err(Refusal::new(Reason::Internal, told)),
    }
}

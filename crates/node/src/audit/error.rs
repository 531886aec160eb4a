//! Why the log cannot be used or trusted.

use std::io;
use std::path::PathBuf;

/// Why the log cannot be used or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The operating system reported an error.
    #[error("cannot use the audit log {}: {cause}; see whether the disk is full", path.display())]
    Io {
        /// The log.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// Another process is writing the log.
    #[error("another process is writing the audit log {}; is the node already running?", path.display())]
    InUse {
        /// The log.
        path: PathBuf,
    },
    /// The log was changed.
    #[error("the audit log {} was tampered with, first in line {line}: {damage}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The kind of damage.
        damage: Damage,
    },
    /// Its end is missing.
    #[error(
        "the audit log {} ends with record {last}, but record {noted} had been written: its end was cut off",
        path.display()
    )]
    Cut {
        /// The log.
        path: PathBuf,
        /// Its last record.
        last: u64,
        /// The last record that the store knows of.
        noted: u64,
    },
    /// The log is consistent, but it is not the log that this node wrote.
    #[error(
        "the audit log {} was written anew: its record {noted} is not the one that the store knows of",
        path.display()
    )]
    Rewritten {
        /// The file.
        path: PathBuf,
        /// The record that differs.
        noted: u64,
    },
    /// The store is older than the log.
    #[error(
        "the audit log {} says that the store was at mark {written}, and it is at mark {found}: the store was put back to an older state, in \
         which spent blocks count as unspent and deleted keys are back. This node does not run with it. Put the latest state of the store back, or \
         restore this node from a backup (`polyclave node restore`). If nothing else is left, begin another log (`polyclave node audit renew`): \
         then this node forgets what happened since", path.display()
    )]
    StoreBehind {
        /// The log.
        path: PathBuf,
        /// The store's mark as the log has it.
        written: u64,
        /// The mark in the store.
        found: u64,
    },
    /// The file could not be used.
    #[error(transparent)]
    File(#[from] polyclave_config::Error),
}

/// The damage of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The line is not as it was written.
    #[error("it was altered")]
    Altered,
    /// Records before it are missing here.
    #[error("records before it were removed, or it was moved here from further down")]
    Removed,
    /// Its record appears earlier already.
    #[error("it was inserted, or moved here from further up")]
    Inserted,
    /// It does not follow from the line before.
    #[error("it or the line before was replaced")]
    Replaced,
    /// The log ends within it.
    #[error("it is cut off")]
    Torn,
}

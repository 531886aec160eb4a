//! Who did what, in a log in which no line can be changed, removed, moved or inserted unnoticed.
//!
//! One line of JSON for each event. It has the hash of the line before and ends with its own: BLAKE3 of all other fields in
//! the order of the line, each text preceded by its length (8 bytes, little-endian), numbers in 8 bytes, little-endian,
//! `request` and `previous` as raw bytes. The hash takes no key, so anybody can check a log; who can write it could also
//! compute all hashes anew from some line on. That, and a cut end, shows against the number and hash of the last line, which
//! the node keeps in its store ([`Store::note_audit_head`](crate::store::Store::note_audit_head)).
//!
//! A line that a crash left half written is cut off when the log is opened, and a line `recovered` says so. Lines are
//! written one by one and reach the disk with [`AuditLog::sync`]; a power failure can take those after it.
//!
//! There is no field for free text. What does not look like a name is logged as `?`.

mod line;
#[cfg(test)]
mod tests;
mod verify;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polyclave_config::private;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use line::Line;
pub use verify::{Verified, verify};

/// Number and hash of a line.
pub type Head = (u64, [u8; 32]);

/// What happened.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The client's name, as the node's policy has it.
    pub client: &'a str,
    /// What it asked for.
    pub operation: &'a str,
    /// The key's name; empty if it was about none.
    pub key: &'a str,
    /// What came of it.
    pub outcome: &'a str,
    /// Blocks that were computed.
    pub blocks: u64,
    /// The request's id.
    pub request: [u8; 16],
}

/// Why the log cannot be used or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The operating system refused.
    #[error("cannot use the audit log {}: {source}; see whether the disk is full", path.display())]
    Io {
        /// The log.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Another process writes it.
    #[error("another process is writing the audit log {}; is the node already running?", path.display())]
    InUse {
        /// The log.
        path: PathBuf,
    },
    /// Somebody has changed it.
    #[error("the audit log {} was tampered with, first in line {line}: {damage}", path.display())]
    Broken {
        /// The log.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
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
    /// It fits together, but is not the one that was written.
    #[error(
        "the audit log {} was written anew: its record {noted} is not the one that the store knows of",
        path.display()
    )]
    Rewritten {
        /// The log.
        path: PathBuf,
        /// The record that differs.
        noted: u64,
    },
    /// The file could not be used.
    #[error(transparent)]
    File(#[from] polyclave_config::Error),
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It is not as it was written.
    #[error("it was altered")]
    Altered,
    /// Records before it are missing here.
    #[error("records before it were removed, or it was moved here from further down")]
    Removed,
    /// Its record is further up already.
    #[error("it was inserted, or moved here from further up")]
    Inserted,
    /// It does not follow from the line before.
    #[error("it or the line before was replaced")]
    Replaced,
    /// The log ends within it.
    #[error("it is cut off")]
    Torn,
}

/// A log that is being written.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    end: Mutex<End>,
}

#[derive(Debug)]
struct End {
    file: File,
    /// Bytes of whole lines.
    len: u64,
    head: Head,
}

impl AuditLog {
    /// Opens a log for writing, or begins one, and compares its end with what the store knows of it.
    pub fn open(path: &Path, noted: Option<Head>) -> Result<AuditLog, AuditError> {
        let broken = |source| AuditError::Io { path: path.into(), source };
        let fresh = !path.exists();
        let file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path).map_err(broken)?;
        private::check_mode(&file, path)?;
        file.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => AuditError::InUse { path: path.into() },
            TryLockError::Error(e) => broken(e),
        })?;
        if fresh {
            private::sync_dir(private::parent(path))?;
        }
        let written = file.metadata().map_err(broken)?.len();
        let len = verify::whole_lines(&file, written).map_err(broken)?;
        let head = verify::check_end(&file, len, path, noted)?;
        let log = AuditLog { path: path.into(), end: Mutex::new(End { file, len, head }) };
        if len < written {
            log.lock().file.set_len(len).map_err(broken)?;
            let outcome = "torn-line-cut";
            log.append(&Event {
                client: "",
                operation: "recovered",
                key: "",
                outcome,
                blocks: 0,
                request: [0; 16],
            })?;
        }
        Ok(log)
    }

    /// Adds a line, in one write. It is on the disk after [`AuditLog::sync`].
    pub fn append(&self, event: &Event) -> Result<(), AuditError> {
        let broken = |source| AuditError::Io { path: self.path.clone(), source };
        let mut end = self.lock();
        let now = OffsetDateTime::now_utc().replace_nanosecond(0).ok();
        let time = now.and_then(|now| now.format(&Rfc3339).ok()).unwrap_or_default();
        let line = Line::new(event, time, end.head);
        let text = line.to_text();
        // What a write that failed half way has left.
        end.cut().map_err(broken)?;
        if let Err(e) = end.file.write_all(text.as_bytes()) {
            // If this fails, too, the next line tries again.
            let _ = end.cut();
            return Err(broken(e));
        }
        end.len += text.len() as u64;
        end.head = line.head();
        Ok(())
    }

    /// Makes all lines durable. Returns the last of them, to be noted in the store.
    pub fn sync(&self) -> Result<Head, AuditError> {
        let end = self.lock();
        end.file.sync_data().map_err(|source| AuditError::Io { path: self.path.clone(), source })?;
        Ok(end.head)
    }

    /// Number and hash of the last line; number 0 if there is none.
    pub fn head(&self) -> Head {
        self.lock().head
    }

    fn lock(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl End {
    fn cut(&self) -> io::Result<()> {
        if self.file.metadata()?.len() > self.len { self.file.set_len(self.len) } else { Ok(()) }
    }
}

/// Bytes of a file from one place to another.
fn read_range(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (to - from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

//! The audit log: who did what. No line in it can be changed, removed, moved or inserted unnoticed.
//!
//! Each event is one line of JSON. It contains the hash of the line before and ends with its own: BLAKE3 of
//! all other fields in the order of the line, each text preceded by its length (8 bytes, little-endian),
//! numbers in 8 bytes, little-endian, `request` and `previous` as raw bytes. The hash takes no key, so
//! anybody can check a log; and somebody who can write the log could compute all hashes again from some line
//! on. The node notices this, and a cut end, by comparison with the number and hash of the last line, which
//! it keeps in its store ([`Store::note_audit_head`](polyclave_store::Store::note_audit_head)). A log has
//! several files; the chain continues from one to the next.
//!
//! A request gets a line before anything is computed for it ([`AuditLog::admit`]), and another when it is
//! over. If the first line cannot be written the request is refused, unless the node is set to serve without
//! it. So no served request is missing, even if the node is killed: the operating system has what is written.
//! It reaches the disk with [`AuditLog::sync`], once a second. A power failure can lose those lines, and the
//! next start says that the node was not stopped in order.
//!
//! A line also has a mark that was on the store's disk by then (`mark`). So the node notices at its start if
//! its store was put back to an older state ([`AuditError::StoreBehind`]).
//!
//! A line that a crash left half written is cut off when the log is opened, and a line `recovered` says so. A
//! time in which no line could be written is recorded in a line `gap` as soon as one can be written
//! ([`Gap`]).
//!
//! There is no field for free text. A text that does not look like a name is logged as `?`.

mod end;
mod error;
pub(crate) mod faults;
mod files;
#[cfg(test)]
mod fuzz;
mod gap;
mod line;
pub(crate) mod logbook;
mod syslog;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod verify;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use parking_lot::{Mutex, MutexGuard};
use polyclave_config::{AuditSettings, WhenUnwritable};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use end::End;
pub use error::{AuditError, Damage};
pub use files::open_files;
pub(crate) use files::set_aside;
pub use polyclave_store::Gap;
pub use verify::{Verified, verify};

/// Number and hash of a line.
pub type Head = (u64, [u8; 32]);

/// The outcome of a request in its first line: nothing yet.
pub(crate) const BEGUN: &str = "begun";
/// The operations in lines about the node itself.
pub(crate) const STARTED: &str = "started";
pub(crate) const STOPPED: &str = "stopped";
const DISCARDED: &str = "discarded";
const RESTORED: &str = "restored";

/// An event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    /// The client's name in the node's policy; empty if no client is involved.
    pub client: &'a str,
    /// The operation.
    pub operation: &'a str,
    /// The key's name; empty if no key is involved.
    pub key: &'a str,
    /// The outcome.
    pub outcome: &'a str,
    /// Blocks that were computed.
    pub blocks: u64,
    /// Further names and numbers, written by the node.
    pub detail: &'a str,
    /// The request's id.
    pub request: [u8; 16],
}

impl<'a> Event<'a> {
    /// An event that no client caused.
    pub(crate) fn of_node(operation: &'a str, outcome: &'a str) -> Event<'a> {
        Event { operation, outcome, ..Event::default() }
    }
}

/// A log that is being written.
#[derive(Debug)]
pub struct AuditLog {
    serves_unlogged: bool,
    end: Mutex<End>,
}

impl AuditLog {
    /// Opens a log for writing, or begins one. Compares its end with what the store knows about it, and the
    /// store's `mark` with that of the last line. If the node was `restored`, earlier files may be missing
    /// and the store may be older, and a new line says so.
    pub fn open(
        path: &Path,
        settings: &AuditSettings,
        noted: Option<Head>,
        (restored, mark): (bool, u64),
    ) -> Result<AuditLog, AuditError> {
        let broken = |cause| AuditError::Io { path: path.into(), cause };
        let file = files::open(path)?;
        let before = files::closed(path).map_err(broken)?.pop();
        let before = before.map(|(_, closed)| end_of_closed(path, &closed, noted)).transpose()?;
        let bytes = file.metadata().map_err(broken)?.len();
        let len = verify::whole_lines(&file, bytes).map_err(broken)?;
        let end = verify::check_end(&file, len, path, path, before.map(|last| last.head), noted)?;
        let written = if len == 0 { before.unwrap_or_default().mark } else { end.mark };
        if written > mark && !restored {
            return Err(AuditError::StoreBehind { path: path.into(), written, found: mark });
        }
        let (before, end) = (before.map(|last| last.head), end.head);
        // The backup was made just when another file was begun: it has no file of this log.
        let before = before.or(noted.filter(|_| restored && len == 0));
        let head = if len == 0 { before.unwrap_or_default() } else { end };
        verify::check_length(path, head, noted)?;
        // If earlier files are missing, only the node's settings or a restored backup explain this.
        let missing = match verify::first_record(&file, len).map_err(broken)? {
            Some(first) if before.is_none() => first.saturating_sub(1),
            None if restored && len == 0 => head.0,
            _ => 0,
        };
        if missing > 0 && !restored {
            verify(path, noted)?;
        }
        let end = Mutex::new(End::new(path, (file, len), (head, mark), settings));
        let log = AuditLog { serves_unlogged: settings.when_unwritable == WhenUnwritable::Serve, end };
        if len < bytes {
            log.lock().cut()?;
            log.append(&Event::of_node("recovered", "torn-line-cut"))?;
        }
        if restored {
            log.append(&Event { blocks: missing, ..Event::of_node(RESTORED, "from-backup") })?;
        }
        Ok(log)
    }

    /// Notes the store's mark for the lines that follow. The mark has to be on the store's disk.
    pub(crate) fn at_mark(&self, number: u64) {
        let mut end = self.lock();
        end.mark = end.mark.max(number);
    }

    /// Continues a gap that was open when the node ended.
    pub fn resume(&self, gap: Gap) {
        let mut end = self.lock();
        end.failed = Some("it could not be written when the node ended".into());
        end.gap = Some(gap);
    }

    /// Adds the line of a request that is about to be served. After an error the request must not be served.
    pub fn admit(&self, event: &Event) -> Result<(), AuditError> {
        self.add(event, self.serves_unlogged)
    }

    /// Adds a line, in one write. It is on the disk after [`AuditLog::sync`].
    pub fn append(&self, event: &Event) -> Result<(), AuditError> {
        self.add(event, false)
    }

    /// Adds a line, or counts that it is missing. `anyway` says whether its request is served without it.
    fn add(&self, event: &Event, anyway: bool) -> Result<(), AuditError> {
        let mut end = self.lock();
        let written = end.close_gap().and_then(|()| end.write(event));
        if let Err(e) = &written {
            metrics::counter!("polyclave_audit_unlogged_total").increment(1);
            let gap = end.open_gap(e, self.serves_unlogged);
            gap.events += 1;
            if anyway {
                gap.served += 1;
                return Ok(());
            }
        }
        written
    }

    /// Makes all lines durable. Returns the last of them, to be noted in the store.
    pub fn sync(&self) -> Result<Head, AuditError> {
        let mut end = self.lock();
        end.sync().inspect_err(|e| {
            end.open_gap(e, self.serves_unlogged);
        })?;
        Ok(end.head)
    }

    /// If lines could not be written, tries again. Returns whether they can be written.
    pub fn retry(&self) -> bool {
        let mut end = self.lock();
        match end.close_gap() {
            Ok(()) => true,
            Err(e) => {
                end.failed = Some(e.to_string());
                false
            }
        }
    }

    /// Number and hash of the last line; number 0 if there is none.
    pub fn head(&self) -> Head {
        self.lock().head
    }

    /// The time in which no line can be written, while it lasts.
    pub fn gap(&self) -> Option<Gap> {
        self.lock().gap.clone()
    }

    /// Why no line can be written, and whether requests are refused because of it.
    pub fn failure(&self) -> Option<(String, bool)> {
        self.lock().failed.clone().map(|why| (why, !self.serves_unlogged))
    }

    fn lock(&self) -> MutexGuard<'_, End> {
        self.end.lock()
    }
}

/// Number and hash of the last line of a full file.
fn end_of_closed(log: &Path, path: &Path, noted: Option<Head>) -> Result<verify::Last, AuditError> {
    let broken = |cause| AuditError::Io { path: path.into(), cause };
    let file = File::open(path).map_err(broken)?;
    let len = file.metadata().map_err(broken)?.len();
    if verify::whole_lines(&file, len).map_err(broken)? != len {
        return Err(AuditError::Broken { path: path.into(), line: 0, damage: Damage::Torn });
    }
    verify::check_end(&file, len, log, path, None, noted)
}

fn now() -> String {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0).ok();
    now.and_then(|now| now.format(&Rfc3339).ok()).unwrap_or_default()
}

/// The bytes of a file between two offsets.
fn read_range(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (to - from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

//! Who did what, in a log in which no line can be changed, removed, moved or inserted unnoticed.
//!
//! One line of JSON for each event. It has the hash of the line before and ends with its own: BLAKE3 of all other fields in
//! the order of the line, each text preceded by its length (8 bytes, little-endian), numbers in 8 bytes, little-endian,
//! `request` and `previous` as raw bytes. The hash takes no key, so anybody can check a log; who can write it could also
//! compute all hashes anew from some line on. That, and a cut end, shows against the number and hash of the last line, which
//! the node keeps in its store ([`Store::note_audit_head`](crate::store::Store::note_audit_head)). A log has several files; the chain goes
//! on from one to the next.
//!
//! A request has a line before anything is computed for it ([`AuditLog::admit`]) and another one when it is over. If the first cannot be
//! written the request is refused, unless the node is set to serve without. So no request that was served is missing, also
//! if the node is killed: what is written is in the hands of the operating system. It reaches the disk with [`AuditLog::sync`], once a
//! second; a power failure can take those lines, and the next start says that the node was not stopped in order.
//!
//! A line that a crash left half written is cut off when the log is opened, and a line `recovered` says so. A time in which no
//! line could be written becomes a line `gap` as soon as one can be ([`Gap`]).
//!
//! There is no field for free text. What does not look like a name is logged as `?`.

mod end;
mod error;
mod files;
#[cfg(test)]
mod fuzz;
mod gap;
mod line;
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
pub use gap::Gap;
pub use verify::{Verified, verify};

/// Number and hash of a line.
pub type Head = (u64, [u8; 32]);

/// What came of a request, in its first line: nothing yet.
pub(crate) const BEGUN: &str = "begun";
/// The operations of lines of the node itself.
pub(crate) const STARTED: &str = "started";
pub(crate) const STOPPED: &str = "stopped";
const DISCARDED: &str = "discarded";
const RESTORED: &str = "restored";

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    /// The client's name, as the node's policy has it; empty if it was none.
    pub client: &'a str,
    /// What it asked for.
    pub operation: &'a str,
    /// The key's name; empty if it was about none.
    pub key: &'a str,
    /// What came of it.
    pub outcome: &'a str,
    /// Blocks that were computed.
    pub blocks: u64,
    /// What else there is to say, by the node: names and numbers.
    pub detail: &'a str,
    /// The request's id.
    pub request: [u8; 16],
}

impl<'a> Event<'a> {
    /// Something that no client asked for.
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
    /// Opens a log for writing, or begins one, and compares its end with what the store knows of it.
    /// Of one that was `restored` the files before may be missing; a line says so.
    pub fn open(
        path: &Path,
        settings: &AuditSettings,
        noted: Option<Head>,
        restored: bool,
    ) -> Result<AuditLog, AuditError> {
        let broken = |source| AuditError::Io { path: path.into(), source };
        let file = files::open(path)?;
        let before = files::closed(path).map_err(broken)?.pop();
        let before = before.map(|(_, closed)| end_of_closed(path, &closed, noted)).transpose()?;
        let written = file.metadata().map_err(broken)?.len();
        let len = verify::whole_lines(&file, written).map_err(broken)?;
        let end = verify::check_end(&file, len, path, path, before, noted)?;
        // A backup was made just when another file was begun: it has none of this log.
        let before = before.or(noted.filter(|_| restored && len == 0));
        let head = if len == 0 { before.unwrap_or_default() } else { end };
        verify::check_length(path, head, noted)?;
        // Without a file before, only the node's settings or a restored backup explain this.
        let missing = match verify::first_record(&file, len).map_err(broken)? {
            Some(first) if before.is_none() => first.saturating_sub(1),
            None if restored && len == 0 => head.0,
            _ => 0,
        };
        if missing > 0 && !restored {
            verify(path, noted)?;
        }
        let end = Mutex::new(End::new(path, file, len, head, settings));
        let log = AuditLog { serves_unlogged: settings.when_unwritable == WhenUnwritable::Serve, end };
        if len < written {
            log.lock().cut()?;
            log.append(&Event::of_node("recovered", "torn-line-cut"))?;
        }
        if restored {
            log.append(&Event { blocks: missing, ..Event::of_node(RESTORED, "from-backup") })?;
        }
        Ok(log)
    }

    /// Goes on with a gap that was open when the node ended.
    pub fn resume(&self, gap: Gap) {
        let mut end = self.lock();
        end.failed = Some("it could not be written when the node ended".into());
        end.gap = Some(gap);
    }

    /// Adds the line of a request that is about to be served. An error means that it must not be.
    pub fn admit(&self, event: &Event) -> Result<(), AuditError> {
        self.add(event, self.serves_unlogged)
    }

    /// Adds a line, in one write. It is on the disk after [`AuditLog::sync`].
    pub fn append(&self, event: &Event) -> Result<(), AuditError> {
        self.add(event, false)
    }

    /// Adds a line, or counts that there is none, and whether the request that it is of is served `anyway`.
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

    /// Tries whether lines can be written again, if they could not. Whether they can.
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

    /// The time in which no line could be written, while it lasts.
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

/// The last line of a file that is full.
fn end_of_closed(log: &Path, path: &Path, noted: Option<Head>) -> Result<Head, AuditError> {
    let broken = |source| AuditError::Io { path: path.into(), source };
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

/// Bytes of a file from one place to another.
fn read_range(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (to - from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

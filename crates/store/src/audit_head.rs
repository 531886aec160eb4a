//! The end of the audit log as of its last sync, stored apart from the log so that a cut end is noticed; and
//! since when the log cannot be written.

use serde::{Deserialize, Serialize};

use super::engine::{Changes, Records, Table};
use super::own_records::own;
use super::{Result, Store};

const HEAD: &[u8] = b"audit head";
const GAP: &[u8] = b"audit gap";
const RESTORED: &[u8] = b"restored";

/// A time in which no line of the audit log could be written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// When it began.
    pub since: String,
    /// Events that have no line.
    pub events: u64,
    /// Requests among them that were served nevertheless; always zero unless the node is set to serve without
    /// lines.
    pub served: u64,
}

impl Store {
    /// Remembers number and hash of the last line of the audit log. The log must be synced up to that line
    /// first; otherwise a power failure looks like a cut.
    pub fn note_audit_head(&self, seq: u64, hash: [u8; 32]) -> Result<()> {
        self.engine.write(|changes| changes.put(Table::Meta, &self.own(HEAD), &(seq, hash)))
    }

    /// The number and hash that were noted last.
    pub fn audit_head(&self) -> Result<Option<(u64, [u8; 32])>> {
        self.engine.read(|records| records.get(Table::Meta, &self.own(HEAD)))
    }

    /// The same of one of the workers that share the store.
    pub fn audit_head_of(&self, worker: u16) -> Result<Option<(u64, [u8; 32])>> {
        self.engine.read(|records| records.get(Table::Meta, &own(worker, HEAD)))
    }

    /// Forgets what was noted, so that a new audit log can be begun when the old one is lost or was moved
    /// away. Only an operator may decide this: what was cut off before goes unnoticed.
    pub fn forget_audit_head(&self) -> Result<()> {
        self.engine.write(|changes| {
            changes.remove(Table::Meta, &self.own(HEAD))?;
            changes.remove(Table::Meta, &self.own(RESTORED))
        })
    }

    /// Remembers a time in which the audit log cannot be written, in case the node ends before that time is
    /// over; or that it is over.
    pub fn note_audit_gap(&self, gap: Option<&Gap>) -> Result<()> {
        self.engine.write(|changes| match gap {
            None => changes.remove(Table::Meta, &self.own(GAP)),
            Some(gap) => changes.put(Table::Meta, &self.own(GAP), gap),
        })
    }

    /// The time that was noted last, if it is not over.
    pub fn audit_gap(&self) -> Result<Option<Gap>> {
        self.engine.read(|records| records.get(Table::Meta, &self.own(GAP)))
    }

    /// Whether this store was restored from a backup and the audit log does not say so yet.
    pub fn is_restored(&self) -> Result<bool> {
        self.engine.read(|records| records.holds(Table::Meta, &self.own(RESTORED)))
    }

    /// Notes that the audit log now says so.
    pub fn note_restored_logged(&self) -> Result<()> {
        self.engine.write(|changes| changes.remove(Table::Meta, &self.own(RESTORED)))
    }
}

pub(super) fn mark_restored(changes: &Changes) -> Result<()> {
    changes.put(Table::Meta, RESTORED, &())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::Gap;

    #[test]
    fn a_gap_is_remembered_until_it_is_over() {
        let (store, disk) = in_memory();
        let gap = Gap { since: "2026-01-01T00:00:00Z".into(), events: 3, served: 2 };
        store.note_audit_gap(Some(&gap)).expect("noted");
        assert_eq!(reopen(&disk.copy()).audit_gap().expect("read"), Some(gap));
        store.note_audit_gap(None).expect("noted");
        assert_eq!(store.audit_gap().expect("read"), None);
    }

    #[test]
    fn the_head_that_was_noted_last_comes_back() {
        let (store, disk) = in_memory();
        assert_eq!(store.audit_head().expect("read"), None);
        store.note_audit_head(1, [1; 32]).expect("noted");
        store.note_audit_head(9, [2; 32]).expect("noted");
        assert_eq!(reopen(&disk.copy()).audit_head().expect("read"), Some((9, [2; 32])));
        store.forget_audit_head().expect("forgotten");
        assert_eq!(store.audit_head().expect("read"), None);
    }
}

//! Where the audit log ended when it was last synced, kept apart from it so that a cut end is noticed.

use super::engine::{Records, Table};
use super::{Result, Store};

const HEAD: &[u8] = b"audit head";

impl Store {
    /// Remembers number and hash of the last line of the audit log. The log must be synced up to it first, or a power
    /// failure looks like a cut.
    pub fn note_audit_head(&self, seq: u64, hash: [u8; 32]) -> Result<()> {
        self.engine.write(|changes| changes.put(Table::Meta, HEAD, &(seq, hash)))
    }

    /// What was noted last.
    pub fn audit_head(&self) -> Result<Option<(u64, [u8; 32])>> {
        self.engine.read(|records| records.get(Table::Meta, HEAD))
    }

    /// Forgets what was noted, so that a new audit log can be begun when the old one is lost or was moved away. An operator's
    /// decision: what was cut off then goes unnoticed.
    pub fn forget_audit_head(&self) -> Result<()> {
        self.engine.write(|changes| changes.remove(Table::Meta, HEAD))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;

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

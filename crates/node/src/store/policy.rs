//! Which rules for clients were in force last, as their file has them: what changed in it while no node ran is noticed at the next start,
//! and a disk that is put back to one with other rules by the mark that moves with them.

use super::engine::{Records, Table};
use super::{Result, Store};

const POLICY: &[u8] = b"policy";

impl Store {
    /// Remembers the rules in force.
    pub fn note_policy(&self, text: &str) -> Result<()> {
        self.change(|changes| changes.put(Table::Meta, POLICY, &text))
    }

    /// Those that were noted last.
    pub fn noted_policy(&self) -> Result<Option<String>> {
        self.engine.read(|records| records.get(Table::Meta, POLICY))
    }
}

//! The rules for clients that were in force last, in the form of their file. So the next start notices what
//! changed in the file while no node ran, and peers notice a disk that is put back to other rules, by the
//! mark that moves with them.

use super::approvals::forget_approved_policy;
use super::engine::{Records, Table};
use super::{Result, Store};

const POLICY: &[u8] = b"policy";

impl Store {
    /// Remembers the rules in force.
    pub fn note_policy(&self, text: &str) -> Result<()> {
        self.change(|changes| {
            forget_approved_policy(changes)?;
            changes.put(Table::Meta, POLICY, &text)
        })
    }

    /// The rules that were noted last.
    pub fn noted_policy(&self) -> Result<Option<String>> {
        self.engine.read(|records| records.get(Table::Meta, POLICY))
    }
}

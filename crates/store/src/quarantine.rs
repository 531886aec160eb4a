//! The record that a check failed and that this node therefore serves nothing. Only a refresh
//! ([`super::refresh`]) ends it.

use serde::{Deserialize, Serialize};

use super::engine::{Records, Table};
use super::{Result, Store};

pub(super) const QUARANTINE: &[u8] = b"quarantine";

/// Why this node serves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// What happened, for the operator. It says nothing about how far a computation had come.
    pub reason: String,
    /// Seconds since 1970.
    pub since: u64,
}

impl Store {
    /// Remembers that a check failed. The first reason stays. A worker whose common secrets another one has
    /// replaced writes nothing: what failed under those is over with them.
    pub fn quarantine(&self, reason: &str, since: u64) -> Result<()> {
        self.change(|changes| {
            if changes.holds(Table::Meta, QUARANTINE)? || self.is_renewed(changes)? {
                return Ok(());
            }
            changes.put(Table::Meta, QUARANTINE, &Quarantine { reason: reason.into(), since })
        })
    }

    /// Why this node serves nothing, if that is so.
    pub fn quarantined(&self) -> Result<Option<Quarantine>> {
        self.engine.read(|records| records.get(Table::Meta, QUARANTINE))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;

    #[test]
    fn a_quarantine_survives_a_crash_and_its_first_reason_stays() {
        let (store, disk) = in_memory();
        assert_eq!(store.quarantined().expect("read"), None);
        store.quarantine("one", 5).expect("written");
        store.quarantine("two", 6).expect("written");
        let quarantine = reopen(&disk.copy()).quarantined().expect("read").expect("there");
        assert_eq!((quarantine.reason.as_str(), quarantine.since), ("one", 5));
    }
}

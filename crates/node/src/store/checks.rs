//! How many checks have failed or stayed without an answer under the common secrets in use, as this node has seen them. A restart does not
//! reset the count. Fresh common secrets start at zero.

use polyclave_protocol::spdz::Guesses;
use serde::{Deserialize, Serialize};

use super::engine::{Changes, Records, Table};
use super::setup::{AGREED, load};
use super::{Result, Store};

const CHECKS: &[u8] = b"checks that did not pass";

#[derive(Default, Serialize, Deserialize)]
struct Counted {
    /// The common secrets that the count is about.
    setup: [u8; 32],
    failed: u32,
    unanswered: u32,
    /// The number of failures whose risk the operator has accepted.
    accepted: u32,
}

impl Store {
    /// Failed and unanswered checks under the common secrets in use.
    pub fn guesses(&self) -> Result<Guesses> {
        self.engine.read(|records| {
            let Counted { failed, unanswered, .. } = counted(records)?;
            Ok(Guesses { failed, unanswered })
        })
    }

    /// Adds to the count.
    pub fn count_guesses(&self, more: Guesses) -> Result<()> {
        self.engine.write(|changes| {
            let mut counted = counted(changes)?;
            counted.failed = counted.failed.saturating_add(more.failed);
            counted.unanswered = counted.unanswered.saturating_add(more.unanswered);
            changes.put(Table::Meta, CHECKS, &counted)
        })
    }

    /// Whether the operator has accepted the risk of all failures.
    pub fn guesses_accepted(&self) -> Result<bool> {
        self.engine.read(|records| counted(records).map(|counted| counted.accepted >= counted.failed))
    }
}

/// The operator accepts the risk of all failures so far.
pub(super) fn accept(changes: &Changes) -> Result<()> {
    let counted = counted(changes)?;
    changes.put(Table::Meta, CHECKS, &Counted { accepted: counted.failed, ..counted })
}

fn counted(records: &impl Records) -> Result<Counted> {
    let setup = load(records, AGREED)?.map(|agreed| agreed.id).unwrap_or_default();
    let stored: Option<Counted> = records.get(Table::Meta, CHECKS)?;
    Ok(stored.filter(|counted| counted.setup == setup).unwrap_or(Counted { setup, ..Counted::default() }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn checks_that_did_not_pass_are_counted_over_crashes_until_there_are_fresh_secrets() {
        let (store, disk) = in_memory();
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        assert_eq!(store.guesses().expect("read"), Guesses::default());
        store.count_guesses(Guesses { failed: 1, unanswered: 0 }).expect("counted");
        store.count_guesses(Guesses { failed: 1, unanswered: 3 }).expect("counted");
        let store = reopen(&disk.copy());
        assert_eq!(store.guesses().expect("read"), Guesses { failed: 2, unanswered: 3 });

        assert!(!store.guesses_accepted().expect("read"));
        store.want_rotation_despite_guesses().expect("accepted");
        assert!(store.guesses_accepted().expect("read"));
        store.count_guesses(Guesses { failed: 1, unanswered: 0 }).expect("counted");
        assert!(!store.guesses_accepted().expect("read"), "not of what fails later");

        store.put_setup([2; 32], 2, b"new", true).expect("put");
        assert_eq!(store.guesses().expect("read"), Guesses::default());
    }
}

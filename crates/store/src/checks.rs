//! How many checks have failed or stayed without an answer under the common secrets in use, as this node has
//! seen them. A restart does not reset the count. Fresh common secrets start at zero. After another worker
//! has replaced the common secrets, a worker that still runs under the old ones counts nothing: their count
//! is over.
//!
//! # One comparison at a time
//!
//! From each comparison that its guess makes fail, a cheater learns one bit of the MAC key
//! (`authenticated/guesses.rs` of the protocol crate). So of all workers of the party one compares at a time
//! ([`Store::compare_alone`]). It first looks whether an earlier comparison has failed. If its own fails, the
//! count and the quarantine are on the disk before the next one can begin. So all workers together have one
//! failed comparison under a MAC key, until the operators order a refresh.
//!
//! If a worker is killed during a comparison, or loses the server, nothing is counted and the others go on.
//! The cheater learns nothing from that: the worker has sent nothing that depends on the outcome. Its peers
//! cannot choose that moment, which is as short as a change of the store. A worker that cannot write a
//! failure down tries again, and does not use the MAC key meanwhile.

#[cfg(test)]
mod workers;

use polyclave_protocol::authenticated::Guesses;
use serde::{Deserialize, Serialize};

use super::engine::{Changes, Records, Table};
use super::quarantine::QUARANTINE;
use super::setup::{self, AGREED, load};
use super::{Quarantine, Result, Store};

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
        self.change_quietly(|changes| if self.is_renewed(changes)? { Ok(()) } else { add(changes, more) })
    }

    /// Counts a check that failed and puts this node under quarantine, in one change. If the node is under
    /// quarantine already, the first reason stays. After a failure that is counted another one counts only
    /// with `again`.
    pub fn count_failure(&self, failure: &Quarantine, again: bool) -> Result<()> {
        self.change(|changes| {
            if self.is_renewed(changes)? {
                return Ok(());
            }
            let is_first = !changes.holds(Table::Meta, QUARANTINE)?;
            if is_first {
                changes.put(Table::Meta, QUARANTINE, failure)?;
            }
            if is_first || again || counted(changes)?.failed == 0 {
                add(changes, Guesses { failed: 1, unanswered: 0 })?;
            }
            Ok(())
        })
    }

    /// Makes a comparison that can tell a bit of the MAC key, while no other worker makes one. If it fails,
    /// this returns after the failure is counted and the node is under quarantine.
    ///
    /// Returns false, and compares nothing, if the node was under quarantine before (except in a refresh), or
    /// if another worker has replaced the common secrets.
    pub fn compare_alone(
        &self,
        refreshes: bool,
        compare: impl FnOnce() -> Option<Quarantine>,
    ) -> Result<bool> {
        let looked_at = (QUARANTINE, AGREED);
        self.engine.alone(looked_at, |quarantine: Option<Quarantine>, agreed: Option<setup::Owned>| {
            let is_ended = quarantine.is_some() && !refreshes;
            if is_ended || self.is_of_others(agreed.map(setup::Owned::into_id)) {
                return Ok(false);
            }
            compare().map_or(Ok(true), |failure| self.count_failure(&failure, true).map(|()| true))
        })
    }

    /// Whether the operator has accepted the risk of all failures.
    pub fn guesses_accepted(&self) -> Result<bool> {
        self.engine.read(|records| counted(records).map(|counted| counted.accepted >= counted.failed))
    }
}

fn add(changes: &Changes, more: Guesses) -> Result<()> {
    let mut counted = counted(changes)?;
    counted.failed = counted.failed.saturating_add(more.failed);
    counted.unanswered = counted.unanswered.saturating_add(more.unanswered);
    changes.put(Table::Meta, CHECKS, &counted)
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
        store.want_refresh_despite_guesses().expect("accepted");
        assert!(store.guesses_accepted().expect("read"));
        store.count_guesses(Guesses { failed: 1, unanswered: 0 }).expect("counted");
        assert!(!store.guesses_accepted().expect("read"), "not of what fails later");

        store.put_setup([2; 32], 2, b"new", true).expect("put");
        assert_eq!(store.guesses().expect("read"), Guesses::default());
    }

    fn failure() -> Quarantine {
        Quarantine { reason: "a check failed".into(), since: 1 }
    }

    #[test]
    fn after_a_comparison_that_fails_none_takes_place_except_in_a_refresh() {
        let (store, disk) = in_memory();
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        assert!(store.compare_alone(false, || None).expect("compared"));
        assert_eq!(store.guesses().expect("read"), Guesses::default());
        assert!(store.compare_alone(false, || Some(failure())).expect("compared"));
        // Also as the disk has it when the comparison ends.
        for store in [&store, &reopen(&disk.copy())] {
            assert_eq!(store.guesses().expect("read"), Guesses { failed: 1, unanswered: 0 });
            assert_eq!(store.quarantined().expect("read"), Some(failure()));
            let compared = store.compare_alone(false, || panic!("none takes place"));
            assert!(!compared.expect("refused"));
        }
        assert!(store.compare_alone(true, || Some(failure())).expect("compared"));
        assert_eq!(store.guesses().expect("read"), Guesses { failed: 2, unanswered: 0 });
    }

    #[test]
    fn checks_that_fail_at_once_count_once_unless_each_can_tell_a_bit() {
        let (store, _disk) = in_memory();
        for (again, counted) in [(false, 1), (false, 1), (true, 2), (false, 2)] {
            store.count_failure(&failure(), again).expect("counted");
            assert_eq!(store.guesses().expect("read").failed, counted);
        }
    }

    #[test]
    fn the_first_check_that_fails_counts_under_a_quarantine_of_another_reason_too() {
        let (store, _disk) = in_memory();
        store.quarantine("too many silences", 1).expect("put");
        for _ in 0..2 {
            store.count_failure(&failure(), false).expect("counted");
            assert_eq!(store.guesses().expect("read").failed, 1);
        }
        assert_eq!(store.quarantined().expect("read").expect("it is").reason, "too many silences");
    }
}

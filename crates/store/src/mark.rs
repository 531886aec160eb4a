//! How far this store has come: a number that grows with every change that must not be undone unnoticed, in
//! the same transaction.
//!
//! Such changes are starts, keys that are made or deleted, ranges of budgets, common secrets and their
//! refresh, a quarantine, changed rules for clients, and readmitted peers. Marks of lots are not among them:
//! the material itself is in memory only.
//!
//! Each change draws a random value, and each start draws a boot id. Peers remember the latest number that
//! they were told, with both ([`super::seen`]), and are told only what is on the disk. So a store that is put
//! back has a lower number than they remember. If it continues from there, or two copies of it run, it passes
//! the number that they remember in another start, or with another value.
//!
//! Number and values are in one sealed record with the digest of all rows ([`super::engine::head`]). So rows
//! cannot be put back without the mark.

use std::sync::OnceLock;

use parking_lot::Mutex;

use serde::{Deserialize, Serialize};

use super::audit_head::mark_restored;
use super::engine::head::{Head, Mark};
use super::engine::{Changes, Records};
use super::incarnation::{self, Start};
use super::{Result, Store, StoreError};

/// What a node says about everything that its store remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// The number of the latest change.
    pub number: u64,
    /// Values of the latest changes, the latest first.
    pub recent: Vec<[u8; 16]>,
    /// The latest starts, the latest first.
    pub starts: Vec<Start>,
}

/// The latest mark that is on the disk, once it has been read.
#[derive(Debug, Default)]
pub(super) struct Latest {
    mark: Mutex<Option<Mark>>,
    /// The number that was confirmed, and the lower one that was found afterwards.
    lost: OnceLock<(u64, u64)>,
}

impl Latest {
    /// If two changes become durable at the same time, the later mark counts, in any order of arrival here.
    pub(super) fn note(&self, mark: Mark) {
        let mut latest = self.mark.lock();
        if latest.is_none_or(|before| before.number < mark.number) {
            *latest = Some(mark);
        }
    }

    /// Why the store cannot be used any more, if it has lost changes.
    pub(super) fn loss(&self) -> Option<StoreError> {
        self.lost.get().map(|(known, found)| StoreError::Lost { known: *known, found: *found })
    }

    /// Refuses a store that has lost changes while it was in use: a server does if it fails over to a replica
    /// that had not received them. This process knows better, and would go on to spend again what is spent.
    fn refuse_loss(&self, known: Option<Mark>, found: &Head) -> Result<()> {
        let Some(known) = known else { return Ok(()) };
        // Other workers may have gone on from what is lost. Then the value of the known change is another
        // one.
        let later = found.number.checked_sub(known.number);
        let value = later.map(|later| usize::try_from(later).ok().and_then(|later| found.recent.get(later)));
        if value.is_some_and(|value| value.is_none_or(|value| *value == known.value)) {
            return Ok(());
        }
        let _ = self.lost.set((known.number, found.number));
        Err(StoreError::Lost { known: known.number, found: found.number })
    }

    /// The latest mark that is known to be on the disk.
    pub(super) fn known(&self) -> Option<Mark> {
        *self.mark.lock()
    }

    /// Takes note of the mark of a store that other workers change, too. `known` is what was known before the
    /// store was asked.
    pub(super) fn hear(&self, known: Option<Mark>, found: &Head) -> Result<()> {
        self.refuse_loss(known, found)?;
        self.note(found.mark());
        Ok(())
    }
}

impl Store {
    /// Makes a change that must not be undone unnoticed.
    pub(super) fn change<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        let (done, moved) = self.change_quietly(|changes| {
            let done = work(changes)?;
            Ok((done, self.move_edition(changes)?))
        })?;
        self.note_edition(moved);
        Ok(done)
    }

    /// The same if other workers need not learn of it.
    pub(super) fn change_quietly<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        let known = self.latest.known();
        let (done, mark) = self.engine.write(|changes| {
            self.latest.refuse_loss(known, &changes.head())?;
            let done = work(changes)?;
            changes.change_head(Head::advance)??;
            Ok((done, changes.head().mark()))
        })?;
        self.latest.note(mark);
        Ok(done)
    }

    /// The latest such change; it is on the disk.
    pub fn mark(&self) -> Result<Mark> {
        match self.latest.known() {
            Some(mark) => Ok(mark),
            None => {
                let mark = self.engine.read(|records| Ok(records.head().mark()))?;
                self.latest.note(mark);
                Ok(mark)
            }
        }
    }

    /// What this node can say about its past. All of it is on the disk. From now on [`Store::mark`] tells no
    /// earlier mark than this one, also if other workers have made the latest changes.
    pub fn past(&self) -> Result<Past> {
        let known = self.latest.known();
        let (head, starts) = self
            .engine
            .read(|records| Ok((records.head(), incarnation::starts(records, self.worker.number)?)))?;
        self.latest.hear(known, &head)?;
        Ok(Past { number: head.number, recent: head.recent.clone(), starts })
    }

    /// Takes over the records that were restored into this store.
    pub(super) fn begin_restored(&self) -> Result<()> {
        self.engine.adopt(true)?;
        self.engine.load()?;
        self.disown_past()
    }

    /// Forgets starts and values, so that peers that have seen any of them refuse this store as a copy until
    /// an operator readmits it. A restored backup has lost what happened since, if only a little.
    fn disown_past(&self) -> Result<()> {
        self.engine.write(|changes| {
            changes.change_head(|head| head.recent.clear())?;
            incarnation::forget_starts(changes)?;
            mark_restored(changes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::head::RECENT;
    use super::super::testing::*;
    use super::*;

    fn moves(store: &Store, change: impl FnOnce(&Store)) -> u64 {
        let before = store.mark().expect("read").number;
        change(store);
        store.mark().expect("read").number - before
    }

    #[test]
    fn every_change_that_must_not_be_undone_moves_the_mark_and_no_other_does() {
        let (store, _) = in_memory();
        let one = key("one", 1);
        type Change<'c> = &'c dyn Fn(&Store);
        let changes: [(&str, Change<'_>); 9] = [
            ("a start", &|s| assert!(s.begin_incarnation().is_ok())),
            ("a key stored", &|s| s.put_pending(&one).expect("put")),
            ("a key announced", &|s| s.announce("one", one.info.id).expect("announced")),
            ("a range of a budget", &|s| {
                s.spend((one.info.id, one.info.id), 1, 6400).expect("in the budget")
            }),
            ("a key deleted", &|s| s.delete("one", one.info.id).expect("deleted")),
            ("common secrets", &|s| s.put_setup([1; 32], 1, b"one", true).expect("put")),
            ("a refresh", &|s| s.want_refresh().expect("wanted")),
            ("a quarantine", &|s| s.quarantine("a check failed", 1).expect("written")),
            ("who may do what", &|s| s.note_policy("alice").expect("noted")),
        ];
        for (what, change) in changes {
            assert_eq!(moves(&store, change), 1, "{what}");
        }
        store.spend(([9; 16], [9; 16]), 1, 6400).expect("in the budget");
        let within = |s: &Store| s.spend(([9; 16], [9; 16]), 99, 6400).expect("in the range");
        assert_eq!(moves(&store, within), 0, "one synced write for a range");
        assert_eq!(moves(&store, |s| s.note_audit_head(1, [1; 32]).expect("noted")), 0);
        assert_eq!(moves(&store, |s| s.settle().expect("settled")), 0);
    }

    #[test]
    fn the_mark_is_what_is_on_the_disk() {
        let (store, disk) = in_memory();
        store.begin_incarnation().expect("counted");
        assert_eq!(reopen(&disk.copy()).mark().expect("read"), store.mark().expect("read"));
        let before = store.mark().expect("read");
        disk.fill_up();
        assert!(store.put_pending(&key("k", 1)).is_err());
        assert_eq!(store.mark().expect("in memory"), before, "what is not durable is not told");
    }

    #[test]
    fn only_so_many_values_are_kept() {
        let (store, _) = in_memory();
        store.begin_incarnation().expect("counted");
        (0..100).for_each(|n| store.spend(([n; 16], [n; 16]), 1, 64).expect("in the budget"));
        let past = store.past().expect("read");
        assert_eq!((past.number, past.recent.len(), past.starts.len()), (101, RECENT, 1));
    }
}

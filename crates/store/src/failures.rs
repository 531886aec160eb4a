//! How many verifications under the keys of an account have failed in the present hour. A payment command
//! that fails tells its client something of a PIN or a code, so a node does not answer more failures than its
//! limit.
//!
//! A verification is counted as failed before it is computed, and given back if it succeeds. As with budgets
//! ([`super::budget`]), a process takes a lease ahead with one synced write, and workers that share a store
//! take from the same record. So the disk never shows fewer failures than there were, wherever a node is
//! killed; after a crash the rest of a lease counts as failed until the hour ends.
//!
//! While verifications are under way nobody knows whether they fail. If the limit does not suffice for more
//! of them meanwhile, the store says that it is busy, and not that the limit is reached.
//!
//! Hours are those of the node's own clock. A clock that is set back does not begin an hour again: the record
//! keeps the latest one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::deletions::refuse_deleted;
use super::engine::{Changes, Records, Table};
use super::{Result, Store, StoreError};

/// The beginning of the name of the record. The account follows.
const FAILURES: &[u8] = b"failures ";

/// The most failures of a lease, unless one request takes more.
const AHEAD: u64 = 16;

fn record_of(account: [u8; 16]) -> Vec<u8> {
    [FAILURES, &account].concat()
}

/// Removes the record of an account that has no key any more.
pub(super) fn forget(changes: &Changes<'_>, account: [u8; 16]) -> Result<()> {
    changes.remove(Table::Meta, &record_of(account))
}

/// Removes all of these records, because all keys are replaced.
pub(super) fn clear(changes: &Changes<'_>) -> Result<()> {
    let all = changes.between(Table::Meta, FAILURES, &[FAILURES, &[0xff; 17]].concat())?;
    all.into_iter()
        .filter(|(record, _)| record.len() == FAILURES.len() + 16)
        .try_for_each(|(record, _)| changes.remove(Table::Meta, &record))
}

/// What this process holds of each account in use.
#[derive(Debug, Default)]
pub(super) struct Failures {
    accounts: Mutex<HashMap<[u8; 16], Arc<Mutex<Lease>>>>,
}

/// Failures that count on the disk and have not happened: this process may let them happen.
#[derive(Clone, Copy, Debug, Default)]
struct Lease {
    hour: u64,
    held: u64,
    /// Verifications that count as failed and have not ended.
    under_way: u64,
}

impl Failures {
    fn lease(&self, account: [u8; 16]) -> Arc<Mutex<Lease>> {
        self.accounts.lock().entry(account).or_default().clone()
    }

    /// Forgets all that was read: the records have been replaced.
    pub(super) fn clear(&self) {
        self.accounts.lock().clear();
    }
}

/// Verifications that count as failed. They are given back if they are dropped before they have begun.
#[derive(Debug)]
pub struct Attempts {
    lease: Arc<Mutex<Lease>>,
    hour: u64,
    /// How many are under way.
    count: u64,
    /// How many of them are given back when they end.
    unused: u64,
}

impl Attempts {
    /// They begin: from now on they have failed, except for those that [`succeed`](Attempts::succeed).
    pub fn begin(&mut self) {
        self.unused = 0;
    }

    /// They have ended. Gives back those that have succeeded.
    pub fn succeed(&mut self, succeeded: u64) {
        self.unused = succeeded;
        self.end();
    }

    /// What belongs to an hour that has ended is of no use any more.
    fn end(&mut self) {
        let mut lease = self.lease.lock();
        if lease.hour == self.hour {
            lease.held += self.unused;
            lease.under_way -= self.count;
        }
        (self.count, self.unused) = (0, 0);
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        self.end();
    }
}

impl Store {
    /// Counts verifications under a key as failed in its account, in which `limit` may fail in this hour. All
    /// of them or none. `now` is in seconds since 1970.
    pub fn attempt(
        &self,
        (id, account): ([u8; 16], [u8; 16]),
        count: u64,
        limit: u64,
        now: u64,
    ) -> Result<Attempts> {
        let shared = self.failures.lease(account);
        let mut lease = shared.lock();
        let hour = lease.hour.max(now / 3600);
        if hour > lease.hour {
            *lease = Lease { hour, ..Lease::default() };
        }
        let needed = count.saturating_sub(lease.held);
        if needed > 0 {
            let (more, hour) = self.change_quietly(|changes| {
                refuse_deleted(changes, id)?;
                let recorded: Option<(u64, u64)> = changes.get(Table::Meta, &record_of(account))?;
                let (hour, counted) = match recorded {
                    Some((latest, counted)) if latest >= hour => (latest, counted),
                    _ => (hour, 0),
                };
                // What is held is of an hour that another worker has ended.
                let needed = if hour == lease.hour { needed } else { count };
                let free = limit.saturating_sub(counted);
                if needed > free && hour == lease.hour && lease.under_way > 0 && count <= limit {
                    return Err(StoreError::VerificationsUnderWay);
                }
                if needed > free {
                    return Err(StoreError::TooManyFailures { limit });
                }
                let more = needed.max(AHEAD).min(free);
                changes.put(Table::Meta, &record_of(account), &(hour, counted + more))?;
                Ok((more, hour))
            })?;
            let before = if hour == lease.hour { *lease } else { Lease { hour, ..Lease::default() } };
            *lease = Lease { held: before.held + more, ..before };
        }
        lease.held -= count;
        lease.under_way += count;
        Ok(Attempts { hour: lease.hour, lease: shared.clone(), count, unused: count })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const KEY: ([u8; 16], [u8; 16]) = ([5; 16], [5; 16]);
    const HOUR: u64 = 3600;

    /// Lets so many of some verifications succeed.
    fn attempt(store: &Store, [count, succeeded]: [u64; 2], limit: u64, now: u64) -> Result<()> {
        let mut attempts = store.attempt(KEY, count, limit, now)?;
        attempts.begin();
        attempts.succeed(succeeded);
        Ok(())
    }

    /// Lets verifications fail until no more may, and says how many failed.
    fn fail_all(store: &Store, limit: u64, now: u64) -> u64 {
        (0..).take_while(|_| attempt(store, [1, 0], limit, now).is_ok()).count() as u64
    }

    #[test]
    fn so_many_fail_in_an_hour_and_those_that_succeed_do_not_count() {
        let (store, _) = in_memory();
        for _ in 0..500 {
            attempt(&store, [3, 3], 20, HOUR).expect("none failed");
            drop(store.attempt(KEY, 20, 20, HOUR).expect("it does not begin"));
        }
        attempt(&store, [5, 2], 20, HOUR).expect("within the limit");
        assert_eq!(fail_all(&store, 20, HOUR), 17);
        assert!(matches!(
            store.attempt(KEY, 1, 20, 2 * HOUR - 1),
            Err(StoreError::TooManyFailures { limit: 20 })
        ));
        assert_eq!(fail_all(&store, 20, 2 * HOUR), 20, "in the next hour");
        assert_eq!(fail_all(&store, 20, HOUR), 0, "a clock that is set back");
        assert_eq!(fail_all(&store, 0, 9 * HOUR), 0);
    }

    #[test]
    fn nothing_is_given_back_into_another_hour() {
        let (store, _) = in_memory();
        let old = store.attempt(KEY, 20, 20, HOUR).expect("within the limit");
        attempt(&store, [4, 4], 20, 2 * HOUR).expect("of the next hour");
        drop(old);
        assert_eq!(fail_all(&store, 20, 2 * HOUR), 20);
    }

    #[test]
    fn while_others_are_under_way_the_store_is_busy_and_afterwards_has_what_they_gave_back() {
        let (store, _) = in_memory();
        let mut first = store.attempt(KEY, 20, 20, HOUR).expect("within the limit");
        let second = || store.attempt(KEY, 1, 20, HOUR);
        assert!(matches!(second(), Err(StoreError::VerificationsUnderWay)));
        first.begin();
        first.succeed(5);
        drop(second().expect("there are five"));
        drop(first);
        assert_eq!(fail_all(&store, 20, HOUR), 5, "they are given back once");
        assert!(matches!(second(), Err(StoreError::TooManyFailures { limit: 20 })));
    }

    #[test]
    fn after_a_crash_no_failure_is_forgotten() {
        let (store, disk) = in_memory();
        attempt(&store, [1, 0], 40, HOUR).expect("within the limit");
        let crashed = reopen(&disk.copy());
        assert_eq!(fail_all(&crashed, 40, HOUR), 40 - AHEAD, "the rest of the lease counts as failed");
    }

    #[test]
    fn two_workers_count_together() {
        let (store, disk) = in_memory();
        assert_eq!(fail_all(&store, 10, HOUR), 10);
        let other = reopen(&disk.copy());
        assert_eq!(fail_all(&other, 10, HOUR), 0);
        assert_eq!(fail_all(&other, 12, HOUR), 2);
    }

    #[test]
    fn what_cannot_be_written_down_is_not_attempted() {
        let (store, disk) = in_memory();
        disk.fill_up();
        assert!(matches!(store.attempt(KEY, 1, 10, HOUR), Err(StoreError::Failed(_))));
        disk.make_room();
        assert_eq!(fail_all(&store, 10, HOUR), 10);
    }

    #[test]
    fn the_record_ends_with_the_last_key_of_the_account() {
        let (store, _) = in_memory();
        let stored = key("k", 5);
        store.put_pending(&stored).expect("put");
        let ids = (stored.info.id, stored.info.account);
        drop(store.attempt(ids, 1, 10, HOUR).expect("within the limit"));
        store.delete("k", stored.info.id).expect("deleted");
        let record = store.engine.read(|records| records.get::<(u64, u64)>(Table::Meta, &record_of(ids.1)));
        assert_eq!(record.expect("read"), None);
        assert!(matches!(store.attempt(ids, 17, 100, HOUR), Err(StoreError::Deleted { .. })));
    }
}

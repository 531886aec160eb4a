//! How many blocks were computed under a key and its copies, which have one account. A process takes a lease
//! of many blocks ahead, with one synced write, and spends from it in memory. Workers that share a store take
//! leases from the same account.
//!
//! The disk never shows less than what was spent. After a crash the rest of a lease counts as spent; after an
//! orderly end it does not.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::accounts::Left;
use super::deletions::refuse_deleted;
use super::engine::{Records, Table};
use super::{Result, Store, StoreError};

/// The most blocks of a lease, unless one request takes more.
const MAX_AHEAD: u64 = 1 << 20;

/// How much is spent of the accounts in use: some hundred bytes for each used since the start.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    accounts: Mutex<HashMap<[u8; 16], Arc<Mutex<Meter>>>>,
}

/// Blocks of one account.
#[derive(Debug, Default)]
struct Meter {
    /// Blocks that count as spent on the disk, and are not: this process may spend them.
    held: u64,
    /// The most blocks that counted as spent when some of them were reserved. A key with a smaller budget may
    /// not spend them all.
    reach: u64,
    /// Keys that paid from it and were deleted since the start, while others still pay from it.
    deleted: BTreeSet<[u8; 16]>,
    /// Nothing pays from it any more.
    closed: bool,
}

impl Budgets {
    fn meter(&self, account: [u8; 16]) -> Arc<Mutex<Meter>> {
        self.accounts.lock().entry(account).or_default().clone()
    }

    /// Forgets all that was read: the records have been replaced. Nothing is being spent.
    pub(super) fn clear(&self) {
        self.accounts.lock().clear();
    }

    /// Notes that a key was deleted, and whether it was the last one of its account.
    pub(super) fn forget(&self, id: [u8; 16], left: Left) {
        match left.is_last {
            true => {
                let meter = self.accounts.lock().remove(&left.account);
                meter.inspect(|meter| meter.lock().closed = true);
            }
            // A request under way may still hold the meter.
            false => {
                self.meter(left.account).lock().deleted.insert(id);
            }
        }
    }
}

impl Store {
    /// Spends blocks of a key from its account, which may have spent `limit` blocks in total then. All of
    /// them or none. Keys of one account may have different limits.
    pub fn spend(&self, (id, account): ([u8; 16], [u8; 16]), blocks: u64, limit: u64) -> Result<()> {
        let meter = self.budgets.meter(account);
        let mut meter = meter.lock();
        if meter.closed || meter.deleted.contains(&id) {
            return Err(StoreError::Deleted { id: hex::encode(id) });
        }
        let held = meter.held;
        let left = |counted: u64| limit.saturating_sub(counted.saturating_sub(held));
        if limit < meter.reach {
            let counted = self.engine.read(|records| counted(records, account))?;
            if blocks > left(counted) {
                return Err(StoreError::Spent { left: left(counted) });
            }
        }
        let needed = blocks.saturating_sub(held);
        if needed > 0 {
            let ahead = (limit / 64).clamp(1, MAX_AHEAD);
            let (more, reach) = self.change_quietly(|changes| {
                refuse_deleted(changes, id)?;
                let counted = counted(changes, account)?;
                let free = limit.saturating_sub(counted);
                if needed > free {
                    return Err(StoreError::Spent { left: left(counted) });
                }
                let more = needed.max(ahead).min(free);
                changes.put(Table::Spent, &account, &(counted + more))?;
                Ok((more, counted + more))
            })?;
            meter.held += more;
            meter.reach = meter.reach.max(reach);
        }
        meter.held -= blocks;
        Ok(())
    }

    /// How many blocks of each account count as spent, read at once. Accounts with nothing spent may be
    /// missing.
    pub fn spent_of_all(&self) -> Result<HashMap<[u8; 16], u64>> {
        let mut all = HashMap::new();
        self.engine.read(|records| {
            records.each::<u64>(Table::Spent, |account, spent| {
                let account = account.try_into().map_err(|_| StoreError::corrupt("a budget"))?;
                all.insert(account, spent);
                Ok(())
            })
        })?;
        // Blocks that are held here are not all spent.
        let meters: Vec<_> =
            self.budgets.accounts.lock().iter().map(|(id, meter)| (*id, meter.clone())).collect();
        for (account, meter) in meters {
            if meter.lock().held > 0 {
                all.insert(account, self.spent(account)?);
            }
        }
        Ok(all)
    }

    /// How many blocks of an account count as spent, with all that other workers hold. The account of a key
    /// that was never copied is its own id.
    pub fn spent(&self, account: [u8; 16]) -> Result<u64> {
        let meter = self.budgets.accounts.lock().get(&account).cloned();
        // Locked while it is read: a lease changes both.
        let meter = meter.as_ref().map(|meter| meter.lock());
        let counted = self.engine.read(|records| counted(records, account))?;
        Ok(counted.saturating_sub(meter.map_or(0, |meter| meter.held)))
    }

    /// Returns what was reserved and not spent. Done when the store is dropped, too.
    pub fn settle(&self) -> Result<()> {
        let mut meters: Vec<_> =
            self.budgets.accounts.lock().iter().map(|(account, meter)| (*account, meter.clone())).collect();
        // Held until it is on the disk, so that nothing that is returned is spent meanwhile. Spending takes
        // one of these locks and then the database. This function takes several in a fixed order and then the
        // database.
        meters.sort_by_key(|(account, _)| *account);
        let mut held: Vec<_> = meters.iter().map(|(account, meter)| (*account, meter.lock())).collect();
        held.retain(|(_, meter)| !meter.closed && meter.held > 0);
        if held.is_empty() {
            return Ok(());
        }
        // Given up here first: if it is not known what came of the change, it may count as spent, and is not
        // spent twice.
        let given: Vec<([u8; 16], u64)> =
            held.iter_mut().map(|(account, meter)| (*account, std::mem::take(&mut meter.held))).collect();
        self.engine.write(|changes| {
            given.iter().try_for_each(|(account, more)| match changes.get::<u64>(Table::Spent, account)? {
                Some(counted) => changes.put(Table::Spent, account, &counted.saturating_sub(*more)),
                // Nothing pays from it any more.
                None => Ok(()),
            })
        })
    }
}

/// How many blocks of an account count as spent on the disk, with all that any process holds.
fn counted(records: &impl Records, account: [u8; 16]) -> Result<u64> {
    Ok(records.get(Table::Spent, &account)?.unwrap_or(0))
}

#[cfg(test)]
mod interleavings;

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const ID: [u8; 16] = [5; 16];
    /// A key and its own account.
    const BOTH: ([u8; 16], [u8; 16]) = (ID, ID);

    #[test]
    fn never_more_than_the_limit_passes_however_many_ask() {
        let (store, _) = in_memory();
        let passed: u64 = std::thread::scope(|scope| {
            let ask = |seed: u64| {
                let store = &store;
                move || {
                    (0..400)
                        .map(|i| 1 + (seed + i) % 7)
                        .filter(|n| store.spend(BOTH, *n, 3000).is_ok())
                        .sum::<u64>()
                }
            };
            let threads: Vec<_> = (0..4).map(|seed| scope.spawn(ask(seed))).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).sum()
        });
        let spent = store.spent(ID).expect("read");
        assert_eq!(spent, passed);
        assert!((2994..=3000).contains(&spent), "{spent}");
        assert!(
            matches!(store.spend(BOTH, 7, 3000), Err(StoreError::Spent { left }) if left == 3000 - spent)
        );
    }

    #[test]
    fn after_a_crash_the_rest_of_a_range_counts_as_spent() {
        let (store, disk) = in_memory();
        store.spend(BOTH, 1, 6400).expect("in the budget");
        let crashed = reopen(&disk.copy());
        assert_eq!(crashed.spent(ID).expect("read"), 100);
        assert!(matches!(crashed.spend(BOTH, 6301, 6400), Err(StoreError::Spent { left: 6300 })));
        crashed.spend(BOTH, 6300, 6400).expect("all that is left");
        assert!(matches!(crashed.spend(BOTH, 1, 6400), Err(StoreError::Spent { left: 0 })));
    }

    #[test]
    fn all_budgets_at_once_are_those_of_each() {
        let (store, disk) = in_memory();
        let other = [6; 16];
        store.spend(BOTH, 7, 6400).expect("in the budget");
        store.spend((other, other), 9, 6400).expect("in the budget");
        let of = |store: &Store| {
            let all = store.spent_of_all().expect("read");
            assert_eq!(all[&ID], store.spent(ID).expect("read"));
            (all[&ID], all[&other], all.len())
        };
        assert_eq!(of(&store), (7, 9, 2));
        assert_eq!(of(&reopen(&disk.copy())), (100, 100, 2), "after a crash, what was reserved");
    }

    #[test]
    fn after_an_orderly_end_only_what_was_spent_is_spent() {
        let (store, disk) = in_memory();
        store.spend(BOTH, 7, 6400).expect("in the budget");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(store.spent(ID).expect("read"), 7);
        store.settle().expect("settled");
        store.spend(BOTH, 1, 6400).expect("in the budget");
        store.settle().expect("settled");
        store.spend(BOTH, 1, 6400).expect("what was given back is reserved again first");
        assert!(reopen(&disk.copy()).spent(ID).expect("read") >= 9);
    }

    #[test]
    fn a_range_takes_one_synced_write() {
        let (store, disk) = in_memory();
        store.spend(BOTH, 1, 64_000).expect("in the budget");
        let before = disk.syncs();
        (0..999).for_each(|_| store.spend(BOTH, 1, 64_000).expect("in the budget"));
        assert_eq!(disk.syncs(), before);
        store.spend(BOTH, 1, 64_000).expect("in the budget");
        assert!(disk.syncs() > before);
    }

    #[test]
    fn sums_that_would_overflow_are_refused() {
        let (store, _) = in_memory();
        store.spend(BOTH, 1, u64::MAX).expect("in the budget");
        assert!(matches!(store.spend(BOTH, u64::MAX, u64::MAX), Err(StoreError::Spent { .. })));
        store.spend(BOTH, u64::MAX - 1, u64::MAX).expect("in the budget");
        assert!(matches!(store.spend(BOTH, 1, u64::MAX), Err(StoreError::Spent { left: 0 })));
    }

    #[test]
    fn what_was_not_reserved_on_the_disk_is_not_spent() {
        let (store, disk) = in_memory();
        disk.fill_up();
        assert!(matches!(store.spend(BOTH, 1, 10), Err(StoreError::Failed(_))));
        disk.make_room();
        (0..10).for_each(|_| store.spend(BOTH, 1, 10).expect("in the budget"));
        assert!(matches!(store.spend(BOTH, 1, 10), Err(StoreError::Spent { left: 0 })));
    }

    #[test]
    fn what_could_not_be_given_back_is_not_spent_either() {
        let (store, disk) = in_memory();
        store.spend(BOTH, 1, 640).expect("in the budget");
        disk.fill_up();
        assert!(store.settle().is_err());
        disk.make_room();
        // The change may have been made or not: nobody knows, so what was held is gone.
        store.spend(BOTH, 1, 640).expect("from another lease");
        assert_eq!(store.spent(ID).expect("read"), 11);
    }

    #[test]
    fn nothing_is_spent_of_a_deleted_key() {
        let (store, _) = in_memory();
        let key = key("k", 5);
        store.put_pending(&key).expect("put");
        store.spend((key.info.id, key.info.id), 1, 100).expect("in the budget");
        store.delete("k", key.info.id).expect("deleted");
        assert!(matches!(store.spend((key.info.id, key.info.id), 1, 100), Err(StoreError::Deleted { .. })));
    }
}

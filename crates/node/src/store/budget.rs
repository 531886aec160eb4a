//! How many blocks were computed under a key. They are reserved durably ahead: one synced write for a range of blocks.
//!
//! The disk never shows less than what was spent. After a crash the rest of a range counts as spent; after an orderly end it does not.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::engine::{Records, Table};
use super::keys::refuse_deleted;
use super::{Result, Store, StoreError};

/// The most blocks reserved at once.
const MOST_AHEAD: u64 = 1 << 20;

/// How much is spent of the keys in use: some hundred bytes for each key used since the start.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    keys: Mutex<HashMap<[u8; 16], Arc<Mutex<Meter>>>>,
}

/// Blocks of one key.
#[derive(Debug, Default)]
struct Meter {
    /// `None` until it is read.
    known: Option<Range>,
    deleted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    spent: u64,
    /// On the disk; never below `spent`.
    reserved: u64,
}

impl Budgets {
    fn meter(&self, id: [u8; 16]) -> Arc<Mutex<Meter>> {
        self.keys.lock().entry(id).or_default().clone()
    }

    /// Forgets all that was read: the records have been replaced. Nothing is being spent.
    pub(super) fn clear(&self) {
        self.keys.lock().clear();
    }

    /// Notes that a key was deleted.
    pub(super) fn forget(&self, id: [u8; 16]) {
        let meter = self.keys.lock().remove(&id);
        if let Some(meter) = meter {
            meter.lock().deleted = true;
        }
    }
}

impl Store {
    /// Spends blocks of a key, whose budget is `limit` blocks in total. All of them or none.
    pub fn spend(&self, id: [u8; 16], blocks: u64, limit: u64) -> Result<()> {
        let meter = self.budgets.meter(id);
        let mut meter = meter.lock();
        if meter.deleted {
            return Err(StoreError::Deleted { id: hex::encode(id) });
        }
        let range = match meter.known {
            Some(range) => range,
            None => self.load_range(id)?,
        };
        let range = *meter.known.insert(range);
        let left = limit.saturating_sub(range.spent);
        if blocks > left {
            return Err(StoreError::Spent { left });
        }
        let spent = range.spent + blocks;
        let mut reserved = range.reserved;
        if spent > reserved {
            let ahead = (limit / 64).clamp(1, MOST_AHEAD);
            reserved = spent.max(reserved.saturating_add(ahead).min(limit));
            self.change(|changes| {
                refuse_deleted(changes, id)?;
                changes.put(Table::Spent, &id, &reserved)
            })?;
        }
        meter.known = Some(Range { spent, reserved });
        Ok(())
    }

    /// How many blocks of a key count as spent.
    pub fn spent(&self, id: [u8; 16]) -> Result<u64> {
        let known = self.budgets.keys.lock().get(&id).cloned();
        let known = known.and_then(|meter| meter.lock().known);
        Ok(known.map_or_else(|| self.load_range(id), Ok)?.spent)
    }

    /// Returns what was reserved and not spent. Done when the store is dropped, too.
    pub fn settle(&self) -> Result<()> {
        let mut meters: Vec<_> =
            self.budgets.keys.lock().iter().map(|(id, meter)| (*id, meter.clone())).collect();
        // Held until it is on the disk, so that nothing that is returned is spent meanwhile. Spending takes one of these locks and then the
        // database. This function takes several in a fixed order and then the database.
        meters.sort_by_key(|(id, _)| *id);
        let mut held: Vec<_> = meters.iter().map(|(id, meter)| (*id, meter.lock())).collect();
        held.retain(|(_, m)| !m.deleted && m.known.is_some_and(|range| range.spent < range.reserved));
        if held.is_empty() {
            return Ok(());
        }
        let exact = |range: Range| Range { reserved: range.spent, ..range };
        self.engine.write(|changes| {
            held.iter().try_for_each(|(id, meter)| match meter.known {
                Some(range) if !changes.holds(Table::Tombstones, id)? => {
                    changes.put(Table::Spent, id, &range.spent)
                }
                _ => Ok(()),
            })
        })?;
        held.iter_mut().for_each(|(_, meter)| meter.known = meter.known.map(exact));
        Ok(())
    }

    fn load_range(&self, id: [u8; 16]) -> Result<Range> {
        let spent = self.engine.read(|records| {
            refuse_deleted(records, id)?;
            Ok(records.get(Table::Spent, &id)?.unwrap_or(0))
        })?;
        Ok(Range { spent, reserved: spent })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const ID: [u8; 16] = [5; 16];

    #[test]
    fn never_more_than_the_limit_passes_however_many_ask() {
        let (store, _) = in_memory();
        let passed: u64 = std::thread::scope(|scope| {
            let ask = |seed: u64| {
                let store = &store;
                move || {
                    (0..400)
                        .map(|i| 1 + (seed + i) % 7)
                        .filter(|n| store.spend(ID, *n, 3000).is_ok())
                        .sum::<u64>()
                }
            };
            let threads: Vec<_> = (0..4).map(|seed| scope.spawn(ask(seed))).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).sum()
        });
        let spent = store.spent(ID).expect("read");
        assert_eq!(spent, passed);
        assert!((2994..=3000).contains(&spent), "{spent}");
        assert!(matches!(store.spend(ID, 7, 3000), Err(StoreError::Spent { left }) if left == 3000 - spent));
    }

    #[test]
    fn after_a_crash_the_rest_of_a_range_counts_as_spent() {
        let (store, disk) = in_memory();
        store.spend(ID, 1, 6400).expect("in the budget");
        let crashed = reopen(&disk.copy());
        assert_eq!(crashed.spent(ID).expect("read"), 100);
        assert!(matches!(crashed.spend(ID, 6301, 6400), Err(StoreError::Spent { left: 6300 })));
        crashed.spend(ID, 6300, 6400).expect("all that is left");
        assert!(matches!(crashed.spend(ID, 1, 6400), Err(StoreError::Spent { left: 0 })));
    }

    #[test]
    fn after_an_orderly_end_only_what_was_spent_is_spent() {
        let (store, disk) = in_memory();
        store.spend(ID, 7, 6400).expect("in the budget");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(store.spent(ID).expect("read"), 7);
        store.settle().expect("settled");
        store.spend(ID, 1, 6400).expect("in the budget");
        store.settle().expect("settled");
        store.spend(ID, 1, 6400).expect("what was given back is reserved again first");
        assert!(reopen(&disk.copy()).spent(ID).expect("read") >= 9);
    }

    #[test]
    fn a_range_takes_one_synced_write() {
        let (store, disk) = in_memory();
        store.spend(ID, 1, 64_000).expect("in the budget");
        let before = disk.syncs();
        (0..999).for_each(|_| store.spend(ID, 1, 64_000).expect("in the budget"));
        assert_eq!(disk.syncs(), before);
        store.spend(ID, 1, 64_000).expect("in the budget");
        assert!(disk.syncs() > before);
    }

    #[test]
    fn sums_that_would_overflow_are_refused() {
        let (store, _) = in_memory();
        store.spend(ID, 1, u64::MAX).expect("in the budget");
        assert!(matches!(store.spend(ID, u64::MAX, u64::MAX), Err(StoreError::Spent { .. })));
        store.spend(ID, u64::MAX - 1, u64::MAX).expect("in the budget");
        assert!(matches!(store.spend(ID, 1, u64::MAX), Err(StoreError::Spent { left: 0 })));
    }

    #[test]
    fn what_was_not_reserved_on_the_disk_is_not_spent() {
        let (store, disk) = in_memory();
        disk.fill_up();
        assert!(matches!(store.spend(ID, 1, 10), Err(StoreError::Failed(_))));
        disk.make_room();
        (0..10).for_each(|_| store.spend(ID, 1, 10).expect("in the budget"));
        assert!(matches!(store.spend(ID, 1, 10), Err(StoreError::Spent { left: 0 })));
    }

    #[test]
    fn nothing_is_spent_of_a_deleted_key() {
        let (store, _) = in_memory();
        let key = key("k", 5);
        store.put_pending(&key).expect("put");
        store.spend(key.info.id, 1, 100).expect("in the budget");
        store.delete("k", key.info.id).expect("deleted");
        assert!(matches!(store.spend(key.info.id, 1, 100), Err(StoreError::Deleted { .. })));
    }
}

//! Accounts: a key and its copies pay from one budget, and the record of what is spent lives as long as any
//! of them.
//!
//! What counts as spent is recorded under the account's id, which is the id of the key that was copied first.
//! That key may be deleted before its copies, so each copy has a record that names its account. They are
//! written and removed with the key's own records, in the same transaction, so a crash leaves both or
//! neither.

use polyclave_api::KeyInfo;

use super::engine::{Changes, Records, Table};
use super::{Result, children, failures};

/// A copy: behind this the account, and the copy's id.
const COPY: &[u8] = b"copy ";

fn copy_of(account: [u8; 16], id: [u8; 16]) -> Vec<u8> {
    [COPY, &account, &id].concat()
}

/// Whether a record of [`Table::Meta`] belongs to a copy.
pub(super) fn is_copy(record: &[u8]) -> bool {
    record.starts_with(COPY) && record.len() == COPY.len() + 32
}

/// Notes that a key that is stored pays from its account.
pub(super) fn join(changes: &Changes<'_>, info: &KeyInfo) -> Result<()> {
    match info.account == info.id {
        true => Ok(()),
        false => changes.put(Table::Meta, &copy_of(info.account, info.id), &()),
    }
}

/// The account that a key that is gone has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) account: [u8; 16],
    /// Whether nothing pays from it any more.
    pub(super) is_last: bool,
}

/// Notes that a key is gone. The caller removes its shares. With the last key of an account, this removes the
/// records of what the account has spent, of what was derived and of what failed.
pub(super) fn leave(changes: &Changes<'_>, info: &KeyInfo) -> Result<Left> {
    if info.account != info.id {
        changes.remove(Table::Meta, &copy_of(info.account, info.id))?;
    }
    let others =
        changes.between(Table::Meta, &copy_of(info.account, [0; 16]), &copy_of(info.account, [0xff; 16]))?;
    let is_last = others.is_empty() && changes.sealed(Table::Shares, &info.account)?.is_none();
    if is_last {
        changes.remove(Table::Spent, &info.account)?;
        children::forget(changes, info.account)?;
        failures::forget(changes, info.account)?;
    }
    Ok(Left { account: info.account, is_last })
}

/// Forgets which copies there are: all keys are replaced.
pub(super) fn clear(changes: &Changes<'_>) -> Result<()> {
    let copies = changes.between(Table::Meta, COPY, &[COPY, &[0xff; 33]].concat())?;
    copies
        .into_iter()
        .filter(|(record, _)| is_copy(record))
        .try_for_each(|(record, _)| changes.remove(Table::Meta, &record))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Disk, in_memory, key, reopen};
    use super::super::{Ciphers, KeyState, MovedKey, RefreshedKey, Store, StoreError, StoredKey};
    use super::*;

    const KEY: ([u8; 16], [u8; 16]) = ([1; 16], [1; 16]);
    const FIRST: ([u8; 16], [u8; 16]) = ([2; 16], [1; 16]);
    const SECOND: ([u8; 16], [u8; 16]) = ([3; 16], [1; 16]);

    /// A copy of the key with the seed 1.
    fn copy(name: &str, seed: u8) -> StoredKey {
        let mut copy = key(name, seed);
        (copy.info.account, copy.shares) = ([1; 16], key("k", 1).shares);
        copy
    }

    fn put(store: &Store, key: &StoredKey) {
        store.put_pending(key).expect("put");
        store.announce(&key.info.properties.name, key.info.id).expect("announced");
    }

    /// A key and two copies of it.
    fn copied() -> (Store, Disk) {
        let (store, disk) = in_memory();
        put(&store, &key("k", 1));
        put(&store, &copy("first", 2));
        put(&store, &copy("second", 3));
        (store, disk)
    }

    #[test]
    fn a_key_and_its_copies_pay_from_one_account_as_long_as_one_of_them_is_there() {
        for order in [[1, 2, 3], [2, 3, 1], [3, 1, 2]] {
            let (mut store, mut disk) = copied();
            for (number, payer) in [KEY, FIRST, SECOND].into_iter().enumerate() {
                store.spend(payer, 30, 100).expect("in the budget");
                assert_eq!(store.spent([1; 16]).expect("read"), 30 * (1 + number as u64));
            }
            for payer in [KEY, FIRST, SECOND] {
                assert!(matches!(store.spend(payer, 11, 100), Err(StoreError::Spent { left: 10 })));
            }
            let mut left = vec![("k", KEY), ("first", FIRST), ("second", SECOND)];
            for seed in order {
                let at = left.iter().position(|(_, (id, _))| *id == [seed; 16]).expect("there");
                let (name, payer) = left.remove(at);
                store.delete(name, payer.0).expect("deleted");
                assert!(matches!(store.spend(payer, 1, 100), Err(StoreError::Deleted { .. })), "{name}");
                for (name, payer) in &left {
                    assert!(
                        matches!(store.spend(*payer, 11, 100), Err(StoreError::Spent { left: 10 })),
                        "{name}"
                    );
                    assert_eq!(store.key(name).expect("read").expect("there").shares, key("k", 1).shares);
                }
                // The same after an orderly end, in which what was reserved is given back.
                drop(store);
                disk = disk.copy();
                store = reopen(&disk);
                let spent = if left.is_empty() { 0 } else { 90 };
                assert_eq!(store.spent([1; 16]).expect("read"), spent, "after {seed} of {order:?}");
            }
            let copies = store.engine.read(|records| {
                records.between(Table::Meta, &copy_of([1; 16], [0; 16]), &copy_of([1; 16], [0xff; 16]))
            });
            assert!(copies.expect("read").is_empty());
        }
    }

    /// After a crash at any sync while a copy is made and paid from, the copy is there whole or not at all,
    /// and the account shows at least what was spent.
    #[test]
    fn no_copy_is_half_made_and_nothing_spent_is_forgotten_after_a_crash_at_any_sync() {
        let (store, disk) = in_memory();
        put(&store, &key("k", 1));
        store.spend(KEY, 5, 640).expect("in the budget");
        disk.record();
        put(&store, &copy("first", 2));
        store.spend(FIRST, 50, 640).expect("in the budget");
        store.delete("k", [1; 16]).expect("deleted");
        let mut seen = [0; 3];
        for bytes in disk.history() {
            let store = reopen(&Disk::from_bytes(bytes));
            let state = |name: &str, seed| store.state(name, [seed; 16]).expect("read");
            let made = state("first", 2);
            seen[made.map_or(0, |state| if state == KeyState::Pending { 1 } else { 2 })] += 1;
            if made == Some(KeyState::Announced) {
                let copy = store.key("first").expect("read").expect("there");
                assert_eq!(copy.shares, key("k", 1).shares);
                assert_eq!(copy.info.account, [1; 16]);
            }
            let spent = store.spent([1; 16]).expect("read");
            assert!(spent >= 5, "{spent}");
            if state("k", 1) == Some(KeyState::Deleted) {
                assert!(spent >= 55, "{spent}");
                assert!(matches!(store.spend(FIRST, 640 - 54, 640), Err(StoreError::Spent { .. })));
                store.delete("first", [2; 16]).expect("deleted");
                assert_eq!(store.spent([1; 16]).expect("read"), 0);
            } else {
                assert_eq!(store.key("k").expect("read").expect("there").shares, key("k", 1).shares);
                // Whatever is left of it, the copy can be made again.
                if made != Some(KeyState::Announced) {
                    put(&store, &copy("first", 7));
                    store.spend(([7; 16], [1; 16]), 1, 640).expect("in the budget");
                }
            }
        }
        assert!(seen[1] > 0 && seen[2] > 0, "{seen:?}");
    }

    #[test]
    fn a_refresh_carries_copies_over_and_what_was_spent_stays() {
        let (store, _) = copied();
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        store.spend(SECOND, 40, 100).expect("in the budget");
        let refreshed = [("k", 1), ("first", 2), ("second", 3)].map(|(name, seed)| {
            let shares = [("round keys".to_owned(), zeroize::Zeroizing::new(vec![seed, 9]))];
            RefreshedKey { name: name.into(), id: [seed; 16], shares: shares.into_iter().collect() }
        });
        store.prepare_keys(0, &refreshed).expect("prepared");
        store.prepare_refresh([2; 32], b"new").expect("prepared");
        store.commit_refresh([2; 32], 7).expect("committed");
        assert!(matches!(store.spend(FIRST, 61, 100), Err(StoreError::Spent { left: 60 })));
        assert_eq!(*store.key("second").expect("read").expect("there").shares["round keys"], vec![3, 9]);
    }

    #[test]
    fn a_move_to_other_nodes_brings_the_account_with_the_most_that_any_of_its_keys_brings() {
        let (store, disk) = copied();
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        // The key itself was deleted before, and does not move.
        let moved = [("first", 2, 20), ("second", 3, 35)].map(|(name, seed, spent)| MovedKey {
            info: copy(name, seed).info,
            spent,
            children: Ciphers::default(),
            shares: key("k", 1).shares,
        });
        store.prepare_moved(0, &moved).expect("prepared");
        store.prepare_reshare(([2; 32], "new", "old"), Some(b"new"), &[[1; 16]]).expect("prepared");
        store.commit_reshare([2; 32], 7).expect("committed");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(store.spent([1; 16]).expect("read"), 35);
        store.spend(FIRST, 60, 100).expect("in the budget");
        store.delete("second", [3; 16]).expect("deleted");
        assert!(matches!(store.spend(FIRST, 6, 100), Err(StoreError::Spent { left: 5 })));
        store.delete("first", [2; 16]).expect("deleted");
        assert_eq!(store.spent([1; 16]).expect("read"), 0);
    }
}

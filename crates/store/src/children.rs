//! The cipher of the keys that were derived from a key. `node/src/computation/derive.rs` says why one base
//! derives keys of one cipher only.
//!
//! The record belongs to an account: a key and its copies have one record, and it lives as long as any of
//! them. It is written before anything is derived, and it only grows. After a move to other nodes it has
//! every cipher that any of the old nodes knew.

use std::collections::BTreeSet;

use super::deletions::refuse_deleted;
use super::engine::{Changes, Records, Table};
use super::{Result, Store};

/// The beginning of the name of the record. The account follows.
const CHILDREN: &[u8] = b"children ";

/// Names of ciphers.
pub type Ciphers = BTreeSet<String>;

fn record_of(account: [u8; 16]) -> Vec<u8> {
    [CHILDREN, &account].concat()
}

/// The account to which a record of [`Table::Meta`] belongs, if it is one of these records.
pub(super) fn account_of(record: &[u8]) -> Option<[u8; 16]> {
    record.strip_prefix(CHILDREN)?.try_into().ok()
}

fn ciphers(records: &impl Records, account: [u8; 16]) -> Result<Ciphers> {
    Ok(records.get(Table::Meta, &record_of(account))?.unwrap_or_default())
}

/// Adds ciphers to the record of an account.
pub(super) fn add(changes: &Changes<'_>, account: [u8; 16], more: Ciphers) -> Result<()> {
    let mut all = ciphers(changes, account)?;
    let before = all.len();
    all.extend(more);
    match all.len() == before {
        true => Ok(()),
        false => changes.put(Table::Meta, &record_of(account), &all),
    }
}

/// Removes the record of an account that has no key any more.
pub(super) fn forget(changes: &Changes<'_>, account: [u8; 16]) -> Result<()> {
    changes.remove(Table::Meta, &record_of(account))
}

/// Removes all of these records, because all keys are replaced.
pub(super) fn clear(changes: &Changes<'_>) -> Result<()> {
    let all = changes.between(Table::Meta, CHILDREN, &[CHILDREN, &[0xff; 17]].concat())?;
    all.into_iter()
        .filter(|(record, _)| account_of(record).is_some())
        .try_for_each(|(record, _)| changes.remove(Table::Meta, &record))
}

impl Store {
    /// The ciphers of the keys that were derived from the keys of an account.
    pub fn children(&self, account: [u8; 16]) -> Result<Ciphers> {
        self.engine.read(|records| ciphers(records, account))
    }

    /// Notes that a base derives keys of a cipher. If it has derived keys of another cipher, returns that
    /// cipher and notes nothing.
    pub fn note_child(&self, (id, account): ([u8; 16], [u8; 16]), cipher: &str) -> Result<Option<String>> {
        let other = |known: &Ciphers| known.iter().find(|known| *known != cipher).cloned();
        let known = self.children(account)?;
        if !known.is_empty() {
            return Ok(other(&known));
        }
        self.change(|changes| {
            refuse_deleted(changes, id)?;
            match other(&ciphers(changes, account)?) {
                Some(other) => Ok(Some(other)),
                None => add(changes, account, [cipher.to_owned()].into()).map(|()| None),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Disk, in_memory, key, reopen};
    use super::super::{MovedKey, RefreshedKey, StoredKey};
    use super::*;

    const ACCOUNT: [u8; 16] = [1; 16];

    fn put(store: &Store, key: &StoredKey) {
        store.put_pending(key).expect("put");
        store.announce(&key.info.properties.name, key.info.id).expect("announced");
    }

    /// A copy of the key with the seed 1.
    fn copy(name: &str, seed: u8) -> StoredKey {
        let mut copy = key(name, seed);
        (copy.info.account, copy.shares) = (ACCOUNT, key("k", 1).shares);
        copy
    }

    /// A key that has derived a key of AES, and a copy of it.
    fn derived() -> (Store, Disk) {
        let (store, disk) = in_memory();
        put(&store, &key("k", 1));
        put(&store, &copy("copy", 2));
        assert_eq!(store.note_child((ACCOUNT, ACCOUNT), "aes-128").expect("noted"), None);
        (store, disk)
    }

    fn known(store: &Store) -> Vec<String> {
        store.children(ACCOUNT).expect("read").into_iter().collect()
    }

    #[test]
    fn a_key_and_its_copies_derive_keys_of_one_cipher_as_long_as_one_of_them_is_there() {
        let (store, disk) = derived();
        let note = |store: &Store, id, cipher| store.note_child((id, ACCOUNT), cipher);
        for id in [ACCOUNT, [2; 16]] {
            assert_eq!(note(&store, id, "aes-128").expect("read"), None);
            assert_eq!(note(&store, id, "des").expect("read"), Some("aes-128".into()));
        }
        store.delete("k", ACCOUNT).expect("deleted");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(note(&store, [2; 16], "des").expect("read"), Some("aes-128".into()));
        store.delete("copy", [2; 16]).expect("deleted");
        assert_eq!(known(&store), [""; 0]);
        note(&store, [2; 16], "des").expect_err("it was deleted");
        put(&store, &key("other", 3));
        assert_eq!(store.note_child(([3; 16], [3; 16]), "des").expect("noted"), None);
    }

    /// A note from before a crash is there after it, and no derived key is there without its note.
    #[test]
    fn it_is_noted_before_a_derived_key_is_there_wherever_a_node_is_killed() {
        let (store, disk) = in_memory();
        put(&store, &key("k", 1));
        disk.record();
        store.note_child((ACCOUNT, ACCOUNT), "des").expect("noted");
        put(&store, &key("child", 5));
        let mut seen = [0; 2];
        for bytes in disk.history() {
            let store = reopen(&Disk::from_bytes(bytes));
            let is_noted = known(&store) == ["des"];
            assert!(is_noted || store.state("child", [5; 16]).expect("read").is_none());
            seen[usize::from(is_noted)] += 1;
        }
        assert!(seen[1] > 0, "{seen:?}");
    }

    #[test]
    fn it_stays_after_a_refresh() {
        let (store, _) = derived();
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        let carried = [("k", 1), ("copy", 2)].map(|(name, seed)| {
            let shares = [("round keys".to_owned(), zeroize::Zeroizing::new(vec![seed, 9]))];
            RefreshedKey { name: name.into(), id: [seed; 16], shares: shares.into_iter().collect() }
        });
        store.prepare_keys(0, &carried).expect("prepared");
        store.prepare_refresh([2; 32], b"new").expect("prepared");
        store.commit_refresh([2; 32], 7).expect("committed");
        assert_eq!(known(&store), ["aes-128"]);
    }

    #[test]
    fn a_move_to_other_nodes_brings_what_was_noted_and_nothing_else() {
        let (store, disk) = derived();
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        put(&store, &key("stays", 4));
        store.note_child(([4; 16], [4; 16]), "des").expect("noted");
        // The key itself was deleted before, and does not move.
        let moved = [("copy", 2, "aes-256"), ("second", 3, "aes-128")].map(|(name, seed, cipher)| MovedKey {
            info: copy(name, seed).info,
            spent: 0,
            children: [cipher.to_owned()].into(),
            shares: key("k", 1).shares,
        });
        store.prepare_moved(0, &moved).expect("prepared");
        store.prepare_reshare(([2; 32], "new", "old"), Some(b"new"), &[[1; 16]]).expect("prepared");
        store.commit_reshare([2; 32], 7).expect("committed");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(known(&store), ["aes-128", "aes-256"]);
        let message = store.note_child(([2; 16], ACCOUNT), "aes-128").expect("read");
        assert_eq!(message, Some("aes-256".into()), "nodes that disagreed derive nothing more from it");
        assert!(store.children([4; 16]).expect("read").is_empty());
    }
}

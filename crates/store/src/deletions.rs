//! Deletions that this node has accepted and that not all nodes may have completed.
//!
//! Before any node deletes a key, all of them have noted which versions go ([`Store::begin_deletion`]), and
//! compared notes. So if a kill interrupts the deletion, a node that still holds the key knows that its
//! client was allowed to delete it. It then takes another node's word that the key is deleted there, and
//! completes the deletion (`crates/node/src/material/refresh.rs`, `reshare.rs` there). Without this note no
//! other node's word deletes a key here. A note ends with the key, or when the nodes find that no node has
//! deleted it.

use std::collections::BTreeSet;

use super::engine::{Changes, Records, Table};
use super::{Result, Store, StoreError};

/// Behind this the id of a version that is about to be deleted.
const BEGUN: &[u8] = b"deletion ";

fn record_of(id: [u8; 16]) -> Vec<u8> {
    [BEGUN, &id].concat()
}

/// The versions whose deletion has begun here.
pub(super) fn begun(records: &impl Records) -> Result<BTreeSet<[u8; 16]>> {
    let notes = records.between(Table::Meta, BEGUN, &[BEGUN, &[0xff; 17]].concat())?;
    Ok(notes.iter().filter_map(|(record, _)| record.strip_prefix(BEGUN)?.try_into().ok()).collect())
}

/// Forgets that the deletion of a version has begun: it is gone.
pub(super) fn forget(changes: &Changes<'_>, id: [u8; 16]) -> Result<()> {
    changes.remove(Table::Meta, &record_of(id))
}

/// Forgets all deletions that have begun.
pub(super) fn clear(changes: &Changes<'_>) -> Result<()> {
    begun(changes)?.into_iter().try_for_each(|id| forget(changes, id))
}

/// A deleted key is not accepted again.
pub(super) fn refuse_deleted(records: &impl Records, id: [u8; 16]) -> Result<()> {
    let deleted = records.holds(Table::Tombstones, &id)?;
    if deleted { Err(StoreError::Deleted { id: hex::encode(id) }) } else { Ok(()) }
}

impl Store {
    /// Notes that these versions are about to be deleted.
    pub fn begin_deletion(&self, ids: &[[u8; 16]]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.change(|changes| {
            self.refuse_in_round(changes)?;
            ids.iter().try_for_each(|id| changes.put(Table::Meta, &record_of(*id), &()))
        })
    }

    /// Forgets deletions that no node has completed.
    pub fn withdraw_deletions(&self) -> Result<()> {
        match self.engine.read(|records| begun(records))?.is_empty() {
            true => Ok(()),
            false => self.change(clear),
        }
    }

    /// The same for some versions.
    pub fn withdraw_deletion(&self, ids: &[[u8; 16]]) -> Result<()> {
        self.change(|changes| ids.iter().try_for_each(|id| forget(changes, *id)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Disk, in_memory, key, reopen};
    use super::super::{HeldKey, KeyState};
    use super::*;

    fn held(store: &Store) -> Vec<(u8, KeyState, bool)> {
        let message = |key: HeldKey| (key.id[0], key.state, key.deletion_begun);
        store.held_keys().expect("read").into_iter().map(message).collect()
    }

    fn with_keys() -> (Store, Disk) {
        let (store, disk) = in_memory();
        for seed in [1, 2] {
            let key = key(&format!("k{seed}"), seed);
            store.put_pending(&key).expect("put");
            store.announce(&key.info.properties.name, key.info.id).expect("announced");
        }
        (store, disk)
    }

    #[test]
    fn after_a_crash_at_any_sync_a_key_that_is_gone_was_about_to_be_deleted_and_the_note_ends_with_it() {
        let (store, disk) = with_keys();
        disk.record();
        store.begin_deletion(&[[1; 16]]).expect("noted");
        store.delete("k1", [1; 16]).expect("deleted");
        let other = (2, KeyState::Announced, false);
        let mut seen = BTreeSet::new();
        for bytes in disk.history() {
            let crashed = reopen(&Disk::from_bytes(bytes));
            let stage = match held(&crashed)[..] {
                [(1, KeyState::Announced, false), last] if last == other => 0,
                [(1, KeyState::Announced, true), last] if last == other => 1,
                [(1, KeyState::Deleted, false), last] if last == other => 2,
                ref held => panic!("{held:?}"),
            };
            seen.insert(stage);
        }
        assert!(seen.contains(&1) && seen.contains(&2), "{seen:?}");
        assert!(store.engine.read(|records| begun(records)).expect("read").is_empty());
    }

    #[test]
    fn a_deletion_that_is_withdrawn_leaves_the_key_as_it_was_and_other_deletions_too() {
        let (store, disk) = with_keys();
        store.begin_deletion(&[[1; 16], [2; 16]]).expect("noted");
        store.withdraw_deletion(&[[2; 16]]).expect("withdrawn");
        assert_eq!(held(&store), [(1, KeyState::Announced, true), (2, KeyState::Announced, false)]);
        store.withdraw_deletions().expect("withdrawn");
        store.withdraw_deletions().expect("twice is once");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(held(&store), [(1, KeyState::Announced, false), (2, KeyState::Announced, false)]);
        assert!(store.key("k1").expect("read").is_some());
    }
}

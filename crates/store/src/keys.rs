//! Keys: pending while some nodes may lack them, then announced, then deleted permanently.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclave_api::KeyInfo;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::deletions::refuse_deleted;
use super::engine::{Changes, Records, Table, encode};
use super::entry::Entry;
use super::versions::{Which, find, of_name, record_of};
use super::{Result, Store, StoreError, accounts, deletions};
use accounts::Left;

/// Number of announced keys.
pub(super) const COUNT: &[u8] = b"announced";

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyState {
    /// Its shares are here. It is not known whether all nodes have theirs.
    Pending,
    /// All nodes have their shares: it can be used.
    Announced,
    /// It cannot be used any more, and its shares are gone.
    Deleted,
}

/// A key as this node holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// Its public properties.
    pub info: KeyInfo,
    /// Its state.
    pub state: KeyState,
    /// This node's shares, by the name of the secret that they belong to.
    pub shares: BTreeMap<String, Zeroizing<Vec<u8>>>,
    /// The client that made it, as this node's rules name it, if it is a session key.
    pub maker: Option<String>,
}

impl std::fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredKey")
            .field("info", &self.info)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Stores a version of a key whose other shares may not be at their nodes yet. Replaces a pending one of
    /// the same number.
    pub fn put_pending(&self, key: &StoredKey) -> Result<()> {
        let (name, id) = (&key.info.properties.name, key.info.id);
        let record = record_of(name, key.info.version);
        let replaced = self.change(|changes| {
            refuse_deleted(changes, id)?;
            self.claim_pending(changes, name, &record)?;
            let old: Option<Entry> = changes.get(Table::Keys, &record)?;
            let replaced = old.as_ref().map(|old| old.info.id);
            let taken = || StoreError::Taken { name: name.clone() };
            match &old {
                Some(old) if old.state == KeyState::Announced => return Err(taken()),
                Some(old) => remove(changes, &record, &old.info).map(drop)?,
                None => {}
            }
            if changes.sealed(Table::Shares, &id)?.is_some() {
                return Err(taken());
            }
            changes.put_bytes(Table::Shares, &id, encode_shares(&key.shares)?)?;
            accounts::join(changes, &key.info)?;
            let (info, state, maker) = (key.info.clone(), KeyState::Pending, key.maker.clone());
            changes.put(Table::Keys, &record, &Entry { info, state, maker })?;
            Ok(replaced)
        })?;
        self.cache.forget(name);
        self.sessions.put(key, replaced);
        Ok(())
    }

    /// Makes a pending key usable. Repeating this has no effect.
    pub fn announce(&self, name: &str, id: [u8; 16]) -> Result<()> {
        self.change(|changes| {
            refuse_deleted(changes, id)?;
            let Some((record, mut entry)) = find(changes, name, Which::Id(id))? else {
                return Err(StoreError::NoKey { name: name.into() });
            };
            if entry.state == KeyState::Announced {
                return Ok(());
            }
            entry.state = KeyState::Announced;
            changes.put(Table::Keys, &record, &entry)?;
            change_count(changes, &entry.info, 1)
        })?;
        self.cache.forget(name);
        Ok(())
    }

    /// The newest announced version of a key.
    pub fn key(&self, name: &str) -> Result<Option<Arc<StoredKey>>> {
        self.find(name, Which::Current)
    }

    /// The newest pending version of a key.
    pub fn pending_key(&self, name: &str) -> Result<Option<StoredKey>> {
        let pending = self.engine.read(|records| {
            let found = of_name(records, name)?.into_iter().rev().filter_map(|found| found.entry.ok());
            Ok(found.into_iter().find(|entry| entry.state == KeyState::Pending))
        })?;
        pending.map_or(Ok(None), |entry| self.load(name, Which::Id(entry.info.id)))
    }

    /// The properties of all versions of the announced keys, in order of their names and versions.
    pub fn keys(&self) -> Result<Vec<KeyInfo>> {
        self.infos(KeyState::Announced)
    }

    /// The properties of the pending versions of keys, in order of their names and versions.
    pub fn pending(&self) -> Result<Vec<KeyInfo>> {
        self.infos(KeyState::Pending)
    }

    /// Number of announced keys; every version counts, and session keys do not.
    pub fn count(&self) -> Result<u64> {
        self.engine.read(|records| count(records))
    }

    /// The state of the key with this id, if it is or was here under this name, or was deleted under any
    /// name.
    pub fn state(&self, name: &str, id: [u8; 16]) -> Result<Option<KeyState>> {
        self.engine.read(|records| {
            if records.holds(Table::Tombstones, &id)? {
                return Ok(Some(KeyState::Deleted));
            }
            Ok(find(records, name, Which::Id(id))?.map(|(_, entry)| entry.state))
        })
    }

    /// Deletes a version of a key, pending or announced, so that its id is never accepted again. With its
    /// last version the name becomes free. Repeating this has no effect. A session key leaves nothing behind.
    pub fn delete(&self, name: &str, id: [u8; 16]) -> Result<()> {
        let left = self.change(|changes| {
            if changes.holds(Table::Tombstones, &id)? {
                return Ok(None);
            }
            self.refuse_in_round(changes)?;
            let Some((record, entry)) = find(changes, name, Which::Id(id))? else {
                return Err(StoreError::NoKey { name: name.into() });
            };
            self.refuse_claimed(changes, name, &record)?;
            let left = remove(changes, &record, &entry.info)?;
            if !entry.info.is_of_session() {
                changes.put(Table::Tombstones, &id, &())?;
            }
            if entry.state == KeyState::Announced {
                change_count(changes, &entry.info, -1)?;
            }
            Ok(Some(left))
        })?;
        self.cache.forget(name);
        self.damage.forget(name);
        left.inspect(|left| self.budgets.forget(id, *left));
        self.sessions.remove(id);
        Ok(())
    }

    fn infos(&self, state: KeyState) -> Result<Vec<KeyInfo>> {
        self.engine.read(|records| {
            let mut infos = Vec::new();
            records.each(Table::Keys, |_, entry: Entry| {
                if entry.state == state {
                    infos.push(entry.info);
                }
                Ok(())
            })?;
            Ok(infos)
        })
    }
}

pub(super) fn count(records: &impl Records) -> Result<u64> {
    Ok(records.get(Table::Meta, COUNT)?.unwrap_or(0))
}

/// Notes in the number of announced keys that there is one more, or one less.
pub(super) fn change_count(changes: &Changes, info: &KeyInfo, by: i64) -> Result<()> {
    match info.is_of_session() {
        true => Ok(()),
        false => changes.put(Table::Meta, COUNT, &count(changes)?.saturating_add_signed(by)),
    }
}

/// Removes the records of a version, and what was spent of its account if nothing else pays from it.
pub(super) fn remove(changes: &Changes, record: &[u8], info: &KeyInfo) -> Result<Left> {
    changes.remove(Table::Keys, record)?;
    changes.remove(Table::Shares, &info.id)?;
    deletions::forget(changes, info.id)?;
    accounts::leave(changes, info)
}

pub(super) fn encode_shares(shares: &BTreeMap<String, Zeroizing<Vec<u8>>>) -> Result<Zeroizing<Vec<u8>>> {
    let room = shares.iter().map(|(of, share)| of.len() + share.len() + 20).sum::<usize>() + 10;
    let borrowed: BTreeMap<&str, &[u8]> =
        shares.iter().map(|(of, share)| (of.as_str(), share.as_slice())).collect();
    encode(&borrowed, room)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn a_key_can_be_used_once_it_is_announced() {
        let (store, disk) = in_memory();
        let one = key("one", 1);
        store.put_pending(&one).expect("put");
        assert!(store.key("one").expect("read").is_none());
        assert_eq!((store.count().expect("read"), store.keys().expect("read")), (0, vec![]));
        assert_eq!(store.pending().expect("read"), vec![one.info.clone()]);
        assert!(matches!(store.announce("one", [9; 16]), Err(StoreError::NoKey { .. })));
        store.announce("one", one.info.id).expect("announced");
        store.announce("one", one.info.id).expect("twice is once");
        for store in [&store, &reopen(&disk.copy())] {
            let found = store.key("one").expect("read").expect("announced");
            assert_eq!((&found.shares, found.state), (&one.shares, KeyState::Announced));
            assert_eq!(
                (store.count().expect("read"), store.keys().expect("read")),
                (1, vec![one.info.clone()])
            );
        }
    }

    #[test]
    fn a_pending_key_is_replaced_and_an_announced_one_is_not() {
        let (store, _) = in_memory();
        store.put_pending(&key("k", 1)).expect("put");
        store.put_pending(&key("k", 2)).expect("replaced");
        assert!(matches!(store.announce("k", [1; 16]), Err(StoreError::NoKey { .. })));
        store.announce("k", [2; 16]).expect("announced");
        assert!(matches!(store.put_pending(&key("k", 3)), Err(StoreError::Taken { .. })));
        assert!(matches!(store.put_pending(&key("other", 2)), Err(StoreError::Taken { .. })));
        assert_eq!(store.key("k").expect("read").expect("there").shares, key("k", 2).shares);
    }

    #[test]
    fn a_deleted_key_never_comes_back_and_its_name_is_free() {
        let (store, disk) = in_memory();
        store.put_pending(&key("k", 1)).expect("put");
        store.announce("k", [1; 16]).expect("announced");
        store.key("k").expect("read").expect("it is in memory now");
        assert!(matches!(store.delete("k", [2; 16]), Err(StoreError::NoKey { .. })));
        store.delete("k", [1; 16]).expect("deleted");
        store.delete("k", [1; 16]).expect("twice is once");
        drop(store);
        let store = reopen(&disk);
        assert!(store.key("k").expect("read").is_none());
        assert_eq!(store.state("k", [1; 16]).expect("read"), Some(KeyState::Deleted));
        assert!(matches!(store.put_pending(&key("k", 1)), Err(StoreError::Deleted { .. })));
        assert!(matches!(store.put_pending(&key("other", 1)), Err(StoreError::Deleted { .. })));
        assert!(matches!(store.announce("k", [1; 16]), Err(StoreError::Deleted { .. })));
        store.put_pending(&key("k", 2)).expect("the name is free");
        store.announce("k", [2; 16]).expect("announced");
        assert_eq!(store.state("k", [2; 16]).expect("read"), Some(KeyState::Announced));
        assert_eq!(store.count().expect("read"), 1);
    }

    #[test]
    fn a_pending_key_can_be_given_up() {
        let (store, _) = in_memory();
        store.put_pending(&key("k", 1)).expect("put");
        store.delete("k", [1; 16]).expect("given up");
        assert!(store.pending_key("k").expect("read").is_none());
        assert_eq!(store.count().expect("read"), 0);
    }

    #[test]
    fn shares_are_not_shown() {
        let shown = format!("{:?}", key("k", 0xab));
        assert!(shown.contains("\"k\"") && !shown.contains("shares") && !shown.contains("round keys"));
    }
}

//! The stored state of a refresh to fresh common secrets, with fresh shares of all keys: wanted, then
//! prepared beside what is in use, then taken into use. Keys are prepared in pieces, a transaction each, and
//! count once the common secrets are prepared, too. All is taken into use in one transaction.
//! `crates/node/src/material/refresh.rs` describes how the nodes do this together.

use std::collections::{BTreeMap, BTreeSet};

use polyclave_api::KeyInfo;
use zeroize::Zeroizing;

use super::checks;
use super::deletions;
use super::engine::{Changes, ERASE, Records, Table, encode};
use super::entry::Entry;
use super::keys::{change_count, encode_shares};
use super::quarantine::QUARANTINE;
use super::sessions;
use super::setup::{AGREED, PROPOSED, load, save};
use super::versions::{Which, find};
use super::{KeyState, Result, Store, StoreError};

/// The id of the common secrets that the operator wants replaced.
pub(super) const WANTED: &[u8] = b"rotation wanted";
/// Fresh common secrets.
pub(super) const PREPARED: &[u8] = b"rotation setup";
/// The keys that were refreshed to them; of the first piece. The others have their number behind it.
const CARRIED: &[u8] = b"rotation keys";
/// The shares of each of these keys, by its id.
const SHARES: &[u8] = b"rotation shares ";
/// The time since which the common secrets are in use, in seconds since 1970.
pub(super) const SINCE: &[u8] = b"secrets since";

/// A key as this node holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldKey {
    /// Its id.
    pub id: [u8; 16],
    /// Its state.
    pub state: KeyState,
    /// Its public properties; `None` if it was deleted.
    pub info: Option<KeyInfo>,
    /// Its deletion has begun, and other nodes may have completed it.
    pub deletion_begun: bool,
}

/// A key after it was refreshed.
pub struct RefreshedKey {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: [u8; 16],
    /// This node's shares of it, under the fresh common secrets.
    pub shares: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

impl Store {
    /// Remembers that the operator wants the common secrets in use replaced.
    pub fn want_refresh(&self) -> Result<()> {
        self.change(|changes| want(changes, false))
    }

    /// The same, although more checks have failed than a node accepts.
    pub fn want_refresh_despite_guesses(&self) -> Result<()> {
        self.change(|changes| want(changes, true))
    }

    /// Whether the common secrets in use are to be replaced.
    pub fn refresh_wanted(&self) -> Result<bool> {
        self.engine.read(|records| {
            let wanted: Option<[u8; 32]> = records.get(Table::Meta, WANTED)?;
            Ok(wanted.is_some() && wanted == load(records, AGREED)?.map(|agreed| agreed.id))
        })
    }

    /// Forgets the wish: the operator has to order it again.
    pub fn forget_refresh(&self) -> Result<()> {
        self.change(|changes| changes.remove(Table::Meta, WANTED))
    }

    /// All versions of all keys that this node holds, pending or announced, and the deleted ones, in order of
    /// their ids. Their shares: [`Store::find`] with [`Which::Id`].
    pub fn held_keys(&self) -> Result<Vec<HeldKey>> {
        let mut held = self.engine.read(|records| {
            let mut held = Vec::new();
            let begun = deletions::begun(records)?;
            records.each(Table::Keys, |_, Entry { info, state, .. }| {
                let (id, deletion_begun) = (info.id, begun.contains(&info.id));
                held.push(HeldKey { id, state, info: Some(info), deletion_begun });
                Ok(())
            })?;
            records.each_sealed(Table::Tombstones, |record, _| {
                let id = record.try_into().map_err(|_| StoreError::corrupt("the record of a deleted key"))?;
                held.push(HeldKey { id, state: KeyState::Deleted, info: None, deletion_begun: false });
                Ok(())
            })?;
            Ok(held)
        })?;
        held.sort_by_key(|key| key.id);
        Ok(held)
    }

    /// Stores a piece of the keys under fresh common secrets, beside what is in use. The pieces have numbers
    /// from 0 on; the first replaces all that was prepared before.
    pub fn prepare_keys(&self, piece: u32, keys: &[RefreshedKey]) -> Result<()> {
        self.change(|changes| {
            if piece == 0 {
                clear(changes)?;
            }
            let named: Vec<(&str, [u8; 16])> = keys.iter().map(|key| (key.name.as_str(), key.id)).collect();
            changes.put_bytes(Table::Meta, &list_of(piece), encode(&named, 32 + 96 * keys.len())?)?;
            keys.iter().try_for_each(|key| {
                changes.put_bytes(Table::Meta, &shares_of(key.id), encode_shares(&key.shares)?)
            })
        })
    }

    /// Stores fresh common secrets beside what is in use, once all pieces of keys are there.
    pub fn prepare_refresh(&self, id: [u8; 32], bytes: &[u8]) -> Result<()> {
        self.change(|changes| {
            let agreed = load(changes, AGREED)?.ok_or(StoreError::NoSetup)?;
            save(changes, PREPARED, id, agreed.epoch + 1, bytes)
        })
    }

    /// Since when the common secrets are in use, as far as this store knows, in seconds since 1970.
    pub fn secrets_since(&self) -> Result<Option<u64>> {
        self.engine.read(|records| records.get(Table::Meta, SINCE))
    }

    /// Notes that the common secrets are in use, if no time is known for them: they are new, or older than
    /// this record.
    pub fn note_secrets_since(&self, now: u64) -> Result<()> {
        self.engine.write(|changes| match changes.holds(Table::Meta, SINCE)? {
            true => Ok(()),
            false => changes.put(Table::Meta, SINCE, &now),
        })
    }

    /// The id of the fresh common secrets that are prepared.
    pub fn prepared_refresh(&self) -> Result<Option<[u8; 32]>> {
        Ok(self.engine.read(|records| load(records, PREPARED))?.map(|prepared| prepared.id))
    }

    /// Deletes what was prepared.
    pub fn discard_refresh(&self) -> Result<()> {
        self.change(clear)
    }

    /// Takes what was prepared into use: the common secrets and every key under them, all at once, at the
    /// time `now`. This also ends a quarantine, and session keys and components that were not carried over.
    /// Repeating this has no effect.
    pub fn commit_refresh(&self, id: [u8; 32], now: u64) -> Result<()> {
        self.change(|changes| {
            if load(changes, AGREED)?.is_some_and(|agreed| agreed.id == id) {
                return Ok(());
            }
            let prepared = load(changes, PREPARED)?.filter(|prepared| prepared.id == id);
            let prepared = prepared.ok_or(StoreError::NoRefresh)?;
            let refreshed = refreshed(changes)?;
            let ids: BTreeSet<[u8; 16]> = refreshed.iter().map(|(_, id)| *id).collect();
            sessions::end(changes, |info| ids.contains(&info.id))?;
            for (name, id) in refreshed {
                let found = find(changes, &name, Which::Id(id))?;
                let (record, mut entry) = match found {
                    Some(found) => found,
                    // A session key, which no restored backup contains.
                    None => continue,
                };
                let shares = changes.bytes(Table::Meta, &shares_of(id))?.ok_or(StoreError::NoRefresh)?;
                changes.put_bytes(Table::Shares, &id, shares)?;
                // All nodes hold it.
                if entry.state == KeyState::Pending {
                    entry.state = KeyState::Announced;
                    changes.put(Table::Keys, &record, &entry)?;
                    change_count(changes, &entry.info, 1)?;
                }
            }
            save(changes, AGREED, id, prepared.epoch, &prepared.bytes)?;
            changes.put(Table::Meta, SINCE, &now)?;
            changes.put(Table::Meta, ERASE, &())?;
            clear(changes)?;
            [PROPOSED, WANTED, QUARANTINE]
                .into_iter()
                .try_for_each(|record| changes.remove(Table::Meta, record))
        })?;
        self.cache.clear();
        self.sessions.forget();
        Ok(())
    }
}

/// The operator wants the common secrets in use replaced; if `accepted`, although more checks have failed
/// than a node accepts.
pub(super) fn want(changes: &Changes, accepted: bool) -> Result<()> {
    let agreed = load(changes, AGREED)?.ok_or(StoreError::NoSetup)?;
    if accepted {
        checks::accept(changes)?;
    }
    changes.put(Table::Meta, WANTED, &agreed.id)
}

/// The names and ids of the keys of all pieces.
fn refreshed(records: &impl Records) -> Result<Vec<(String, [u8; 16])>> {
    let mut all = Vec::new();
    for piece in 0.. {
        let listed: Option<Vec<(String, [u8; 16])>> = records.get(Table::Meta, &list_of(piece))?;
        let Some(listed) = listed else { break };
        all.extend(listed);
    }
    Ok(all)
}

pub(super) fn clear(changes: &Changes) -> Result<()> {
    for (_, id) in refreshed(changes)? {
        changes.remove(Table::Meta, &shares_of(id))?;
    }
    for piece in 0.. {
        let list = list_of(piece);
        if changes.sealed(Table::Meta, &list)?.is_none() {
            break;
        }
        changes.remove(Table::Meta, &list)?;
    }
    changes.remove(Table::Meta, PREPARED)
}

fn list_of(piece: u32) -> Vec<u8> {
    if piece == 0 { CARRIED.to_vec() } else { [CARRIED, b" ", &piece.to_be_bytes()].concat() }
}

fn shares_of(id: [u8; 16]) -> Vec<u8> {
    [SHARES, &id].concat()
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const OLD: [u8; 32] = [1; 32];
    const NEW: [u8; 32] = [2; 32];
    const NOW: u64 = 1_700_000_000;

    /// A store with common secrets, an announced and a pending key, and a refresh ordered.
    fn ordered() -> (Store, Disk) {
        let (store, disk) = in_memory();
        store.put_setup(OLD, 1, b"old", true).expect("put");
        store.put_pending(&key("a", 1)).expect("put");
        store.announce("a", [1; 16]).expect("announced");
        store.put_pending(&key("b", 2)).expect("put");
        store.key("a").expect("read").expect("it is in memory now");
        store.want_refresh().expect("wanted");
        store.quarantine("a check failed", 1).expect("written");
        (store, disk)
    }

    fn refreshed(name: &str, seed: u8) -> RefreshedKey {
        let shares = key(name, seed).shares.into_keys().map(|part| (part, Zeroizing::new(vec![seed, 9, 9])));
        RefreshedKey { name: name.into(), id: [seed; 16], shares: shares.collect() }
    }

    fn refreshed_once(store: &Store) {
        store.prepare_keys(0, &[refreshed("a", 1)]).expect("prepared");
        store.prepare_keys(1, &[refreshed("b", 2)]).expect("prepared");
        store.prepare_refresh(NEW, b"new").expect("prepared");
        store.commit_refresh(NEW, NOW).expect("committed");
    }

    fn is_old(store: &Store) -> bool {
        let setup = store.setup().expect("read").expect("there");
        let (a, b) = (store.key("a").expect("read"), store.pending_key("b").expect("read"));
        let keys = a.expect("there").shares == key("a", 1).shares
            && b.is_some_and(|b| b.shares == key("b", 2).shares);
        let (wanted, quarantined) = (store.refresh_wanted(), store.quarantined());
        let waits = wanted.expect("read") && quarantined.expect("read").is_some();
        setup.id == OLD && *setup.bytes == b"old" && keys && waits
    }

    fn is_new(store: &Store) -> bool {
        let setup = store.setup().expect("read").expect("there");
        let keys = [("a", 1), ("b", 2)].into_iter().all(|(name, seed)| {
            let found = store.key(name).expect("read");
            found.is_some_and(|found| found.shares == refreshed(name, seed).shares)
        });
        let (wanted, quarantined) = (store.refresh_wanted(), store.quarantined());
        let over = !wanted.expect("read") && quarantined.expect("read").is_none();
        assert_eq!(store.secrets_since().expect("read"), Some(NOW));
        let left = store.prepared_refresh().expect("read").is_some();
        (setup.id, setup.epoch) == (NEW, 2) && *setup.bytes == b"new" && keys && over && !left
    }

    #[test]
    fn what_is_prepared_touches_nothing_until_all_of_it_is_taken_into_use() {
        let (store, disk) = ordered();
        store.prepare_keys(0, &[refreshed("a", 1)]).expect("prepared");
        store.prepare_keys(1, &[refreshed("b", 7)]).expect("prepared");
        store.prepare_refresh([7; 32], b"first try").expect("prepared");
        assert!(is_old(&store));
        store.discard_refresh().expect("given up");
        assert!(matches!(store.commit_refresh([7; 32], NOW), Err(StoreError::NoRefresh)));
        assert!(is_old(&store));
        refreshed_once(&store);
        store.commit_refresh(NEW, NOW).expect("twice is once");
        for store in [&store, &reopen(&disk.copy())] {
            assert!(is_new(store));
            assert_eq!(store.count().expect("read"), 2);
        }
    }

    #[test]
    fn after_a_crash_at_any_sync_everything_is_old_or_everything_is_new() {
        let (store, disk) = ordered();
        disk.record();
        refreshed_once(&store);
        let (mut old, mut new) = (0, 0);
        for bytes in disk.history() {
            let crashed = reopen(&Disk::from_bytes(bytes));
            match is_old(&crashed) {
                true => {
                    old += 1;
                    // It is completed from what was prepared, or begun again.
                    if crashed.prepared_refresh().expect("read") == Some(NEW) {
                        crashed.commit_refresh(NEW, NOW).expect("completed");
                    } else {
                        refreshed_once(&crashed);
                    }
                }
                false => new += 1,
            }
            assert!(is_new(&crashed));
        }
        assert!(old > 0 && new > 0, "{old} {new}");
    }

    #[test]
    fn a_full_disk_leaves_the_old_or_the_new() {
        let mut seen = [false; 2];
        for room in (0..400_000).step_by(4_000) {
            let (store, disk) = ordered();
            disk.leave(room);
            let done = store
                .prepare_keys(0, &[refreshed("a", 1)])
                .and_then(|()| store.prepare_keys(1, &[refreshed("b", 2)]))
                .and_then(|()| store.prepare_refresh(NEW, b"new"))
                .and_then(|()| store.commit_refresh(NEW, NOW))
                .is_ok();
            seen[usize::from(done)] = true;
            disk.make_room();
            let fresh = reopen(&disk.copy());
            // A commit that failed may still have reached the disk.
            assert!(if done { is_new(&fresh) } else { is_old(&fresh) || is_new(&fresh) }, "{room}");
        }
        assert_eq!(seen, [true; 2], "the range of room covers both ends");
    }

    #[test]
    fn a_refresh_is_wanted_of_the_common_secrets_in_use_only() {
        let (store, _) = in_memory();
        assert!(matches!(store.want_refresh(), Err(StoreError::NoSetup)));
        store.put_setup(OLD, 1, b"old", true).expect("put");
        assert!(!store.refresh_wanted().expect("read"));
        store.want_refresh().expect("wanted");
        assert!(store.refresh_wanted().expect("read"));
        store.put_setup(NEW, 2, b"new", true).expect("put");
        assert!(!store.refresh_wanted().expect("read"));
    }

    #[test]
    fn every_version_of_a_key_is_refreshed_by_its_id() {
        let (store, _) = in_memory();
        store.put_setup(OLD, 1, b"old", true).expect("put");
        for seed in 1..=3 {
            let mut version = key("a", seed);
            version.info.version = u32::from(seed);
            store.put_pending(&version).expect("put");
        }
        store.announce("a", [1; 16]).expect("announced");
        store.announce("a", [2; 16]).expect("announced");
        let held: Vec<_> = store.held_keys().expect("read").iter().map(|key| (key.id, key.state)).collect();
        let states = [KeyState::Announced, KeyState::Announced, KeyState::Pending];
        assert_eq!(held, [1, 2, 3].map(|id| [id; 16]).into_iter().zip(states).collect::<Vec<_>>());
        let all = [1, 2, 3].map(|seed| refreshed("a", seed));
        store.prepare_keys(0, &all).expect("prepared");
        store.prepare_refresh(NEW, b"new").expect("prepared");
        store.commit_refresh(NEW, NOW).expect("committed");
        for seed in 1..=3 {
            let found = store.find("a", Which::Version(u32::from(seed))).expect("read").expect("there");
            assert_eq!((found.info.id, found.state), ([seed; 16], KeyState::Announced));
            assert_eq!(found.shares, refreshed("a", seed).shares);
        }
        assert_eq!(
            (store.count().expect("read"), store.key("a").expect("read").expect("there").info.version),
            (3, 3)
        );
    }

    #[test]
    fn deleted_keys_are_told() {
        let (store, _) = ordered();
        store.delete("a", [1; 16]).expect("deleted");
        let held: Vec<_> = store.held_keys().expect("read").iter().map(|key| (key.id, key.state)).collect();
        assert_eq!(held, [([1; 16], KeyState::Deleted), ([2; 16], KeyState::Pending)]);
    }
}

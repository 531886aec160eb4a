//! The versions of a key: one record each, under the name and the version. Each has its own id, shares and
//! budget, like a key of its own.
//!
//! The record of version 1 is named like the key, as in stores from before there were versions. The record of
//! another version is named by the name, a zero byte, which no name has, and the version. So the versions of
//! a key lie side by side, and the newest comes last.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclave_api::KeyInfo;
use zeroize::Zeroizing;

use super::engine::{Records, Table, decode};
use super::entry::{Entry, Shares};
use super::{KeyState, Result, Store, StoreError, StoredKey};

/// Which version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// The newest announced one.
    Current,
    /// The one with this number, pending or announced.
    Version(u32),
    /// The one with this id, pending or announced.
    Id([u8; 16]),
}

/// A version as its record shows it.
pub(super) struct Found {
    pub(super) record: Vec<u8>,
    /// An error if the record cannot be read.
    pub(super) entry: Result<Entry>,
}

/// The name of the record of a version.
pub(super) fn record_of(name: &str, version: u32) -> Vec<u8> {
    match version {
        1 => name.into(),
        _ => [name.as_bytes(), &[0], &version.to_be_bytes()].concat(),
    }
}

/// The name of a version for people, from the name of its record.
pub(super) fn label_of(record: &[u8]) -> String {
    let mut parts = record.splitn(2, |byte| *byte == 0);
    let name = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    match parts.next().and_then(|version| <[u8; 4]>::try_from(version).ok()) {
        Some(version) => format!("{name} (version {})", u32::from_be_bytes(version)),
        None => name,
    }
}

/// All versions of a key, the oldest first.
pub(super) fn of_name(records: &impl Records, name: &str) -> Result<Vec<Found>> {
    let (first, last) = (name.as_bytes(), record_of(name, u32::MAX));
    let sealed = records.between(Table::Keys, first, &last)?;
    let found = sealed.into_iter().map(|(record, sealed)| {
        let opened = records.seal().open(Table::Keys.name(), &record, &sealed);
        let entry: Result<Entry> = opened.and_then(|bytes| decode(Table::Keys, &bytes));
        // A record that was moved does not open, so this is how it was written.
        let entry = entry.and_then(|entry| {
            let properties = &entry.info.properties;
            match record_of(&properties.name, entry.info.version) == record {
                true => Ok(entry),
                false => Err(StoreError::corrupt(format!("the key {}", label_of(&record)))),
            }
        });
        Found { record, entry }
    });
    Ok(found.collect())
}

/// One version. An error if it may be one whose record cannot be read.
pub(super) fn find(records: &impl Records, name: &str, which: Which) -> Result<Option<(Vec<u8>, Entry)>> {
    find_among(of_name(records, name)?, which).map_err(|(_, error)| error)
}

/// A record that cannot be read, and why.
type Unreadable = (Vec<u8>, StoreError);

/// The same, with the record that cannot be read.
fn find_among(
    versions: Vec<Found>,
    which: Which,
) -> std::result::Result<Option<(Vec<u8>, Entry)>, Unreadable> {
    let mut unreadable = None;
    for Found { record, entry } in versions.into_iter().rev() {
        let is_it = |entry: &Entry| match which {
            Which::Current => entry.state == KeyState::Announced,
            Which::Version(version) => entry.info.version == version,
            Which::Id(id) => entry.info.id == id,
        };
        match entry {
            // A newer one that cannot be read may be the current one.
            Ok(_) if which == Which::Current && unreadable.is_some() => break,
            Ok(entry) if is_it(&entry) => return Ok(Some((record, entry))),
            Ok(_) => {}
            Err(e) => unreadable = Some((record, e)),
        }
    }
    unreadable.map_or(Ok(None), Err)
}

impl Store {
    /// A version of a key. The announced ones are kept in memory.
    pub fn find(&self, name: &str, which: Which) -> Result<Option<Arc<StoredKey>>> {
        let changes = match self.cache.get(name, which) {
            Ok(key) => return Ok(Some(key)),
            Err(changes) => changes,
        };
        let key = self.load(name, which)?.map(Arc::new);
        if let Some(key) = key.as_ref().filter(|key| key.state == KeyState::Announced) {
            self.cache.put(which, key, changes);
        }
        Ok(key)
    }

    /// The versions of a key, pending or announced, the newest first, each with the error if its record
    /// cannot be read.
    pub fn versions(&self, name: &str) -> Result<Vec<Result<(KeyInfo, KeyState)>>> {
        let found = self.engine.read(|records| of_name(records, name))?;
        Ok(found.into_iter().rev().map(|found| found.entry.map(|entry| (entry.info, entry.state))).collect())
    }

    /// The properties of the newest version of a key, pending or announced, whether or not its shares can be
    /// read.
    pub fn info(&self, name: &str) -> Result<Option<KeyInfo>> {
        self.versions(name)?.into_iter().next().transpose().map(|found| found.map(|(info, _)| info))
    }

    /// Changes what may change of the versions of a key, all at once. Records that cannot be read stay as
    /// they are.
    pub fn amend(&self, name: &str, change: impl Fn(&mut KeyInfo)) -> Result<()> {
        self.change(|changes| {
            self.refuse_in_round(changes)?;
            for Found { record, entry } in of_name(changes, name)? {
                let Ok(mut entry) = entry else { continue };
                let before = entry.info.clone();
                change(&mut entry.info);
                if entry.info != before {
                    changes.put(Table::Keys, &record, &entry)?;
                }
            }
            Ok(())
        })?;
        self.cache.forget(name);
        Ok(())
    }

    /// Reads a version and its shares.
    pub(super) fn load(&self, name: &str, which: Which) -> Result<Option<StoredKey>> {
        let mut label = name.to_owned();
        let mut edition = 0;
        let read = self.engine.read(|records| {
            edition = self.edition_of(records);
            let found = find_among(of_name(records, name)?, which).map_err(|(record, e)| {
                label = label_of(&record);
                e
            })?;
            let Some((record, Entry { info, state, maker })) = found else { return Ok(None) };
            label = label_of(&record);
            let broken = || StoreError::corrupt(format!("the key {label}"));
            let shares: BTreeMap<String, Vec<u8>> =
                records.get(Table::Shares, &info.id)?.ok_or_else(broken)?;
            let shares: Shares = shares.into_iter().map(|(of, share)| (of, Zeroizing::new(share))).collect();
            Ok(Some(StoredKey { info, state, shares, maker }))
        });
        // A missing version says nothing about the others.
        if !matches!(read, Ok(None)) {
            self.damage.note(&label, &read);
        }
        self.know(edition)?;
        read
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::VersionState;

    use super::super::testing::{Disk, in_memory, key, reopen};
    use super::*;

    fn version(name: &str, version: u32, seed: u8) -> StoredKey {
        let mut key = key(name, seed);
        key.info.version = version;
        key
    }

    fn put(store: &Store, key: &StoredKey) {
        store.put_pending(key).expect("put");
        store.announce(&key.info.properties.name, key.info.id).expect("announced");
    }

    fn numbers(store: &Store, name: &str) -> Vec<u32> {
        let versions = store.versions(name).expect("read");
        versions.into_iter().map(|found| found.expect("readable").0.version).collect()
    }

    #[test]
    fn versions_are_found_by_number_and_id_and_the_newest_announced_one_is_current() {
        let (store, disk) = in_memory();
        for (number, seed) in [(1, 1), (2, 2), (300, 3)] {
            put(&store, &version("k", number, seed));
        }
        put(&store, &version("k-other", 1, 9));
        store.put_pending(&version("k", 301, 4)).expect("put");
        for store in [&store, &reopen(&disk.copy())] {
            let found = |which| store.find("k", which).expect("read").map(|key| key.info.id[0]);
            assert_eq!((found(Which::Current), found(Which::Version(1))), (Some(3), Some(1)));
            assert_eq!((found(Which::Version(301)), found(Which::Id([2; 16]))), (Some(4), Some(2)));
            assert_eq!((found(Which::Version(7)), found(Which::Id([9; 16]))), (None, None));
            let two = store.find("k", Which::Version(2)).expect("read").expect("there");
            assert_eq!(two.shares, key("k", 2).shares);
            assert_eq!(numbers(store, "k"), [301, 300, 2, 1]);
            assert_eq!(store.count().expect("read"), 4);
        }
        store.announce("k", [4; 16]).expect("announced");
        assert_eq!(store.key("k").expect("read").expect("there").info.version, 301);
        store.delete("k", [1; 16]).expect("deleted");
        assert_eq!((numbers(&store, "k"), numbers(&store, "k-other")), (vec![301, 300, 2], vec![1]));
        assert_eq!(store.find("k", Which::Id([1; 16])).expect("read"), None);
        assert_eq!(store.state("k", [1; 16]).expect("read"), Some(KeyState::Deleted));
    }

    #[test]
    fn a_version_that_cannot_be_read_is_told_and_the_others_are_used() {
        let (store, disk) = in_memory();
        for (number, seed) in [(1, 1), (2, 2), (3, 3)] {
            put(&store, &version("k", number, seed));
        }
        let spoiled = store
            .engine
            .write(|changes| changes.put_sealed(Table::Keys, &record_of("k", 2), b"no record at all"));
        spoiled.expect("written");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(store.key("k").expect("read").expect("there").info.version, 3);
        assert_eq!(store.look_over().expect("read"), ["k (version 2)"]);
        store.find("k", Which::Version(1)).expect("read").expect("there");
        store.find("k", Which::Id([2; 16])).expect_err("it may be the one that cannot be read");
        store.amend("k", |info| info.state = VersionState::Deactivated).expect("the others");
        assert_eq!(store.damaged(), ["k (version 2)"]);
        // The newest one that can be read is not taken for the current one.
        let spoiled = store
            .engine
            .write(|changes| changes.put_sealed(Table::Keys, &record_of("k", 3), b"no record at all"));
        spoiled.expect("written");
        drop(store);
        reopen(&disk).key("k").expect_err("version 3 is damaged");
    }

    #[test]
    fn a_change_is_made_to_all_versions_or_to_none_whenever_it_is_interrupted() {
        let (store, disk) = in_memory();
        for (number, seed) in [(1, 1), (2, 2), (3, 3)] {
            put(&store, &version("k", number, seed));
        }
        disk.record();
        store.key("k").expect("read").expect("it is in memory now");
        store.amend("k", |info| (info.least_version, info.deletable) = (2, false)).expect("changed");
        assert_eq!(store.key("k").expect("read").expect("there").info.least_version, 2);
        let (mut before, mut after) = (0, 0);
        for bytes in disk.history() {
            let store = reopen(&Disk::from_bytes(bytes));
            let infos: Vec<KeyInfo> = store
                .versions("k")
                .expect("read")
                .into_iter()
                .map(|found| found.expect("readable").0)
                .collect();
            match infos.iter().filter(|info| (info.least_version, info.deletable) == (2, false)).count() {
                0 => before += 1,
                3 => after += 1,
                some => panic!("{some} of 3 versions are changed"),
            }
        }
        assert!(before + after > 0 && after > 0, "{before} {after}");
    }

    /// After a crash at any sync while the next version is made, the current one is the old or the new one,
    /// with its shares.
    #[test]
    fn no_version_is_lost_or_half_made_after_a_crash_at_any_sync() {
        let (store, disk) = in_memory();
        put(&store, &version("k", 1, 1));
        disk.record();
        put(&store, &version("k", 2, 2));
        let mut seen = [0; 2];
        for bytes in disk.history() {
            let store = reopen(&Disk::from_bytes(bytes));
            let current = store.key("k").expect("read").expect("there");
            let number = current.info.version;
            assert_eq!(current.shares, key("k", number as u8).shares);
            assert_eq!(store.count().expect("read"), u64::from(number));
            seen[number as usize - 1] += 1;
            let one = store.find("k", Which::Id([1; 16])).expect("read").expect("there");
            assert_eq!(one.shares, key("k", 1).shares);
            // Whatever is left of it, the next version can be made.
            if number == 1 {
                put(&store, &version("k", 2, 5));
            }
            assert_eq!(store.key("k").expect("read").expect("there").info.version, 2);
        }
        assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
    }
}

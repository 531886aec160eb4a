//! Session keys, which are removed without a trace when their time has ended, and components of keys, which
//! end if no client combines them in time.
//!
//! Their records lie among those of other keys. What differs for session keys: they are in no backup; they do
//! not count among the keys; and each has a maker, because the number of session keys is limited for each
//! client. A key that ends by itself leaves no tombstone, since the id of a key is never drawn again. (A
//! component that a backup brings back ends once more.) A list of them is in memory, too, so that counting
//! them, and finding those that have ended, does not read all keys.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use polyclave_api::KeyInfo;

use super::engine::{Changes, Records, Table, View, decode};
use super::entry::Entry;
use super::keys::{change_count, remove};
use super::versions::{Which, find};
use super::{KeyState, Result, Store, StoredKey, children};

/// The session keys and components of a node by their ids; `None` until they are read.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Option<BTreeMap<[u8; 16], Session>>>);

#[derive(Clone, Debug)]
struct Session {
    name: String,
    maker: Option<String>,
    ends: u64,
}

impl Session {
    fn of(info: &KeyInfo, maker: &Option<String>) -> Option<Session> {
        let (name, maker) = (info.properties.name.clone(), maker.clone());
        info.ends().map(|ends| Session { name, maker, ends })
    }
}

impl Sessions {
    /// Notes a key that was stored in the place of another one.
    pub(super) fn put(&self, key: &StoredKey, replaced: Option<[u8; 16]>) {
        let mut known = self.0.lock();
        let Some(known) = known.as_mut() else { return };
        replaced.and_then(|id| known.remove(&id));
        if let Some(session) = Session::of(&key.info, &key.maker) {
            known.insert(key.info.id, session);
        }
    }

    /// Notes that a key is gone.
    pub(super) fn remove(&self, id: [u8; 16]) {
        self.0.lock().as_mut().map(|known| known.remove(&id));
    }

    /// Forgets what was read: many records have been replaced.
    pub(super) fn forget(&self) {
        *self.0.lock() = None;
    }

    fn with<T>(&self, store: &Store, look: impl FnOnce(&BTreeMap<[u8; 16], Session>) -> T) -> Result<T> {
        let mut known = self.0.lock();
        let sessions = match known.take() {
            Some(sessions) => sessions,
            None => store.engine.read(read)?,
        };
        Ok(look(known.insert(sessions)))
    }
}

fn read(records: &View<'_>) -> Result<BTreeMap<[u8; 16], Session>> {
    let mut sessions = BTreeMap::new();
    records.each_readable(Table::Keys, |_, entry: Result<Entry>| {
        if let Ok(Entry { info, maker, .. }) = entry
            && let Some(session) = Session::of(&info, &maker)
        {
            sessions.insert(info.id, session);
        }
        Ok(())
    })?;
    Ok(sessions)
}

impl Store {
    /// How many session keys a client has made that have not ended.
    pub fn session_keys_of(&self, client: &str) -> Result<usize> {
        self.sessions.with(self, |sessions| {
            sessions.values().filter(|session| session.maker.as_deref() == Some(client)).count()
        })
    }

    /// Removes the session keys and components whose time has ended by `now`. Returns how many.
    pub fn end_keys(&self, now: u64) -> Result<usize> {
        let ended: Vec<([u8; 16], String)> = self.sessions.with(self, |sessions| {
            let ended = sessions.iter().filter(|(_, session)| session.ends <= now);
            ended.map(|(id, session)| (*id, session.name.clone())).collect()
        })?;
        if ended.is_empty() {
            return Ok(0);
        }
        let (left, moved) = self.engine.write(|changes| {
            let end = |(id, name): &([u8; 16], String)| match find(changes, name, Which::Id(*id))? {
                Some((record, entry)) => {
                    if entry.state == KeyState::Announced {
                        change_count(changes, &entry.info, -1)?;
                    }
                    remove(changes, &record, &entry.info).map(Some)
                }
                None => Ok(None),
            };
            let left = ended.iter().map(end).collect::<Result<Vec<_>>>()?;
            Ok((left, self.move_edition(changes)?))
        })?;
        self.note_edition(moved);
        for ((id, name), left) in ended.iter().zip(left) {
            self.cache.forget(name);
            left.inspect(|left| self.budgets.forget(*id, *left));
            self.sessions.remove(*id);
        }
        Ok(ended.len())
    }
}

/// Removes all session keys and components that are not to be kept.
pub(super) fn end(changes: &Changes<'_>, keep: impl Fn(&KeyInfo) -> bool) -> Result<()> {
    for (record, sealed) in changes.between(Table::Keys, &[], &[0xff])? {
        let opened = changes.seal().open(Table::Keys.name(), &record, &sealed);
        let entry: Result<Entry> = opened.and_then(|bytes| decode(Table::Keys, &bytes));
        if let Ok(Entry { info, state, .. }) = entry
            && info.ends().is_some()
            && !keep(&info)
        {
            if state == KeyState::Announced {
                change_count(changes, &info, -1)?;
            }
            remove(changes, &record, &info)?;
        }
    }
    Ok(())
}

/// The records that belong to session keys, by table.
pub(super) struct OfSessions {
    keys: BTreeSet<Vec<u8>>,
    ids: BTreeSet<[u8; 16]>,
    /// From which nothing else pays.
    accounts: BTreeSet<[u8; 16]>,
}

impl OfSessions {
    pub(super) fn read(records: &View<'_>) -> Result<OfSessions> {
        let (mut keys, mut ids) = (BTreeSet::new(), BTreeSet::new());
        let (mut accounts, mut others) = (BTreeSet::new(), BTreeSet::new());
        records.each_readable(Table::Keys, |record, entry: Result<Entry>| {
            let Ok(Entry { info, .. }) = entry else { return Ok(()) };
            if info.is_of_session() {
                keys.insert(record.to_vec());
                ids.insert(info.id);
                accounts.insert(info.account);
            } else {
                others.insert(info.account);
            }
            Ok(())
        })?;
        accounts.retain(|account| !others.contains(account));
        Ok(OfSessions { keys, ids, accounts })
    }

    pub(super) fn holds(&self, table: Table, record: &[u8]) -> bool {
        match table {
            Table::Keys => self.keys.contains(record),
            Table::Meta if children::account_of(record).is_some() => {
                children::account_of(record).is_some_and(|account| self.accounts.contains(&account))
            }
            // What a refresh has prepared of a key ends with its id, and so does the record of a copy.
            Table::Shares | Table::Meta => record.last_chunk().is_some_and(|id| self.ids.contains(id)),
            Table::Spent => record.last_chunk().is_some_and(|account| self.accounts.contains(account)),
            Table::Tombstones | Table::Peers | Table::Lots | Table::Changes => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::{COMPONENT_SECONDS, Lifetime};

    use super::super::StoreError;
    use super::super::testing::{Disk, component, in_memory, key, reopen};
    use super::*;

    /// A session key that is made at 1000 and lives for so many seconds.
    fn session(name: &str, seed: u8, maker: &str, seconds: u32) -> StoredKey {
        let mut key = key(name, seed);
        (key.info.made, key.info.properties.lifetime) = (1000, Lifetime::Session { seconds });
        key.maker = Some(maker.into());
        key
    }

    fn put(store: &Store, key: &StoredKey) {
        store.put_pending(key).expect("put");
        store.announce(&key.info.properties.name, key.info.id).expect("announced");
    }

    #[test]
    fn a_session_key_is_gone_after_its_time_also_across_restarts_and_others_stay() {
        let (store, disk) = in_memory();
        put(&store, &key("stored", 1));
        put(&store, &session("short", 2, "alice", 10));
        put(&store, &session("long", 3, "alice", 500));
        store.put_pending(&session("half made", 4, "bob", 10)).expect("put");
        store.spend(([2; 16], [2; 16]), 5, 100).expect("in the budget");
        assert_eq!(store.end_keys(1009).expect("read"), 0);
        assert_eq!(store.count().expect("read"), 1, "session keys do not count");
        for store in [&store, &reopen(&disk.copy())] {
            assert_eq!(
                (store.session_keys_of("alice").expect("read"), store.session_keys_of("bob").expect("read")),
                (2, 1)
            );
            store.key("short").expect("read").expect("it is in memory now");
            assert_eq!(store.end_keys(1010).expect("ended"), 2);
            assert_eq!(store.key("short").expect("read"), None);
            assert_eq!(store.state("short", [2; 16]).expect("read"), None, "no tombstone");
            assert!(store.shares_of([2; 16]).is_err() && store.shares_of([4; 16]).is_err());
            assert_eq!(store.spent([2; 16]).expect("read"), 0);
            assert_eq!(
                (store.session_keys_of("alice").expect("read"), store.session_keys_of("bob").expect("read")),
                (1, 0)
            );
            for name in ["stored", "long"] {
                store.key(name).expect("read").expect("it stays");
            }
            assert_eq!(store.count().expect("read"), 1);
        }
        drop(store);
        let store = reopen(&disk);
        assert_eq!(store.key("short").expect("read"), None);
        put(&store, &key("short", 9));
    }

    #[test]
    fn what_was_derived_from_a_session_key_belongs_to_its_stored_copy_if_there_is_one() {
        let (store, _disk) = in_memory();
        put(&store, &session("copied", 2, "alice", 10));
        let mut copy = key("kept", 3);
        copy.info.account = [2; 16];
        put(&store, &copy);
        put(&store, &session("alone", 4, "alice", 10));
        let of = store.engine.read(OfSessions::read).expect("read");
        let is_left_out = |account: u8| of.holds(Table::Meta, &[b"children ", &[account; 16][..]].concat());
        assert_eq!([2, 4].map(is_left_out), [false, true]);
    }

    #[test]
    fn a_component_that_nobody_combines_is_gone_after_its_time_and_does_not_count_any_more() {
        let (store, disk) = in_memory();
        put(&store, &key("stored", 1));
        put(&store, &component("zone", 1, 2));
        store.put_pending(&component("zone", 2, 3)).expect("put");
        let ends = 1000 + COMPONENT_SECONDS;
        assert_eq!((store.end_keys(ends - 1).expect("read"), store.count().expect("read")), (0, 2));
        disk.record();
        assert_eq!((store.end_keys(ends).expect("ended"), store.count().expect("read")), (2, 1));
        for bytes in disk.history().into_iter().chain([disk.bytes()]) {
            let store = reopen(&Disk::from_bytes(bytes));
            let there = store.key("zone.component-1").expect("read").is_some();
            assert_eq!(store.count().expect("read"), if there { 2 } else { 1 });
            store.end_keys(ends).expect("ended");
            assert_eq!(store.held_keys().expect("read").len(), 1, "and the key stays");
            put(&store, &component("zone", 1, 4));
        }
    }

    #[test]
    fn a_refresh_ends_the_components_that_not_all_nodes_have() {
        let (store, _) = in_memory();
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        put(&store, &component("zone", 1, 2));
        put(&store, &component("zone", 2, 3));
        let carried = super::super::RefreshedKey {
            name: "zone.component-2".into(),
            id: [3; 16],
            shares: [("key".to_owned(), zeroize::Zeroizing::new(vec![9; 4]))].into_iter().collect(),
        };
        store.prepare_keys(0, &[carried]).expect("prepared");
        store.prepare_refresh([2; 32], b"new").expect("prepared");
        store.commit_refresh([2; 32], 1005).expect("committed");
        let there = |number: u8| store.key(&format!("zone.component-{number}")).expect("read").is_some();
        assert_eq!((there(1), there(2), store.count().expect("read")), (false, true, 1));
    }

    #[test]
    fn a_session_key_is_deleted_without_a_tombstone() {
        let (store, _) = in_memory();
        put(&store, &session("k", 2, "alice", 10));
        assert_eq!(store.session_keys_of("alice").expect("read"), 1);
        store.delete("k", [2; 16]).expect("deleted");
        assert_eq!(store.session_keys_of("alice").expect("read"), 0);
        assert!(store.held_keys().expect("read").is_empty());
        assert!(matches!(store.delete("k", [2; 16]), Err(StoreError::NoKey { .. })));
    }

    #[test]
    fn a_pending_session_key_that_is_replaced_does_not_count_any_more() {
        let (store, _) = in_memory();
        assert_eq!(store.session_keys_of("alice").expect("read"), 0);
        for seed in 1..=3 {
            store.put_pending(&session("k", seed, "alice", 10)).expect("put");
        }
        assert_eq!(store.session_keys_of("alice").expect("read"), 1);
        store.put_pending(&key("k", 9)).expect("put");
        assert_eq!(store.session_keys_of("alice").expect("read"), 0);
    }

    #[test]
    fn a_refresh_ends_the_session_keys_that_not_all_nodes_have() {
        let (store, disk) = in_memory();
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        put(&store, &key("stored", 1));
        put(&store, &session("at all", 2, "alice", 10));
        put(&store, &session("here only", 3, "alice", 10));
        assert_eq!(store.session_keys_of("alice").expect("read"), 2);
        let fresh = |name: &str, seed| super::super::RefreshedKey {
            name: name.into(),
            id: [seed; 16],
            shares: [("key".to_owned(), zeroize::Zeroizing::new(vec![9; 4]))].into_iter().collect(),
        };
        disk.record();
        store.prepare_keys(0, &[fresh("stored", 1), fresh("at all", 2)]).expect("prepared");
        store.prepare_refresh([2; 32], b"new").expect("prepared");
        store.commit_refresh([2; 32], 1005).expect("committed");
        for bytes in disk.history() {
            let store = reopen(&Disk::from_bytes(bytes));
            let is_new = store.setup().expect("read").is_some_and(|setup| setup.id == [2; 32]);
            assert_eq!(store.key("here only").expect("read").is_none(), is_new);
            let kept = store.key("at all").expect("read").expect("it stays");
            assert_eq!(kept.shares.len(), if is_new { 1 } else { 2 });
        }
        assert_eq!(store.session_keys_of("alice").expect("read"), 1);
        assert_eq!(store.state("at all", [2; 16]).expect("read"), Some(KeyState::Announced));
    }

    /// After a crash at any sync while session keys end, each is there with its shares, or gone.
    #[test]
    fn keys_end_whole_or_not_at_all_whenever_this_is_interrupted() {
        let (store, disk) = in_memory();
        for seed in 1..=3 {
            put(&store, &session(&format!("k{seed}"), seed, "alice", 10));
        }
        disk.record();
        assert_eq!(store.end_keys(2000).expect("ended"), 3);
        let history = disk.history();
        assert!(!history.is_empty());
        for bytes in history {
            let store = reopen(&Disk::from_bytes(bytes));
            for seed in 1..=3 {
                if let Some(key) = store.key(&format!("k{seed}")).expect("read") {
                    assert_eq!(key.shares, super::super::testing::key("k", seed).shares);
                }
            }
            store.end_keys(2000).expect("ended");
            assert!(store.held_keys().expect("read").is_empty());
        }
    }
}

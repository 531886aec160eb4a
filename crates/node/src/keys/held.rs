//! The keys that a node holds, and what clients may see of them.

use std::sync::Arc;

use polyclave_api::{
    CHUNK, KEYS, KeyInfo, Lifetime, MAX_SESSION_KEYS, NewKey, Permission, Reason, Refusal, Reply, Right,
    key_of_component,
};
use polyclave_store::{KeyState, Store, StoreError, StoredKey, Which};

use crate::clients::client::Client;
use crate::clients::rules::Rules;
use crate::computation::key::{Shares, unreadable};
use crate::error::of_store;
use crate::keys::names::{Names, Taken};
use crate::keys::standby::{PairShares, StandbyStores};

/// The most bytes of a page of a list, and of a key's properties without its attributes. Every page has a key
/// at least.
const MAX_PAGE: usize = 2 * CHUNK;
const MAX_INFO: usize = 500;

/// A node's keys.
pub(crate) struct Keys {
    store: Arc<Store>,
    names: Arc<Names>,
    /// A request is served by at least `quorum` of `nodes` nodes.
    quorum: usize,
    nodes: usize,
    /// The most keys that the operator allows.
    most: usize,
    /// In a standby pair, where this node's shares for it are.
    shares: Option<Arc<PairShares>>,
    /// The stores of this node's standby pairs.
    standby: Arc<StandbyStores>,
}

/// The refusal if this node's record of a key is damaged.
fn damaged(name: &str, e: StoreError) -> Refusal {
    match e {
        StoreError::Corrupt { .. } => {
            tracing::error!(key = name, error = %e, "a record of a key is damaged");
            unreadable(name)
        }
        e => of_store(e),
    }
}

pub(crate) fn no_key(name: &str) -> Refusal {
    Refusal::new(Reason::NoSuchKey, format!("there is no key '{name}'"))
}

/// Refuses a component of a key in the place of a key.
fn no_component((info, key): (KeyInfo, Arc<StoredKey>)) -> Result<(KeyInfo, Arc<StoredKey>), Refusal> {
    if info.component.is_none() {
        return Ok((info, key));
    }
    let name = &info.properties.name;
    Err(Refusal::new(
        Reason::NotForThis,
        format!("'{name}' is a component of a key, and can be used for nothing except to combine it"),
    ))
}

/// The place of a version in a list.
fn place(info: &KeyInfo) -> (&str, u32) {
    (&info.properties.name, info.version)
}

/// As many keys as fit into one reply.
fn page(mut keys: Vec<KeyInfo>) -> Reply {
    let (all, mut room) = (keys.len(), MAX_PAGE);
    let fits = |info: &&KeyInfo| {
        let left = room.checked_sub(MAX_INFO + info.properties.attributes.len());
        room = left.unwrap_or_default();
        left.is_some()
    };
    let fitting = keys.iter().take(KEYS).take_while(fits).count();
    keys.truncate(fitting);
    Reply::Keys { keys, more: fitting < all }
}

impl Keys {
    pub(crate) fn new(store: Arc<Store>, (quorum, nodes): (usize, usize), most: usize) -> Keys {
        let names = Arc::new(Names::new(store.clone()));
        Keys { store, names, quorum, nodes, most, shares: None, standby: Arc::default() }
    }

    /// The same keys with this node's shares of them for a standby pair.
    pub(crate) fn in_standby(&self, shares: Arc<PairShares>) -> Keys {
        let Keys { store, names, quorum, nodes, most, standby, .. } = self;
        let (store, names, standby) = (store.clone(), names.clone(), standby.clone());
        Keys { store, names, quorum: *quorum, nodes: *nodes, most: *most, shares: Some(shares), standby }
    }

    /// The stores of this node's standby pairs.
    pub(crate) fn standby(&self) -> &Arc<StandbyStores> {
        &self.standby
    }

    /// A key with the shares that it is computed with here.
    fn with_shares(&self, key: Arc<StoredKey>) -> Result<Arc<StoredKey>, Refusal> {
        let Some(standby) = &self.shares else { return Ok(key) };
        let name = &key.info.properties.name;
        if key.state != KeyState::Announced || !standby.holds(&key.info.id) {
            let message = format!(
                "the standby pair has no shares of the key '{name}' yet: it gets them while all nodes are there"
            );
            return Err(Refusal::new(Reason::Unavailable, message));
        }
        let shares = standby.store.shares_of(key.info.id).map_err(|e| damaged(name, e))?;
        let StoredKey { info, state, maker, .. } = &*key;
        Ok(Arc::new(StoredKey { info: info.clone(), state: *state, shares, maker: maker.clone() }))
    }

    /// The current version of a key and this node's shares of it. If none is announced, one that is not: the
    /// nodes compare its id, and a node that has the same id stored it in the same session.
    pub(crate) fn get(&self, name: &str) -> Result<(KeyInfo, Arc<StoredKey>), Refusal> {
        self.any(name).and_then(no_component)
    }

    /// The current version of a key, or the one with an id, to compute with it.
    pub(crate) fn for_use(
        &self,
        name: &str,
        id: Option<&[u8; 16]>,
    ) -> Result<(KeyInfo, Arc<StoredKey>), Refusal> {
        match id {
            None => self.get(name),
            Some(id) => self.with_id(name, *id).and_then(no_component),
        }
    }

    /// The same, or a component of a key.
    fn any(&self, name: &str) -> Result<(KeyInfo, Arc<StoredKey>), Refusal> {
        let key = match self.store.key(name).map_err(|e| damaged(name, e))? {
            None => self.store.pending_key(name).map_err(|e| damaged(name, e))?.map(Arc::new),
            announced => announced,
        };
        match key {
            Some(key) => Ok((key.info.clone(), self.with_shares(key)?)),
            None => Err(no_key(name)),
        }
    }

    /// The same for the version with an id, announced or not.
    pub(crate) fn with_id(&self, name: &str, id: [u8; 16]) -> Result<(KeyInfo, Arc<StoredKey>), Refusal> {
        if let Some(key) = self.store.find(name, Which::Id(id)).map_err(|e| damaged(name, e))? {
            return Ok((key.info.clone(), self.with_shares(key)?));
        }
        let message = match self.store.state(name, id).map_err(of_store)? {
            Some(KeyState::Deleted) => {
                format!("this was made under a version of the key '{name}' that was destroyed")
            }
            _ => {
                self.get(name)?;
                format!(
                    "this was not made under the key '{name}', but under a key with the id {}. Name that key. If it also had the name '{name}', it \
                     was deleted",
                    hex::encode(id)
                )
            }
        };
        Err(Refusal::new(Reason::NoSuchKey, message))
    }

    /// A version by its number.
    pub(crate) fn version(&self, name: &str, version: u32) -> Result<KeyInfo, Refusal> {
        let (current, _) = self.get(name)?;
        match self.store.find(name, Which::Version(version)).map_err(|e| damaged(name, e))? {
            Some(key) => Ok(key.info.clone()),
            None if version == 0 || version > current.version => {
                let message = format!(
                    "there is no version {version} of the key '{name}'; the current one is version {}",
                    current.version
                );
                Err(Refusal::new(Reason::NoSuchKey, message))
            }
            None => {
                let message = format!("version {version} of the key '{name}' was destroyed");
                Err(Refusal::new(Reason::NoSuchKey, message))
            }
        }
    }

    /// The newest announced and the newest pending version of a key.
    pub(crate) fn newest(&self, name: &str) -> Result<[Option<KeyInfo>; 2], Refusal> {
        let versions = self.store.versions(name).map_err(of_store)?;
        let versions = versions.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| damaged(name, e))?;
        let newest = |wanted: KeyState| versions.iter().find(|(_, state)| *state == wanted);
        Ok([KeyState::Announced, KeyState::Pending].map(|state| newest(state).map(|(info, _)| info.clone())))
    }

    /// Changes what may change of the versions of a key.
    pub(crate) fn amend(&self, name: &str, change: impl Fn(&mut KeyInfo)) -> Result<(), Refusal> {
        self.store.amend(name, change).map_err(of_store)
    }

    /// A component of a key, announced or not.
    pub(crate) fn component(&self, name: &str) -> Result<Option<Arc<StoredKey>>, Refusal> {
        let there = self.newest(name)?.iter().flatten().any(|info| info.component.is_some());
        match there {
            true => self.any(name).map(|(_, key)| Some(key)),
            false => Ok(None),
        }
    }

    /// Whether a key of this name was announced.
    pub(crate) fn has(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.store.key(name).map_err(of_store)?.is_some())
    }

    /// Charges blocks to a key's budget, durably, before they are computed. Every node charges the requests
    /// that it serves. Every request is served by at least a quorum, so all nodes together never exceed the
    /// key's budget. The other serving nodes must know of the charge before anything is computed
    /// ([`Marks::protect`](crate::peers::marks::Marks::protect)).
    pub(crate) fn pay(&self, info: &KeyInfo, blocks: u64) -> Result<(), Refusal> {
        let own_part = self.own_part(info.properties.budget_blocks);
        self.store.spend((info.id, info.account), blocks, own_part).map_err(of_store)
    }

    /// What this node lets happen of what may happen at all nodes together.
    pub(crate) fn own_part(&self, limit: u64) -> u64 {
        (u128::from(limit) * self.quorum as u128 / self.nodes as u128) as u64
    }

    /// Removes what is left of the components of keys that are there: a node that dies while a key is
    /// combined leaves it. The key is at all nodes then, and the components are of no use to it. Returns how
    /// many. Components of a key that this node cannot read stay. One that cannot be removed is the error,
    /// after the others.
    pub(crate) fn remove_combined(&self) -> Result<usize, Refusal> {
        let (mut removed, mut failed) = (0, None);
        for info in self.store.readable_keys().map_err(of_store)? {
            match self.remove_if_combined(&info) {
                Ok(true) => removed += 1,
                Ok(false) => {}
                Err(e) => _ = failed.get_or_insert(e),
            }
        }
        failed.map_or(Ok(removed), |e| Err(of_store(e)))
    }

    /// Removes a component whose key is there. Says whether it was one.
    fn remove_if_combined(&self, info: &KeyInfo) -> Result<bool, StoreError> {
        let name = &info.properties.name;
        let Some(key) = key_of_component(name).filter(|_| info.component.is_some()) else {
            return Ok(false);
        };
        match self.store.key(key) {
            Ok(None) | Err(StoreError::Corrupt { .. }) => Ok(false),
            Ok(Some(_)) => self.store.delete(name, info.id).map(|()| true),
            Err(e) => Err(e),
        }
    }

    /// Stores a key that is not yet announced, for the client that makes it.
    pub(crate) fn store_pending(&self, info: &KeyInfo, shares: Shares, client: &str) -> Result<(), Refusal> {
        let maker = info.is_of_session().then(|| client.to_owned());
        let key = StoredKey { info: info.clone(), state: KeyState::Pending, shares, maker };
        self.store.put_pending(&key).map_err(of_store)
    }

    /// Marks a key as stored by all nodes.
    pub(crate) fn announce(&self, info: &KeyInfo) -> Result<(), Refusal> {
        self.store.announce(&info.properties.name, info.id).map_err(of_store)
    }

    /// Notes that a version of a key, or all, are about to be deleted; returns their ids. What ends by itself
    /// is not noted: nothing waits for it.
    pub(crate) fn begin_deletion(&self, name: &str, version: Option<u32>) -> Result<Vec<[u8; 16]>, Refusal> {
        let mut ids = Vec::new();
        for found in self.store.versions(name).map_err(of_store)? {
            let (info, _) = found.map_err(|e| damaged(name, e))?;
            if version.is_none_or(|version| version == info.version) && info.ends().is_none() {
                ids.push(info.id);
            }
        }
        self.store.begin_deletion(&ids).map_err(of_store)?;
        Ok(ids)
    }

    /// Forgets that versions are about to be deleted.
    pub(crate) fn withdraw_deletion(&self, ids: &[[u8; 16]]) -> Result<(), Refusal> {
        self.store.withdraw_deletion(ids).map_err(of_store)
    }

    /// Deletes a version of a key, or all, if there are any, with the shares of standby pairs. Returns the
    /// newest of them.
    pub(crate) fn delete(&self, name: &str, version: Option<u32>) -> Result<Option<KeyInfo>, Refusal> {
        let standby = self.standby.change();
        // Deletion works even if shares cannot be read.
        let mut newest = None;
        for found in self.store.versions(name).map_err(of_store)? {
            let (info, _) = found.map_err(|e| damaged(name, e))?;
            if version.is_none_or(|version| version == info.version) {
                standby.remove(info.id).map_err(of_store)?;
                self.store.delete(name, info.id).map_err(of_store)?;
                newest.get_or_insert(info);
            }
        }
        Ok(newest)
    }

    /// The keys that a client may see: a page of them, from a name on.
    pub(crate) fn list(&self, rules: &Rules, client: &Client, after: (&str, u32)) -> Result<Reply, Refusal> {
        let mut keys = self.store.readable_keys().map_err(of_store)?;
        keys.retain(|info| {
            let name = info.properties.name.as_str();
            (name, info.version) > after && rules.allows(client, Right::List, name)
        });
        keys.sort_by(|a, b| place(a).cmp(&place(b)));
        Ok(page(keys))
    }

    /// The same for a key that a client makes. Each client has at most [`MAX_SESSION_KEYS`] session keys, and
    /// they end after a day.
    pub(crate) fn refuse_too_many_of(&self, new: &NewKey, client: &str) -> Result<(), Refusal> {
        if new.lifetime == Lifetime::Stored {
            return self.refuse_too_many();
        }
        if self.store.session_keys_of(client).map_err(of_store)? < MAX_SESSION_KEYS {
            return Ok(());
        }
        let message = format!(
            "this client has {MAX_SESSION_KEYS} session keys, which is the limit: delete some, or wait until they have ended"
        );
        Err(Refusal::new(Reason::Key, message))
    }

    /// Refuses another key if there are as many as the operator allows. Otherwise a client that may make keys
    /// could fill the disk.
    pub(crate) fn refuse_too_many(&self) -> Result<(), Refusal> {
        let (held, most) = (self.store.count().map_err(of_store)?, self.most as u64);
        if held < most {
            return Ok(());
        }
        let message = format!(
            "it has {held} keys, and its limit is {most}: delete some that are not needed, or ask its operator to raise `keys` under \
             [limits]"
        );
        Err(Refusal::new(Reason::Key, message))
    }

    /// The versions of a key that a client may use in at least one way, the newest first.
    pub(crate) fn show(&self, rules: &Rules, client: &Client, key: &str) -> Result<Reply, Refusal> {
        let shows = |right: &Right| {
            let others = [Right::List, Right::Delete, Right::Configure, Right::Rewrap];
            right.usage().is_some() || others.contains(right)
        };
        if !Right::ALL.iter().filter(|right| shows(right)).any(|right| rules.allows(client, *right, key)) {
            rules.allow(client, &Permission::of(Right::List, key))?;
        }
        // The current version must be readable; of the others those are shown that are.
        let current = self.any(key)?.0;
        if current.version == 1 {
            return Ok(page(vec![current]));
        }
        let others = self.store.versions(key).map_err(of_store)?.into_iter().flatten();
        let older = others.filter(|(info, _)| info.version < current.version).map(|(info, _)| info);
        Ok(page([current.clone()].into_iter().chain(older).collect()))
    }

    /// Reserves a name: no other request makes or deletes a key of it, or a component of that key, meanwhile.
    pub(crate) fn take_name(&self, name: &str) -> Result<Taken, Refusal> {
        self.names.take(key_of_component(name).unwrap_or(name))
    }

    /// See [`Names::release_leftovers`].
    pub(crate) fn release_leftover_claims(&self) {
        if let Err(e) = self.names.release_leftovers() {
            tracing::debug!(error = %e, "claims on names are not released yet");
        }
    }

    /// Notes that the shares of a version turned out to be unusable.
    pub(crate) fn note_unusable(&self, info: &KeyInfo) {
        self.store.note_unusable(info);
    }

    /// How many keys there are; every version counts.
    pub(crate) fn count(&self) -> u64 {
        self.store.count().unwrap_or_default()
    }

    /// The names of the keys with a record that cannot be read.
    pub(crate) fn damaged(&self) -> Vec<String> {
        self.store.damaged()
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::{Mode, Origin};

    use polyclave_store::testing::{Disk, component, in_memory, key, reopen};

    use super::*;

    /// What a node stores of a key from its conversation: `store_everywhere` in `operations/keep.rs` without
    /// the other nodes.
    fn made(store: &Store, key: &StoredKey, components: &[StoredKey]) {
        store.put_pending(key).expect("put");
        store.announce(&key.info.properties.name, key.info.id).expect("announced");
        for part in components {
            store.delete(&part.info.properties.name, part.info.id).expect("deleted");
        }
    }

    /// The keys of a node that crashed after each sync since the disk records, and its store.
    fn crashed(disk: &Disk) -> impl Iterator<Item = (Keys, Arc<Store>)> {
        disk.history().into_iter().map(|bytes| {
            let store = Arc::new(reopen(&Disk::from_bytes(bytes)));
            (Keys::new(store.clone(), (2, 3), 10), store)
        })
    }

    /// What a crash has left of a key that was being made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Left {
        Nothing,
        Pending,
        Announced,
    }

    /// Whole, or not there: a key that is announced has its shares, and one that is not is made anew, or
    /// completed with the id that it has.
    fn left_of(key: &StoredKey, store: &Store) -> Left {
        let (name, id) = (&key.info.properties.name, key.info.id);
        let found = store.find(name, Which::Id(id)).expect("read");
        let left = match found.as_ref().map(|found| found.state) {
            None => Left::Nothing,
            Some(KeyState::Pending) => Left::Pending,
            Some(_) => Left::Announced,
        };
        if let Some(found) = &found {
            assert_eq!((&found.info, &found.shares), (&key.info, &key.shares), "half made");
        }
        assert_eq!(store.key(name).expect("read").is_some(), left == Left::Announced);
        left
    }

    /// After a crash at any sync the key is there as soon as a component is gone; what is left of the
    /// components is removed at the next start, and before the key is there nothing is.
    #[test]
    fn a_key_that_is_combined_is_not_lost_and_its_components_are_used_once_wherever_a_node_is_killed() {
        let (store, disk) = in_memory();
        let parts = [component("zone", 1, 1), component("zone", 2, 2), component("other", 1, 3)];
        parts.iter().for_each(|part| made(&store, part, &[]));
        disk.record();
        let zone = key("zone", 4);
        made(&store, &zone, &parts[..2]);
        let mut seen = [0; 4];
        for (keys, crashed) in crashed(&disk) {
            let left = || {
                let there = parts[..2].iter().filter(|part| {
                    let name = &part.info.properties.name;
                    let found = keys.component(name).expect("read");
                    found.is_some_and(|found| found.shares == part.shares)
                });
                there.count()
            };
            let (before, has) = (left(), left_of(&zone, &crashed) == Left::Announced);
            assert!(has || before == 2, "neither the key nor its components");
            assert_eq!(keys.remove_combined().expect("removed"), if has { before } else { 0 });
            assert_eq!(left(), if has { 0 } else { 2 });
            assert!(keys.component("other.component-1").expect("read").is_some(), "of another key");
            if !has {
                // Whatever is left of the try, the key is made of the same components again.
                made(&crashed, &key("zone", 9), &[]);
            }
            seen[if has { 1 + before } else { 0 }] += 1;
        }
        assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
    }

    /// A wrapped key and a key block: the key that wraps pays, then the new key is stored. After a crash at
    /// any sync what was paid stays paid if anything is left of the new key, the key that wraps is whole, and
    /// the new one is whole or can be made anew.
    #[test]
    fn a_key_that_is_unwrapped_or_comes_in_a_key_block_is_paid_for_and_whole_wherever_a_node_is_killed() {
        const BLOCKS: u64 = 14;
        let (store, disk) = in_memory();
        let store = Arc::new(store);
        let wrapping = key("wrapping", 1);
        made(&store, &wrapping, &[]);
        disk.record();
        Keys::new(store.clone(), (2, 3), 10).pay(&wrapping.info, BLOCKS).expect("it has a budget");
        let mut unwrapped = key("unwrapped", 4);
        unwrapped.info.origin = Origin::Unwrapped;
        made(&store, &unwrapped, &[]);
        let mut seen = Vec::new();
        for (keys, crashed) in crashed(&disk) {
            let left = left_of(&unwrapped, &crashed);
            assert_eq!(left_of(&wrapping, &crashed), Left::Announced);
            let paid = crashed.spent(wrapping.info.account).expect("read");
            assert!(paid >= BLOCKS || left == Left::Nothing, "{left:?} for {paid} blocks");
            match left {
                Left::Nothing => {
                    let again = StoredKey { info: key("unwrapped", 9).info, ..unwrapped.clone() };
                    keys.pay(&wrapping.info, BLOCKS).expect("once more");
                    made(&crashed, &again, &[]);
                    assert_eq!(left_of(&again, &crashed), Left::Announced);
                }
                // If it is announced at another node, this one completes it at its next use.
                Left::Pending => {
                    keys.announce(&unwrapped.info).expect("completed");
                    assert_eq!(left_of(&unwrapped, &crashed), Left::Announced);
                }
                Left::Announced => {}
            }
            seen.push(left);
        }
        assert!(seen.is_sorted(), "what was stored stays stored: {seen:?}");
        seen.dedup();
        assert_eq!(seen, [Left::Nothing, Left::Pending, Left::Announced]);
    }

    #[test]
    fn a_key_that_cannot_be_read_keeps_no_component_of_another_and_loses_none() {
        let (store, disk) = in_memory();
        for of in ["a", "b"] {
            let made = key(of, of.as_bytes()[0]);
            let part = component(of, 1, of.as_bytes()[0] + 10);
            for stored in [&made, &part] {
                store.put_pending(stored).expect("put");
                store.announce(&stored.info.properties.name, stored.info.id).expect("announced");
            }
        }
        store.damage_shares([b'a'; 16]);
        drop(store);
        let keys = Keys::new(Arc::new(reopen(&disk)), (2, 3), 10);
        assert!(keys.has("a").is_err(), "it is damaged");
        assert_eq!(keys.remove_combined().expect("the rest is done"), 1);
        assert!(keys.component("a.component-1").expect("read").is_some(), "perhaps it is needed again");
        assert!(keys.component("b.component-1").expect("read").is_none());
        assert_eq!(keys.remove_combined().expect("nothing is left"), 0);
    }

    #[test]
    fn a_client_has_so_many_session_keys_and_they_do_not_count_among_the_others() {
        let (store, _) = in_memory();
        let store = Arc::new(store);
        let keys = Keys::new(store.clone(), (2, 3), 1);
        let stored = NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 1);
        let session = NewKey { lifetime: Lifetime::Session { seconds: 60 }, ..stored.clone() };
        store.put_session_keys("alice", MAX_SESSION_KEYS - 1);
        store.put_session_keys("bob", MAX_SESSION_KEYS);
        keys.refuse_too_many_of(&session, "alice").expect("one more");
        let refused = keys.refuse_too_many_of(&session, "bob").expect_err("no more");
        assert!(refused.reason == Reason::Key && refused.message.contains("10000 session keys"), "{refused}");
        keys.refuse_too_many_of(&stored, "bob").expect("a stored key is another matter");
        store.end_keys(61).expect("ended");
        keys.refuse_too_many_of(&session, "bob").expect("they have ended");
    }
}

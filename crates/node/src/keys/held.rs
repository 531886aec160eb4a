//! The keys that a node holds, and what clients may see of them.

use std::sync::Arc;

use polyclave_config::Asked;
use polyclave_transport::wire::{CHUNK, KEYS, KeyInfo, Reason, Refusal, Reply, Right, key_of_component};

use crate::clients::rules::{Client, Rules};
use crate::error::of_store;
use crate::keys::key::Shares;
use crate::keys::names::{Names, Taken};
use crate::local::ALL_RIGHTS;
use crate::store::{KeyState, Store, StoreError, StoredKey};

/// The most bytes of a page of a list, and of a key's properties without its attributes. Every page has a key at least.
const MOST_PAGE: usize = 2 * CHUNK;
const MOST_INFO: usize = 500;

/// A node's keys.
pub(crate) struct Keys {
    store: Arc<Store>,
    names: Arc<Names>,
    /// A request is served by at least `quorum` of `nodes` nodes.
    quorum: usize,
    nodes: usize,
    /// The most keys that the operator allows.
    most: usize,
}

/// The refusal if this node's record of a key is damaged.
pub(crate) fn unreadable(name: &str) -> Refusal {
    let told = format!(
        "its share of the key '{name}' is damaged and cannot be read; its operator can restore a backup, and until then others serve"
    );
    Refusal::new(Reason::Internal, told)
}

impl Keys {
    pub(crate) fn new(store: Arc<Store>, (quorum, nodes): (usize, usize), most: usize) -> Keys {
        Keys { store, names: Arc::default(), quorum, nodes, most }
    }

    /// A key and this node's shares of it, including one that is not yet announced: the nodes compare its id, and a node that has the same
    /// id stored it in the same session.
    pub(crate) fn get(&self, name: &str) -> Result<(KeyInfo, Arc<StoredKey>), Refusal> {
        let (info, key) = self.any(name)?;
        match info.component {
            None => Ok((info, key)),
            Some(_) => Err(Refusal::new(
                Reason::Key,
                format!("'{name}' is a component of a key, and can be used for nothing except to combine it"),
            )),
        }
    }

    /// The same, or a component of a key.
    fn any(&self, name: &str) -> Result<(KeyInfo, Arc<StoredKey>), Refusal> {
        let damaged = |e: StoreError| match e {
            StoreError::Corrupt { .. } => {
                tracing::error!(key = name, error = %e, "a record of a key is damaged");
                unreadable(name)
            }
            e => of_store(e),
        };
        let key = match self.store.key(name).map_err(damaged)? {
            None => self.store.pending_key(name).map_err(damaged)?.map(Arc::new),
            announced => announced,
        };
        match key {
            Some(key) => Ok((key.info.clone(), key)),
            None => Err(Refusal::new(Reason::Key, format!("there is no key '{name}'"))),
        }
    }

    /// A component of a key, announced or not.
    pub(crate) fn component(&self, name: &str) -> Result<Option<Arc<StoredKey>>, Refusal> {
        let there = self.store.info(name).map_err(of_store)?.is_some_and(|info| info.component.is_some());
        match there {
            true => self.any(name).map(|(_, key)| Some(key)),
            false => Ok(None),
        }
    }

    /// Whether a key of this name was announced.
    pub(crate) fn has(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.store.key(name).map_err(of_store)?.is_some())
    }

    /// Charges blocks to a key's budget, durably, before they are computed. Every node charges the requests that it serves. Every request
    /// is served by at least a quorum, so all nodes together never exceed the key's budget. The other serving nodes must know of the charge
    /// before anything is computed ([`Marks::protect`](crate::peers::marks::Marks::protect)).
    pub(crate) fn pay(&self, info: &KeyInfo, blocks: u64) -> Result<(), Refusal> {
        let (least, all) = (self.quorum as u128, self.nodes as u128);
        let own_part = (u128::from(info.properties.budget_blocks) * least / all) as u64;
        self.store.spend(info.id, blocks, own_part).map_err(of_store)
    }

    /// Stores a key that is not yet announced.
    pub(crate) fn store_pending(&self, info: &KeyInfo, shares: Shares) -> Result<(), Refusal> {
        let key = StoredKey { info: info.clone(), state: KeyState::Pending, shares };
        self.store.put_pending(&key).map_err(of_store)
    }

    /// Marks a key as stored by all nodes.
    pub(crate) fn announce(&self, info: &KeyInfo) -> Result<(), Refusal> {
        self.store.announce(&info.properties.name, info.id).map_err(of_store)
    }

    /// Deletes the key of a name, if there is one.
    pub(crate) fn delete(&self, name: &str) -> Result<Option<KeyInfo>, Refusal> {
        // Deletion works even if its shares cannot be read.
        let Some(info) = self.store.info(name).map_err(of_store)? else { return Ok(None) };
        self.store.delete(name, info.id).map_err(of_store)?;
        Ok(Some(info))
    }

    /// The keys that a client may see: a page of them, from a name on.
    pub(crate) fn list(&self, rules: &Rules, client: &Client, after: &str) -> Result<Reply, Refusal> {
        let mut keys = self.store.readable_keys().map_err(of_store)?;
        keys.retain(|info| {
            let name = info.properties.name.as_str();
            name > after && rules.allows(client, Right::List, name)
        });
        keys.sort_by(|a, b| a.properties.name.cmp(&b.properties.name));
        let (all, mut room) = (keys.len(), MOST_PAGE);
        let fits = |info: &&KeyInfo| {
            let left = room.checked_sub(MOST_INFO + info.properties.attributes.len());
            room = left.unwrap_or_default();
            left.is_some()
        };
        let fitting = keys.iter().take(KEYS).take_while(fits).count();
        keys.truncate(fitting);
        Ok(Reply::Keys { keys, more: fitting < all })
    }

    /// Refuses another key if there are as many as the operator allows. Otherwise a client that may make keys could fill the disk.
    pub(crate) fn refuse_too_many(&self) -> Result<(), Refusal> {
        let (held, most) = (self.store.count().map_err(of_store)?, self.most as u64);
        if held < most {
            return Ok(());
        }
        let told = format!(
            "it has {held} keys, and its limit is {most}: delete some that are not needed, or ask its operator to raise `keys` under \
             [limits]"
        );
        Err(Refusal::new(Reason::Key, told))
    }

    /// A key that a client may use in at least one way.
    pub(crate) fn show(&self, rules: &Rules, client: &Client, key: &str) -> Result<KeyInfo, Refusal> {
        let shows = |right: &Right| right.usage().is_some() || matches!(right, Right::List | Right::Delete);
        if !ALL_RIGHTS.iter().filter(|right| shows(right)).any(|right| rules.allows(client, *right, key)) {
            rules.allow(client, &Asked::of(Right::List, key))?;
        }
        Ok(self.any(key)?.0)
    }

    /// Reserves a name: no other request makes or deletes a key of it, or a component of that key, meanwhile.
    pub(crate) fn take_name(&self, name: &str) -> Result<Taken, Refusal> {
        self.names.take(key_of_component(name).unwrap_or(name))
    }

    /// Notes that the shares of a key turned out to be unusable.
    pub(crate) fn note_unusable(&self, name: &str) {
        self.store.note_unusable(name);
    }

    /// How many keys there are.
    pub(crate) fn count(&self) -> u64 {
        self.store.count().unwrap_or_default()
    }

    /// The names of the keys of which a record cannot be read.
    pub(crate) fn damaged(&self) -> Vec<String> {
        self.store.damaged()
    }
}

//! The stores of this node's shares for standby pairs, as far as keys are concerned: no share of a deleted
//! key stays in one.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};
use polyclave_api::KeyInfo;
use polyclave_config::{Cluster, NodeDir};
use polyclave_protocol::PartySet;
use polyclave_store::{KeyState, StandbyShares, Store, StoreError};

use crate::Result;
use crate::error::system;

/// This node's shares for one pair. Which keys they are of is in memory: the shares of many keys are too
/// large to be read again and again.
pub(crate) struct PairShares {
    pub(crate) store: Arc<Store>,
    ids: RwLock<BTreeSet<[u8; 16]>>,
}

impl PairShares {
    /// The shares in a store.
    pub(crate) fn of(store: Arc<Store>) -> Result<PairShares, StoreError> {
        let ids = RwLock::new(store.standby_ids()?);
        Ok(PairShares { store, ids })
    }

    /// Whether there are shares of a key.
    pub(crate) fn holds(&self, id: &[u8; 16]) -> bool {
        self.ids.read().contains(id)
    }

    /// The keys of which there are shares.
    pub(crate) fn ids(&self) -> BTreeSet<[u8; 16]> {
        self.ids.read().clone()
    }

    /// Stores shares. Only with the right to change them.
    pub(crate) fn put(&self, _: &Changing<'_>, keys: &[StandbyShares]) -> Result<(), StoreError> {
        self.store.put_standby(keys)?;
        self.ids.write().extend(keys.iter().map(|(id, _)| *id));
        Ok(())
    }

    /// Removes shares. Only with the right to change them.
    pub(crate) fn remove(&self, _: &Changing<'_>, ids: &[[u8; 16]]) -> Result<(), StoreError> {
        self.store.remove_standby(ids)?;
        self.ids.write().retain(|id| !ids.contains(id));
        Ok(())
    }
}

/// The keys that pairs get.
pub(crate) fn wanted(store: &Store) -> Result<Vec<KeyInfo>> {
    let held = store.held_keys().map_err(system)?.into_iter();
    let held = held.filter(|key| key.state == KeyState::Announced && !key.deletion_begun);
    let is_given = |info: &KeyInfo| info.component.is_none() && !info.is_of_session();
    Ok(held.filter_map(|key| key.info).filter(is_given).collect())
}

/// Ids of keys.
type Ids = Arc<BTreeSet<[u8; 16]>>;

/// This node's shares for the pairs that it is in, each with the numbers of the two nodes.
#[derive(Default)]
pub(crate) struct StandbyStores {
    shares: Mutex<Vec<(PartySet, Arc<PairShares>)>>,
    /// The ids of the keys that pairs get, and the number of the change of the node's store up to which that
    /// was found out.
    wanted: Mutex<Option<(u64, Ids)>>,
}

/// The right to change which shares these stores have. Shares are stored and removed, and keys deleted, by
/// one thread at a time. So no thread stores shares of a key that another one has deleted meanwhile.
pub(crate) struct Changing<'s>(MutexGuard<'s, Vec<(PartySet, Arc<PairShares>)>>);

impl StandbyStores {
    /// Waits for the right to change them.
    pub(crate) fn change(&self) -> Changing<'_> {
        Changing(self.shares.lock())
    }

    /// The ids of the keys in a node's store that pairs get. They are read anew when the store has changed.
    pub(crate) fn wanted(&self, store: &Store) -> Result<Ids> {
        let change = store.mark().map_err(system)?.number;
        let mut known = self.wanted.lock();
        match &*known {
            Some((at, ids)) if *at == change => Ok(ids.clone()),
            _ => {
                let ids: Ids = Arc::new(wanted(store)?.iter().map(|info| info.id).collect());
                *known = Some((change, ids.clone()));
                Ok(ids)
            }
        }
    }
}

impl Changing<'_> {
    /// Takes the shares of a pair into use, or none for the pair.
    pub(crate) fn set(&mut self, pair: PartySet, shares: Option<Arc<PairShares>>) {
        self.0.retain(|(of, _)| *of != pair);
        self.0.extend(shares.map(|shares| (pair, shares)));
    }

    /// Removes all shares of a key.
    pub(crate) fn remove(&self, id: [u8; 16]) -> Result<(), StoreError> {
        let holding = self.0.iter().filter(|(_, shares)| shares.holds(&id));
        holding.map(|(_, shares)| shares).try_for_each(|shares| shares.remove(self, &[id]))
    }
}

/// Destroys what is left of standby pairs that the node of this directory is not in (any more).
pub(crate) fn destroy_others(dir: &NodeDir, cluster: Option<&Cluster>) -> Result<()> {
    let name = &dir.settings().name;
    let partners = cluster.iter().flat_map(|cluster| cluster.pairs()).flat_map(|pair| {
        let names: Vec<String> = pair.cards().iter().map(|card| card.name.clone()).collect();
        if names.contains(name) { names } else { Vec::new() }
    });
    let kept: Vec<_> = partners.map(|partner| dir.standby_path(&partner)).collect();
    for path in dir.standby_stores().map_err(system)?.into_iter().filter(|path| !kept.contains(path)) {
        Store::remove_standby_file(&path).map_err(system)?;
    }
    Ok(())
}

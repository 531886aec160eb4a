//! The stores of this node's shares for standby pairs, as far as keys are concerned: no share of a deleted
//! key stays in one.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use polyclave_config::{Cluster, NodeDir};
use polyclave_protocol::PartySet;
use polyclave_store::{Store, StoreError};

use crate::Result;
use crate::error::system;

/// The stores of the standby pairs that this node is in, each with the numbers of its two nodes.
#[derive(Default)]
pub(crate) struct StandbyStores(Mutex<Vec<(PartySet, Arc<Store>)>>);

/// The right to change which shares these stores have. Shares are stored and removed, and keys deleted, by
/// one thread at a time. So no thread stores shares of a key that another one has deleted meanwhile.
pub(crate) struct Changing<'s>(MutexGuard<'s, Vec<(PartySet, Arc<Store>)>>);

impl StandbyStores {
    /// Waits for the right to change them.
    pub(crate) fn change(&self) -> Changing<'_> {
        Changing(self.0.lock())
    }
}

impl Changing<'_> {
    /// Takes a pair's store into use, or none for the pair.
    pub(crate) fn set(&mut self, pair: PartySet, store: Option<Arc<Store>>) {
        self.0.retain(|(of, _)| *of != pair);
        self.0.extend(store.map(|store| (pair, store)));
    }

    /// Removes all shares of a key.
    pub(crate) fn remove(&self, id: [u8; 16]) -> Result<(), StoreError> {
        self.0.iter().try_for_each(|(_, store)| match store.holds_standby(id)? {
            true => store.remove_standby(&[id]),
            false => Ok(()),
        })
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

//! The store of a standby pair: this node's shares of keys under the MAC key that it has with one other node
//! (`crates/node/src/standby`). It is a file of its own, which holds nothing that the node's store cannot
//! give again. So it is in no backup. It has no properties of keys and no budgets: those are in the node's
//! store only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::engine::{Records, Table};
use super::keys::encode_shares;
use super::{Result, Secret, Store, StoreError, erase};

const BINDING: &[u8] = b"standby pair";

/// What the shares of a standby pair belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandbyBinding {
    /// The id of the common secrets of all nodes under which the shares were made.
    pub secrets: [u8; 32],
    /// The id of this store, drawn when it was made.
    pub own: [u8; 16],
    /// That of the partner's store, once it is known.
    pub partner: Option<[u8; 16]>,
}

/// The id of a key, and this node's shares of it by the name of the secret that they belong to.
pub type StandbyShares = ([u8; 16], BTreeMap<String, Zeroizing<Vec<u8>>>);

impl Store {
    /// The store of a standby pair in a file, which is made if there is none. One that cannot be read is made
    /// anew.
    pub fn standby(path: &Path, secret: &Secret) -> Result<Store> {
        let found = match path.exists() {
            true => Store::open(path, secret),
            false => return Store::create(path, secret),
        };
        match found {
            Err(StoreError::InUse { .. }) | Ok(_) => found,
            Err(why) => {
                tracing::warn!(store = %path.display(), error = %why, "the store of a standby pair is made anew");
                Store::remove_standby_file(path)?;
                Store::create(path, secret)
            }
        }
    }

    /// Overwrites and removes the file of a standby pair that is not open. Done if there is none.
    pub fn remove_standby_file(path: &Path) -> Result<()> {
        if path.symlink_metadata().is_ok() { erase::erase_file(path) } else { Ok(()) }
    }

    /// What the shares belong to, once that is recorded.
    pub fn standby_binding(&self) -> Result<Option<StandbyBinding>> {
        self.engine.read(|records| records.get(Table::Meta, BINDING))
    }

    /// Records what the shares belong to.
    pub fn bind_standby(&self, binding: &StandbyBinding) -> Result<()> {
        self.change(|changes| changes.put(Table::Meta, BINDING, binding))
    }

    /// The ids of the keys whose shares are here.
    pub fn standby_ids(&self) -> Result<BTreeSet<[u8; 16]>> {
        self.engine.read(|records| {
            let mut ids = BTreeSet::new();
            records.each_sealed(Table::Shares, |record, _| {
                let id = record.try_into().map_err(|_| StoreError::corrupt("the shares of a key"))?;
                ids.insert(id);
                Ok(())
            })?;
            Ok(ids)
        })
    }

    /// Stores shares of keys, in place of those that were there.
    pub fn put_standby(&self, keys: &[StandbyShares]) -> Result<()> {
        self.change(|changes| {
            keys.iter()
                .try_for_each(|(id, shares)| changes.put_bytes(Table::Shares, id, encode_shares(shares)?))
        })
    }

    /// Removes the shares of keys, if they are there.
    pub fn remove_standby(&self, ids: &[[u8; 16]]) -> Result<()> {
        self.change(|changes| ids.iter().try_for_each(|id| changes.remove(Table::Shares, id)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn shares_of_a_pair_are_found_again_replaced_and_removed() {
        let (store, disk) = in_memory();
        let shares = |byte: u8| BTreeMap::from([("round keys".to_owned(), Zeroizing::new(vec![byte; 40]))]);
        assert_eq!(store.standby_binding().expect("read"), None);
        let binding = StandbyBinding { secrets: [1; 32], own: [2; 16], partner: None };
        store.bind_standby(&binding).expect("bound");
        store.put_standby(&[([1; 16], shares(1)), ([2; 16], shares(2))]).expect("put");
        store.put_standby(&[([1; 16], shares(3))]).expect("replaced");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(store.standby_binding().expect("read"), Some(binding));
        assert_eq!(store.shares_of([1; 16]).expect("read"), shares(3));
        store.remove_standby(&[[1; 16], [9; 16]]).expect("removed");
        assert_eq!(store.standby_ids().expect("read"), BTreeSet::from([[2; 16]]));
        assert!(store.shares_of([1; 16]).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_made_anew_and_one_in_use_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("standby-beta.redb");
        let store = Store::standby(&path, &secret()).expect("made");
        let binding = StandbyBinding { secrets: [1; 32], own: [2; 16], partner: Some([3; 16]) };
        store.bind_standby(&binding).expect("bound");
        assert!(matches!(Store::standby(&path, &secret()), Err(StoreError::InUse { .. })));
        drop(store);
        let found = Store::standby(&path, &secret()).expect("opened").standby_binding().expect("read");
        assert_eq!(found, Some(binding));
        let other = Secret::from_bytes([8; 32]);
        let anew = Store::standby(&path, &other).expect("made anew").standby_binding().expect("read");
        assert_eq!(anew, None);
        Store::remove_standby_file(&path).expect("removed");
        assert!(!path.exists());
        Store::remove_standby_file(&path).expect("there is none");
    }
}

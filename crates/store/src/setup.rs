//! The common secrets of the nodes: proposed, then agreed on. A proposal does not change what is in use.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::engine::{Changes, Records, Table, encode};
use super::{Result, Store, StoreError};

pub(super) const AGREED: &[u8] = b"setup agreed";
pub(super) const PROPOSED: &[u8] = b"setup proposed";

/// A setup as this node holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSetup {
    /// Distinguishes it from all others.
    pub id: [u8; 32],
    /// A counter that grows with every new setup.
    pub epoch: u64,
    /// This node's part of it.
    pub bytes: Zeroizing<Vec<u8>>,
    /// Whether all nodes are known to have theirs.
    pub agreed: bool,
}

impl std::fmt::Debug for StoredSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredSetup")
            .field("epoch", &self.epoch)
            .field("agreed", &self.agreed)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Borrowed<'a> {
    id: [u8; 32],
    epoch: u64,
    bytes: &'a [u8],
}

#[derive(Deserialize)]
pub(super) struct Owned {
    pub(super) id: [u8; 32],
    epoch: u64,
    bytes: Vec<u8>,
}

impl Owned {
    pub(super) fn into_id(self) -> [u8; 32] {
        let _wiped = Zeroizing::new(self.bytes);
        self.id
    }
}

impl Store {
    /// Stores a setup: as the one in use, or as a proposal beside it, replacing an older proposal. Its epoch
    /// must not be lower than that of the one in use.
    pub fn put_setup(&self, id: [u8; 32], epoch: u64, bytes: &[u8], agreed: bool) -> Result<()> {
        self.change(|changes| {
            if load(changes, AGREED)?.is_some_and(|current| epoch < current.epoch) {
                return Err(StoreError::NoSetup);
            }
            if agreed {
                changes.remove(Table::Meta, PROPOSED)?;
            }
            save(changes, if agreed { AGREED } else { PROPOSED }, id, epoch, bytes)
        })
    }

    /// The setup in use; before there is one, the proposal.
    pub fn setup(&self) -> Result<Option<StoredSetup>> {
        self.engine.read(|records| match load(records, AGREED)? {
            Some(agreed) => Ok(Some(agreed)),
            None => load(records, PROPOSED),
        })
    }

    /// The proposal, if there is one.
    pub fn proposed_setup(&self) -> Result<Option<StoredSetup>> {
        self.engine.read(|records| load(records, PROPOSED))
    }

    /// Takes the proposal into use. Repeating this has no effect.
    pub fn agree_setup(&self, id: [u8; 32]) -> Result<()> {
        self.change(|changes| {
            if load(changes, AGREED)?.is_some_and(|current| current.id == id) {
                return Ok(());
            }
            let proposed = load(changes, PROPOSED)?.filter(|proposed| proposed.id == id);
            let proposed = proposed.ok_or(StoreError::NoSetup)?;
            changes.remove(Table::Meta, PROPOSED)?;
            save(changes, AGREED, id, proposed.epoch, &proposed.bytes)
        })
    }
}

pub(super) fn save(changes: &Changes, record: &[u8], id: [u8; 32], epoch: u64, bytes: &[u8]) -> Result<()> {
    let encoded = encode(&Borrowed { id, epoch, bytes }, bytes.len() + 64)?;
    changes.put_bytes(Table::Meta, record, encoded)
}

pub(super) fn load(records: &impl Records, record: &[u8]) -> Result<Option<StoredSetup>> {
    let setup: Option<Owned> = records.get(Table::Meta, record)?;
    let agreed = record == AGREED;
    Ok(setup.map(|Owned { id, epoch, bytes }| StoredSetup {
        id,
        epoch,
        bytes: Zeroizing::new(bytes),
        agreed,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn a_proposal_is_taken_into_use_when_it_is_agreed_on() {
        let (store, disk) = in_memory();
        assert_eq!(store.setup().expect("read"), None);
        store.put_setup([1; 32], 1, b"one", false).expect("put");
        assert!(!store.setup().expect("read").expect("there").agreed);
        assert!(matches!(store.agree_setup([2; 32]), Err(StoreError::NoSetup)));
        store.agree_setup([1; 32]).expect("agreed");
        store.agree_setup([1; 32]).expect("twice is once");
        let setup = reopen(&disk.copy()).setup().expect("read").expect("there");
        assert!(setup.agreed && setup.epoch == 1 && *setup.bytes == b"one");
        assert_eq!(store.proposed_setup().expect("read"), None);
    }

    #[test]
    fn a_proposal_does_not_touch_what_is_in_use_and_none_goes_back() {
        let (store, _) = in_memory();
        store.put_setup([1; 32], 5, b"one", true).expect("put");
        store.put_setup([2; 32], 6, b"two", false).expect("put");
        assert_eq!(store.setup().expect("read").expect("there").id, [1; 32]);
        assert!(matches!(store.put_setup([3; 32], 4, b"old", true), Err(StoreError::NoSetup)));
        store.agree_setup([2; 32]).expect("agreed");
        assert_eq!(store.setup().expect("read").expect("there").epoch, 6);
    }
}

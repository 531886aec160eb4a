//! Material in stock. // MERGE: replaced by stock/

pub(crate) mod fill;

use std::sync::{Arc, Mutex, PoisonError};

use polyclave_protocol::net::Net;
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::{Error, Party, Result};
use zeroize::Zeroizing;

use crate::store::Store;

/// How much there is of a kind. // MERGE: replaced by stock/
pub(crate) struct Level {
    pub(crate) kind: Kind,
    /// Items.
    pub(crate) left: usize,
}

/// Material of one epoch. // MERGE: replaced by stock/
pub(crate) struct Lots {
    kinds: Vec<Kind>,
    held: Mutex<Vec<Zeroizing<Vec<u8>>>>,
}

impl Lots {
    pub(crate) fn new(
        _me: Party,
        _nodes: usize,
        _epoch: [u8; 32],
        kinds: Vec<Kind>,
        _store: Arc<Store>,
    ) -> Result<Arc<Lots>> {
        let held = Mutex::new(kinds.iter().map(|_| Zeroizing::default()).collect());
        Ok(Arc::new(Lots { kinds, held }))
    }

    pub(crate) fn levels(&self) -> Vec<Level> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let level = |(kind, held): (&Kind, &Zeroizing<Vec<u8>>)| Level {
            kind: *kind,
            left: held.len() / kind.item_bytes,
        };
        self.kinds.iter().zip(held.iter()).map(level).collect()
    }

    fn add(&self, kind: &Kind, items: &[u8]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = self.kinds.iter().position(|k| k == kind) {
            held[at].extend_from_slice(items);
        }
    }
}

impl Stock for Lots {
    fn take(&self, kind: &Kind, count: usize, _net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let at = self.kinds.iter().position(|k| k == kind);
        let held = at.and_then(|at| held.get_mut(at)).ok_or_else(|| Error::misuse("no such kind"))?;
        let bytes = count * kind.item_bytes;
        if held.len() < bytes {
            return Err(Error::Dry { detail: "the nodes have not made enough material yet".into() });
        }
        Ok(Zeroizing::new(held.drain(..bytes).collect()))
    }
}

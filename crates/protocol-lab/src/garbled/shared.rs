//! Labels of one port outside of an evaluation: an output, or a value that is kept for a later circuit.

use polyclave_kernels::label_hash::Label;

use polyclave_protocol::pool::{Pool, Shares};
use polyclave_protocol::protocol::SharedValue;
use polyclave_protocol::{Error, Result};

/// Labels of the cells of a port, cell by cell: for zero at the garbler, active ones at the evaluator. Of use
/// in all sessions of one setup, whose labels have the same offset, and in no other.
pub struct Shared {
    pub(super) setup: [u8; 32],
    pub(super) count: usize,
    pub(super) lanes: usize,
    pub(super) labels: Shares,
}

impl SharedValue for Shared {
    fn reveal_own_shares(&self) -> &[u8] {
        &self.labels
    }
}

impl Shared {
    pub(super) fn labels(&self) -> &[Label] {
        self.labels.as_chunks().0
    }

    /// The labels of some lanes, in this order.
    pub(super) fn select(&self, lanes: &[usize], pool: &Pool) -> Shared {
        let mut labels = pool.take(self.count * lanes.len() * size_of::<Label>());
        let rows = self.labels().chunks_exact(self.lanes);
        for (to, row) in labels.as_chunks_mut().0.chunks_exact_mut(lanes.len()).zip(rows) {
            to.iter_mut().zip(lanes).for_each(|(label, lane)| *label = row[*lane]);
        }
        Shared { setup: self.setup, count: self.count, lanes: lanes.len(), labels }
    }

    /// Refuses labels with another offset.
    pub(super) fn refuse_other(&self, setup: &[u8; 32]) -> Result<()> {
        match self.setup == *setup {
            true => Ok(()),
            false => Err(Error::misuse("the shared value comes of another setup, whose labels do not fit")),
        }
    }
}

//! Labels of one port outside of an evaluation: an output, or a value that is kept for a later circuit.

use polyclave_cipher::Matrix;

use super::wires::Wires;
use polyclave_protocol::pool::Pool;
use polyclave_protocol::protocol::SharedValue;
use polyclave_protocol::{Error, Result};

/// Labels of the cells of a port and of images of them: for zero at the garbler, active ones at the
/// evaluator. Of use in all sessions of one setup, whose labels have the same offsets, and in no other.
pub struct Shared {
    pub(super) setup: [u8; 32],
    pub(super) bits: u8,
    pub(super) count: usize,
    pub(super) lanes: usize,
    /// The identity first.
    pub(super) views: Vec<Matrix>,
    /// View by view, cell by cell.
    pub(super) wires: Wires,
}

impl SharedValue for Shared {
    fn reveal_own_shares(&self) -> &[u8] {
        self.wires.all_blocks()
    }
}

impl Shared {
    /// The labels of some lanes, in this order.
    pub(super) fn select(&self, lanes: &[usize], pool: &Pool) -> Shared {
        let slots = self.views.len() * self.count;
        let mut wires = Wires::new(slots, lanes.len(), pool);
        for slot in 0..slots {
            let (from, to) = (self.wires.row(slot), wires.row_mut(slot));
            let labels = to.blocks.iter_mut().zip(to.colours).zip(lanes);
            labels.for_each(|((block, colour), lane)| {
                (*block, *colour) = (from.blocks[*lane], from.colours[*lane]);
            });
        }
        Shared { wires, lanes: lanes.len(), views: self.views.clone(), ..*self }
    }

    /// Refuses labels with other offsets.
    pub(super) fn refuse_other(&self, setup: &[u8; 32]) -> Result<()> {
        match self.setup == *setup {
            true => Ok(()),
            false => Err(Error::misuse("the shared value comes of another setup, whose labels do not fit")),
        }
    }
}

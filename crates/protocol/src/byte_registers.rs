//! The shares of an evaluation, by slot: one byte for each lane, in one allocation. For Shamir sharing over
//! GF(2^8), and for additive sharing between two parties.

use polyclave_cipher::{Linear, Matrix, Slot};
use polyclave_kernels::affine::{Map, combine_within};

use crate::pool::{Pool, Shares};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Shares by slot.
pub struct Registers {
    lanes: usize,
    stride: usize,
    rows: Shares,
    uniform: Shares,
}

impl Registers {
    /// Every slot is written before it is read.
    pub fn new(lane_slots: usize, uniform_slots: usize, lanes: usize, pool: &Pool) -> Registers {
        // Rows begin at cache lines; one line more, so that rows of a power of two do not all meet in the
        // same sets.
        let stride = lanes.next_multiple_of(LINE) + LINE;
        let bytes =
            lane_slots.checked_mul(stride).expect("the shares of an evaluation fit the address space");
        Registers { lanes, stride, rows: pool.take(bytes), uniform: pool.take(uniform_slots) }
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Values in a slot: one for each lane, or one.
    pub fn len(&self, slot: Slot) -> usize {
        match slot {
            Slot::Lanes(_) => self.lanes,
            Slot::Uniform(_) => 1,
        }
    }

    /// The bytes of a slot.
    pub fn row(&self, slot: Slot) -> &[u8] {
        match slot {
            Slot::Lanes(i) => &self.rows[i as usize * self.stride..][..self.lanes],
            Slot::Uniform(i) => std::slice::from_ref(&self.uniform[i as usize]),
        }
    }

    /// The same, to write.
    pub fn row_mut(&mut self, slot: Slot) -> &mut [u8] {
        match slot {
            Slot::Lanes(i) => &mut self.rows[i as usize * self.stride..][..self.lanes],
            Slot::Uniform(i) => std::slice::from_mut(&mut self.uniform[i as usize]),
        }
    }

    /// Local maps of shares, in order. `map` prepares a matrix. The constants are added if this party has to.
    pub fn linear<'m>(&mut self, maps: &[Linear], map: impl Fn(&Matrix) -> &'m Map, adds_constants: bool) {
        let mut terms: Vec<(usize, &Map)> = Vec::new();
        for linear in maps {
            let mut constant = if adds_constants { linear.constant } else { 0 };
            terms.clear();
            for (slot, matrix) in &linear.terms {
                match slot {
                    Slot::Lanes(i) => terms.push((*i as usize * self.stride, map(matrix))),
                    Slot::Uniform(i) => constant ^= map(matrix).apply(self.uniform[*i as usize]),
                }
            }
            match linear.dst {
                Slot::Lanes(i) => {
                    combine_within(&mut self.rows, i as usize * self.stride, self.lanes, &terms, constant);
                }
                Slot::Uniform(i) => self.uniform[i as usize] = constant,
            }
        }
    }
}

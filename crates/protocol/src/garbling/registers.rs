//! The labels of an evaluation, by slot, and sums of them.
//!
//! A garbler holds the labels for zero, an evaluator the active labels. A slot has two rows, because the
//! input of a gate is a cell of two bits. A row has a label for each lane. Slots that are the same for all
//! lanes are rows of one label.
//!
//! A sum of wires is a sum of labels. Values that are added to all lanes alike (wires that are the same for
//! all; at a garbler Delta, for a one) are added in the same pass.

use polyclave_cipher::{Compiled, CompiledPort, Linear, Slot};
use polyclave_kernels::label_hash::Label;
use polyclave_kernels::label_sums::sum_within;

use super::kind::Kind;
use crate::pool::{Pool, Shares};
use crate::{Error, Result};

/// Bytes of a label.
pub const LABEL: usize = 16;
/// Rows one after another should not fall into the same places of a cache.
const APART: usize = 64;
/// Labels that are in use should stay this near the processor.
const NEAR_BYTES: usize = 4 << 20;

/// Labels by slot, wiped on drop.
pub struct Registers {
    /// Of wires that have a value in each lane.
    pub lanes: Rows,
    /// Of wires that are the same in all lanes.
    pub uniform: Rows,
    /// By table.
    pub kinds: Vec<Kind>,
    sources: Vec<usize>,
}

/// Slots of as many labels each. Places in it are bytes: of a slot's first or second row
/// ([`at`](Rows::at)), and from there 16 for each lane.
pub struct Rows {
    arena: Shares,
    lanes: usize,
}

impl Rows {
    fn new(slots: usize, lanes: usize, pool: &Pool) -> Rows {
        Rows { arena: pool.take(slots * Self::stride(lanes)), lanes }
    }

    fn stride(lanes: usize) -> usize {
        2 * lanes * LABEL + APART
    }

    /// Labels of a row.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Where a row begins: one of two of a slot.
    pub fn at(&self, slot: u32, row: usize) -> usize {
        slot as usize * Self::stride(self.lanes) + row * self.lanes * LABEL
    }

    /// The labels of a wire.
    pub fn row(&self, slot: u32) -> &[Label] {
        self.arena[self.at(slot, 0)..][..self.lanes * LABEL].as_chunks().0
    }

    /// The labels of a wire.
    pub fn row_mut(&mut self, slot: u32) -> &mut [Label] {
        let (at, len) = (self.at(slot, 0), self.lanes * LABEL);
        self.arena[at..][..len].as_chunks_mut().0
    }

    /// The label at a place.
    pub fn label(&self, at: usize) -> u128 {
        u128::from_le_bytes(*self.arena[at..].first_chunk().expect("a label begins at every place"))
    }

    /// Writes the label at a place.
    pub fn set_label(&mut self, at: usize, label: u128) {
        self.arena[at..][..LABEL].copy_from_slice(&label.to_le_bytes());
    }

    /// Some labels of three rows.
    ///
    /// # Panics
    /// If two of the rows overlap.
    pub fn labels_mut(&mut self, begins: [usize; 3], labels: usize) -> [&mut [Label]; 3] {
        let ranges = begins.map(|at| at..at + labels * LABEL);
        let rows =
            self.arena.get_disjoint_mut(ranges).expect("no gate writes what a gate of its layer reads");
        rows.map(|row| row.as_chunks_mut().0)
    }

    /// Overwrites some labels by sums of others and of a constant.
    pub fn sum(&mut self, dst: usize, labels: usize, sources: &[usize], constant: &Label) {
        sum_within(&mut self.arena, dst, labels * LABEL, sources, constant);
    }
}

impl Registers {
    /// Without any label.
    pub fn new(compiled: &Compiled, lanes: usize, pool: &Pool) -> Registers {
        Registers {
            lanes: Rows::new(compiled.lane_slots(), lanes, pool),
            uniform: Rows::new(compiled.uniform_slots(), 1, pool),
            kinds: compiled.tables().iter().map(|table| Kind::of(table)).collect(),
            sources: Vec::new(),
        }
    }

    /// The lanes of a port.
    pub fn lanes_of(&self, port: &CompiledPort) -> usize {
        if port.uniform { 1 } else { self.lanes.lanes() }
    }

    /// The labels of a wire, one for each lane or one for all.
    pub fn row(&self, slot: Slot) -> &[Label] {
        match slot {
            Slot::Lanes(at) => self.lanes.row(at),
            Slot::Uniform(at) => self.uniform.row(at),
        }
    }

    /// The labels of a wire, one for each lane or one for all.
    pub fn row_mut(&mut self, slot: Slot) -> &mut [Label] {
        match slot {
            Slot::Lanes(at) => self.lanes.row_mut(at),
            Slot::Uniform(at) => self.uniform.row_mut(at),
        }
    }

    /// Local maps, in order. `one` is what a label changes by if a one is added: Delta at a garbler, whose
    /// label for zero was that for one, and nothing at an evaluator.
    pub fn linear(&mut self, maps: &[Linear], one: &Label) {
        for map in maps {
            // A constant has no terms; it fills both rows.
            let outs = map.terms.first().map_or(2, |(_, matrix)| matrix.outs());
            for out in 0..usize::from(outs) {
                self.sum(map, out, one);
            }
        }
    }

    /// One row of a sum.
    fn sum(&mut self, map: &Linear, out: usize, one: &Label) {
        let is_added = map.constant >> out & 1 == 1;
        let mut constant = if is_added { u128::from_le_bytes(*one) } else { 0 };
        self.sources.clear();
        for (slot, matrix) in &map.terms {
            let columns = matrix.columns();
            for row in (0..2).filter(|row| columns[*row] >> out & 1 == 1) {
                match (slot, map.dst) {
                    (Slot::Lanes(at), _) => self.sources.push(self.lanes.at(*at, row)),
                    (Slot::Uniform(at), Slot::Uniform(_)) => self.sources.push(self.uniform.at(*at, row)),
                    (Slot::Uniform(at), Slot::Lanes(_)) => {
                        let label = self.uniform.arena[self.uniform.at(*at, row)..].first_chunk();
                        constant ^= u128::from_le_bytes(*label.expect("a slot has two labels"));
                    }
                }
            }
        }
        let (rows, dst) = match map.dst {
            Slot::Lanes(dst) => (&mut self.lanes, dst),
            Slot::Uniform(dst) => (&mut self.uniform, dst),
        };
        rows.sum(rows.at(dst, out), rows.lanes, &self.sources, &constant.to_le_bytes());
    }
}

/// The lanes of which labels stay near the processor.
pub fn lanes_near(compiled: &Compiled) -> usize {
    (NEAR_BYTES / (compiled.lane_slots() * LABEL).max(1)).clamp(32, 1024)
}

/// Refuses circuits that are not made of bits, and gates of two of them.
pub fn refuse_unless_boolean(compiled: &Compiled) -> Result<()> {
    let mut ports = compiled.inputs().iter().chain(compiled.outputs());
    let mut linear = compiled.layers().iter().flat_map(|layer| &layer.linear);
    let is_boolean = compiled.tables().iter().all(|table| (table.in_bits(), table.out_bits()) == (2, 1))
        && ports.all(|port| port.bits == 1 && port.cells.iter().flatten().all(|(m, _)| m.is_identity()))
        && compiled.lookups().all(|lookup| lookup.views.iter().all(|(m, _)| m.is_identity()))
        && linear.all(|map| map.terms.iter().all(|(_, m)| m.ins() <= 2 && m.outs() <= 2));
    if is_boolean {
        return Ok(());
    }
    Err(Error::Misuse(format!(
        "garbled circuits of bits take circuits of single bits, and {} is not one: use its Boolean form (--circuit boolean)",
        compiled.name()
    )))
}

//! Masks of wires as authenticated bits: for every slot the bits of its cells, the lowest first.
//!
//! Sums of masks are local (figure 8, XOR), and so is every linear map of a cell. Constants are added to
//! masked values, and not to masks. The Boolean circuits that make tables run in such a bank, too.

use std::ops::Range;

use polyclave_cipher::{Compiled, CompiledPort, Linear, Matrix, Slot};

use crate::tinyot::{BitSlices, Bits, Key};
use crate::tinytable::{Macs, Masks, Packing};

/// Masks by slot. All lie in one piece of memory: each slot has room for as many bits as a cell of the
/// circuit has at most, and each bit for all lanes, or for one.
pub(super) struct MaskRegisters {
    bits: Bits,
    /// Sums in the making.
    sum: Bits,
    /// Bits of a cell at most.
    cell: usize,
    lanes: usize,
    /// Where the slots begin that are the same for all lanes.
    uniform: usize,
}

impl MaskRegisters {
    /// Without any mask.
    pub(super) fn new(compiled: &Compiled, lanes: usize) -> Self {
        let cell = match Packing::of(compiled) {
            Packing::Planes => 2,
            Packing::Cells => 8,
        };
        let uniform = compiled.lane_slots() * cell * lanes;
        MaskRegisters {
            bits: Bits::zero(uniform + compiled.uniform_slots() * cell),
            sum: Bits::zero(cell * lanes),
            cell,
            lanes,
            uniform,
        }
    }

    /// Lanes of a slot.
    fn width(&self, slot: Slot) -> usize {
        if matches!(slot, Slot::Lanes(_)) { self.lanes } else { 1 }
    }

    /// Where a slot begins.
    fn begin(&self, slot: Slot) -> usize {
        match slot {
            Slot::Lanes(at) => at as usize * self.cell * self.lanes,
            Slot::Uniform(at) => self.uniform + at as usize * self.cell,
        }
    }

    fn range(&self, slot: Slot, bit: usize) -> Range<usize> {
        let (begin, width) = (self.begin(slot), self.width(slot));
        begin + bit * width..begin + (bit + 1) * width
    }

    /// A bit of a slot, in all lanes.
    pub(super) fn bit(&self, slot: Slot, bit: usize) -> BitSlices<'_> {
        self.bits.slices(self.range(slot, bit))
    }

    /// The bits of a slot.
    pub(super) fn bits(&self, slot: Slot, bits: u8) -> Vec<Bits> {
        (0..usize::from(bits)).map(|bit| self.bits.part(self.range(slot, bit))).collect()
    }

    /// Sets a slot to an image of a cell, given the cell's bits.
    pub(super) fn put(&mut self, slot: Slot, matrix: &Matrix, bits: &[BitSlices<'_>]) {
        let (width, outs) = (self.width(slot), usize::from(matrix.outs()));
        self.sum.clear(0, outs * width);
        add_image(&mut self.sum, width, matrix, bits.iter().copied());
        self.set_to_sum(slot, outs * width);
    }

    /// Linear maps, in order; with constants if these are values of their own under this key, and not masks.
    pub(super) fn linear(&mut self, linear: &[Linear], constants: Option<&Key>) {
        for Linear { dst, terms, constant } in linear {
            let width = self.width(*dst);
            // A constant has no terms: as many bits as any cell.
            let outs = terms.first().map_or(self.cell, |(_, matrix)| usize::from(matrix.outs()));
            let mut sum = std::mem::take(&mut self.sum);
            sum.clear(0, outs * width);
            for (slot, matrix) in terms {
                let bits = (0..usize::from(matrix.ins())).map(|bit| self.bit(*slot, bit));
                add_image(&mut sum, width, matrix, bits);
            }
            if let Some(key) = constants {
                let set = (0..outs).filter(|bit| constant >> bit & 1 == 1);
                set.for_each(|bit| sum.add_public_at(bit * width, &vec![1; width], key));
            }
            self.sum = sum;
            self.set_to_sum(*dst, outs * width);
        }
    }

    fn set_to_sum(&mut self, slot: Slot, len: usize) {
        let begin = self.begin(slot);
        let BitSlices { values, tags, keys } = self.sum.slices(0..len);
        self.bits.set(begin..begin + len, values, [tags, keys]);
    }

    /// Gives a port's cells their masks: fresh bits, cell by cell, and of a cell the lowest bit of all lanes
    /// first.
    pub(super) fn put_port(&mut self, port: &CompiledPort, lanes: usize, fresh: &Bits, macs: Macs) -> Masks {
        let mut masks = Masks::zero(port.cells.len() * lanes, macs);
        let bits = usize::from(port.bits);
        for (cell, views) in port.cells.iter().enumerate() {
            let bit = |b: usize| fresh.slices((cell * bits + b) * lanes..(cell * bits + b + 1) * lanes);
            let of_cell: Vec<BitSlices<'_>> = (0..bits).map(bit).collect();
            add_cells(&mut masks, cell * lanes, lanes, &of_cell);
            for (matrix, slot) in views {
                self.put(*slot, matrix, &of_cell);
            }
        }
        masks
    }

    /// The masks of an output port.
    pub(super) fn take_port(&self, port: &CompiledPort, lanes: usize, macs: Macs) -> Masks {
        let lanes = if port.uniform { 1 } else { lanes };
        let mut masks = Masks::zero(port.cells.len() * lanes, macs);
        for (cell, views) in port.cells.iter().enumerate() {
            let bits: Vec<_> = (0..usize::from(port.bits)).map(|bit| self.bit(views[0].1, bit)).collect();
            add_cells(&mut masks, cell * lanes, lanes, &bits);
        }
        masks
    }
}

/// Adds the image of a cell, given by its bits, to `sum`, whose bits have `width` lanes each.
fn add_image<'a>(sum: &mut Bits, width: usize, matrix: &Matrix, bits: impl Iterator<Item = BitSlices<'a>>) {
    for (column, bit) in matrix.columns().into_iter().zip(bits) {
        for out in (0..8).filter(|out| column >> out & 1 == 1) {
            sum.add_at(out * width, width, bit);
        }
    }
}

/// Adds cells, given their bits, in `lanes` lanes or the same in all. Tags of the bits, times X^i, add up to
/// those of the cells.
fn add_cells(masks: &mut Masks, at: usize, lanes: usize, bits: &[BitSlices<'_>]) {
    for (i, bit) in bits.iter().enumerate() {
        let of_lane = |lane: usize| if bit.values.len() == 1 { 0 } else { lane };
        for lane in 0..lanes {
            masks.values[at + lane] ^= bit.values[of_lane(lane)] << i;
            if !masks.tags.is_empty() {
                masks.tags[at + lane] ^= u128::from(bit.tags[of_lane(lane)]) << i;
                masks.keys[at + lane] ^= u128::from(bit.keys[of_lane(lane)]) << i;
            }
        }
    }
}

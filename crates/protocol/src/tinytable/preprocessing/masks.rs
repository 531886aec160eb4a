//! Masks of wires as authenticated bits: for every slot the bits of its cells, the lowest first.
//!
//! Sums of masks are local (figure 8, XOR), and so is every linear map of a cell. Constants are added to masked values, and not to
//! masks. The Boolean circuits that make tables run in such a bank, too.

use polyclave_cipher::{Compiled, CompiledPort, Linear, Matrix, Slot};

use crate::tinyot::{Bits, Key};
use crate::tinytable::{Macs, Masks};

/// Masks by slot.
pub(super) struct MaskRegisters {
    lanes: Vec<Vec<Bits>>,
    uniform: Vec<Vec<Bits>>,
    width: usize,
}

impl MaskRegisters {
    /// Without any mask.
    pub(super) fn new(compiled: &Compiled, lanes: usize) -> Self {
        let empty = |slots| (0..slots).map(|_| Vec::new()).collect();
        MaskRegisters {
            lanes: empty(compiled.lane_slots()),
            uniform: empty(compiled.uniform_slots()),
            width: lanes,
        }
    }

    fn slot(&self, slot: Slot) -> &[Bits] {
        match slot {
            Slot::Lanes(at) => &self.lanes[at as usize],
            Slot::Uniform(at) => &self.uniform[at as usize],
        }
    }

    fn slot_mut(&mut self, slot: Slot) -> &mut Vec<Bits> {
        match slot {
            Slot::Lanes(at) => &mut self.lanes[at as usize],
            Slot::Uniform(at) => &mut self.uniform[at as usize],
        }
    }

    /// The bits of a slot.
    pub(super) fn bits(&self, slot: Slot, bits: u8) -> Vec<Bits> {
        self.slot(slot)[..usize::from(bits)].to_vec()
    }

    /// Sets a slot to an image of a cell of which these are the bits.
    pub(super) fn put(&mut self, slot: Slot, matrix: &Matrix, bits: &[Bits]) {
        let image = match matrix.is_identity() {
            true => bits.to_vec(),
            false => {
                let mut image = vec![Bits::zero(bits[0].len()); usize::from(matrix.outs())];
                add_image(&mut image, matrix, bits);
                image
            }
        };
        *self.slot_mut(slot) = image;
    }

    /// Linear maps, in order; with constants if these are values of their own under this key, and not masks.
    pub(super) fn linear(&mut self, linear: &[Linear], constants: Option<&Key>) {
        for Linear { dst, terms, constant } in linear {
            let len = if matches!(dst, Slot::Lanes(_)) { self.width } else { 1 };
            // A constant has no terms: as many bits as any cell.
            let outs = terms.first().map_or(8, |(_, matrix)| matrix.outs());
            let mut sum = vec![Bits::zero(len); usize::from(outs)];
            for (slot, matrix) in terms {
                add_image(&mut sum, matrix, self.slot(*slot));
            }
            if let Some(key) = constants {
                let set = sum.iter_mut().enumerate().filter(|(bit, _)| constant >> bit & 1 == 1);
                set.for_each(|(_, sum)| sum.add_public(&vec![1; len], key));
            }
            *self.slot_mut(*dst) = sum;
        }
    }

    /// Gives a port's cells their masks: fresh bits, cell by cell, and of a cell the lowest bit of all lanes first.
    pub(super) fn put_port(&mut self, port: &CompiledPort, lanes: usize, fresh: &Bits, macs: Macs) -> Masks {
        let mut masks = Masks::zero(port.cells.len() * lanes, macs);
        let bits = usize::from(port.bits);
        for (cell, views) in port.cells.iter().enumerate() {
            let bit = |b: usize| fresh.part((cell * bits + b) * lanes..(cell * bits + b + 1) * lanes);
            let of_cell: Vec<Bits> = (0..bits).map(bit).collect();
            add_cells(&mut masks, cell * lanes, &of_cell);
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
            let bits = &self.slot(views[0].1)[..usize::from(port.bits)];
            let spread: Vec<Bits>;
            // A uniform cell among others.
            let bits = match bits[0].len() == lanes {
                true => bits,
                false => {
                    let of_lanes = |bit: &Bits| Bits::join(&vec![bit; lanes]);
                    spread = bits.iter().map(of_lanes).collect();
                    &spread
                }
            };
            add_cells(&mut masks, cell * lanes, bits);
        }
        masks
    }
}

/// Adds the image of a cell, given by its bits, to another; one for all lanes is added to each.
fn add_image(sum: &mut [Bits], matrix: &Matrix, bits: &[Bits]) {
    for (column, bit) in matrix.columns().into_iter().zip(bits) {
        for (_, sum) in sum.iter_mut().enumerate().filter(|(out, _)| column >> out & 1 == 1) {
            match bit.len() == sum.len() {
                true => sum.add(bit),
                false => {
                    sum.values.iter_mut().for_each(|x| *x ^= bit.values[0]);
                    sum.tags.iter_mut().for_each(|x| *x ^= bit.tags[0]);
                    sum.keys.iter_mut().for_each(|x| *x ^= bit.keys[0]);
                }
            }
        }
    }
}

/// Adds cells of which these are the bits. Tags of the bits, times X^i, add up to those of the cells.
fn add_cells(masks: &mut Masks, at: usize, bits: &[Bits]) {
    for (i, bit) in bits.iter().enumerate() {
        masks.values[at..].iter_mut().zip(&bit.values).for_each(|(x, bit)| *x ^= bit << i);
        if !masks.tags.is_empty() {
            masks.tags[at..].iter_mut().zip(&bit.tags).for_each(|(x, tag)| *x ^= u128::from(*tag) << i);
            masks.keys[at..].iter_mut().zip(&bit.keys).for_each(|(x, key)| *x ^= u128::from(*key) << i);
        }
    }
}

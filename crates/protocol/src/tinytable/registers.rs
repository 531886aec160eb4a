//! The masked values of an evaluation. Both parties know them; so the places in tables that follow from them
//! are public too.
//!
//! A row has a byte for every lane, or, for Boolean circuits, bits: a plane of one bit a lane, and a second
//! plane for the two-bit cells that gates start from. Masks in the making are kept in the same form.

use std::collections::HashMap;

use polyclave_cipher::{Compiled, Linear, Matrix, Slot};
use polyclave_kernels::affine::{self, Map};

use super::batch::Masks;
use crate::pool::{Pool, Shares};

/// How a row holds its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// A cell a byte.
    Cells,
    /// Bits, in planes.
    Planes,
}

impl Packing {
    /// Planes, if every cell is a bit except those that are the input of gates of two bits.
    pub fn of(compiled: &Compiled) -> Packing {
        let ports = || compiled.inputs().iter().chain(compiled.outputs());
        let is_gate = compiled.tables().iter().all(|t| (t.in_bits(), t.out_bits()) == (2, 1));
        let is_boolean = !compiled.tables().is_empty() && is_gate && ports().all(|port| port.bits == 1);
        if is_boolean { Packing::Planes } else { Packing::Cells }
    }

    /// Bytes of a plane of this many lanes: whole words.
    pub fn plane_bytes(lanes: usize) -> usize {
        lanes.div_ceil(64) * 8
    }
}

/// Values by slot.
pub struct Registers {
    /// How rows hold their lanes.
    pub packing: Packing,
    lanes: usize,
    stride: usize,
    arena: Shares,
    /// The same for all lanes: a cell each.
    pub uniform: Vec<u8>,
    /// Shares of the masks of inputs, by name, until they are used.
    pub(super) inputs: Vec<(String, Masks)>,
    /// And of outputs.
    pub(super) outputs: Vec<(String, Masks)>,
}

/// Matrices as the kernels take them, prepared once.
#[derive(Default)]
pub struct Maps(HashMap<Matrix, Map>);

impl Maps {
    /// Prepares those of a circuit.
    pub fn prepare(&mut self, compiled: &Compiled) {
        let linear = compiled.layers().iter().flat_map(|layer| &layer.linear);
        for (_, matrix) in linear.flat_map(|linear| &linear.terms) {
            self.0.entry(*matrix).or_insert_with(|| Map::new(matrix.columns()));
        }
    }
}

impl Registers {
    /// Without any value.
    pub fn new(compiled: &Compiled, lanes: usize, pool: &Pool) -> Registers {
        let packing = Packing::of(compiled);
        let stride = match packing {
            Packing::Cells => lanes.next_multiple_of(64),
            Packing::Planes => 2 * Packing::plane_bytes(lanes),
        };
        let arena = pool.take(compiled.lane_slots() * stride);
        let uniform = vec![0; compiled.uniform_slots()];
        Registers { packing, lanes, stride, arena, uniform, inputs: Vec::new(), outputs: Vec::new() }
    }

    /// Lanes.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The bytes of a slot that hold a value: a cell for every lane, or both planes.
    pub fn row(&self, slot: u32) -> &[u8] {
        &self.arena[slot as usize * self.stride..][..self.row_bytes()]
    }

    /// The same, to write.
    pub fn row_mut(&mut self, slot: u32) -> &mut [u8] {
        let bytes = self.row_bytes();
        &mut self.arena[slot as usize * self.stride..][..bytes]
    }

    fn row_bytes(&self) -> usize {
        match self.packing {
            Packing::Cells => self.lanes,
            Packing::Planes => self.stride,
        }
    }

    /// Sets a slot to cells, one for each lane or one for all.
    pub fn put(&mut self, slot: Slot, cells: &[u8]) {
        match (slot, self.packing) {
            (Slot::Uniform(at), _) => self.uniform[at as usize] = cells[0],
            (Slot::Lanes(at), Packing::Cells) => self.row_mut(at).copy_from_slice(cells),
            (Slot::Lanes(at), Packing::Planes) => pack(cells, self.row_mut(at)),
        }
    }

    /// The cells of a slot; a value that is the same for all lanes as often as there is room.
    pub fn copy_to(&self, slot: Slot, cells: &mut [u8]) {
        match (slot, self.packing) {
            (Slot::Uniform(at), _) => cells.fill(self.uniform[at as usize]),
            (Slot::Lanes(at), Packing::Cells) => cells.copy_from_slice(self.row(at)),
            (Slot::Lanes(at), Packing::Planes) => unpack(self.row(at), cells),
        }
    }

    /// The cells that lookups start from: of gates both bits.
    pub fn copy_indices_to(&self, slot: Slot, cells: &mut [u8]) {
        self.copy_to(slot, cells);
        if let (Packing::Planes, Slot::Lanes(at)) = (self.packing, slot) {
            let row = self.row(at);
            let mut upper = vec![0; cells.len()];
            unpack(&row[row.len() / 2..], &mut upper);
            cells.iter_mut().zip(upper).for_each(|(cell, upper)| *cell |= upper << 1);
        }
    }

    /// Linear maps, in order; of masks without the constants, which are added to the masked values.
    pub fn linear(&mut self, linear: &[Linear], maps: &Maps, with_constants: bool) {
        let mut terms = Vec::new();
        for linear in linear {
            let mut constant = if with_constants { linear.constant } else { 0 };
            let uniform = linear.terms.iter().filter_map(|(slot, matrix)| match slot {
                Slot::Uniform(at) => Some(matrix.apply(self.uniform[*at as usize])),
                Slot::Lanes(_) => None,
            });
            constant = uniform.fold(constant, |sum, image| sum ^ image);
            let Slot::Lanes(dst) = linear.dst else {
                let Slot::Uniform(dst) = linear.dst else { continue };
                self.uniform[dst as usize] = constant;
                continue;
            };
            let lanes = linear.terms.iter().filter_map(|(slot, matrix)| match slot {
                Slot::Lanes(at) => Some((*at as usize * self.stride, matrix)),
                Slot::Uniform(_) => None,
            });
            let dst = dst as usize * self.stride;
            match self.packing {
                Packing::Cells => {
                    terms.clear();
                    terms.extend(lanes.map(|(at, matrix)| (at, &maps.0[matrix])));
                    affine::combine_within(&mut self.arena, dst, self.lanes, &terms, constant);
                }
                Packing::Planes => {
                    const COPY: &Map = &Map::identity();
                    let plane = self.stride / 2;
                    let sources: Vec<_> = lanes.map(|(at, matrix)| (at, matrix.columns())).collect();
                    // A constant has no terms; it fills both planes.
                    let outs = linear.terms.first().map_or(2, |(_, matrix)| matrix.outs());
                    for out in 0..usize::from(outs) {
                        terms.clear();
                        for (at, columns) in &sources {
                            let of_plane = (0..2).filter(|plane| columns[*plane] >> out & 1 == 1);
                            terms.extend(of_plane.map(|input| (at + input * plane, COPY)));
                        }
                        let all = (constant >> out & 1).wrapping_neg();
                        affine::combine_within(&mut self.arena, dst + out * plane, plane, &terms, all);
                    }
                }
            }
        }
    }
}

/// Bits, one a byte, into the first plane of a row.
pub fn pack(bits: &[u8], plane: &mut [u8]) {
    let (eights, rest) = bits.as_chunks::<8>();
    for (to, bits) in plane.iter_mut().zip(eights) {
        // Bit i of the product's top byte is byte i.
        *to = (u64::from_le_bytes(*bits).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
    }
    if !rest.is_empty() {
        plane[eights.len()] = rest.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
    }
}

/// Bits of a plane, one a byte.
pub fn unpack(plane: &[u8], bits: &mut [u8]) {
    let (eights, rest) = bits.as_chunks_mut::<8>();
    for (to, byte) in eights.iter_mut().zip(plane) {
        let spread = (u64::from(*byte) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        *to = ((spread + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101).to_le_bytes();
    }
    let last = eights.len();
    rest.iter_mut().enumerate().for_each(|(i, bit)| *bit = plane[last] >> i & 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_from_planes() {
        for len in 0..70 {
            let bits: Vec<u8> = (0..len).map(|i| (i * i / 3 % 2) as u8).collect();
            let (mut plane, mut back) = (vec![0; 16], vec![7; len]);
            pack(&bits, &mut plane);
            unpack(&plane, &mut back);
            assert_eq!(back, bits);
            assert!((0..len).all(|i| plane[i / 8] >> (i % 8) & 1 == bits[i]));
        }
    }
}

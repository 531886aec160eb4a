//! The shares of an evaluation, by slot. A slot has a plane for each bit of a cell, which holds this bit of
//! all lanes. So shares of bits take no more room than bits, and every linear map is a sum of planes.

use std::array;

use polyclave_cipher::{Compiled, Linear, Slot};
use polyclave_kernels::label_sums::sum_within;
use polyclave_kernels::planes::Planes;

use crate::pool::{Pool, Shares};

/// Sums take this many bytes at a time.
const STEP: usize = 16;
/// Planes one after another should not fall into the same places of a cache.
const APART: usize = 64;

/// Shares by slot: as many of every value as a party has.
pub struct Registers<const C: usize> {
    circuit: [u8; 32],
    count: usize,
    lanes: Bank<C>,
    uniform: Bank<C>,
    sources: Vec<usize>,
}

/// Slots with as many lanes each. Bits behind the last lane of a plane mean nothing.
pub(super) struct Bank<const C: usize> {
    shares: [Shares; C],
    /// Planes of a slot.
    planes: usize,
    /// Bytes of a plane.
    pub(super) len: usize,
    stride: usize,
}

impl<const C: usize> Bank<C> {
    pub(super) fn new(slots: usize, planes: usize, len: usize, pool: &Pool) -> Bank<C> {
        let stride = len.next_multiple_of(STEP) + if len > STEP { APART } else { 0 };
        let bytes =
            slots.checked_mul(planes * stride).expect("the shares of an evaluation fit the address space");
        Bank { shares: array::from_fn(|_| pool.take(bytes)), planes, len, stride }
    }

    /// Where a plane begins.
    fn at(&self, slot: u32, plane: usize) -> usize {
        (slot as usize * self.planes + plane) * self.stride
    }

    /// A plane of a share.
    pub(super) fn plane(&self, share: usize, slot: u32, plane: usize) -> &[u8] {
        &self.shares[share][self.at(slot, plane)..][..self.len]
    }

    /// A plane of a share.
    pub(super) fn plane_mut(&mut self, share: usize, slot: u32, plane: usize) -> &mut [u8] {
        let at = self.at(slot, plane);
        &mut self.shares[share][at..][..self.len]
    }

    /// The planes of a slot from one of them on.
    pub(super) fn planes(&self, share: usize, slot: u32, from: usize) -> Planes<'_> {
        Planes { bytes: &self.shares[share][self.at(slot, from)..], stride: self.stride }
    }

    /// Overwrites a plane of a share by the sum of others, which are given by where they begin, and of a byte
    /// in every place.
    fn sum(&mut self, share: usize, dst: usize, sources: &[usize], constant: u8) {
        let len = self.len.next_multiple_of(STEP);
        sum_within(&mut self.shares[share], dst, len, sources, &[constant; STEP]);
    }

    /// Overwrites the plane of a slot that has one by the sum of others; the share that `complement` names,
    /// by the complement of it.
    pub(super) fn sum_of_rows(&mut self, dst: u32, of: &[u32], complement: Option<usize>) {
        let sources: Vec<usize> = of.iter().map(|slot| self.at(*slot, 0)).collect();
        let dst = self.at(dst, 0);
        for share in 0..C {
            self.sum(share, dst, &sources, if complement == Some(share) { 0xff } else { 0 });
        }
    }

    /// The bit of a slot for all lanes, in every place of a byte.
    fn broadcast(&self, share: usize, slot: u32, plane: usize) -> u8 {
        (self.plane(share, slot, plane)[0] & 1).wrapping_neg()
    }
}

impl<const C: usize> Registers<C> {
    /// For `lanes` lanes. Every slot is written before it is read.
    pub(super) fn new(compiled: &Compiled, lanes: usize, pool: &Pool) -> Registers<C> {
        let planes = widest(compiled);
        Registers {
            circuit: compiled.digest(),
            count: lanes,
            lanes: Bank::new(compiled.lane_slots(), planes, lanes.div_ceil(8), pool),
            uniform: Bank::new(compiled.uniform_slots(), planes, 1, pool),
            sources: Vec::new(),
        }
    }

    /// The digest of the circuit.
    pub(super) fn circuit(&self) -> [u8; 32] {
        self.circuit
    }

    /// Number of lanes.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Lanes of a slot: all, or one.
    pub(super) fn lanes_of(&self, slot: Slot) -> usize {
        match slot {
            Slot::Lanes(_) => self.count,
            Slot::Uniform(_) => 1,
        }
    }

    /// The bank of a slot, and its number there.
    pub(super) fn bank(&self, slot: Slot) -> (&Bank<C>, u32) {
        match slot {
            Slot::Lanes(at) => (&self.lanes, at),
            Slot::Uniform(at) => (&self.uniform, at),
        }
    }

    /// The bank of a slot, and its number there.
    pub(super) fn bank_mut(&mut self, slot: Slot) -> (&mut Bank<C>, u32) {
        match slot {
            Slot::Lanes(at) => (&mut self.lanes, at),
            Slot::Uniform(at) => (&mut self.uniform, at),
        }
    }

    /// Copies a plane; that of a slot for all lanes is repeated.
    pub(super) fn copy_plane(&self, share: usize, slot: Slot, plane: usize, to: &mut [u8]) {
        match slot {
            Slot::Uniform(at) => to.fill(self.uniform.broadcast(share, at, plane)),
            Slot::Lanes(at) => to.copy_from_slice(self.lanes.plane(share, at, plane)),
        }
    }

    /// Local maps, in order. Constants go to one of all shares of a value.
    pub(super) fn linear(&mut self, maps: &[Linear], share_zero: Option<usize>) {
        for map in maps {
            // A constant has no terms; it fills all planes.
            let outs = map.terms.first().map_or(self.lanes.planes, |(_, matrix)| matrix.outs().into());
            for out in 0..outs {
                self.sum(map, out, share_zero);
            }
        }
    }

    /// One plane of a sum.
    fn sum(&mut self, map: &Linear, out: usize, share_zero: Option<usize>) {
        let mut constants = [0; C];
        if let Some(share) = share_zero {
            constants[share] = ((map.constant >> out) & 1).wrapping_neg();
        }
        self.sources.clear();
        for (slot, matrix) in &map.terms {
            let columns = matrix.columns();
            for plane in (0..usize::from(matrix.ins())).filter(|plane| columns[*plane] >> out & 1 == 1) {
                match (slot, map.dst) {
                    (Slot::Lanes(at), _) => self.sources.push(self.lanes.at(*at, plane)),
                    (Slot::Uniform(at), Slot::Uniform(_)) => self.sources.push(self.uniform.at(*at, plane)),
                    (Slot::Uniform(at), Slot::Lanes(_)) => {
                        let bit = |share| self.uniform.broadcast(share, *at, plane);
                        constants = array::from_fn(|share| constants[share] ^ bit(share));
                    }
                }
            }
        }
        let (bank, dst) = match map.dst {
            Slot::Lanes(at) => (&mut self.lanes, at),
            Slot::Uniform(at) => (&mut self.uniform, at),
        };
        let dst = bank.at(dst, out);
        for (share, constant) in constants.into_iter().enumerate() {
            bank.sum(share, dst, &self.sources, constant);
        }
    }
}

/// Memory that a party's shares of a lane take.
pub(super) fn bytes_per_lane<const C: usize>(compiled: &Compiled) -> usize {
    let bits = compiled.lane_slots().saturating_mul(widest(compiled));
    bits.saturating_mul(C).div_ceil(8)
}

/// Bits of the widest cell.
fn widest(compiled: &Compiled) -> usize {
    let ports = compiled.inputs().iter().chain(compiled.outputs()).map(|port| port.bits);
    let tables = compiled.tables().iter().flat_map(|table| [table.in_bits(), table.out_bits()]);
    let linear = compiled.layers().iter().flat_map(|layer| &layer.linear);
    let maps = linear.flat_map(|map| map.terms.iter().flat_map(|(_, m)| [m.ins(), m.outs()]));
    ports.chain(tables).chain(maps).max().unwrap_or(1).into()
}

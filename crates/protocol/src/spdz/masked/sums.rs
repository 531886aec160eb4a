//! Tables of at most 6 bits: the unit vector e of s is stored, and T(x) = sum over j of T(j + h) e_j is
//! computed when it is used. One vector serves every output bit and every image of them, and takes 2^l MACs
//! rather than 2^l for each.
//!
//! Which entries are added depends on the opened h and the table; both are public.
//!
//! The index s may have more bits than x. Then the table is repeated, T(x) for each value of the bits that x
//! does not have. Those bits of h are bits of s alone, so they show nothing.

use std::array::from_fn;

use polyclave_cipher::{Matrix, Slot, Table};
use polyclave_field::MacField;
use polyclave_kernels::unit_sums;

use crate::spdz::registers::{Registers, Row};

/// A table as sums of entries.
pub(in crate::spdz) struct Sums<F: MacField> {
    out_bits: u8,
    /// By h, for each output bit: the entries j for which this bit of T(j + h) is 1.
    masks: Vec<[u64; 8]>,
    of_macs: unit_sums::Sums<F::Word>,
}

impl<F: MacField> Sums<F> {
    /// For indices of so many bits, which are at least those of the table.
    pub(in crate::spdz) fn new(table: &Table, in_bits: u8) -> Self {
        let entries: Vec<u8> = table.entries().iter().copied().cycle().take(1 << in_bits).collect();
        let mask =
            |b: usize| (0..entries.len()).fold(0, |mask, j| mask | u64::from(entries[j] >> b & 1) << j);
        let masks: [u64; 8] = from_fn(mask);
        Sums {
            out_bits: table.out_bits(),
            masks: (0..entries.len()).map(|h| masks.map(|mask| moved(mask, h as u8))).collect(),
            of_macs: unit_sums::Sums::new(&entries, usize::from(table.out_bits())),
        }
    }

    /// The images wanted of T(h + s), from opened h, which are below the number of entries, and unit vectors
    /// of s.
    pub(in crate::spdz) fn look_up(
        &self,
        h: &[u8],
        entries: &[u64],
        macs: &[u8],
        views: &[(Matrix, Slot)],
        registers: &mut Registers<F>,
    ) {
        // A bit that is wanted as it is comes where it is wanted.
        let is_bit =
            |m: &Matrix, b: u8| (0..m.ins()).all(|i| m.columns()[usize::from(i)] == u8::from(i == b));
        let slot = |b: u8| views.iter().find(|(m, _)| is_bit(m, b)).map(|(_, slot)| *slot);
        let slots: Vec<Option<Slot>> = (0..self.out_bits).map(slot).collect();
        let row = |slot: &Option<Slot>| slot.map_or_else(|| Row::zero(h.len()), |slot| registers.take(slot));
        let mut bits: Vec<Row<F>> = slots.iter().map(row).collect();
        for (b, bit) in bits.iter_mut().enumerate() {
            for ((cell, h), entries) in bit.cells.iter_mut().zip(h).zip(entries) {
                *cell = ((entries & self.masks[usize::from(*h)][b]).count_ones() & 1) as u8;
            }
        }
        let mut sums: Vec<&mut [F::Word]> = bits.iter_mut().map(|bit| &mut bit.macs[..]).collect();
        self.of_macs.add_up(macs, F::BYTES, h, &mut sums);
        for (m, slot) in views.iter().filter(|(_, slot)| !slots.contains(&Some(*slot))) {
            registers.set_image(*slot, m, &bits);
        }
        for (slot, bit) in slots.into_iter().zip(bits) {
            if let Some(slot) = slot {
                *registers.row_mut(slot) = bit;
            }
        }
    }
}

/// Bit j of the result is bit j ^ h of the word. h is public.
fn moved(mut word: u64, h: u8) -> u64 {
    const LOWER: [u64; 6] = [
        0x5555_5555_5555_5555,
        0x3333_3333_3333_3333,
        0x0f0f_0f0f_0f0f_0f0f,
        0x00ff_00ff_00ff_00ff,
        0x0000_ffff_0000_ffff,
        0x0000_0000_ffff_ffff,
    ];
    for (i, lower) in LOWER.iter().enumerate() {
        let swapped = (word >> (1 << i) & lower) | (word & lower) << (1 << i);
        word ^= (word ^ swapped) & u64::from(h >> i & 1).wrapping_neg();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_moved_by_the_opened_index() {
        for h in 0..64 {
            assert!((0..64).all(|j| moved(1 << j, h) == 1 << (j ^ u64::from(h))));
        }
    }
}

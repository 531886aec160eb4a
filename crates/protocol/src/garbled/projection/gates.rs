//! Projection gates (Pohle et al. 2022, II.A.4), in many lanes at once.
//!
//! The garbler goes through the values x of the input, which are public, and not through colours: `H(W_a^x) + f(x) R` for all x is
//! brought into the order of colours, which is x plus the colour of `W_a^0`, by swaps that mask bits of that colour decide. The
//! first of them is the label for zero of the output, and the others with it added are the ciphertexts. No branch and no index
//! depends on a label. The evaluator's index is a colour, which is public to it.

use polyclave_kernels::label_hash::{Label, LabelHash, Tweak};
use polyclave_kernels::secret;
use zeroize::Zeroizing;

use super::Labels;
use super::offsets::Offsets;
use super::wires::{Row, RowMut};

/// What a gate computes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Projection {
    pub(super) in_bits: u8,
    out_bits: u8,
    /// By input.
    images: Vec<u8>,
}

impl Projection {
    /// An image for every value of so many bits.
    pub(super) fn new(in_bits: u8, out_bits: u8, images: Vec<u8>) -> Projection {
        assert_eq!(images.len(), 1 << in_bits, "an image for every value");
        Projection { in_bits, out_bits, images }
    }

    /// Values of the input: calls of the hash for the garbler.
    pub(super) fn values(&self) -> usize {
        self.images.len()
    }

    /// Ciphertexts of a lane.
    pub(super) fn ciphertexts(&self) -> usize {
        self.values() - 1
    }

    fn mask(&self) -> u8 {
        0xff >> (8 - self.out_bits)
    }
}

/// Memory of gates under way.
pub(super) struct Scratch {
    rows: Zeroizing<Vec<Label>>,
    second: Zeroizing<Vec<Label>>,
    colours: Zeroizing<Vec<u8>>,
}

impl Scratch {
    /// With room for so many labels at once: growing would leave copies behind.
    pub(super) fn new(labels: usize) -> Scratch {
        let rows = || Zeroizing::new(Vec::with_capacity(labels));
        Scratch { rows: rows(), second: rows(), colours: Zeroizing::new(Vec::with_capacity(256)) }
    }
}

/// The colour of a label on a wire of so many bits.
pub(super) fn colour(labels: Labels, bits: u8, block: &Label, beside: u8) -> u8 {
    match labels {
        Labels::Long => beside,
        Labels::Short => block[0] & (0xff >> (8 - bits)),
    }
}

impl Scratch {
    /// Hashes of what is in the rows; with long labels also what covers colours.
    fn hash(&mut self, labels: Labels, hash: &mut LabelHash, first: u64, of_gate: usize) {
        if labels == Labels::Long {
            self.second.clear();
            self.second.extend_from_slice(&self.rows);
            hash.hash_gates(first, Tweak::Second, of_gate, &mut self.second);
        }
        hash.hash_gates(first, Tweak::First, of_gate, &mut self.rows);
    }

    /// Labels for zero of the output, and the ciphertexts of lane after lane: blocks, then colours.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn garble(
        &mut self,
        gate: &Projection,
        labels: Labels,
        offsets: &Offsets,
        (hash, first): (&mut LabelHash, u64),
        input: &Row<'_>,
        output: &mut RowMut<'_>,
        ciphertexts: &mut [u8],
    ) {
        let values = gate.values();
        // Everything is overwritten.
        self.rows.resize(values * input.blocks.len(), [0; 16]);
        for (rows, label) in self.rows.chunks_exact_mut(values).zip(input.blocks) {
            let zero = u128::from_le_bytes(*label);
            let moved = rows.iter_mut().zip(offsets.all());
            moved.for_each(|(row, sum)| *row = (zero ^ sum).to_le_bytes());
        }
        self.hash(labels, hash, first, values);

        let bytes = gate.ciphertexts() * labels.bytes();
        let lanes = self.rows.chunks_exact_mut(values).zip(ciphertexts.chunks_exact_mut(bytes)).enumerate();
        for (lane, (rows, ciphertexts)) in lanes {
            let at_zero = colour(labels, gate.in_bits, &input.blocks[lane], input.colours[lane]);
            for (row, image) in rows.iter_mut().zip(&gate.images) {
                *row = offsets.moved(row, *image);
            }
            move_by(rows, at_zero);
            let (first_row, others) = rows.split_first().expect("a gate has two values at least");
            output.blocks[lane] = *first_row;
            let zero = u128::from_le_bytes(*first_row);
            let (blocks, colours) = ciphertexts.split_at_mut(16 * others.len());
            for (to, row) in blocks.as_chunks_mut().0.iter_mut().zip(others) {
                *to = (u128::from_le_bytes(*row) ^ zero).to_le_bytes();
            }
            if labels == Labels::Long {
                self.colours.clear();
                let of_lane = &self.second[lane * values..][..values];
                let covered =
                    of_lane.iter().zip(&gate.images).map(|(pad, image)| pad[0] & gate.mask() ^ image);
                self.colours.extend(covered);
                move_by(&mut self.colours, at_zero);
                output.colours[lane] = self.colours[0];
                colours
                    .iter_mut()
                    .zip(&self.colours[1..])
                    .for_each(|(to, row)| *to = row ^ output.colours[lane]);
            }
        }
    }

    /// The active labels of the output.
    pub(super) fn evaluate(
        &mut self,
        gate: &Projection,
        labels: Labels,
        (hash, first): (&mut LabelHash, u64),
        input: &Row<'_>,
        output: &mut RowMut<'_>,
        ciphertexts: &[u8],
    ) {
        self.rows.clear();
        self.rows.extend_from_slice(input.blocks);
        self.hash(labels, hash, first, 1);
        let bytes = gate.ciphertexts() * labels.bytes();
        for (lane, ciphertexts) in ciphertexts.chunks_exact(bytes).enumerate() {
            // The evaluator may know the colour: it tells nothing of the value that is active.
            let at = secret::public(colour(labels, gate.in_bits, &input.blocks[lane], input.colours[lane]));
            let (blocks, colours) = ciphertexts.split_at(16 * gate.ciphertexts());
            // At colour 0 the ciphertext is zero.
            let at = usize::from(at).checked_sub(1);
            let block = at.and_then(|at| blocks.as_chunks().0.get(at)).map_or(0, |b| u128::from_le_bytes(*b));
            output.blocks[lane] = (u128::from_le_bytes(self.rows[lane]) ^ block).to_le_bytes();
            if labels == Labels::Long {
                let covered = at.and_then(|at| colours.get(at)).copied().unwrap_or(0);
                // Of a damaged stream some bit may be beyond the wire: it is no colour.
                output.colours[lane] = (self.second[lane][0] ^ covered) & gate.mask();
            }
        }
    }
}

/// What can be swapped under a mask.
trait Masked: Copy {
    fn swap(a: &mut Self, b: &mut Self, mask: u8);
}

impl Masked for Label {
    #[inline(always)]
    fn swap(a: &mut Self, b: &mut Self, mask: u8) {
        let (x, y) = (u128::from_le_bytes(*a), u128::from_le_bytes(*b));
        let difference = (x ^ y) & (mask as i8 as i128 as u128);
        (*a, *b) = ((x ^ difference).to_le_bytes(), (y ^ difference).to_le_bytes());
    }
}

impl Masked for u8 {
    #[inline(always)]
    fn swap(a: &mut Self, b: &mut Self, mask: u8) {
        let difference = (*a ^ *b) & mask;
        (*a, *b) = (*a ^ difference, *b ^ difference);
    }
}

/// Brings what is at x to x plus `by`, in constant time.
fn move_by<T: Masked>(rows: &mut [T], by: u8) {
    for bit in 0..rows.len().trailing_zeros() {
        let mask = secret::mask(by >> bit);
        for pair in rows.chunks_exact_mut(2 << bit) {
            let (low, high) = pair.split_at_mut(1 << bit);
            low.iter_mut().zip(high).for_each(|(a, b)| T::swap(a, b, mask));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_move_by_a_colour() {
        for bits in 1..=8 {
            for by in [0, 1, 2, 5, 77, 255_u8].map(|by| by & (0xff >> (8 - bits))) {
                let mut rows: Vec<u8> = (0..1_u16 << bits).map(|x| x as u8).collect();
                move_by(&mut rows, by);
                assert!(rows.iter().enumerate().all(|(at, x)| usize::from(*x ^ by) == at));
                let mut rows: Vec<Label> = (0..1_u128 << bits).map(|x| (x << 90 | x).to_le_bytes()).collect();
                move_by(&mut rows, by);
                let right = |(at, row): (usize, &Label)| {
                    let x = at as u128 ^ u128::from(by);
                    u128::from_le_bytes(*row) == x << 90 | x
                };
                assert!(rows.iter().enumerate().all(right));
            }
        }
    }
}

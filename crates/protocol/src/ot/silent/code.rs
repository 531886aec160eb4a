//! The code of silent transfers: every output is the sum of ten entries of a vector, at places that a public
//! stream says.
//!
//! This is the local linear code of Ferret (Yang, Weng, Lan, Zhang and Wang 2020, section 5.2), for which
//! Alekhnovich 2003 is cited: a sparse random matrix. All outputs of one tree have a stream of their own, so
//! each tree's outputs can be made by themselves, when they are used. Places are public, and drawn with
//! replacement. Every batch has a matrix of its own.

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::memory::Wiped;

use super::super::binding::Binding;

/// Entries that are added up.
pub(super) const WEIGHT: usize = 10;

/// The logarithm of the number of entries, of parameters in use.
pub(super) const MOST: u32 = 18;

/// Bytes of a place in the stream.
const PLACE: usize = 4;

/// Outputs whose places are drawn at once.
const AT_ONCE: usize = 256;

/// The entries of which outputs are sums: a power of two of them.
pub(super) struct Entries {
    upper: Wiped<u64>,
    lower: Wiped<u64>,
    /// The lowest bits of `lower`, which are choices. Nothing at the sender, where they are zero.
    lowest: Wiped<u8>,
}

/// The matrix of one batch.
pub(super) struct Code {
    seed: [u8; 16],
}

impl Code {
    /// Bound to the direction of a session, and to the batch.
    pub(super) fn new(binding: &Binding, batch: u64) -> Code {
        let mut seed = [0; 16];
        binding.hasher("silent: code").update(&batch.to_le_bytes()).finalize_xof().fill(&mut seed);
        Code { seed }
    }

    /// Adds to each of a tree's outputs its entries: to whole blocks, or to the upper halves and the lowest
    /// bits, which is quicker, because less memory is read at random.
    pub(super) fn add(&self, tree: usize, entries: &Entries, is_whole: bool, outputs: &mut [u128]) {
        // The number of entries is known where the loop is compiled, so that no place is compared with it.
        match entries.upper.len().ilog2() {
            MOST => self.add_of::<{ 1 << MOST }>(tree, entries, is_whole, outputs),
            8 => self.add_of::<{ 1 << 8 }>(tree, entries, is_whole, outputs),
            other => unreachable!("no parameters have 2^{other} secret bits"),
        }
    }

    fn add_of<const N: usize>(&self, tree: usize, entries: &Entries, is_whole: bool, outputs: &mut [u128]) {
        let (upper, lower) = (rows::<N, _>(&entries.upper), rows::<N, _>(&entries.lower));
        let upper_half = |place: usize| u128::from(upper[place]) << 64;
        if is_whole {
            self.add_each::<N>(tree, outputs, |place| upper_half(place) | u128::from(lower[place]));
        } else if entries.lowest.is_empty() {
            self.add_each::<N>(tree, outputs, upper_half);
        } else {
            let lowest = rows::<N, _>(&entries.lowest);
            self.add_each::<N>(tree, outputs, |place| upper_half(place) | u128::from(lowest[place]));
        }
    }

    #[inline(always)]
    fn add_each<const N: usize>(&self, tree: usize, outputs: &mut [u128], entry: impl Fn(usize) -> u128) {
        let mut stream = AesPrg::new(&self.seed, tree as u64);
        let mut places = [0; AT_ONCE * WEIGHT * PLACE];
        for outputs in outputs.chunks_mut(AT_ONCE) {
            let places = &mut places[..outputs.len() * WEIGHT * PLACE];
            stream.fill(places);
            let (places, _) = places.as_chunks::<PLACE>();
            let (places, _) = places.as_chunks::<WEIGHT>();
            for (output, places) in outputs.iter_mut().zip(places) {
                let entry = |place: &[u8; PLACE]| entry(u32::from_le_bytes(*place) as usize % N);
                *output ^= places.iter().fold(0, |sum, place| sum ^ entry(place));
            }
        }
    }
}

/// All of as many entries.
fn rows<const N: usize, T>(entries: &[T]) -> &[T; N] {
    entries.try_into().expect("there are so many entries")
}

impl Entries {
    /// From blocks whose lowest bit is to be replaced by these choices, eight in a byte, or by zero if there
    /// are none.
    pub(super) fn new(blocks: &[u128], choices: &[u8]) -> Entries {
        let (mut upper, mut lower) = (Wiped::zeros(blocks.len()), Wiped::zeros(blocks.len()));
        let mut lowest = Wiped::zeros(8 * choices.len());
        lowest.iter_mut().enumerate().for_each(|(i, bit)| *bit = choices[i / 8] >> (i % 8) & 1);
        for (i, block) in blocks.iter().enumerate() {
            upper[i] = (block >> 64) as u64;
            lower[i] = *block as u64 & !1 | lowest.get(i).map_or(0, |bit| u64::from(*bit));
        }
        Entries { upper, lower, lowest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Party;

    const SOME: usize = 1 << 8;

    fn code(batch: u64) -> Code {
        Code::new(&Binding::new(b"code", Party(0), Party(1), Party(0)), batch)
    }

    /// Outputs of unit vectors: the columns of the matrix.
    fn weights(code: &Code, tree: usize) -> Vec<usize> {
        let mut of_outputs = vec![0; 300];
        for entry in 0..SOME {
            let mut blocks = [0; SOME];
            blocks[entry] = 2_u128;
            let mut outputs = [0; 300];
            code.add(tree, &Entries::new(&blocks, &[]), true, &mut outputs);
            of_outputs.iter_mut().zip(outputs).for_each(|(weight, bit)| *weight += bit as usize / 2);
        }
        of_outputs
    }

    #[test]
    fn every_output_is_the_sum_of_ten_places_and_of_fewer_where_places_meet() {
        let weights = weights(&code(0), 0);
        assert!(weights.iter().all(|weight| *weight <= WEIGHT && weight % 2 == WEIGHT % 2));
        assert!(weights.iter().filter(|weight| **weight >= WEIGHT - 4).count() > 250, "{weights:?}");
    }

    #[test]
    fn trees_and_batches_have_rows_of_their_own() {
        let blocks: Vec<u128> = (1..=SOME as u128).map(|i| i << 64 | i << 1).collect();
        let entries = Entries::new(&blocks, &[]);
        let outputs = |code: Code, tree| {
            let mut outputs = [0; 8];
            code.add(tree, &entries, true, &mut outputs);
            outputs
        };
        assert_ne!(outputs(code(0), 0), outputs(code(0), 1));
        assert_ne!(outputs(code(0), 0), outputs(code(1), 0));
        assert_eq!(outputs(code(1), 5), outputs(code(1), 5));
    }

    #[test]
    fn parts_of_outputs_are_those_of_whole_ones() {
        let blocks: Vec<u128> = (1..=SOME as u128).map(|i| u128::MAX / i).collect();
        let choices: Vec<u8> = (0..SOME / 8).map(|i| (i * 31 + 5) as u8).collect();
        for choices in [&choices[..], &[]] {
            let entries = Entries::new(&blocks, choices);
            let outputs = |is_whole| {
                let mut outputs = [1; 300];
                code(0).add(3, &entries, is_whole, &mut outputs);
                outputs
            };
            for (part, whole) in outputs(false).iter().zip(outputs(true)) {
                assert_eq!(*part, whole & !(u128::from(u64::MAX) & !1));
            }
            assert!(choices.is_empty() == outputs(true).iter().all(|output| output & 1 == 1));
        }
    }
}

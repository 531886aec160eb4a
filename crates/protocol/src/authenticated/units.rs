//! Unit vectors as the lookups of small tables take them: the entries of one vector in a word.

use std::mem::take;

use polyclave_field::MacField;
use polyclave_kernels::memory::wipe;

use super::Vectors;
use crate::pool::Shares;

/// Unit vectors of random indices, one after another. The MACs' memory goes back to a pool, the rest is wiped
/// on drop.
pub struct Units<F: MacField> {
    pub(crate) in_bits: u8,
    pub(crate) index: Vec<u8>,
    pub(crate) index_macs: Vec<F::Word>,
    /// By index: bit j is this party's share of e_j.
    pub(crate) entries: Vec<u64>,
    /// By index, then by entry: `F::BYTES` each.
    pub(crate) macs: Shares,
    pub(crate) spent: usize,
}

impl<F: MacField> Drop for Units<F> {
    fn drop(&mut self) {
        wipe(&mut self.index);
        wipe(&mut self.index_macs);
        wipe(&mut self.entries);
    }
}

impl<F: MacField> Units<F> {
    /// Bytes that one lookup uses up.
    pub(crate) fn bytes(in_bits: u8) -> usize {
        1 + size_of::<F::Word>() + size_of::<u64>() + (F::BYTES << in_bits)
    }

    /// Without any lookup spent.
    pub fn new(
        in_bits: u8,
        index: Vec<u8>,
        index_macs: Vec<F::Word>,
        entries: Vec<u64>,
        macs: Shares,
    ) -> Self {
        Units { in_bits, index, index_macs, entries, macs, spent: 0 }
    }

    /// From unit vectors.
    pub(crate) fn of(mut vectors: Vectors<F>) -> Self {
        let word = |bits: &[u8]| bits.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let bytes = vectors.bits.len() / vectors.index.len().max(1);
        let entries = vectors.bits.chunks_exact(bytes.max(1)).map(word).collect();
        let (index, index_macs) = (take(&mut *vectors.index), take(&mut *vectors.index_macs));
        Units::new(vectors.in_bits, index, index_macs, entries, vectors.macs)
    }
}

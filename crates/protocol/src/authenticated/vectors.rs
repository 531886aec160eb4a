//! Unit vectors, one after another, in the form in which nodes keep them in stock. Masked tables are made of
//! them.
//!
//! For an entry a party keeps one bit: the lowest bit of the image of its share. That map is GF(2)-linear and
//! maps 0 to 0 and 1 to 1. So the bits of all parties add up to the entry, as the images did. The MACs do not
//! change.

use std::ops::Range;

use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

use super::{Authenticated, MacKey};
use crate::pool::{Pool, Shares};

/// Unit vectors of random indices that nobody knows: one for each element.
pub struct UnitVectors<F: MacField> {
    /// The bits of the indices, lowest first, each 0 or 1.
    pub index: Vec<Authenticated<F>>,
    /// Entry j of all vectors: 1 where the index is j, and 0.
    pub entries: Vec<Authenticated<F>>,
}

/// One party's part of unit vectors of random indices. The MACs' memory goes back to a pool, the rest is
/// wiped on drop.
pub struct Vectors<F: MacField> {
    pub(crate) in_bits: u8,
    pub(crate) index: Zeroizing<Vec<u8>>,
    pub(crate) index_macs: Zeroizing<Vec<F::Word>>,
    /// By vector: a bit for every entry, the first the lowest of the first byte.
    pub(crate) bits: Zeroizing<Vec<u8>>,
    /// By vector, then by entry: `F::BYTES` each.
    pub(crate) macs: Shares,
}

/// Bytes of the bits of a vector.
pub(crate) fn bit_bytes(in_bits: u8) -> usize {
    (1_usize << in_bits).div_ceil(8)
}

impl<F: MacField> Vectors<F> {
    /// Bytes of a vector: index and its MAC, bits, MACs of the entries.
    pub(crate) fn bytes(in_bits: u8) -> usize {
        1 + F::BYTES + bit_bytes(in_bits) + (F::BYTES << in_bits)
    }

    /// Room for `count` vectors, all of zeros.
    pub(crate) fn room(in_bits: u8, count: usize, pool: &Pool) -> Self {
        Vectors {
            in_bits,
            index: Zeroizing::new(vec![0; count]),
            index_macs: Zeroizing::new(vec![F::Word::ZERO; count]),
            bits: Zeroizing::new(vec![0; count * bit_bytes(in_bits)]),
            macs: pool.take(count * (F::BYTES << in_bits)),
        }
    }

    /// Sets the indices of vectors from `at` on.
    pub(crate) fn set_index(&mut self, at: usize, index: &[u8], macs: &[F::Word]) {
        self.index[at..][..index.len()].copy_from_slice(index);
        self.index_macs[at..][..macs.len()].copy_from_slice(macs);
    }

    /// Sets the shares of the entries of `count` vectors from `at` on: bits, eight in a byte, one vector
    /// after another.
    pub(crate) fn set_bits(&mut self, at: usize, count: usize, packed: &[u8]) {
        let (size, entries) = (bit_bytes(self.in_bits), 1 << self.in_bits);
        if entries >= 8 {
            self.bits[at * size..][..count * size].copy_from_slice(packed);
            return;
        }
        let per_byte = 8 / entries;
        for (i, bits) in self.bits[at..].iter_mut().enumerate().take(count) {
            *bits = packed[i / per_byte] >> (i % per_byte * entries) & ((1 << entries) - 1);
        }
    }

    /// Sets the MACs of entries, one vector after another: the first is entry number `at` of all.
    pub(crate) fn set_macs(&mut self, at: usize, macs: &[F::Word]) {
        let bytes = self.macs[at * F::BYTES..].chunks_exact_mut(F::BYTES);
        bytes.zip(macs).for_each(|(to, mac)| mac.write_to(to));
    }

    /// Adds public bits, a word for each vector from `at` on, to `width` of its entries from `entry` on.
    pub(crate) fn add_public(
        &mut self,
        at: usize,
        entry: usize,
        width: usize,
        public: &[u64],
        key: &MacKey<F>,
    ) {
        let (size, each) = (bit_bytes(self.in_bits), F::BYTES << self.in_bits);
        let alpha = key.reveal_own_share();
        let vectors = self.bits[at * size..].chunks_exact_mut(size);
        for ((bits, macs), word) in vectors.zip(self.macs[at * each..].chunks_exact_mut(each)).zip(public) {
            if key.is_first() {
                let bytes = word.to_le_bytes();
                bits[entry / 8..]
                    .iter_mut()
                    .zip(&bytes[..width.div_ceil(8)])
                    .for_each(|(to, byte)| *to ^= byte);
            }
            for (k, bytes) in macs[entry * F::BYTES..].chunks_exact_mut(F::BYTES).enumerate().take(width) {
                let is_one = F::Word::from_bytes(&[(word >> k & 1) as u8]).spread();
                (F::Word::from_bytes(bytes) ^ alpha.and(is_one)).write_to(bytes);
            }
        }
    }

    /// From what [`Vectors::write`] wrote, whole vectors.
    ///
    /// # Panics
    /// If they are not whole.
    pub(crate) fn read(in_bits: u8, items: &[u8], pool: &Pool) -> Self {
        assert_eq!(items.len() % Self::bytes(in_bits), 0, "whole vectors");
        let count = items.len() / Self::bytes(in_bits);
        let mut index = Zeroizing::new(vec![0; count]);
        let mut index_macs = Zeroizing::new(vec![F::Word::ZERO; count]);
        let mut bits = Zeroizing::new(vec![0; count * bit_bytes(in_bits)]);
        let mut macs = pool.take(count * (F::BYTES << in_bits));
        let to = bits.chunks_exact_mut(bit_bytes(in_bits)).zip(macs.chunks_exact_mut(F::BYTES << in_bits));
        for (i, (item, (bits, macs))) in items.chunks_exact(Self::bytes(in_bits)).zip(to).enumerate() {
            index[i] = item[0];
            let (index_mac, rest) = item[1..].split_at(F::BYTES);
            F::read_row(index_mac, &mut index_macs[i..=i]);
            let (its_bits, its_macs) = rest.split_at(bits.len());
            bits.copy_from_slice(its_bits);
            macs.copy_from_slice(its_macs);
        }
        Vectors { in_bits, index, index_macs, bits, macs }
    }

    /// One vector after another: index, MAC of its cell, bits, MACs of the entries.
    pub(crate) fn write(&self) -> Zeroizing<Vec<u8>> {
        let mut items = Zeroizing::new(vec![0; self.index.len() * Self::bytes(self.in_bits)]);
        let bits = self.bits.chunks_exact(bit_bytes(self.in_bits));
        let parts = bits.zip(self.macs.chunks_exact(F::BYTES << self.in_bits));
        for (i, (item, (bits, macs))) in
            items.chunks_exact_mut(Self::bytes(self.in_bits)).zip(parts).enumerate()
        {
            item[0] = self.index[i];
            let (index_mac, rest) = item[1..].split_at_mut(F::BYTES);
            self.index_macs[i].write_to(index_mac);
            let (to_bits, to_macs) = rest.split_at_mut(bits.len());
            to_bits.copy_from_slice(bits);
            to_macs.copy_from_slice(macs);
        }
        items
    }

    /// By entry: this party's part of it in some vectors.
    pub(crate) fn by_entry(&self, range: Range<usize>) -> (Vec<Vec<u8>>, Vec<Vec<F::Word>>) {
        let (size, count) = (1 << self.in_bits, range.len());
        let mut cells = vec![vec![0; count]; size];
        let mut macs = vec![vec![F::Word::ZERO; count]; size];
        let mut words = Zeroizing::new(vec![F::Word::ZERO; size]);
        let bits = self.bits.chunks_exact(bit_bytes(self.in_bits)).skip(range.start);
        let all_macs = self.macs.chunks_exact(F::BYTES << self.in_bits).skip(range.start);
        for (i, (bits, bytes)) in bits.zip(all_macs).enumerate().take(count) {
            F::read_row(bytes, &mut words);
            for (j, (cells, macs)) in cells.iter_mut().zip(&mut macs).enumerate() {
                cells[i] = bits[j / 8] >> (j % 8) & 1;
                macs[i] = words[j];
            }
        }
        (cells, macs)
    }
}

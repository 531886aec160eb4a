//! Records for inversions in GF(2^8) by a tower of fields, one for each lookup (docs/protocols/tower.md).
//!
//! x lies in F = GF(2^8), N = x^17 in GF(16), M = N^5 in GF(4), V = N^14 in GF(16), and the inverse is
//! x^254 = x^16 V. A record has masks of x, N, M and V, the products of masks that the openings do not give,
//! and eight random bits that mask the result and give all its linear images. MACs lie in the field of MACs;
//! values are cells, one byte each.

use std::ops::Range;

use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

/// One element of a record, by its place in [`Inverses::values`] and [`Inverses::macs`]. `Lx` is the mask of
/// x, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the formulas")]
pub enum Element {
    Lx,
    Lx16,
    Lx17,
    Ln,
    Ln4,
    Ln5,
    Lm,
    /// X = Lm^2.
    X,
    /// X Ln^4.
    XLn4,
    Lv,
    /// Lv Lx^16.
    LvLx16,
}

/// Elements of a record, the bits not counted.
const ELEMENTS: usize = 11;
/// The random bits of a record.
pub(crate) const BITS: usize = 8;

/// One party's part of records, by element: everything here is as long as there are records. Wiped on drop.
pub struct Inverses<F: MacField> {
    /// Shares of the [`Element`]s.
    pub values: [Zeroizing<Vec<u8>>; ELEMENTS],
    /// Shares of the bits: bit i of the byte is bit i's share.
    pub bits: Zeroizing<Vec<u8>>,
    /// Shares of the MACs of the elements.
    pub macs: [Zeroizing<Vec<F::Word>>; ELEMENTS],
    /// Shares of the MACs of the bits.
    pub bit_macs: [Zeroizing<Vec<F::Word>>; BITS],
}

impl<F: MacField> Inverses<F> {
    /// Bytes of one record, as it is kept in stock: 164 over GF(2^64).
    pub const BYTES: usize = ELEMENTS + 1 + (ELEMENTS + BITS) * F::BYTES;

    /// Records of zeros.
    pub fn zero(len: usize) -> Self {
        let cells = || Zeroizing::new(vec![0; len]);
        let words = || Zeroizing::new(vec![F::Word::default(); len]);
        Inverses {
            values: std::array::from_fn(|_| cells()),
            bits: cells(),
            macs: std::array::from_fn(|_| words()),
            bit_macs: std::array::from_fn(|_| words()),
        }
    }

    /// Sets one element of some records.
    pub(crate) fn put(&mut self, element: Element, records: Range<usize>, values: &[u8], macs: &[F::Word]) {
        self.values[element as usize][records.clone()].copy_from_slice(values);
        self.macs[element as usize][records].copy_from_slice(macs);
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }
}

impl<F: MacField> Inverses<F> {
    /// Bytes that one lookup uses up in memory.
    pub(crate) const MEMORY: usize = ELEMENTS + 1 + (ELEMENTS + BITS) * size_of::<F::Word>();

    /// Some of the records.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn records(&self, range: Range<usize>) -> Records<'_, F> {
        assert!(range.end <= self.len(), "as many records as there are");
        Records { of: self, range }
    }

    /// One record after another, [`Inverses::BYTES`] each: values of the elements, bits, MACs of the
    /// elements, MACs of the bits.
    pub fn write(&self) -> Zeroizing<Vec<u8>> {
        let mut items = Zeroizing::new(vec![0; self.len() * Self::BYTES]);
        for (i, item) in items.chunks_exact_mut(Self::BYTES).enumerate() {
            let (cells, words) = item.split_at_mut(ELEMENTS + 1);
            let columns = self.values.iter().chain([&self.bits]);
            cells.iter_mut().zip(columns).for_each(|(cell, column)| *cell = column[i]);
            let columns = self.macs.iter().chain(&self.bit_macs);
            words.chunks_exact_mut(F::BYTES).zip(columns).for_each(|(mac, column)| column[i].write_to(mac));
        }
        items
    }

    /// From what [`Inverses::write`] wrote, whole records.
    ///
    /// # Panics
    /// If they are not whole.
    pub fn read(items: &[u8]) -> Self {
        assert_eq!(items.len() % Self::BYTES, 0, "whole records");
        let mut inverses = Self::zero(items.len() / Self::BYTES);
        for (i, item) in items.chunks_exact(Self::BYTES).enumerate() {
            let (cells, words) = item.split_at(ELEMENTS + 1);
            let columns = inverses.values.iter_mut().chain([&mut inverses.bits]);
            columns.zip(cells).for_each(|(column, cell)| column[i] = *cell);
            let columns = inverses.macs.iter_mut().chain(&mut inverses.bit_macs);
            let macs = words.chunks_exact(F::BYTES).map(|mac| F::truncate(F::Word::from_bytes(mac)));
            columns.zip(macs).for_each(|(column, mac)| column[i] = mac);
        }
        inverses
    }
}

/// Records that lookups use.
pub struct Records<'a, F: MacField> {
    of: &'a Inverses<F>,
    range: Range<usize>,
}

impl<'a, F: MacField> Records<'a, F> {
    /// Shares of an element.
    pub(crate) fn values(&self, element: Element) -> &'a [u8] {
        &self.of.values[element as usize][self.range.clone()]
    }

    /// Shares of its MACs.
    pub(crate) fn macs(&self, element: Element) -> &'a [F::Word] {
        &self.of.macs[element as usize][self.range.clone()]
    }

    /// Shares of the bits.
    pub(crate) fn bits(&self) -> &'a [u8] {
        &self.of.bits[self.range.clone()]
    }

    /// Shares of the MACs of bit number i.
    pub(crate) fn bit_macs(&self, i: usize) -> &'a [F::Word] {
        &self.of.bit_macs[i][self.range.clone()]
    }
}

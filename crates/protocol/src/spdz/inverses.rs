//! Records for inversions in GF(2^8) by a tower of fields, one for each lookup (docs/protocols/tower.md).
//!
//! x lies in F = GF(2^8), N = x^17 in GF(16), M = N^5 in GF(4), V = N^14 in GF(16), and the inverse is x^254 = x^16 V. A record has
//! masks of x, N, M and V, the products of masks that the openings do not give, and eight random bits that mask the result and
//! give all its linear images. MACs lie in the field of MACs; values are cells, one byte each.

use std::ops::Range;

use polyclave_field::MacField;
use zeroize::Zeroizing;

/// One element of a record, by its place in [`Inverses::values`] and [`Inverses::macs`]. `Lx` is the mask of x, and so on.
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
pub const ELEMENTS: usize = 11;
/// The random bits of a record.
pub const BITS: usize = 8;

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

//! Lists of leaky products (`products.rs`).

use polyclave_cipher::Matrix;
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::affine::{self, Map, Term};
use polyclave_kernels::memory::Wiped;

use super::Key;
use super::abit::{BlockBits, BlockRoom, PIECE};
use super::products::{Elements, ElementsMut, Kept};
use super::rotation::Piece;
use super::subfield::Subfield;
use crate::Result;

/// One party's part of a list: x, y and z, with MACs, by element. Memory is kept for the next list.
#[derive(Default)]
pub(super) struct List {
    pub(super) x: Column,
    pub(super) y: Column,
    pub(super) z: Column,
}

/// Elements, and the MACs of their squares where these are wanted.
#[derive(Default)]
pub(super) struct Column {
    pub(super) values: Wiped<u8>,
    pub(super) macs: Wiped<u64>,
    pub(super) square_macs: Wiped<u64>,
}

impl List {
    /// Makes room for `count` products. What is there is undefined.
    pub(super) fn make_room(&mut self, count: usize) {
        self.z.make_room(count);
        for column in [&mut self.x, &mut self.y] {
            column.make_room_for_squares(count);
        }
    }
}

impl Column {
    /// Makes room for `count` elements, and no room for squares. What is there is undefined.
    pub(super) fn make_room(&mut self, count: usize) {
        if self.values.len() != count {
            self.values = Wiped::zeros(count);
            self.macs = Wiped::zeros(count);
        }
    }

    /// Makes room for `count` elements, and for the MACs of their squares. What is there is undefined.
    pub(super) fn make_room_for_squares(&mut self, count: usize) {
        self.make_room(count);
        if self.square_macs.len() != count {
            self.square_macs = Wiped::zeros(count);
        }
    }

    /// The elements from `start` on.
    pub(super) fn part(&self, start: usize, len: usize) -> Elements<'_> {
        Elements { values: &self.values, macs: &self.macs }.part(start, len)
    }

    /// What some buckets take of this column of list b.
    pub(super) fn rotated(&self, piece: Piece<'_>, b: usize) -> Elements<'_> {
        Elements { values: piece.of(b, &self.values), macs: piece.of(b, &self.macs) }
    }

    /// The elements from `start` on.
    pub(super) fn part_mut(&mut self, start: usize, len: usize) -> ElementsMut<'_> {
        ElementsMut { values: &mut self.values[start..][..len], macs: &mut self.macs[start..][..len] }
    }

    /// Sets the values of `count` elements from `start` on to sums of bits times a basis. Row k of the bits,
    /// counted from a first one, has bit k of all elements.
    pub(super) fn set_values(
        &mut self,
        start: usize,
        count: usize,
        field: &Subfield,
        (first, bits): (usize, &BlockBits),
    ) {
        let rows = field.places().iter().enumerate();
        let term = |(k, map)| Term { src: bits.values_at(bits.place(first + k, 0), count), map };
        affine::combine(&mut self.values[start..][..count], &rows.map(term).collect::<Vec<_>>(), 0);
    }

    /// Sets the elements with their MACs, and the MACs of their squares if these are wanted.
    pub(super) fn set(
        &mut self,
        start: usize,
        count: usize,
        bits: FieldBits<'_>,
        squares: bool,
        rows: &mut BitRows,
    ) -> Result<()> {
        let FieldBits { field, bits, key } = bits;
        self.set_values(start, count, field, (0, bits));
        for done in (0..count).step_by(PIECE) {
            let len = PIECE.min(count - done);
            let range = start + done..start + done + len;
            for (k, row) in rows.macs.chunks_exact_mut(PIECE).enumerate().take(field.bits()) {
                bits.write_macs(bits.place(k, done), key, &mut row[..len], &mut rows.blocks)?;
            }
            let rows = || rows.macs.chunks_exact(PIECE).map(|row| &row[..len]);
            let macs: Vec<_> = rows().zip(field.words().iter().copied()).collect();
            Gf2_64::combine(&mut self.macs[range.clone()], &macs, 0);
            if squares {
                let terms: Vec<_> = rows().zip(field.square_words().iter().copied()).collect();
                Gf2_64::combine(&mut self.square_macs[range], &terms, 0);
            }
        }
        Ok(())
    }

    /// Where the MACs of the elements from `start` on go while their bits are multiplied.
    pub(super) fn kept<'a>(
        &'a mut self,
        start: usize,
        count: usize,
        field: &'a Subfield,
        squares: bool,
    ) -> Kept<'a> {
        let square_macs = squares.then_some(&mut self.square_macs[start..]).map(|macs| &mut macs[..count]);
        Kept::Macs { macs: &mut self.macs[start..][..count], square_macs, field }
    }
}

/// Bits that are coordinates of elements of a field.
#[derive(Clone, Copy)]
pub(super) struct FieldBits<'a> {
    pub(super) field: &'a Subfield,
    pub(super) bits: &'a BlockBits,
    pub(super) key: &'a Key,
}

/// MACs of bits in work: a row for each bit of an element.
pub(super) struct BitRows {
    macs: Wiped<u64>,
    pub(super) blocks: BlockRoom,
}

impl BitRows {
    pub(super) fn new() -> Self {
        BitRows { macs: Wiped::zeros(8 * PIECE), blocks: BlockRoom::new() }
    }
}

/// A constant of F, as a map of cells and as elements of the field of MACs.
pub(super) struct Scalar {
    pub(super) map: Map,
    pub(super) word: u64,
    pub(super) squared: u64,
}

impl Scalar {
    pub(super) fn of(scalar: u8) -> Self {
        let word = Gf2_64::embed(scalar);
        let map = Map::new(Matrix::scalar(scalar).columns());
        Scalar { map, word, squared: Gf2_64::multiply(word, word) }
    }
}

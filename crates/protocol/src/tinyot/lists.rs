//! Lists of leaky products, and what combines them to products that nobody knows anything of (`rotation.rs`).

use polyclave_cipher::Matrix;
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::affine::{self, Map, Term};
use polyclave_kernels::gf256;
use polyclave_kernels::memory::Wiped;

use super::Key;
use super::abit::{BlockBits, BlockRoom, PIECE};
use super::products::{Elements, ElementsMut, Kept};
use super::rotation::{Piece, Rotation, error_of_opened};
use super::subfield::Subfield;
use crate::Result;
use crate::authenticated::Coefficients;

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
    values: Wiped<u8>,
    macs: Wiped<u64>,
    square_macs: Wiped<u64>,
}

impl List {
    /// Makes room for `count` products. What is there is undefined.
    pub(super) fn make_room(&mut self, count: usize) {
        for column in [&mut self.x, &mut self.y, &mut self.z] {
            column.make_room(count);
        }
        for column in [&mut self.x, &mut self.y] {
            if column.square_macs.len() != count {
                column.square_macs = Wiped::zeros(count);
            }
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

    /// Sets the values of `count` elements from `start` on to sums of bits times a basis. Row k of the bits
    /// has bit k of all elements.
    pub(super) fn set_values(&mut self, start: usize, count: usize, field: &Subfield, bits: &BlockBits) {
        let rows = field.places().iter().enumerate();
        let term = |(k, map)| Term { src: bits.values_at(bits.place(k, 0), count), map };
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
        self.set_values(start, count, field, bits);
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

/// Products of some buckets in a row.
pub(super) struct Buckets<'a> {
    pub(super) x: Elements<'a>,
    pub(super) y: Elements<'a>,
    pub(super) z: Elements<'a>,
    /// MACs of the squares of x, if they are wanted.
    pub(super) x_square_macs: &'a [u64],
    /// MACs of the squares of y, if they are wanted and the first list's y is its own.
    pub(super) y_square_macs: &'a [u64],
}

/// Lists of one kind with their rotation and what was opened.
pub(super) struct Combination<'a> {
    pub(super) rotation: &'a Rotation,
    pub(super) lists: &'a [List],
    /// y of every list: that of the first list can be another column than the list's own.
    pub(super) ys: &'a [Elements<'a>],
    /// d_b by bucket, for every list b > 1.
    pub(super) opened: &'a [Vec<u8>],
    /// Whether the squares of x are wanted.
    pub(super) squares: bool,
}

/// Rows for what is combined, kept for their memory.
pub(super) struct Scratch {
    /// d_b x_b, for each list.
    cells: Wiped<u8>,
    words: Wiped<u64>,
    factors: Vec<u64>,
    x: Wiped<u8>,
    x_macs: Wiped<u64>,
    square_macs: Wiped<u64>,
    z: Wiped<u8>,
    z_macs: Wiped<u64>,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Scratch {
            cells: Wiped::default(),
            words: Wiped::default(),
            factors: vec![0; PIECE],
            x: Wiped::zeros(PIECE),
            x_macs: Wiped::zeros(PIECE),
            square_macs: Wiped::zeros(PIECE),
            z: Wiped::zeros(PIECE),
            z_macs: Wiped::zeros(PIECE),
        }
    }

    fn make_room(&mut self, lists: usize) {
        if self.cells.len() < lists * PIECE {
            self.cells = Wiped::zeros(lists * PIECE);
            self.words = Wiped::zeros(lists * PIECE);
        }
    }
}

impl Combination<'_> {
    /// Hands the products of all buckets to `put`, piece by piece with its first bucket, and returns this
    /// party's part of the sum that is zero if all differences were opened rightly.
    pub(super) fn run(
        &self,
        key: &Key,
        coefficients: &mut Coefficients<Gf2_64>,
        scratch: &mut Scratch,
        mut put: impl FnMut(usize, Buckets<'_>),
    ) -> u64 {
        scratch.make_room(self.lists.len());
        let scalars: Vec<Scalar> =
            (0..self.lists.len()).map(|b| Scalar::of(self.rotation.scalar(b))).collect();
        let alpha = key.reveal_own_share();
        let mut sigma = 0;
        for piece in self.rotation.pieces(PIECE) {
            let first = piece.of(0, self.ys[0].macs);
            for (b, opened) in (1..).zip(self.opened) {
                let sums = &mut scratch.z_macs[..piece.len];
                let macs = first.iter().zip(piece.of(b, self.ys[b].macs));
                sums.iter_mut().zip(macs).for_each(|(sum, (a, b))| *sum = a ^ b);
                sigma ^= error_of_opened(coefficients, alpha, sums, &opened[piece.start..][..piece.len]);
            }
            self.combine(piece, &scalars, scratch);
            let len = piece.len;
            let buckets = Buckets {
                x: Elements { values: &scratch.x[..len], macs: &scratch.x_macs[..len] },
                y: Elements { values: piece.of(0, self.ys[0].values), macs: first },
                z: Elements { values: &scratch.z[..len], macs: &scratch.z_macs[..len] },
                x_square_macs: &scratch.square_macs[..len],
                y_square_macs: piece.of(0, &self.lists[0].y.square_macs),
            };
            put(piece.start, buckets);
        }
        sigma
    }

    fn combine(&self, piece: Piece<'_>, scalars: &[Scalar], scratch: &mut Scratch) {
        let len = piece.len;
        let rows = scratch.cells.chunks_exact_mut(PIECE).zip(scratch.words.chunks_exact_mut(PIECE));
        for (b, (opened, (cells, words))) in (1..).zip(self.opened.iter().zip(rows)) {
            let (x, opened) = (&self.lists[b].x, &opened[piece.start..][..len]);
            gf256::multiply(&mut cells[..len], opened, piece.of(b, &x.values));
            let factors = &mut scratch.factors[..len];
            Gf2_64::embed_row(factors, opened);
            Gf2_64::multiply_rows(&mut words[..len], factors, piece.of(b, &x.macs));
        }
        let (mut x, mut z, mut x_macs, mut z_macs, mut square_macs): (
            Vec<_>,
            Vec<_>,
            Vec<_>,
            Vec<_>,
            Vec<_>,
        ) = Default::default();
        for (b, (list, Scalar { map, word, squared })) in self.lists.iter().zip(scalars).enumerate() {
            x.push(Term { src: piece.of(b, &list.x.values), map });
            x_macs.push((piece.of(b, &list.x.macs), *word));
            square_macs.push((piece.of(b, &list.x.square_macs), *squared));
            z.push(Term { src: piece.of(b, &list.z.values), map });
            z_macs.push((piece.of(b, &list.z.macs), *word));
            if b > 0 {
                let row = (b - 1) * PIECE..(b - 1) * PIECE + len;
                z.push(Term { src: &scratch.cells[row.clone()], map });
                z_macs.push((&scratch.words[row], *word));
            }
        }
        affine::combine(&mut scratch.x[..len], &x, 0);
        affine::combine(&mut scratch.z[..len], &z, 0);
        Gf2_64::combine(&mut scratch.x_macs[..len], &x_macs, 0);
        Gf2_64::combine(&mut scratch.z_macs[..len], &z_macs, 0);
        if self.squares {
            Gf2_64::combine(&mut scratch.square_macs[..len], &square_macs, 0);
        }
    }
}

/// A constant of F, as a map of cells and as elements of the field of MACs.
pub(super) struct Scalar {
    pub(super) map: Map,
    pub(super) word: u64,
    squared: u64,
}

impl Scalar {
    pub(super) fn of(scalar: u8) -> Self {
        let word = Gf2_64::embed(scalar);
        let map = Map::new(Matrix::scalar(scalar).columns());
        Scalar { map, word, squared: Gf2_64::multiply(word, word) }
    }
}

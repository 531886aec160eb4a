//! Lookups of tables that are built on inversion in F = GF(2^8): the S-box of AES and its inverse.
//!
//! With x = omega xh + xl over GF(16), and N = zeta n1 + n0 over GF(4) ([`polyclave_field::subfields`]):
//!
//! * N = x^17 = nu xh^2 + xh xl + xl^2,
//! * M = N^5 = mu n1^2 + n1 n0 + n0^2,
//! * V = N^4 M^2 = N^14,
//! * x^254 = x^16 V, for x = 0 too.
//!
//! Squares and products by constants are linear, hence local. What remains is four products, one a round, of
//! 4, 2, 4 and 8 bits: a product is sent as an element of its field.

use std::array;
use std::sync::LazyLock;

use polyclave_cipher::{Inversion, Lookup, Table};
use polyclave_field::Gf256;
use polyclave_field::subfields::{MU, NU, coordinates, element};
use polyclave_kernels::planes::Factors;

use super::lookup::{Gathered, Group, Round, Vectors};
use super::registers::{Bank, Registers};
use crate::pool::Pool;

/// Where values are, by their first row. Rows are used again when their value is not needed any more.
const CELL: u32 = 0;
const X: u32 = 8;
const XH: u32 = 12;
const XH_XL: u32 = 16;
const N: u32 = 20;
const N1: u32 = 22;
const N1_N0: u32 = 24;
const N4: u32 = 26;
const M2: u32 = 30;
const V: u32 = 16;
const X16: u32 = 0;
const INVERSE: u32 = 8;
const OUT: u32 = 0;
const ROWS: usize = 32;

/// The products, one a round: the fields, the rows of the factors, and the row of the product.
pub(super) const PRODUCTS: [(Factors, [u32; 2], u32); 4] = [
    (Factors::Gf16, [XH, X], XH_XL),
    (Factors::Gf4, [N1, N], N1_N0),
    (Factors::Gf16ByGf4, [N4, M2], V),
    (Factors::Gf256ByGf16, [X16, V], INVERSE),
];

/// The linear maps between products, as parts of their sums.
static TO_N: LazyLock<[Part; 3]> = LazyLock::new(|| {
    let low = Part::of_elements(X, 4, square);
    let high = Part::of_elements(XH, 4, |x| Gf256(NU) * square(x));
    [low, high, Part::of_elements(XH_XL, 4, |x| x)]
});
static TO_N4: LazyLock<[Part; 1]> = LazyLock::new(|| [Part::of_elements(N, 4, |n| n.pow(4))]);
static TO_M2: LazyLock<[Part; 3]> = LazyLock::new(|| {
    let low = Part::of_elements(N, 2, |n| square(square(n)));
    let high = Part::of_elements(N1, 2, |n| square(Gf256(MU) * square(n)));
    [low, high, Part::of_elements(N1_N0, 2, square)]
});
static TO_X16: LazyLock<[Part; 1]> = LazyLock::new(|| [Part::of_elements(X, 8, |x| x.pow(16))]);

/// Memory that a lane takes: a party's shares of the rows, and what is sent, received and masked in a round
/// of at most eight bits, which is four bytes at most for each two shares.
pub(super) const fn bytes_per_lane<const C: usize>() -> usize {
    C * ROWS / 8 + 4 * (C * (C - 1) / 2)
}

fn square(x: Gf256) -> Gf256 {
    x * x
}

/// Lookups of one table, with the values of all of them in rows.
pub(super) struct Tower<'a, const C: usize> {
    of: Gathered<'a>,
    inversion: Inversion,
    rows: Bank<C>,
    round: usize,
}

impl<'a, const C: usize> Tower<'a, C> {
    /// Takes the inputs in.
    ///
    /// # Panics
    /// If the table is built on no inversion.
    pub(super) fn new(
        table: &Table,
        lookups: Vec<&'a Lookup>,
        registers: &Registers<C>,
        share_zero: Option<usize>,
        pool: &Pool,
    ) -> Tower<'a, C> {
        let inversion = *table.inversion().expect("the table is built on inversion");
        let of = Gathered::new(lookups, registers);
        let mut rows = Bank::new(ROWS, 1, of.len, pool);
        for share in 0..C {
            for bit in 0..8 {
                of.gather(registers, share, bit as usize, rows.plane_mut(share, CELL + bit, 0));
            }
        }
        let mut tower = Tower { of, inversion, rows, round: 0 };
        let before = inversion.before;
        let image = |cell| coordinates(Gf256(before.matrix.apply(cell)));
        let constant = coordinates(Gf256(before.constant));
        tower.map(X, 8, &[Part::new(CELL, 8, image)], constant, share_zero);
        tower
    }

    /// Overwrites `count` rows by a sum of linear images and a constant.
    fn map(&mut self, dst: u32, count: u32, parts: &[Part], constant: u8, share_zero: Option<usize>) {
        for out in 0..count {
            let sources: Vec<u32> = parts.iter().flat_map(|part| part.sources(out)).collect();
            let complement = share_zero.filter(|_| constant >> out & 1 == 1);
            self.rows.sum_of_rows(dst + out, &sources, complement);
        }
    }

    /// A linear map of elements to elements, without a constant.
    fn linear(&mut self, dst: u32, count: u32, parts: &[Part]) {
        self.map(dst, count, parts, 0, None);
    }
}

/// A value and its image, coordinate by coordinate.
struct Part {
    from: u32,
    images: Vec<u8>,
}

impl Part {
    fn new(from: u32, coordinates: u32, image: impl Fn(u8) -> u8) -> Part {
        Part { from, images: (0..coordinates).map(|i| image(1 << i)).collect() }
    }

    /// The image of an element of the tower.
    fn of_elements(from: u32, degree: u32, image: impl Fn(Gf256) -> Gf256) -> Part {
        Part::new(from, degree, |bits| coordinates(image(element(bits))))
    }

    /// The rows that are summed to a coordinate of the image.
    fn sources(&self, out: u32) -> impl Iterator<Item = u32> + '_ {
        let rows = (self.from..).zip(&self.images);
        rows.filter(move |(_, image)| **image >> out & 1 == 1).map(|(row, _)| row)
    }
}

impl<const C: usize> Group<C> for Tower<'_, C> {
    fn round<'r>(&'r self, _: &'r Registers<C>) -> Option<Round<'r, C>> {
        let (factors, rows, _) = PRODUCTS.get(self.round)?;
        let [x, y] = rows.map(|row| array::from_fn(|share| self.rows.planes(share, row, 0)));
        Some(Round::new(*factors, vec![Vectors { x, y, len: self.of.len }], self.of.lanes))
    }

    fn take(&mut self, products: [&[u8]; C], _: &mut Registers<C>, share_zero: Option<usize>) {
        let (_, _, dst) = PRODUCTS[self.round];
        for (share, planes) in products.into_iter().enumerate() {
            for (row, plane) in (dst..).zip(planes.chunks(self.of.len)) {
                self.rows.plane_mut(share, row, 0).copy_from_slice(plane);
            }
        }
        match self.round {
            0 => self.linear(N, 4, &*TO_N),
            1 => {
                self.linear(N4, 4, &*TO_N4);
                self.linear(M2, 2, &*TO_M2);
            }
            2 => self.linear(X16, 8, &*TO_X16),
            _ => {
                let after = self.inversion.after;
                let image = Part::new(INVERSE, 8, |bits| after.matrix.apply(element(bits).0));
                self.map(OUT, 8, &[image], after.constant, share_zero);
            }
        }
        self.round += 1;
    }

    fn finish(&self, registers: &mut Registers<C>) {
        for share in 0..C {
            for bit in 0..8 {
                self.of.scatter(registers, share, bit as usize, self.rows.plane(share, OUT + bit, 0));
            }
        }
    }
}

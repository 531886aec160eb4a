//! Tables that consist of inversion in GF(2^8) between affine maps (such as the S-boxes of AES), with 34 ANDs
//! in four layers.
//!
//! GF(2^8) is taken as a tower of quadratic extensions with normal bases (Canright, "A very compact S-box for
//! AES", CHES 2005): x = a Y^16 + b Y with a, b of GF(2^4) and Y + Y^16 = 1. The inverse of x is x^16 / N
//! with the norm N = x^17 = (a + b)^2 Y^17 + a b, and x^16 only swaps a and b. A product of GF(2^4) takes 9
//! ANDs (Karatsuba twice): 9 for a b and 18 for a / N and b / N. The inverse of N in GF(2^4) takes 7 ANDs,
//! two deep, as Boyar and Peralta found ("A depth-16 circuit for the AES S-box", SEC 2012). Everything else
//! is sums of bits, with the affine maps in them.

use polyclave_field::Gf256;

use super::sums::Sums;
use super::{Bit, BooleanBuilder};
use crate::{Inversion, Matrix};

/// Primitive third root of unity: W, W^2 is the basis of GF(2^2).
const W: Gf256 = Gf256(0xbc);
/// Z, Z^4 is the basis of GF(2^4) over GF(2^2); their sum is 1.
const Z: Gf256 = Gf256(0x5c);

/// The sums that stand between the ANDs, for one pair of affine maps. Made once, written for every lookup.
pub(super) struct InversionGates {
    /// From the input to the 9 operands of a and of b, and to the 4 bits of (a + b)^2 Y^17.
    top: Sums,
    /// Which of these the constant before the inversion negates.
    top_negated: u32,
    /// From the 9 products and those 4 bits to the 4 bits of the norm.
    norm: Sums,
    /// From the 4 bits of the inverse of the norm to its 9 operands.
    operands: Sums,
    /// From 18 products to the output.
    bottom: Sums,
    constant_after: u8,
}

impl InversionGates {
    pub(super) fn of(inversion: &Inversion) -> InversionGates {
        let y =
            (0..=255).map(Gf256).find(|y| *y + y.pow(16) == Gf256::ONE).expect("half of all have trace 1");
        // Coordinates of an element: those of b with Y, then those of a with Y^16.
        let from_coordinates: Vec<u8> =
            [y, y.pow(16)].iter().flat_map(|y| basis().map(|e| (e * *y).0)).collect();
        let to_coordinates =
            Matrix::from_columns(&from_coordinates, 8).inverse().expect("a basis of GF(2^8)");
        let half =
            |x: u8, upper: bool| subfield_element(to_coordinates.apply(x) >> (4 * u8::from(upper)) & 15);

        let top_of = |x: u8| {
            let (a, b) = (half(x, true), half(x, false));
            let square = subfield_coordinates((a + b).pow(2) * y.pow(17));
            let [a, b] = [a, b].map(|half| operand_masks(subfield_coordinates(half)));
            a | b << 9 | u32::from(square) << 18
        };
        let mut top: Vec<u32> = vec![0; 22];
        (0..8).for_each(|i| set_column(&mut top, i, top_of(inversion.before.matrix.apply(1 << i))));
        let mut norm = vec![0; 4];
        for (k, weight) in product_weights().iter().enumerate() {
            set_column(&mut norm, k as u8, subfield_coordinates(*weight).into());
        }
        (0..4).for_each(|i| norm[i] |= 1 << (9 + i));
        let mut operands = vec![0; 9];
        (0..4).for_each(|i| set_column(&mut operands, i, operand_masks(1 << i)));
        let mut bottom = vec![0; 8];
        for (k, weight) in product_weights().iter().enumerate() {
            // a / N goes with Y, b / N with Y^16.
            for (at, power) in [(k, y), (k + 9, y.pow(16))] {
                let output = inversion.after.matrix.apply((*weight * power).0);
                set_column(&mut bottom, at as u8, output.into());
            }
        }
        InversionGates {
            top: Sums::of(8, &top),
            top_negated: top_of(inversion.before.constant),
            norm: Sums::of(13, &norm),
            operands: Sums::of(4, &operands),
            bottom: Sums::of(18, &bottom),
            constant_after: inversion.after.constant,
        }
    }

    /// The gates for one cell, bit 0 first.
    pub(super) fn write(&self, b: &mut BooleanBuilder, x: &[Bit]) -> Vec<Bit> {
        let top = negated(self.top.write(b, x), self.top_negated);
        let (forms_a, forms_b) = (&top[..9], &top[9..18]);
        let mut products = and_all(b, forms_a, forms_b);
        products.extend(&top[18..]);
        let norm = self.norm.write(b, &products);
        let inverse = inverse_in_subfield(b, [norm[0], norm[1], norm[2], norm[3]]);
        let operands = self.operands.write(b, &inverse);
        let mut products = and_all(b, forms_a, &operands);
        products.extend(and_all(b, forms_b, &operands));
        negated(self.bottom.write(b, &products), self.constant_after.into())
    }
}

fn negated(bits: Vec<Bit>, mask: u32) -> Vec<Bit> {
    bits.into_iter().enumerate().map(|(i, bit)| if mask >> i & 1 == 1 { !bit } else { bit }).collect()
}

fn and_all(b: &mut BooleanBuilder, xs: &[Bit], ys: &[Bit]) -> Vec<Bit> {
    xs.iter().zip(ys).map(|(x, y)| b.and(*x, *y)).collect()
}

/// The basis of GF(2^4) over GF(2).
fn basis() -> [Gf256; 4] {
    let (w, z) = ([W, W.pow(2)], [Z, Z.pow(4)]);
    [w[0] * z[0], w[1] * z[0], w[0] * z[1], w[1] * z[1]]
}

fn subfield_element(coordinates: u8) -> Gf256 {
    let chosen = basis().into_iter().enumerate().filter(|(i, _)| coordinates >> i & 1 == 1);
    chosen.fold(Gf256(0), |sum, (_, e)| sum + e)
}

fn subfield_coordinates(x: Gf256) -> u8 {
    (0..16).find(|c| subfield_element(*c) == x).expect("it is in GF(2^4)")
}

/// The 9 sums of coordinates that Karatsuba multiplies: over GF(2^2) both coordinates and their sum, of each
/// of these both bits and their sum.
fn operand_masks(coordinates: u8) -> u32 {
    let (low, high) = (coordinates & 3, coordinates >> 2);
    let bits = [low, high, low ^ high].into_iter().flat_map(|u| [u & 1, u >> 1, u & 1 ^ u >> 1]);
    bits.enumerate().fold(0, |mask, (k, bit)| mask | u32::from(bit) << k)
}

/// What each of the 9 products of bits counts for: with the basis e, f = e^q of trace 1, a product is
/// m0 (e^2 + e f) + m1 (f^2 + e f) + m2 e f, that is m0 e + m1 f + m2 e f.
fn product_weights() -> [Gf256; 9] {
    let weights = |e: Gf256, f: Gf256| [e, f, e * f];
    let (outer, inner) = (weights(Z, Z.pow(4)), weights(W, W.pow(2)));
    std::array::from_fn(|k| outer[k / 3] * inner[k % 3])
}

/// Bit r of `column` is the entry of row r.
fn set_column(rows: &mut [u32], at: u8, column: u32) {
    rows.iter_mut().enumerate().for_each(|(r, row)| *row |= (column >> r & 1) << at);
}

/// The inverse in GF(2^4), 0 for 0, by coordinates in [`basis`]: 7 ANDs, two deep.
fn inverse_in_subfield(b: &mut BooleanBuilder, [x0, x1, x2, x3]: [Bit; 4]) -> [Bit; 4] {
    let (x01, x23) = (b.xor(x0, x1), b.xor(x2, x3));
    let x0x2 = b.and(x0, x2);
    let x0x3 = b.and(x0, x3);
    let x1x2 = b.and(x1, x2);
    let (left, right) = (b.xor(x1, x0x2), b.xor(x3, x0x2));
    let y3 = b.and(right, x01);
    let y1 = b.and(left, x23);
    let y2 = b.and(x01, x0x3);
    let y0 = b.and(x23, x1x2);
    let (above2, above0) = (b.xor(x01, x0x2), b.xor(x23, x0x2));
    [b.xor(y0, above0), b.xor(x3, y1), b.xor(y2, above2), b.xor(x1, y3)]
}

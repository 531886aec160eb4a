//! GF(2^8) as a quadratic extension of GF(2^4), in tables of sixteen bytes.
//!
//! A byte is `a0 + a1*y` with `a0`, `a1` in the subfield and `y` any element outside it. Karatsuba's
//! identity needs no minimal polynomial when every product goes back into GF(2^8) by a table of its own:
//!
//! `a*b = (1+y)*a0*b0 + y*(a0+a1)*(b0+b1) + (y^2+y)*a1*b1`.
//!
//! A product in the subfield is a sum of logarithms modulo 15. Zero has the logarithm 255, which stays
//! at or above 128 through a saturating sum and one reduction; `pshufb` gives zero for such an index.
//! The subfield is written in the basis 1, w, w^2, w^3 of its generator `w = 3^17` (3 generates the whole
//! field), so that adding is the XOR of nibbles. All of it is computed by the compiler.

use super::portable::product;

const fn times(a: u8, b: u8) -> u8 {
    product(a as u64, b as u64) as u8
}

/// A generator of the fifteen nonzero elements of GF(2^4).
const W: u8 = {
    let mut power = 1;
    let mut exponent = 0;
    while exponent < 17 {
        power = times(power, 3);
        exponent += 1;
    }
    power
};

/// The generator of the whole field, hence outside the subfield.
const Y: u8 = 3;

/// The element of GF(2^4) with these coordinates.
const fn element(nibble: usize) -> u8 {
    let (mut sum, mut power) = (0, 1);
    let mut bit = 0;
    while bit < 4 {
        if (nibble >> bit) & 1 == 1 {
            sum ^= power;
        }
        power = times(power, W);
        bit += 1;
    }
    sum
}

/// The coordinates of every byte: those of `a0` in the low nibble, those of `a1` in the high one.
const COORDINATES: [u8; 256] = {
    let mut inverse = [0; 256];
    let mut nibbles = 0;
    while nibbles < 256 {
        let byte = element(nibbles & 15) ^ times(Y, element(nibbles >> 4));
        inverse[byte as usize] = nibbles as u8;
        nibbles += 1;
    }
    inverse
};

/// Coordinates of the bytes below 16, and of the multiples of 16. Their sums are the coordinates of all
/// bytes.
pub(super) const SPLIT: [[u8; 16]; 2] = {
    let mut tables = [[0; 16]; 2];
    let mut nibble = 0;
    while nibble < 16 {
        tables[0][nibble] = COORDINATES[nibble];
        tables[1][nibble] = COORDINATES[nibble << 4];
        nibble += 1;
    }
    tables
};

/// The logarithm to the base `W` of the element with these coordinates.
pub(super) const LOGARITHM: [u8; 16] = {
    let mut table = [255; 16];
    let (mut power, mut exponent) = (1, 0);
    while exponent < 15 {
        table[COORDINATES[power as usize] as usize] = exponent;
        power = times(power, W);
        exponent += 1;
    }
    table
};

/// `factor * W^i`.
const fn powers(factor: u8) -> [u8; 16] {
    let mut table = [0; 16];
    let mut power = factor;
    let mut exponent = 0;
    while exponent < 15 {
        table[exponent] = power;
        power = times(power, W);
        exponent += 1;
    }
    table
}

/// What `a0*b0` contributes, by its logarithm.
pub(super) const OF_LOW: [u8; 16] = powers(1 ^ Y);
/// What `a1*b1` contributes.
pub(super) const OF_HIGH: [u8; 16] = powers(times(Y, Y) ^ Y);
/// What `(a0+a1)*(b0+b1)` contributes.
pub(super) const OF_SUMS: [u8; 16] = powers(Y);

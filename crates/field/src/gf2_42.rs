//! GF(2^42) = GF(2)\[X\]/(X^42 + X^7 + 1), with GF(2^6) = GF(2)\[x\]/(x^6 + x^4 + x^3 + x + 1) inside.
//!
//! # Differences from the paper
//! Keller et al. 2017, section 5, write X^42 + X^21 + 1. That has seven factors of degree six and makes no
//! field; ours is irreducible, and the field of 2^42 elements is one.

use crate::binary::mac_field;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Gf2_42;

const TAPS: [u32; 1] = [7];
/// The image of x: the least root of its polynomial.
const ROOT: u128 = 0x4081;

mac_field!(Gf2_42, u64, words64, cells64, inner_product64, "GF(2^42)", bits: 42, cell_bits: 6);

//! GF(2^128) = GF(2)\[X\]/(X^128 + X^7 + X^2 + X + 1), with GF(2^8) of AES inside: the field of
//! [`crate::Gf128`] and its embedding, with bits in the order of numbers and not of GCM.

use crate::binary::mac_field;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Gf2_128;

const TAPS: [u32; 3] = [7, 2, 1];
/// The image of x: that of `Gf128`, its bits reversed.
const ROOT: u128 = 0xafd8_7264_8de2_7637_9493_a98b_2790_176a;

mac_field!(Gf2_128, u128, words128, cells128, inner_product128, "GF(2^128)", bits: 128, cell_bits: 8);

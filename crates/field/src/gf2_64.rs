//! GF(2^64) = GF(2)\[X\]/(X^64 + X^4 + X^3 + X + 1), with GF(2^8) of AES inside.

use crate::binary::mac_field;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Gf2_64;

const TAPS: [u32; 3] = [4, 3, 1];
/// The image of x: the least root of the polynomial of AES.
const ROOT: u128 = 0x033c_e8be_ddc8_a656;

mac_field!(Gf2_64, u64, words64, cells64, inner_product64, "GF(2^64)", bits: 64, cell_bits: 8);

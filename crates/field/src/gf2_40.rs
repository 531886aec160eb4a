//! GF(2^40) = GF(2)\[X\]/(X^40 + X^20 + X^15 + X^10 + 1), the field of SPDZ's authenticated AES (Keller et
//! al. 2017, section 5; Damgard et al. 2012, "Implementing AES via an Actively/Covertly Secure
//! Dishonest-Majority MPC Protocol").
//!
//! Y = X^5 has the modulus Y^8 + Y^4 + Y^3 + Y^2 + 1, so the bits 0, 5, .., 35 are a field of 2^8 elements,
//! and an embedded cell lies in them.

use crate::binary::mac_field;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Gf2_40;

const TAPS: [u32; 3] = [20, 15, 10];
/// The image of y, for GF(2^8) = GF(2)\[y\]/(y^8 + y^4 + y^3 + y + 1): X^5 + 1.
const ROOT: u128 = 1 << 5 | 1;

mac_field!(Gf2_40, u64, words64, cells64, inner_product64, "GF(2^40)", bits: 40, cell_bits: 8);

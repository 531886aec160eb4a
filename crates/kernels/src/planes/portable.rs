//! Registers of 8 bytes.

use super::formulas::Register;
use super::{Factors, Planes, Terms, rows};

impl Register for u64 {
    const BYTES: usize = 8;

    #[inline(always)]
    fn load(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(*bytes.first_chunk().expect("it has 8 bytes"))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        *bytes.first_chunk_mut().expect("it has 8 bytes") = self.to_le_bytes();
    }

    #[inline(always)]
    fn xor(self, other: u64) -> u64 {
        self ^ other
    }

    #[inline(always)]
    fn and(self, other: u64) -> u64 {
        self & other
    }
}

/// See [`super::add_products`].
pub(super) fn add_products(
    factors: Factors,
    terms: Terms,
    sum: &mut [u8],
    x: [Planes<'_>; 2],
    y: [Planes<'_>; 2],
) {
    rows::add_products::<u64>(factors, terms, sum, x, y);
}

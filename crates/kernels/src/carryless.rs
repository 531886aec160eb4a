//! The carry-less product of words, computed with the integer multiplication of the processor.
//!
//! Carries spoil a carry-less product, unless they have room: each of five copies of an operand keeps only
//! every fifth bit. So at most 13 ones meet in a place, and their sum stays within its five bits. The lowest
//! of these is the parity. (The idea is BearSSL's `ghash_ctmul64`, which keeps every fourth bit and has
//! 64-bit products.) Assumes a multiplier whose time does not depend on its operands, as 64-bit processors
//! have. Cost: 25 multiplications of words a product.

/// Every fifth bit.
const SPARSE: u64 = 0x1084_2108_4210_8421;
/// Every fifth bit of a product.
const WIDE_SPARSE: u128 = SPARSE as u128 | (SPARSE as u128) << 65;

/// The carry-less product of two words.
#[inline]
pub(crate) fn carryless(a: u64, b: u64) -> u128 {
    let copies = |x: u64| [0, 1, 2, 3, 4].map(|k| x & (SPARSE << k));
    let (a, b) = (copies(a), copies(b));
    let times = |i: usize, j: usize| u128::from(a[i]) * u128::from(b[j]);
    // The copies whose offsets add up to k, modulo 5.
    let sum = |k: usize| {
        times(0, k)
            ^ times(1, (k + 4) % 5)
            ^ times(2, (k + 3) % 5)
            ^ times(3, (k + 2) % 5)
            ^ times(4, (k + 1) % 5)
    };
    let kept = |k: usize| sum(k) & (WIDE_SPARSE << k);
    kept(0) | kept(1) | kept(2) | kept(3) | kept(4)
}

//! The affine combination on 64-byte vectors, where `vgf2p8affineqb` is the whole map.
//!
//! The instruction takes the matrix as a quadword (Intel SDM volume 2, GF2P8AFFINEQB): bit `i` of a
//! result is the parity of the operand under byte `7 - i` of the quadword, so row 0 is the top byte.
//! Tails are masked loads and stores, which do not touch the bytes masked off.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::Term;

/// The quadword of a map: bit `column` of byte `7 - row` is bit `row` of that column.
pub(super) const fn matrix(columns: [u8; 8]) -> u64 {
    let mut quadword = 0;
    let mut row = 0;
    while row < 8 {
        let mut column = 0;
        while column < 8 {
            quadword |= ((columns[column] as u64 >> row) & 1) << (8 * (7 - row) + column);
            column += 1;
        }
        row += 1;
    }
    quadword
}

/// See [`super::combine`]; lengths were checked there.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
pub(super) fn combine(dst: &mut [u8], terms: &[Term<'_>], constant: u8) {
    let len = dst.len();
    let mut at = 0;
    while len - at >= 256 {
        vectors::<4>(dst, terms, constant, at, u64::MAX);
        at += 256;
    }
    while len - at >= 64 {
        vectors::<1>(dst, terms, constant, at, u64::MAX);
        at += 64;
    }
    if at < len {
        vectors::<1>(dst, terms, constant, at, (1 << (len - at)) - 1);
    }
}

/// The `N` vectors that begin at `at`, of each the bytes in `mask`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn vectors<const N: usize>(dst: &mut [u8], terms: &[Term<'_>], constant: u8, at: usize, mask: u64) {
    // The bytes in the mask, and those before them, are the bytes that are read and written.
    let used = 64 * (N - 1) + (64 - mask.leading_zeros() as usize);
    let mut sums = [_mm512_set1_epi8(constant as i8); N];
    for term in terms {
        let source = term.src[at..at + used].as_ptr();
        let matrix = _mm512_set1_epi64(term.map.matrix as i64);
        for (vector, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `source` covers `used` bytes, so every whole vector and the mask of the last.
            let x = unsafe { _mm512_maskz_loadu_epi8(mask, source.add(64 * vector).cast()) };
            let image = if term.map.is_identity { x } else { _mm512_gf2p8affine_epi64_epi8::<0>(x, matrix) };
            *sum = _mm512_xor_si512(*sum, image);
        }
    }
    let target = dst[at..at + used].as_mut_ptr();
    for (vector, sum) in sums.into_iter().enumerate() {
        // SAFETY: `target` covers `used` bytes, so every whole vector and the mask of the last.
        unsafe { _mm512_mask_storeu_epi8(target.add(64 * vector).cast(), mask, sum) };
    }
}

//! Products on 64-byte vectors, where `vgf2p8mulb` is the whole product.
//!
//! The instruction multiplies modulo x^8 + x^4 + x^3 + x + 1 (Intel SDM volume 2, GF2P8MULB). The tail
//! is a masked load and store, which do not touch the bytes masked off.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

/// See [`super::multiply`]; lengths were checked there.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
pub(super) fn multiply(dst: &mut [u8], a: &[u8], b: &[u8]) {
    let (vectors, tail) = dst.as_chunks_mut::<64>();
    let ((a, a_tail), (b, b_tail)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
    for ((product, a), b) in vectors.iter_mut().zip(a).zip(b) {
        vector(product, a, b, u64::MAX);
    }
    if !tail.is_empty() {
        let mask = (1 << tail.len()) - 1;
        vector(tail, a_tail, b_tail, mask);
    }
}

/// The products of the bytes in `mask`, a run of ones from the lowest bit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn vector(product: &mut [u8], a: &[u8], b: &[u8], mask: u64) {
    let used = 64 - mask.leading_zeros() as usize;
    let (product, a, b) = (&mut product[..used], &a[..used], &b[..used]);
    // SAFETY: the mask has no bit at `used` or above, and all three slices are as long as that.
    unsafe {
        let a = _mm512_maskz_loadu_epi8(mask, a.as_ptr().cast());
        let b = _mm512_maskz_loadu_epi8(mask, b.as_ptr().cast());
        _mm512_mask_storeu_epi8(product.as_mut_ptr().cast(), mask, _mm512_gf2p8mul_epi8(a, b));
    }
}

//! Products on 64-byte vectors, where `vgf2p8mulb` is the whole product.
//!
//! The instruction multiplies modulo x^8 + x^4 + x^3 + x + 1 (Intel SDM volume 2, GF2P8MULB). The tail
//! is a masked load and store, which do not touch the bytes masked off.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

/// See [`super::multiply`]; lengths were checked there.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
pub(super) fn multiply(dst: &mut [u8], a: &[u8], b: &[u8]) {
    for ((dst, a), b) in dst.chunks_mut(64).zip(a.chunks(64)).zip(b.chunks(64)) {
        let used = dst.len().min(a.len()).min(b.len());
        let mask = u64::MAX >> (64 - used);
        // SAFETY: the mask has the lowest `used` bits, and all three chunks are as long as that.
        unsafe {
            let a = _mm512_maskz_loadu_epi8(mask, a.as_ptr().cast());
            let b = _mm512_maskz_loadu_epi8(mask, b.as_ptr().cast());
            _mm512_mask_storeu_epi8(dst.as_mut_ptr().cast(), mask, _mm512_gf2p8mul_epi8(a, b));
        }
    }
}

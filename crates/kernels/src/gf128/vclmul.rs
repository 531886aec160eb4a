//! Sums of products with VPCLMULQDQ, two elements a register. The reduction, once a sum, is that of [`super::clmul`].

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::clmul::{Wide, load, reversal, store};

/// See [`super::weighted_sums`]; lengths were checked there, and that there are elements.
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq")]
pub(super) fn weighted_sums(dst: &mut [u8], weights: &[u8], elements: &[u8]) {
    let (pairs, last) = elements.as_chunks::<32>();
    for (sum, weights) in dst.as_chunks_mut().0.iter_mut().zip(weights.chunks_exact(elements.len())) {
        let (weight_pairs, last_weight) = weights.as_chunks::<32>();
        let mut wide = sum_of_pairs(weight_pairs, pairs);
        if let (Some(weight), Some(element)) = (last_weight.first_chunk(), last.first_chunk()) {
            wide = wide.add_product(load(weight), load(element));
        }
        store(sum, wide.reduce());
    }
}

#[inline]
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq")]
fn sum_of_pairs(weights: &[[u8; 32]], elements: &[[u8; 32]]) -> Wide {
    let zero = _mm256_setzero_si256();
    let (mut low, mut middle, mut high) = (zero, zero, zero);
    for (weight, element) in weights.iter().zip(elements) {
        let (a, b) = (load_pair(weight), load_pair(element));
        low = _mm256_xor_si256(low, _mm256_clmulepi64_epi128::<0x00>(a, b));
        middle = _mm256_xor_si256(middle, _mm256_clmulepi64_epi128::<0x01>(a, b));
        middle = _mm256_xor_si256(middle, _mm256_clmulepi64_epi128::<0x10>(a, b));
        high = _mm256_xor_si256(high, _mm256_clmulepi64_epi128::<0x11>(a, b));
    }
    Wide { low: both(low), middle: both(middle), high: both(high) }
}

/// The sum of both halves.
#[inline]
#[target_feature(enable = "avx2")]
fn both(x: __m256i) -> __m128i {
    _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_pair(elements: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read; the load has no alignment.
    let bytes = unsafe { _mm256_loadu_si256(elements.as_ptr().cast()) };
    _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(reversal()))
}

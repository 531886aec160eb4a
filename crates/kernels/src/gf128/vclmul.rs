//! Sums of products with VPCLMULQDQ, two elements a register, several sums at a time. The reduction, once a
//! sum, is the one of [`super::clmul`].
//!
//! Several sums share what is loaded of the elements, and their multiplications do not wait for each other.
//! With Karatsuba's rule there are three of them a product, the middle one of sums of words.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::clmul::{Wide, load, reversal, store};

/// Sums at a time: their accumulators fill most of the registers.
const ROWS: usize = 4;

/// See [`super::weighted_sums`]; lengths were checked there, and that there are elements.
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq")]
pub(super) fn weighted_sums(dst: &mut [u8], weights: &[u8], elements: &[u8]) {
    let len = elements.len();
    let (groups, rest) = dst.as_chunks_mut::<16>().0.as_chunks_mut::<ROWS>();
    let (of_groups, of_rest) = weights.split_at(groups.len() * ROWS * len);
    for (group, weights) in groups.iter_mut().zip(of_groups.chunks_exact(ROWS * len)) {
        some_sums(group, weights, elements);
    }
    for (sum, weights) in rest.iter_mut().zip(of_rest.chunks_exact(len)) {
        some_sums(core::array::from_mut(sum), weights, elements);
    }
}

/// As many sums as there are accumulators, of weights one row after another.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq")]
fn some_sums<const N: usize>(sums: &mut [[u8; 16]; N], weights: &[u8], elements: &[u8]) {
    let len = elements.len();
    let (pairs, last) = elements.as_chunks::<32>();
    let rows: [&[[u8; 32]]; N] =
        core::array::from_fn(|r| &weights[r * len..][..len].as_chunks().0[..pairs.len()]);
    let zero = _mm256_setzero_si256();
    let (mut low, mut middle, mut high) = ([zero; N], [zero; N], [zero; N]);
    for (i, element) in pairs.iter().enumerate() {
        let b = load_pair(element);
        let b_words = sum_of_words(b);
        for r in 0..N {
            let a = load_pair(&rows[r][i]);
            low[r] = _mm256_xor_si256(low[r], _mm256_clmulepi64_epi128::<0x00>(a, b));
            high[r] = _mm256_xor_si256(high[r], _mm256_clmulepi64_epi128::<0x11>(a, b));
            let product = _mm256_clmulepi64_epi128::<0x00>(sum_of_words(a), b_words);
            middle[r] = _mm256_xor_si256(middle[r], product);
        }
    }
    for (r, sum) in sums.iter_mut().enumerate() {
        let (low, high) = (both(low[r]), both(high[r]));
        let middle = _mm_xor_si128(both(middle[r]), _mm_xor_si128(low, high));
        let mut wide = Wide { low, middle, high };
        if let Some(element) = last.first_chunk() {
            let weight = weights[(r + 1) * len - 16..].first_chunk().expect("a row ends with it");
            wide = wide.add_product(load(weight), load(element));
        }
        store(sum, wide.reduce());
    }
}

/// In the lower word of each element; the upper one as well.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_words(x: __m256i) -> __m256i {
    _mm256_xor_si256(x, _mm256_shuffle_epi32::<0b01_00_11_10>(x))
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

//! Products on 32-byte vectors, through the tower field of [`super::tower`].
//!
//! Cost: 40 vector instructions for 32 products, 13 of them shuffles. Horner's rule on the same vectors takes
//! about 60.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::tower;

/// See [`super::multiply`]; lengths were checked there.
#[target_feature(enable = "avx2")]
pub(super) fn multiply(dst: &mut [u8], a: &[u8], b: &[u8]) {
    let tables = Tables::new();
    let (vectors, tail) = dst.as_chunks_mut::<32>();
    let ((a, a_tail), (b, b_tail)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
    for ((product, a), b) in vectors.iter_mut().zip(a).zip(b) {
        *product = tables.product(a, b);
    }
    if !tail.is_empty() {
        let (mut a, mut b) = ([0; 32], [0; 32]);
        a[..tail.len()].copy_from_slice(a_tail);
        b[..tail.len()].copy_from_slice(b_tail);
        tail.copy_from_slice(&tables.product(&a, &b)[..tail.len()]);
    }
}

/// The tables of the tower, in registers.
struct Tables {
    split: [__m256i; 2],
    logarithm: __m256i,
    of_low: __m256i,
    of_high: __m256i,
    of_sums: __m256i,
}

impl Tables {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Tables {
        Tables {
            split: [table(&tower::SPLIT[0]), table(&tower::SPLIT[1])],
            logarithm: table(&tower::LOGARITHM),
            of_low: table(&tower::OF_LOW),
            of_high: table(&tower::OF_HIGH),
            of_sums: table(&tower::OF_SUMS),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn product(&self, a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
        let [a_low, a_high, a_sum] = self.logarithms(a);
        let [b_low, b_high, b_sum] = self.logarithms(b);
        let low = _mm256_shuffle_epi8(self.of_low, sum_modulo_15(a_low, b_low));
        let high = _mm256_shuffle_epi8(self.of_high, sum_modulo_15(a_high, b_high));
        let sums = _mm256_shuffle_epi8(self.of_sums, sum_modulo_15(a_sum, b_sum));
        let product = _mm256_xor_si256(_mm256_xor_si256(low, high), sums);
        let mut bytes = [0; 32];
        // SAFETY: the array has the 32 bytes written; the store has no alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), product) };
        bytes
    }

    /// Logarithms of both coordinates and of their sum.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn logarithms(&self, bytes: &[u8; 32]) -> [__m256i; 3] {
        // SAFETY: the reference covers the 32 bytes read; the load has no alignment.
        let x = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
        let [low, high] = nibbles(x);
        let [low, high] = nibbles(_mm256_xor_si256(
            _mm256_shuffle_epi8(self.split[0], low),
            _mm256_shuffle_epi8(self.split[1], high),
        ));
        [
            _mm256_shuffle_epi8(self.logarithm, low),
            _mm256_shuffle_epi8(self.logarithm, high),
            _mm256_shuffle_epi8(self.logarithm, _mm256_xor_si256(low, high)),
        ]
    }
}

/// Reduces once what is below 30; keeps what came from a zero at 128 or above.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_modulo_15(a: __m256i, b: __m256i) -> __m256i {
    let sum = _mm256_adds_epu8(a, b);
    // Below 15 the difference wraps to a large byte and the minimum is the sum itself.
    _mm256_min_epu8(sum, _mm256_sub_epi8(sum, _mm256_set1_epi8(15)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(x: __m256i) -> [__m256i; 2] {
    let nibble = _mm256_set1_epi8(0x0f);
    [_mm256_and_si256(x, nibble), _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibble)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn table(entries: &[u8; 16]) -> __m256i {
    // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(entries.as_ptr().cast()) })
}

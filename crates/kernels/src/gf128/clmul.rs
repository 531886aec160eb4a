//! Products with PCLMULQDQ, one element a register; the reductions of the wider form too.
//!
//! Reduction multiplies the lower half by x^128 in two steps of 64 bits (Gueron 2016, "AES-GCM-SIV", the
//! reduction of POLYVAL). Cost: four multiplications of words a product and two a reduction.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

/// A sum of products, not reduced.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    /// The product of the lower words.
    pub(super) low: __m128i,
    /// The products of a lower and an upper word.
    pub(super) middle: __m128i,
    /// The product of the upper words.
    pub(super) high: __m128i,
}

impl Wide {
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn zero() -> Wide {
        let zero = _mm_setzero_si128();
        Wide { low: zero, middle: zero, high: zero }
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(super) fn add_product(self, a: __m128i, b: __m128i) -> Wide {
        let crossed = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b));
        Wide {
            low: _mm_xor_si128(self.low, _mm_clmulepi64_si128::<0x00>(a, b)),
            middle: _mm_xor_si128(self.middle, crossed),
            high: _mm_xor_si128(self.high, _mm_clmulepi64_si128::<0x11>(a, b)),
        }
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(super) fn reduce(self) -> __m128i {
        let low = _mm_xor_si128(self.low, _mm_slli_si128::<8>(self.middle));
        let high = _mm_xor_si128(self.high, _mm_srli_si128::<8>(self.middle));
        // The shift of all 256 bits by one.
        let (low_carries, high_carries) = (_mm_srli_epi64::<63>(low), _mm_srli_epi64::<63>(high));
        let low = _mm_or_si128(_mm_slli_epi64::<1>(low), _mm_slli_si128::<8>(low_carries));
        let carries = _mm_or_si128(_mm_slli_si128::<8>(high_carries), _mm_srli_si128::<8>(low_carries));
        let high = _mm_or_si128(_mm_slli_epi64::<1>(high), carries);
        // x^64 times a word: the word itself one place up, which the swap of words does, and the other three
        // terms.
        let polynomial = _mm_set_epi64x(0, 0xc2 << 56);
        let swap = |x| _mm_shuffle_epi32::<0b01_00_11_10>(x);
        let low = _mm_xor_si128(swap(low), _mm_clmulepi64_si128::<0x00>(low, polynomial));
        let low = _mm_xor_si128(swap(low), _mm_clmulepi64_si128::<0x00>(low, polynomial));
        _mm_xor_si128(high, low)
    }
}

/// See [`super::multiply`]; lengths were checked there.
#[target_feature(enable = "pclmulqdq,ssse3")]
pub(super) fn multiply(dst: &mut [u8], a: &[u8], b: &[u8]) {
    let (a, b) = (a.as_chunks().0, b.as_chunks().0);
    for ((product, a), b) in dst.as_chunks_mut().0.iter_mut().zip(a).zip(b) {
        store(product, Wide::zero().add_product(load(a), load(b)).reduce());
    }
}

/// See [`super::scale_add`]; lengths were checked there.
#[target_feature(enable = "pclmulqdq,ssse3")]
pub(super) fn scale_add(dst: &mut [u8], src: &[u8], constant: &[u8; 16]) {
    let constant = load(constant);
    for (sum, x) in dst.as_chunks_mut().0.iter_mut().zip(src.as_chunks().0) {
        let product = Wide::zero().add_product(load(x), constant).reduce();
        store(sum, _mm_xor_si128(load(sum), product));
    }
}

/// See [`super::weighted_sums`]; lengths were checked there, and that there are elements.
#[target_feature(enable = "pclmulqdq,ssse3")]
pub(super) fn weighted_sums(dst: &mut [u8], weights: &[u8], elements: &[u8]) {
    for (sum, weights) in dst.as_chunks_mut().0.iter_mut().zip(weights.chunks_exact(elements.len())) {
        let mut wide = Wide::zero();
        for (weight, element) in weights.as_chunks().0.iter().zip(elements.as_chunks().0) {
            wide = wide.add_product(load(weight), load(element));
        }
        store(sum, wide.reduce());
    }
}

/// The shuffle between bytes and numbers.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn reversal() -> __m128i {
    _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
}

#[inline]
#[target_feature(enable = "ssse3")]
pub(super) fn load(element: &[u8; 16]) -> __m128i {
    // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
    let bytes = unsafe { _mm_loadu_si128(element.as_ptr().cast()) };
    _mm_shuffle_epi8(bytes, reversal())
}

#[inline]
#[target_feature(enable = "ssse3")]
pub(super) fn store(element: &mut [u8; 16], number: __m128i) {
    let bytes = _mm_shuffle_epi8(number, reversal());
    // SAFETY: the reference covers the 16 bytes written; the store has no alignment.
    unsafe { _mm_storeu_si128(element.as_mut_ptr().cast(), bytes) }
}

//! The affine combination on 32-byte vectors.
//!
//! A linear map is the sum of its images of the two nibbles, each a `pshufb` in a table of sixteen.
//! Four sums stay in registers while the terms pass, so that a term loads its tables once per 128 bytes.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::{Term, portable};

/// The images of the sixteen low and the sixteen high nibbles.
#[derive(Clone)]
pub(super) struct Nibbles {
    low: [u8; 16],
    high: [u8; 16],
}

impl Nibbles {
    pub(super) const fn new(columns: [u8; 8]) -> Nibbles {
        let mut nibbles = Nibbles { low: [0; 16], high: [0; 16] };
        let mut nibble = 0;
        while nibble < 16 {
            nibbles.low[nibble] = portable::image(&columns, nibble as u64) as u8;
            nibbles.high[nibble] = portable::image(&columns, (nibble << 4) as u64) as u8;
            nibble += 1;
        }
        nibbles
    }
}

/// See [`super::combine`]; lengths were checked there.
#[target_feature(enable = "avx2")]
pub(super) fn combine(dst: &mut [u8], terms: &[Term<'_>], constant: u8) {
    let len = dst.len();
    if len < 32 {
        return short(dst, terms, constant);
    }
    let mut at = 0;
    while len - at >= 128 {
        vectors::<4>(dst, terms, constant, at);
        at += 128;
    }
    while len - at >= 32 {
        vectors::<1>(dst, terms, constant, at);
        at += 32;
    }
    if at < len {
        // The last vector reaches back over bytes already done: they come out the same.
        vectors::<1>(dst, terms, constant, len - 32);
    }
}

/// Less than one vector, by way of padded copies.
#[target_feature(enable = "avx2")]
fn short(dst: &mut [u8], terms: &[Term<'_>], constant: u8) {
    let mut sum = [_mm256_set1_epi8(constant as i8)];
    for term in terms {
        let mut padded = [0; 32];
        padded[..term.src.len()].copy_from_slice(term.src);
        add(&mut sum, term, &[padded]);
    }
    let mut padded = [0; 32];
    store(&mut padded, sum[0]);
    dst.copy_from_slice(&padded[..dst.len()]);
}

/// The `N` vectors that begin at `at`.
#[inline]
#[target_feature(enable = "avx2")]
fn vectors<const N: usize>(dst: &mut [u8], terms: &[Term<'_>], constant: u8, at: usize) {
    let mut sums = [_mm256_set1_epi8(constant as i8); N];
    for term in terms {
        let sources = term.src[at..at + 32 * N].as_chunks::<32>().0;
        add(&mut sums, term, sources);
    }
    let targets = dst[at..at + 32 * N].as_chunks_mut::<32>().0;
    for (target, sum) in targets.iter_mut().zip(sums) {
        store(target, sum);
    }
}

/// Adds the images of `sources` to the sums.
#[inline]
#[target_feature(enable = "avx2")]
fn add<const N: usize>(sums: &mut [__m256i; N], term: &Term<'_>, sources: &[[u8; 32]]) {
    if term.map.is_identity {
        for (sum, source) in sums.iter_mut().zip(sources) {
            *sum = _mm256_xor_si256(*sum, load(source));
        }
        return;
    }
    let (low, high) = (table(&term.map.nibbles.low), table(&term.map.nibbles.high));
    let nibble = _mm256_set1_epi8(0x0f);
    for (sum, source) in sums.iter_mut().zip(sources) {
        let x = load(source);
        let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(x, nibble));
        let of_high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibble));
        *sum = _mm256_xor_si256(*sum, _mm256_xor_si256(of_low, of_high));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn table(entries: &[u8; 16]) -> __m256i {
    // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(entries.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read; the load has no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; 32], vector: __m256i) {
    // SAFETY: the reference covers the 32 bytes written; the store has no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

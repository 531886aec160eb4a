//! The hash with VAES on 256-bit registers: two blocks each, eight registers in flight.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::aesni;
use crate::aes_prg::aesni::RoundKeys;

pub(crate) const IN_FLIGHT: usize = 8;

/// See [`super::AesHash::hash`].
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn hash(keys: &RoundKeys, first: u64, blocks: &mut [u128]) {
    let two = _mm256_set_epi64x(0, 2, 0, 2);
    let mut tweak = _mm256_set_epi64x(0, first.wrapping_add(1) as i64, 0, first as i64);
    let (batches, rest) = blocks.as_chunks_mut::<{ 2 * IN_FLIGHT }>();
    let done = 2 * IN_FLIGHT * batches.len();
    for batch in batches {
        let (pairs, _) = batch.as_chunks_mut::<2>();
        let mut states = [tweak; IN_FLIGHT];
        for (state, pair) in states.iter_mut().zip(pairs.iter()) {
            *state = load(pair);
        }
        encrypt(keys, &mut states);
        for (state, pair) in states.iter_mut().zip(pairs.iter_mut()) {
            store(pair, *state);
            *state = _mm256_xor_si256(*state, tweak);
            tweak = _mm256_add_epi64(tweak, two);
        }
        encrypt(keys, &mut states);
        for (state, pair) in states.into_iter().zip(pairs) {
            store(pair, _mm256_xor_si256(state, load(pair)));
        }
    }
    aesni::hash(keys, first.wrapping_add(done as u64), rest);
}

#[inline]
#[target_feature(enable = "aes,vaes,avx2")]
pub(crate) fn encrypt<const N: usize>(keys: &RoundKeys, states: &mut [__m256i; N]) {
    let spread = |round| _mm256_broadcastsi128_si256(keys.get(round));
    let key = spread(0);
    for state in states.iter_mut() {
        *state = _mm256_xor_si256(*state, key);
    }
    for round in 1..10 {
        let key = spread(round);
        for state in states.iter_mut() {
            *state = _mm256_aesenc_epi128(*state, key);
        }
    }
    let key = spread(10);
    for state in states {
        *state = _mm256_aesenclast_epi128(*state, key);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load(pair: &[u128; 2]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read; the load has no alignment.
    unsafe { _mm256_loadu_si256(pair.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store(pair: &mut [u128; 2], vector: __m256i) {
    // SAFETY: the reference covers the 32 bytes written; the store has no alignment.
    unsafe { _mm256_storeu_si256(pair.as_mut_ptr().cast(), vector) }
}

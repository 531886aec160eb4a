//! The sum with VAES on 256-bit registers: two blocks each, eight registers in flight.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::aesni;
use crate::aes_hash::aesni::store;
use crate::aes_hash::vaes256::{IN_FLIGHT, encrypt, load, store as store_pair};
use crate::aes_prg::aesni::RoundKeys;

/// See [`super::AesSum::of`].
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn sum(keys: &RoundKeys, blocks: &[u128]) -> u128 {
    let mut sum = _mm256_setzero_si256();
    let (batches, rest) = blocks.as_chunks::<{ 2 * IN_FLIGHT }>();
    for batch in batches {
        let (pairs, _) = batch.as_chunks::<2>();
        let mut states = [sum; IN_FLIGHT];
        for (state, pair) in states.iter_mut().zip(pairs) {
            *state = load(pair);
        }
        encrypt(keys, &mut states);
        for state in states {
            sum = _mm256_xor_si256(sum, state);
        }
    }
    let mut halves = [0, 0];
    let [low, high] = &mut halves;
    store(low, _mm256_castsi256_si128(sum));
    store(high, _mm256_extracti128_si256::<1>(sum));
    halves[0] ^ halves[1] ^ aesni::sum(keys, rest)
}

/// See [`super::AesSum::hash_each`].
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn hash_each(keys: &RoundKeys, blocks: &mut [u128]) {
    let (batches, rest) = blocks.as_chunks_mut::<{ 2 * IN_FLIGHT }>();
    for batch in batches {
        let (pairs, _) = batch.as_chunks_mut::<2>();
        let mut states = [_mm256_setzero_si256(); IN_FLIGHT];
        for (state, pair) in states.iter_mut().zip(pairs.iter()) {
            *state = load(pair);
        }
        encrypt(keys, &mut states);
        for (state, pair) in states.into_iter().zip(pairs) {
            let hashed = _mm256_xor_si256(state, load(pair));
            store_pair(pair, hashed);
        }
    }
    aesni::hash_each(keys, rest);
}

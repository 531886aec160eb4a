//! The counter stream with VAES on 256-bit registers: two blocks each, eight registers in flight.
//!
//! Round keys are spread to both halves by their load, once per round for all eight registers.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::aesni::{self, RoundKeys};

const IN_FLIGHT: usize = 8;

/// Writes the blocks numbered from `counter`.
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn encrypt_counters(keys: &RoundKeys, nonce: u64, counter: u64, blocks: &mut [[u8; 16]]) {
    let two = _mm256_set_epi64x(2, 0, 2, 0);
    let first = _mm256_set_epi64x(counter as i64, nonce as i64, counter as i64, nonce as i64);
    let mut numbers = _mm256_add_epi64(first, _mm256_set_epi64x(1, 0, 0, 0));
    let (batches, rest) = blocks.as_chunks_mut::<{ 2 * IN_FLIGHT }>();
    let done = 2 * IN_FLIGHT * batches.len();
    for batch in batches {
        let mut states = [numbers; IN_FLIGHT];
        let key = spread(keys, 0);
        for state in &mut states {
            *state = _mm256_xor_si256(numbers, key);
            numbers = _mm256_add_epi64(numbers, two);
        }
        for round in 1..10 {
            let key = spread(keys, round);
            for state in &mut states {
                *state = _mm256_aesenc_epi128(*state, key);
            }
        }
        let key = spread(keys, 10);
        for (state, pair) in states.into_iter().zip(batch.as_chunks_mut::<2>().0) {
            let last = _mm256_aesenclast_epi128(state, key);
            // SAFETY: the pair has the 32 bytes written; the store has no alignment.
            unsafe { _mm256_storeu_si256(pair.as_mut_ptr().cast(), last) };
        }
    }
    aesni::encrypt_counters(keys, nonce, counter.wrapping_add(done as u64), rest);
}

#[inline]
#[target_feature(enable = "avx2")]
fn spread(keys: &RoundKeys, round: usize) -> __m256i {
    _mm256_broadcastsi128_si256(keys.get(round))
}

//! The counter stream with VAES on 512-bit registers: four blocks each, eight registers in flight.
//!
//! Round keys are spread to the four quarters by their load, once per round for all eight registers.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::aesni::RoundKeys;
use super::vaes256;

const IN_FLIGHT: usize = 8;

/// Writes the blocks numbered from `counter`.
#[target_feature(enable = "aes,vaes,avx2,avx512f")]
pub(super) fn encrypt_counters(keys: &RoundKeys, nonce: u64, counter: u64, blocks: &mut [[u8; 16]]) {
    let four = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
    let (low, high) = (nonce as i64, counter as i64);
    let first = _mm512_set_epi64(high, low, high, low, high, low, high, low);
    let mut numbers = _mm512_add_epi64(first, _mm512_set_epi64(3, 0, 2, 0, 1, 0, 0, 0));
    let (batches, rest) = blocks.as_chunks_mut::<{ 4 * IN_FLIGHT }>();
    let done = 4 * IN_FLIGHT * batches.len();
    for batch in batches {
        let mut states = [numbers; IN_FLIGHT];
        let key = spread(keys, 0);
        for state in &mut states {
            *state = _mm512_xor_si512(numbers, key);
            numbers = _mm512_add_epi64(numbers, four);
        }
        for round in 1..10 {
            let key = spread(keys, round);
            for state in &mut states {
                *state = _mm512_aesenc_epi128(*state, key);
            }
        }
        let key = spread(keys, 10);
        for (state, four_blocks) in states.into_iter().zip(batch.as_chunks_mut::<4>().0) {
            let last = _mm512_aesenclast_epi128(state, key);
            // SAFETY: the chunk has the 64 bytes written; the store has no alignment.
            unsafe { _mm512_storeu_si512(four_blocks.as_mut_ptr().cast(), last) };
        }
    }
    vaes256::encrypt_counters(keys, nonce, counter.wrapping_add(done as u64), rest);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn spread(keys: &RoundKeys, round: usize) -> __m512i {
    _mm512_broadcast_i32x4(keys.get(round))
}

//! The sum with AES-NI, eight blocks in flight; the last few blocks of the wider form too.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use crate::aes_hash::aesni::{encrypt, load, store};
use crate::aes_prg::aesni::RoundKeys;

/// See [`super::AesSum::of`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn sum(keys: &RoundKeys, blocks: &[u128]) -> u128 {
    let mut sum = _mm_setzero_si128();
    let (batches, rest) = blocks.as_chunks::<8>();
    for batch in batches {
        sum = _mm_xor_si128(sum, sum_all(keys, batch));
    }
    for block in rest {
        sum = _mm_xor_si128(sum, sum_all(keys, core::array::from_ref(block)));
    }
    let mut result = 0;
    store(&mut result, sum);
    result
}

#[inline]
#[target_feature(enable = "aes,sse2")]
fn sum_all<const N: usize>(keys: &RoundKeys, blocks: &[u128; N]) -> __m128i {
    let mut sum = _mm_setzero_si128();
    let mut states = [sum; N];
    for (state, block) in states.iter_mut().zip(blocks) {
        *state = load(block);
    }
    encrypt(keys, &mut states);
    for state in states {
        sum = _mm_xor_si128(sum, state);
    }
    sum
}

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

/// See [`super::AesSum::hash_each`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn hash_each(keys: &RoundKeys, blocks: &mut [u128]) {
    let (batches, rest) = blocks.as_chunks_mut::<8>();
    batches.iter_mut().for_each(|batch| hash_all(keys, batch));
    rest.iter_mut().for_each(|block| hash_all(keys, core::array::from_mut(block)));
}

#[inline]
#[target_feature(enable = "aes,sse2")]
fn hash_all<const N: usize>(keys: &RoundKeys, blocks: &mut [u128; N]) {
    let mut states = [_mm_setzero_si128(); N];
    for (state, block) in states.iter_mut().zip(blocks.iter()) {
        *state = load(block);
    }
    encrypt(keys, &mut states);
    for (state, block) in states.into_iter().zip(blocks) {
        let hashed = _mm_xor_si128(state, load(block));
        store(block, hashed);
    }
}

//! The hash with AES-NI, one block a register and eight in flight; the last few blocks of the wider form too.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use crate::aes_prg::aesni::RoundKeys;

/// See [`super::AesHash::hash`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn hash(keys: &RoundKeys, first: u64, blocks: &mut [u128]) {
    let one = _mm_set_epi64x(0, 1);
    let mut tweak = _mm_set_epi64x(0, first as i64);
    let (batches, rest) = blocks.as_chunks_mut::<8>();
    for batch in batches {
        tweak = hash_all(keys, tweak, one, batch);
    }
    for block in rest {
        tweak = hash_all(keys, tweak, one, core::array::from_mut(block));
    }
}

/// Hashes `N` blocks and returns the tweak after theirs.
#[inline]
#[target_feature(enable = "aes,sse2")]
fn hash_all<const N: usize>(
    keys: &RoundKeys,
    mut tweak: __m128i,
    one: __m128i,
    blocks: &mut [u128; N],
) -> __m128i {
    let mut states = [tweak; N];
    for (state, block) in states.iter_mut().zip(blocks.iter()) {
        *state = load(block);
    }
    encrypt(keys, &mut states);
    for (state, block) in states.iter_mut().zip(blocks.iter_mut()) {
        store(block, *state);
        *state = _mm_xor_si128(*state, tweak);
        tweak = _mm_add_epi64(tweak, one);
    }
    encrypt(keys, &mut states);
    for (state, block) in states.into_iter().zip(blocks) {
        store(block, _mm_xor_si128(state, load(block)));
    }
    tweak
}

#[inline]
#[target_feature(enable = "aes,sse2")]
pub(crate) fn encrypt<const N: usize>(keys: &RoundKeys, states: &mut [__m128i; N]) {
    for state in states.iter_mut() {
        *state = _mm_xor_si128(*state, keys.get(0));
    }
    for round in 1..10 {
        let key = keys.get(round);
        for state in states.iter_mut() {
            *state = _mm_aesenc_si128(*state, key);
        }
    }
    for state in states {
        *state = _mm_aesenclast_si128(*state, keys.get(10));
    }
}

#[inline]
#[target_feature(enable = "sse2")]
pub(crate) fn load(block: &u128) -> __m128i {
    // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
    unsafe { _mm_loadu_si128(core::ptr::from_ref(block).cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
pub(crate) fn store(block: &mut u128, vector: __m128i) {
    // SAFETY: the reference covers the 16 bytes written; the store has no alignment.
    unsafe { _mm_storeu_si128(core::ptr::from_mut(block).cast(), vector) }
}

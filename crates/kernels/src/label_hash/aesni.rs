//! Hash and half gates with AES-NI, one gate after another: its four or two calls of AES are in flight
//! together, and the processor begins the next gate meanwhile. The last few gates of the wider form too.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::Label;
use super::half_gates::{Halves, Offsets};
use crate::aes_hash::aesni::encrypt;
use crate::aes_prg::aesni::RoundKeys;

/// See [`super::LabelHash::hash`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn hash(keys: &RoundKeys, first: u64, labels: &mut [Label]) {
    for (label, number) in labels.iter_mut().zip(first..) {
        let input = _mm_xor_si128(sigma(load(label)), tweak(number));
        let mut states = [input];
        encrypt(keys, &mut states);
        store(label, _mm_xor_si128(states[0], input));
    }
}

/// See [`super::LabelHash::hash_gates`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn hash_gates(keys: &RoundKeys, (tweak, labels_of_gate): super::Gates, labels: &mut [Label]) {
    for (gate, labels) in labels.chunks_mut(labels_of_gate).enumerate() {
        let tweak = _mm_set_epi64x(0, (tweak + 2 * gate as u64) as i64);
        for label in labels {
            let input = _mm_xor_si128(sigma(load(label)), tweak);
            let mut states = [input];
            encrypt(keys, &mut states);
            store(label, _mm_xor_si128(states[0], input));
        }
    }
}

/// See [`super::LabelHash::garble`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn garble(
    keys: &RoundKeys,
    first: u64,
    offsets: &Offsets,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Halves { garbler, evaluator }: Halves<&mut [Label]>,
) {
    let delta = load(&offsets.delta);
    let (not_a, not_b, not_c) = (load(&offsets.a), load(&offsets.b), load(&offsets.c));
    let (one, apart) = (_mm_set_epi64x(0, 1), sigma(delta));
    let gates = a.iter().zip(b).zip(c.iter_mut().zip(garbler.iter_mut().zip(evaluator)));
    for (((a, b), (c, (t_g, t_e))), number) in gates.zip(first..) {
        let (a, b) = (_mm_xor_si128(load(a), not_a), _mm_xor_si128(load(b), not_b));
        let tweak = tweak(number);
        let at_a = _mm_xor_si128(sigma(a), tweak);
        let at_b = _mm_xor_si128(sigma(b), _mm_or_si128(tweak, one));
        let mut states = [at_a, _mm_xor_si128(at_a, apart), at_b, _mm_xor_si128(at_b, apart)];
        encrypt(keys, &mut states);
        // The inputs of a wire's two hashes differ by sigma(delta).
        let sum_a = _mm_xor_si128(_mm_xor_si128(states[0], states[1]), apart);
        let sum_b = _mm_xor_si128(_mm_xor_si128(states[2], states[3]), apart);
        let g = _mm_xor_si128(sum_a, _mm_and_si128(delta, mask(b)));
        store(t_g, g);
        store(t_e, _mm_xor_si128(sum_b, a));
        let of_g = _mm_xor_si128(_mm_xor_si128(states[0], at_a), _mm_and_si128(g, mask(a)));
        let of_e = _mm_xor_si128(_mm_xor_si128(states[2], at_b), _mm_and_si128(sum_b, mask(b)));
        store(c, _mm_xor_si128(_mm_xor_si128(of_g, of_e), not_c));
    }
}

/// See [`super::LabelHash::evaluate`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn evaluate(
    keys: &RoundKeys,
    first: u64,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Halves { garbler, evaluator }: Halves<&[Label]>,
) {
    let one = _mm_set_epi64x(0, 1);
    let gates = a.iter().zip(b).zip(c.iter_mut().zip(garbler.iter().zip(evaluator)));
    for (((a, b), (c, (t_g, t_e))), number) in gates.zip(first..) {
        let (a, b, tweak) = (load(a), load(b), tweak(number));
        let at_a = _mm_xor_si128(sigma(a), tweak);
        let at_b = _mm_xor_si128(sigma(b), _mm_or_si128(tweak, one));
        let mut states = [at_a, at_b];
        encrypt(keys, &mut states);
        let of_g = _mm_xor_si128(_mm_xor_si128(states[0], at_a), _mm_and_si128(load(t_g), mask(a)));
        let e = _mm_xor_si128(load(t_e), a);
        let of_e = _mm_xor_si128(_mm_xor_si128(states[1], at_b), _mm_and_si128(e, mask(b)));
        store(c, _mm_xor_si128(of_g, of_e));
    }
}

/// The first tweak of a gate number.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn tweak(number: u64) -> __m128i {
    _mm_set_epi64x(0, (2 * number) as i64)
}

/// The map of halves (l, r) to (l + r, l).
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn sigma(x: __m128i) -> __m128i {
    let high = _mm_set_epi64x(-1, 0);
    _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(x), _mm_and_si128(x, high))
}

/// All ones if the colour is 1, and otherwise 0.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn mask(x: __m128i) -> __m128i {
    _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(_mm_shuffle_epi32::<0>(x)))
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn load(label: &Label) -> __m128i {
    // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
    unsafe { _mm_loadu_si128(label.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn store(label: &mut Label, vector: __m128i) {
    // SAFETY: the reference covers the 16 bytes written; the store has no alignment.
    unsafe { _mm_storeu_si128(label.as_mut_ptr().cast(), vector) }
}

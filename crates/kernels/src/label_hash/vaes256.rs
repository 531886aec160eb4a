//! Half gates with VAES on 256-bit registers: two gates each, eight registers in flight.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::half_gates::{Halves, Offsets};
use super::{Label, aesni};
use crate::aes_hash::vaes256::encrypt;
use crate::aes_prg::aesni::RoundKeys;

/// See [`super::LabelHash::hash_gates`].
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn hash_gates(keys: &RoundKeys, (tweak, labels_of_gate): super::Gates, labels: &mut [Label]) {
    let of = |label: usize| (tweak + 2 * (label / labels_of_gate) as u64) as i64;
    let whole = labels.len() / 16 * 16;
    for (at, sixteen) in labels.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let mut inputs = [_mm256_setzero_si256(); 8];
        for (i, input) in inputs.iter_mut().enumerate() {
            let label = 16 * at + 2 * i;
            let tweaks = _mm256_set_epi64x(0, of(label + 1), 0, of(label));
            *input = _mm256_xor_si256(sigma(load(sixteen, 2 * i)), tweaks);
        }
        let mut states = inputs;
        encrypt(keys, &mut states);
        for (i, (state, input)) in states.into_iter().zip(inputs).enumerate() {
            store(sixteen, 2 * i, _mm256_xor_si256(state, input));
        }
    }
    // Gates of the rest one by one: the first of them may have begun before.
    for (label, rest) in (whole..).zip(&mut labels[whole..]) {
        aesni::hash_gates(keys, (of(label) as u64, 1), core::slice::from_mut(rest));
    }
}

/// See [`super::LabelHash::garble`].
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn garble(
    keys: &RoundKeys,
    first: u64,
    offsets: &Offsets,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Halves { garbler, evaluator }: Halves<&mut [Label]>,
) {
    let delta = both(&offsets.delta);
    let (not_a, not_b, not_c) = (both(&offsets.a), both(&offsets.b), both(&offsets.c));
    let apart = sigma(delta);
    let mut tweaks = Tweaks::from(first);
    let ((fours_a, rest_a), (fours_b, rest_b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let (fours_c, rest_c) = c.as_chunks_mut::<4>();
    let ((fours_g, rest_g), (fours_e, rest_e)) =
        (garbler.as_chunks_mut::<4>(), evaluator.as_chunks_mut::<4>());
    let done = 4 * fours_a.len() as u64;
    let gates = fours_a.iter().zip(fours_b).zip(fours_c.iter_mut().zip(fours_g.iter_mut().zip(fours_e)));
    for ((a, b), (c, (t_g, t_e))) in gates {
        let a = [0, 2].map(|at| _mm256_xor_si256(load(a, at), not_a));
        let b = [0, 2].map(|at| _mm256_xor_si256(load(b, at), not_b));
        let tweaks = [tweaks.next(), tweaks.next()];
        let at_a = [0, 1].map(|i| _mm256_xor_si256(sigma(a[i]), tweaks[i][0]));
        let at_b = [0, 1].map(|i| _mm256_xor_si256(sigma(b[i]), tweaks[i][1]));
        let mut states = [at_a[0], at_a[1], apart, apart, at_b[0], at_b[1], apart, apart];
        for i in [0, 1] {
            states[2 + i] = _mm256_xor_si256(at_a[i], apart);
            states[6 + i] = _mm256_xor_si256(at_b[i], apart);
        }
        encrypt(keys, &mut states);
        for i in [0, 1] {
            // The inputs of a wire's two hashes differ by sigma(delta).
            let sum_a = _mm256_xor_si256(_mm256_xor_si256(states[i], states[2 + i]), apart);
            let sum_b = _mm256_xor_si256(_mm256_xor_si256(states[4 + i], states[6 + i]), apart);
            let g = _mm256_xor_si256(sum_a, _mm256_and_si256(delta, mask(b[i])));
            store(t_g, 2 * i, g);
            store(t_e, 2 * i, _mm256_xor_si256(sum_b, a[i]));
            let of_g = _mm256_xor_si256(states[i], _mm256_and_si256(g, mask(a[i])));
            let of_e = _mm256_xor_si256(states[4 + i], _mm256_and_si256(sum_b, mask(b[i])));
            let inputs = _mm256_xor_si256(_mm256_xor_si256(at_a[i], at_b[i]), not_c);
            store(c, 2 * i, _mm256_xor_si256(_mm256_xor_si256(of_g, of_e), inputs));
        }
    }
    let halves = Halves { garbler: rest_g, evaluator: rest_e };
    aesni::garble(keys, first + done, offsets, [rest_a, rest_b], rest_c, halves);
}

/// See [`super::LabelHash::evaluate`].
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn evaluate(
    keys: &RoundKeys,
    first: u64,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Halves { garbler, evaluator }: Halves<&[Label]>,
) {
    let mut tweaks = Tweaks::from(first);
    let ((eights_a, rest_a), (eights_b, rest_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let (eights_c, rest_c) = c.as_chunks_mut::<8>();
    let ((eights_g, rest_g), (eights_e, rest_e)) = (garbler.as_chunks::<8>(), evaluator.as_chunks::<8>());
    let done = 8 * eights_a.len() as u64;
    let gates = eights_a.iter().zip(eights_b).zip(eights_c.iter_mut().zip(eights_g.iter().zip(eights_e)));
    for ((a, b), (c, (t_g, t_e))) in gates {
        let tweaks = [tweaks.next(), tweaks.next(), tweaks.next(), tweaks.next()];
        let at_a = [0, 1, 2, 3].map(|i| _mm256_xor_si256(sigma(load(a, 2 * i)), tweaks[i][0]));
        let at_b = [0, 1, 2, 3].map(|i| _mm256_xor_si256(sigma(load(b, 2 * i)), tweaks[i][1]));
        let mut states = [at_a[0], at_a[1], at_a[2], at_a[3], at_b[0], at_b[1], at_b[2], at_b[3]];
        encrypt(keys, &mut states);
        for i in [0, 1, 2, 3] {
            let (a, b) = (load(a, 2 * i), load(b, 2 * i));
            let of_g = _mm256_xor_si256(states[i], _mm256_and_si256(load(t_g, 2 * i), mask(a)));
            let e = _mm256_xor_si256(load(t_e, 2 * i), a);
            let of_e = _mm256_xor_si256(states[4 + i], _mm256_and_si256(e, mask(b)));
            let inputs = _mm256_xor_si256(at_a[i], at_b[i]);
            store(c, 2 * i, _mm256_xor_si256(_mm256_xor_si256(of_g, of_e), inputs));
        }
    }
    let halves = Halves { garbler: rest_g, evaluator: rest_e };
    aesni::evaluate(keys, first + done, [rest_a, rest_b], rest_c, halves);
}

/// The tweaks of two gates after another two.
struct Tweaks(__m256i);

impl Tweaks {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn from(first: u64) -> Tweaks {
        Tweaks(_mm256_set_epi64x(0, (2 * first + 2) as i64, 0, (2 * first) as i64))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn next(&mut self) -> [__m256i; 2] {
        let even = self.0;
        self.0 = _mm256_add_epi64(even, _mm256_set_epi64x(0, 4, 0, 4));
        [even, _mm256_or_si256(even, _mm256_set_epi64x(0, 1, 0, 1))]
    }
}

/// The map of halves (l, r) to (l + r, l).
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn sigma(x: __m256i) -> __m256i {
    let high = _mm256_set_epi64x(-1, 0, -1, 0);
    _mm256_xor_si256(_mm256_shuffle_epi32::<0x4e>(x), _mm256_and_si256(x, high))
}

/// All ones if the colour is 1, and otherwise 0.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn mask(x: __m256i) -> __m256i {
    _mm256_srai_epi32::<31>(_mm256_slli_epi32::<31>(_mm256_shuffle_epi32::<0>(x)))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn both(label: &Label) -> __m256i {
    // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
    unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(label.as_ptr().cast())) }
}

/// Two labels from a place on.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load<const N: usize>(labels: &[Label; N], at: usize) -> __m256i {
    let two = &labels[at..at + 2];
    // SAFETY: the slice covers the 32 bytes read; the load has no alignment.
    unsafe { _mm256_loadu_si256(two.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store<const N: usize>(labels: &mut [Label; N], at: usize, vector: __m256i) {
    let two = &mut labels[at..at + 2];
    // SAFETY: the slice covers the 32 bytes written; the store has no alignment.
    unsafe { _mm256_storeu_si256(two.as_mut_ptr().cast(), vector) }
}

//! Three halves with AES-NI, one gate after another, as [half gates](super::super::aesni).

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::super::Label;
use super::super::aesni::{load, mask, sigma, store, tweak};
use super::super::half_gates::Offsets;
use super::{Sent, SentMut, controls, opened};
use crate::aes_hash::aesni::encrypt;
use crate::aes_prg::aesni::RoundKeys;

/// See [`super::LabelHash::garble_three_halves`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn garble(
    keys: &RoundKeys,
    first: u64,
    offsets: &Offsets,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    coins: &[u8],
    SentMut { pairs, thirds, controls: controls_of }: SentMut<'_>,
) {
    let delta = load(&offsets.delta);
    let (not_a, not_b, not_c) = (load(&offsets.a), load(&offsets.b), load(&offsets.c));
    let apart = sigma(delta);
    let sent = pairs.iter_mut().zip(thirds).zip(controls_of);
    let gates = a.iter().zip(b).zip(c.iter_mut().zip(coins)).zip(sent);
    for ((((a, b), (c, coin)), ((pair, third), control)), number) in gates.zip(first..) {
        let (a, b) = (_mm_xor_si128(load(a), not_a), _mm_xor_si128(load(b), not_b));
        let (of_a, of_b) = (mask(a), mask(b));
        let (delta_a, delta_b) = (_mm_and_si128(delta, of_a), _mm_and_si128(delta, of_b));
        let (a_0, b_0) = (_mm_xor_si128(a, delta_a), _mm_xor_si128(b, delta_b));
        let (a_1, b_1) = (_mm_xor_si128(a_0, delta), _mm_xor_si128(b_0, delta));

        let [t_a, t_b, t_x] = tweaks(number);
        let (sigma_a, sigma_b) = (sigma(a_0), sigma(b_0));
        let at = [
            _mm_xor_si128(sigma_a, t_a),
            _mm_xor_si128(sigma_b, t_b),
            _mm_xor_si128(_mm_xor_si128(sigma_a, sigma_b), t_x),
        ];
        let [a_at, b_at, x_at] = at;
        let inputs = [
            a_at,
            _mm_xor_si128(a_at, apart),
            b_at,
            _mm_xor_si128(b_at, apart),
            x_at,
            _mm_xor_si128(x_at, apart),
        ];
        let mut states = inputs;
        encrypt(keys, &mut states);
        for (state, input) in states.iter_mut().zip(inputs) {
            *state = _mm_xor_si128(*state, input);
        }
        let colours = [of_a, of_b].map(|mask| _mm_cvtsi128_si32(mask) as u8 & 1);
        *control = controls(colours, *coin, [0, 1, 2, 3, 4, 5].map(|i| pad(states[i])));

        let (rho_1, rho_2) = (ones_if(*coin), ones_if(*coin >> 1));
        let both = _mm_xor_si128(of_a, of_b);
        let (left, right) = halves(a_0, b_0);
        let d_00 = _mm_xor_si128(controlled([rho_1, rho_2], a_0, b_0), _mm_and_si128(delta_a, of_b));
        let r_01 = [_mm_xor_si128(rho_1, both), _mm_xor_si128(rho_2, of_a)];
        let d_01 = _mm_xor_si128(controlled(r_01, a_0, b_1), _mm_andnot_si128(of_b, delta_a));
        let d_01 = _mm_xor_si128(d_01, right);
        let r_10 = [_mm_xor_si128(rho_1, of_b), _mm_xor_si128(rho_2, both)];
        let d_10 = _mm_xor_si128(controlled(r_10, a_1, b_0), _mm_andnot_si128(of_a, delta_b));
        let d_10 = _mm_xor_si128(d_10, left);

        let [a_0, a_1, b_0, b_1, x_0, x_1] = states;
        let of_wires = used(_mm_xor_si128(a_0, a_1), _mm_xor_si128(b_0, b_1));
        store(pair, _mm_xor_si128(of_wires, _mm_xor_si128(d_01, d_10)));
        let of_x = _mm_xor_si128(x_0, x_1);
        let g_2 = _mm_xor_si128(used(of_x, of_x), _mm_xor_si128(d_00, d_01));
        *third = _mm_cvtsi128_si64(g_2).to_le_bytes();
        let zero = _mm_xor_si128(used(a_0, b_0), used(x_0, x_0));
        store(c, _mm_xor_si128(_mm_xor_si128(zero, d_00), not_c));
    }
}

/// See [`super::LabelHash::evaluate_three_halves`].
#[target_feature(enable = "aes,sse2")]
pub(super) fn evaluate(
    keys: &RoundKeys,
    first: u64,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Sent { pairs, thirds, controls }: Sent<'_>,
) {
    let sent = pairs.iter().zip(thirds).zip(controls);
    let gates = a.iter().zip(b).zip(c.iter_mut()).zip(sent);
    for ((((a, b), c), ((pair, third), control)), number) in gates.zip(first..) {
        let (a, b) = (load(a), load(b));
        let [t_a, t_b, t_x] = tweaks(number);
        let (sigma_a, sigma_b) = (sigma(a), sigma(b));
        let inputs = [
            _mm_xor_si128(sigma_a, t_a),
            _mm_xor_si128(sigma_b, t_b),
            _mm_xor_si128(_mm_xor_si128(sigma_a, sigma_b), t_x),
        ];
        let mut states = inputs;
        encrypt(keys, &mut states);
        for (state, input) in states.iter_mut().zip(inputs) {
            *state = _mm_xor_si128(*state, input);
        }
        let (of_a, of_b) = (mask(a), mask(b));
        let colours = [of_a, of_b].map(|mask| _mm_cvtsi128_si32(mask) as u8 & 1);
        let r = opened(colours, *control, [0, 1, 2].map(|i| pad(states[i])));

        let (left, right) = halves(a, b);
        let by_colour = _mm_xor_si128(load(pair), _mm_xor_si128(left, right));
        let by_colour = _mm_and_si128(by_colour, _mm_unpacklo_epi64(of_a, of_b));
        let third = _mm_set1_epi64x(i64::from_le_bytes(*third));
        let by_both = _mm_and_si128(third, _mm_xor_si128(of_a, of_b));
        let sums = _mm_xor_si128(used(states[0], states[1]), used(states[2], states[2]));
        let taken = controlled([ones_if(r[0]), ones_if(r[1])], a, b);
        store(c, _mm_xor_si128(_mm_xor_si128(sums, taken), _mm_xor_si128(by_colour, by_both)));
    }
}

/// The tweaks of A, B and A + B.
#[inline]
#[target_feature(enable = "sse2")]
fn tweaks(number: u64) -> [__m128i; 3] {
    let tweak = tweak(number);
    [tweak, _mm_or_si128(tweak, _mm_set_epi64x(0, 1)), _mm_or_si128(tweak, _mm_set_epi64x(1, 0))]
}

/// What the matrices `r_1 S_1 + r_2 S_2` take of two labels; r as masks.
#[inline]
#[target_feature(enable = "sse2")]
fn controlled([r_1, r_2]: [__m128i; 2], a: __m128i, b: __m128i) -> __m128i {
    let sum = _mm_xor_si128(a, _mm_shuffle_epi32::<0x4e>(b));
    let low = _mm_set_epi64x(0, -1);
    let first = _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(sum), _mm_and_si128(a, low));
    let second = _mm_xor_si128(sum, _mm_andnot_si128(low, b));
    _mm_xor_si128(_mm_and_si128(r_1, first), _mm_and_si128(r_2, second))
}

/// The left half of b and the right half of a, where they are added.
#[inline]
#[target_feature(enable = "sse2")]
fn halves(a: __m128i, b: __m128i) -> (__m128i, __m128i) {
    let low = _mm_set_epi64x(0, -1);
    (_mm_and_si128(b, low), _mm_andnot_si128(low, a))
}

/// The halves of two hashes that are used: the last and the first word of each.
#[inline]
#[target_feature(enable = "sse2")]
fn used(left: __m128i, right: __m128i) -> __m128i {
    let (left, right) = (_mm_castsi128_ps(left), _mm_castsi128_ps(right));
    _mm_castps_si128(_mm_shuffle_ps::<0b00_11_00_11>(left, right))
}

/// The highest bit of a hash's second word.
#[inline]
#[target_feature(enable = "sse2")]
fn pad(hash: __m128i) -> u8 {
    _mm_movemask_ps(_mm_castsi128_ps(hash)) as u8 >> 1 & 1
}

/// All ones if the lowest bit is 1.
#[inline]
#[target_feature(enable = "sse2")]
fn ones_if(bit: u8) -> __m128i {
    _mm_set1_epi32(-i32::from(bit & 1))
}

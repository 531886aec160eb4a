//! Three halves with VAES on 256-bit registers: two gates each.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::super::Label;
use super::super::half_gates::Offsets;
use super::super::vaes256::{both, load, mask, sigma, store};
use super::{Sent, SentMut, aesni, controls, opened};
use crate::aes_hash::vaes256::encrypt;
use crate::aes_prg::aesni::RoundKeys;

/// See [`super::LabelHash::garble_three_halves`].
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn garble(
    keys: &RoundKeys,
    first: u64,
    offsets: &Offsets,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    coins: &[u8],
    SentMut { pairs, thirds, controls: controls_of }: SentMut<'_>,
) {
    let delta = both(&offsets.delta);
    let (not_a, not_b, not_c) = (both(&offsets.a), both(&offsets.b), both(&offsets.c));
    let apart = sigma(delta);
    let ((twos_a, rest_a), (twos_b, rest_b)) = (a.as_chunks::<2>(), b.as_chunks::<2>());
    let ((twos_c, rest_c), (twos_coins, rest_coins)) = (c.as_chunks_mut::<2>(), coins.as_chunks::<2>());
    let (twos_pairs, rest_pairs) = pairs.as_chunks_mut::<2>();
    let (twos_thirds, rest_thirds) = thirds.as_chunks_mut::<2>();
    let (twos_controls, rest_controls) = controls_of.as_chunks_mut::<2>();
    let done = 2 * twos_a.len() as u64;
    let sent = twos_pairs.iter_mut().zip(twos_thirds).zip(twos_controls);
    let gates = twos_a.iter().zip(twos_b).zip(twos_c.iter_mut().zip(twos_coins)).zip(sent);
    for ((((a, b), (c, coins)), ((pairs, thirds), sent)), number) in gates.zip((first..).step_by(2)) {
        let (a, b) = (_mm256_xor_si256(load(a, 0), not_a), _mm256_xor_si256(load(b, 0), not_b));
        let (of_a, of_b) = (mask(a), mask(b));
        let (delta_a, delta_b) = (_mm256_and_si256(delta, of_a), _mm256_and_si256(delta, of_b));
        let (a_0, b_0) = (_mm256_xor_si256(a, delta_a), _mm256_xor_si256(b, delta_b));
        let (a_1, b_1) = (_mm256_xor_si256(a_0, delta), _mm256_xor_si256(b_0, delta));

        let [a_at, b_at, x_at] = inputs(number, a_0, b_0);
        let inputs = [
            a_at,
            _mm256_xor_si256(a_at, apart),
            b_at,
            _mm256_xor_si256(b_at, apart),
            x_at,
            _mm256_xor_si256(x_at, apart),
        ];
        let mut states = inputs;
        encrypt(keys, &mut states);
        for (state, input) in states.iter_mut().zip(inputs) {
            *state = _mm256_xor_si256(*state, input);
        }
        let pads = [0, 1, 2, 3, 4, 5].map(|i| pads(states[i]));
        let (colours_a, colours_b) = (colours(of_a), colours(of_b));
        for (gate, control) in sent.iter_mut().enumerate() {
            *control = controls([colours_a[gate], colours_b[gate]], coins[gate], pads.map(|of| of[gate]));
        }

        let (rho_1, rho_2) = (ones_if(*coins), ones_if(coins.map(|coins| coins >> 1)));
        let both = _mm256_xor_si256(of_a, of_b);
        let (left, right) = halves(a_0, b_0);
        let d_00 = _mm256_xor_si256(controlled([rho_1, rho_2], a_0, b_0), _mm256_and_si256(delta_a, of_b));
        let r_01 = [_mm256_xor_si256(rho_1, both), _mm256_xor_si256(rho_2, of_a)];
        let d_01 = _mm256_xor_si256(controlled(r_01, a_0, b_1), _mm256_andnot_si256(of_b, delta_a));
        let d_01 = _mm256_xor_si256(d_01, right);
        let r_10 = [_mm256_xor_si256(rho_1, of_b), _mm256_xor_si256(rho_2, both)];
        let d_10 = _mm256_xor_si256(controlled(r_10, a_1, b_0), _mm256_andnot_si256(of_a, delta_b));
        let d_10 = _mm256_xor_si256(d_10, left);

        let [a_0, a_1, b_0, b_1, x_0, x_1] = states;
        let of_wires = used(_mm256_xor_si256(a_0, a_1), _mm256_xor_si256(b_0, b_1));
        store(pairs, 0, _mm256_xor_si256(of_wires, _mm256_xor_si256(d_01, d_10)));
        let of_x = _mm256_xor_si256(x_0, x_1);
        let g_2 = _mm256_xor_si256(used(of_x, of_x), _mm256_xor_si256(d_00, d_01));
        *thirds = [_mm256_extract_epi64::<0>(g_2), _mm256_extract_epi64::<2>(g_2)].map(i64::to_le_bytes);
        let zero = _mm256_xor_si256(used(a_0, b_0), used(x_0, x_0));
        store(c, 0, _mm256_xor_si256(_mm256_xor_si256(zero, d_00), not_c));
    }
    let sent = SentMut { pairs: rest_pairs, thirds: rest_thirds, controls: rest_controls };
    aesni::garble(keys, first + done, offsets, [rest_a, rest_b], rest_c, rest_coins, sent);
}

/// See [`super::LabelHash::evaluate_three_halves`].
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn evaluate(
    keys: &RoundKeys,
    first: u64,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Sent { pairs, thirds, controls }: Sent<'_>,
) {
    let ((twos_a, rest_a), (twos_b, rest_b)) = (a.as_chunks::<2>(), b.as_chunks::<2>());
    let (twos_c, rest_c) = c.as_chunks_mut::<2>();
    let (twos_pairs, rest_pairs) = pairs.as_chunks::<2>();
    let (twos_thirds, rest_thirds) = thirds.as_chunks::<2>();
    let (twos_controls, rest_controls) = controls.as_chunks::<2>();
    let done = 2 * twos_a.len() as u64;
    let sent = twos_pairs.iter().zip(twos_thirds).zip(twos_controls);
    let gates = twos_a.iter().zip(twos_b).zip(twos_c.iter_mut()).zip(sent);
    for ((((a, b), c), ((pairs, thirds), controls)), number) in gates.zip((first..).step_by(2)) {
        let (a, b) = (load(a, 0), load(b, 0));
        let inputs = inputs(number, a, b);
        let mut states = inputs;
        encrypt(keys, &mut states);
        for (state, input) in states.iter_mut().zip(inputs) {
            *state = _mm256_xor_si256(*state, input);
        }
        let (of_a, of_b) = (mask(a), mask(b));
        let (colours_a, colours_b) = (colours(of_a), colours(of_b));
        let pads = [0, 1, 2].map(|i| pads(states[i]));
        let r = [0, 1]
            .map(|gate| opened([colours_a[gate], colours_b[gate]], controls[gate], pads.map(|of| of[gate])));

        let (left, right) = halves(a, b);
        let by_colour = _mm256_xor_si256(load(pairs, 0), _mm256_xor_si256(left, right));
        let by_colour = _mm256_and_si256(by_colour, _mm256_unpacklo_epi64(of_a, of_b));
        let [third, other] = thirds.map(i64::from_le_bytes);
        let thirds = _mm256_set_epi64x(other, other, third, third);
        let by_both = _mm256_and_si256(thirds, _mm256_xor_si256(of_a, of_b));
        let sums = _mm256_xor_si256(used(states[0], states[1]), used(states[2], states[2]));
        let taken = controlled([ones_if([r[0][0], r[1][0]]), ones_if([r[0][1], r[1][1]])], a, b);
        let all = _mm256_xor_si256(_mm256_xor_si256(sums, taken), _mm256_xor_si256(by_colour, by_both));
        store(c, 0, all);
    }
    let sent = Sent { pairs: rest_pairs, thirds: rest_thirds, controls: rest_controls };
    aesni::evaluate(keys, first + done, [rest_a, rest_b], rest_c, sent);
}

/// What AES is called on for A, B and A + B of two gates.
#[inline]
#[target_feature(enable = "avx2")]
fn inputs(number: u64, a: __m256i, b: __m256i) -> [__m256i; 3] {
    let tweak = _mm256_set_epi64x(0, (2 * number + 2) as i64, 0, (2 * number) as i64);
    let (a, b) = (sigma(a), sigma(b));
    let of_b = _mm256_or_si256(tweak, _mm256_set_epi64x(0, 1, 0, 1));
    let of_x = _mm256_or_si256(tweak, _mm256_set_epi64x(1, 0, 1, 0));
    [_mm256_xor_si256(a, tweak), _mm256_xor_si256(b, of_b), _mm256_xor_si256(_mm256_xor_si256(a, b), of_x)]
}

/// What the matrices `r_1 S_1 + r_2 S_2` take of two labels; r as masks.
#[inline]
#[target_feature(enable = "avx2")]
fn controlled([r_1, r_2]: [__m256i; 2], a: __m256i, b: __m256i) -> __m256i {
    let sum = _mm256_xor_si256(a, _mm256_shuffle_epi32::<0x4e>(b));
    let low = _mm256_set_epi64x(0, -1, 0, -1);
    let first = _mm256_xor_si256(_mm256_shuffle_epi32::<0x4e>(sum), _mm256_and_si256(a, low));
    let second = _mm256_xor_si256(sum, _mm256_andnot_si256(low, b));
    _mm256_xor_si256(_mm256_and_si256(r_1, first), _mm256_and_si256(r_2, second))
}

/// The left half of b and the right half of a, where they are added.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
    let low = _mm256_set_epi64x(0, -1, 0, -1);
    (_mm256_and_si256(b, low), _mm256_andnot_si256(low, a))
}

/// The halves of two hashes that are used: the last and the first word of each.
#[inline]
#[target_feature(enable = "avx2")]
fn used(left: __m256i, right: __m256i) -> __m256i {
    let (left, right) = (_mm256_castsi256_ps(left), _mm256_castsi256_ps(right));
    _mm256_castps_si256(_mm256_shuffle_ps::<0b00_11_00_11>(left, right))
}

/// The highest bit of the second word of each hash.
#[inline]
#[target_feature(enable = "avx2")]
fn pads(hashes: __m256i) -> [u8; 2] {
    let bits = _mm256_movemask_ps(_mm256_castsi256_ps(hashes)) as u8;
    [bits >> 1 & 1, bits >> 5 & 1]
}

/// The bits of masks.
#[inline]
#[target_feature(enable = "avx2")]
fn colours(masks: __m256i) -> [u8; 2] {
    pads(masks)
}

/// For each gate all ones if the lowest bit is 1.
#[inline]
#[target_feature(enable = "avx2")]
fn ones_if(bits: [u8; 2]) -> __m256i {
    let [first, second] = bits.map(|bit| -i64::from(bit & 1));
    _mm256_set_epi64x(second, second, first, first)
}

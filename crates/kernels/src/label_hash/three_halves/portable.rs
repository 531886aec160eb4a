//! Three halves, computed by the `aes` crate. A label is a number whose lower half is the left one.

use aes::Aes128;

use super::super::Label;
use super::super::half_gates::Offsets;
use super::super::portable::{HIGH, hashes};
use super::{Sent, SentMut, controls, opened};
use crate::secret::mask;

const LOW: u128 = !HIGH;

/// What the matrices `r_1 S_1 + r_2 S_2` take of two labels; r as masks.
pub(super) fn controlled(r: [u128; 2], a: u128, b: u128) -> u128 {
    let sum = a ^ b.rotate_left(64);
    r[0] & (sum.rotate_left(64) ^ a & LOW) ^ r[1] & (sum ^ b & HIGH)
}

/// T: the half of a hash that is used.
pub(super) fn half(hash: u128) -> u128 {
    hash >> 96 | (hash & u128::from(u32::MAX)) << 32
}

/// p: another bit of it.
pub(super) fn pad(hash: u128) -> u8 {
    (hash >> 63) as u8 & 1
}

/// The tweaks of A, B and A + B.
fn tweaks(number: u64) -> [u128; 3] {
    let tweak = u128::from(2 * number);
    [tweak, tweak | 1, tweak | 1 << 64]
}

/// All ones if the lowest bit is 1.
fn ones_if(bit: u8) -> u128 {
    mask(u128::from(bit))
}

/// See [`super::LabelHash::garble_three_halves`].
pub(super) fn garble(
    cipher: &Aes128,
    first: u64,
    offsets: &Offsets,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    coins: &[u8],
    SentMut { pairs, thirds, controls: controls_of }: SentMut<'_>,
) {
    let delta = u128::from_le_bytes(offsets.delta);
    let [not_a, not_b, not_c] = [offsets.a, offsets.b, offsets.c].map(u128::from_le_bytes);
    let sent = pairs.iter_mut().zip(thirds).zip(controls_of);
    let gates = a.iter().zip(b).zip(c.iter_mut().zip(coins)).zip(sent);
    for ((((a, b), (c, coin)), ((pair, third), control)), number) in gates.zip(first..) {
        let (a, b) = (u128::from_le_bytes(*a) ^ not_a, u128::from_le_bytes(*b) ^ not_b);
        let colours = [a as u8 & 1, b as u8 & 1];
        let (of_a, of_b) = (mask(a), mask(b));
        let (a_0, b_0) = (a ^ delta & of_a, b ^ delta & of_b);
        let (a_1, b_1, x_0) = (a_0 ^ delta, b_0 ^ delta, a_0 ^ b_0);
        let [t_a, t_b, t_x] = tweaks(number);
        let labels = [a_0, a_1, b_0, b_1, x_0, x_0 ^ delta];
        let hashed = hashes(cipher, labels, [t_a, t_a, t_b, t_b, t_x, t_x]);
        *control = controls(colours, *coin, hashed.map(pad));

        let rho = [ones_if(*coin), ones_if(*coin >> 1)];
        let both = of_a ^ of_b;
        let d_00 = controlled(rho, a_0, b_0) ^ delta & of_a & of_b;
        let d_01 = controlled([rho[0] ^ both, rho[1] ^ of_a], a_0, b_1) ^ a_0 & HIGH ^ delta & of_a & !of_b;
        let d_10 = controlled([rho[0] ^ of_b, rho[1] ^ both], a_1, b_0) ^ b_0 & LOW ^ delta & !of_a & of_b;

        let [a_0, a_1, b_0, b_1, x_0, x_1] = hashed.map(half);
        *pair = (a_0 ^ a_1 ^ (b_0 ^ b_1) << 64 ^ d_01 ^ d_10).to_le_bytes();
        *third = ((x_0 ^ x_1 ^ d_00 ^ d_01) as u64).to_le_bytes();
        *c = (a_0 ^ x_0 ^ (b_0 ^ x_0) << 64 ^ d_00 ^ not_c).to_le_bytes();
    }
}

/// See [`super::LabelHash::evaluate_three_halves`].
pub(super) fn evaluate(
    cipher: &Aes128,
    first: u64,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Sent { pairs, thirds, controls }: Sent<'_>,
) {
    let sent = pairs.iter().zip(thirds).zip(controls);
    let gates = a.iter().zip(b).zip(c.iter_mut()).zip(sent);
    for ((((a, b), c), ((pair, third), control)), number) in gates.zip(first..) {
        let [a, b, pair] = [a, b, pair].map(|label| u128::from_le_bytes(*label));
        let third = u128::from(u64::from_le_bytes(*third));
        let hashed = hashes(cipher, [a, b, a ^ b], tweaks(number));
        let r = opened([a as u8 & 1, b as u8 & 1], *control, hashed.map(pad)).map(ones_if);
        let [of_a, of_b, of_x] = hashed.map(half);
        let sums = of_a ^ of_x ^ (of_b ^ of_x) << 64;
        let by_colour = (mask(a) & LOW ^ mask(b) & HIGH) & (pair ^ b & LOW ^ a & HIGH);
        let by_both = mask(a ^ b) & (third | third << 64);
        *c = (sums ^ by_colour ^ by_both ^ controlled(r, a, b)).to_le_bytes();
    }
}

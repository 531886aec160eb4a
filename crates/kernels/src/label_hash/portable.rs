//! Hash and half gates, computed by the `aes` crate.

use aes::cipher::BlockCipherEncrypt;
use aes::{Aes128, Block};

use super::Label;
use super::half_gates::{Halves, Offsets};
use crate::secret::mask;

pub(super) const HIGH: u128 = !0 << 64;

/// The map of halves (l, r) to (l + r, l).
fn sigma(x: u128) -> u128 {
    x << 64 ^ x & HIGH ^ x >> 64
}

/// Hashes of labels with tweaks.
pub(super) fn hashes<const N: usize>(cipher: &Aes128, labels: [u128; N], tweaks: [u128; N]) -> [u128; N] {
    let inputs: [u128; N] = core::array::from_fn(|i| sigma(labels[i]) ^ tweaks[i]);
    let mut blocks: [Block; N] = inputs.map(|m| m.to_le_bytes().into());
    cipher.encrypt_blocks(&mut blocks);
    core::array::from_fn(|i| u128::from_le_bytes(blocks[i].into()) ^ inputs[i])
}

/// See [`super::LabelHash::hash`].
pub(super) fn hash(cipher: &Aes128, first: u64, labels: &mut [Label]) {
    for (label, number) in labels.iter_mut().zip(first..) {
        *label = hashes(cipher, [u128::from_le_bytes(*label)], [u128::from(2 * number)])[0].to_le_bytes();
    }
}

/// See [`super::LabelHash::hash_gates`].
pub(super) fn hash_gates(cipher: &Aes128, (tweak, labels_of_gate): super::Gates, labels: &mut [Label]) {
    for (gate, labels) in labels.chunks_mut(labels_of_gate).enumerate() {
        let tweak = u128::from(tweak + 2 * gate as u64);
        for label in labels {
            *label = hashes(cipher, [u128::from_le_bytes(*label)], [tweak])[0].to_le_bytes();
        }
    }
}

/// See [`super::LabelHash::garble`].
pub(super) fn garble(
    cipher: &Aes128,
    first: u64,
    offsets: &Offsets,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Halves { garbler, evaluator }: Halves<&mut [Label]>,
) {
    let [delta, not_a, not_b, not_c] =
        [&offsets.delta, &offsets.a, &offsets.b, &offsets.c].map(|offset| u128::from_le_bytes(*offset));
    let halves = garbler.iter_mut().zip(evaluator);
    let gates = a.iter().zip(b).zip(c.iter_mut().zip(halves));
    for (((a, b), (c, (t_g, t_e))), number) in gates.zip(first..) {
        let (a, b) = (u128::from_le_bytes(*a) ^ not_a, u128::from_le_bytes(*b) ^ not_b);
        let tweak = u128::from(2 * number);
        let labels = [a, a ^ delta, b, b ^ delta];
        let [a_0, a_1, b_0, b_1] = hashes(cipher, labels, [tweak, tweak, tweak | 1, tweak | 1]);
        let g = a_0 ^ a_1 ^ delta & mask(b);
        let e = b_0 ^ b_1 ^ a;
        *t_g = g.to_le_bytes();
        *t_e = e.to_le_bytes();
        *c = (a_0 ^ g & mask(a) ^ b_0 ^ (e ^ a) & mask(b) ^ not_c).to_le_bytes();
    }
}

/// See [`super::LabelHash::evaluate`].
pub(super) fn evaluate(
    cipher: &Aes128,
    first: u64,
    [a, b]: [&[Label]; 2],
    c: &mut [Label],
    Halves { garbler, evaluator }: Halves<&[Label]>,
) {
    let gates = a.iter().zip(b).zip(c.iter_mut().zip(garbler.iter().zip(evaluator)));
    for (((a, b), (c, (t_g, t_e))), number) in gates.zip(first..) {
        let [a, b, g, e] = [a, b, t_g, t_e].map(|label| u128::from_le_bytes(*label));
        let tweak = u128::from(2 * number);
        let [hashed_a, hashed_b] = hashes(cipher, [a, b], [tweak, tweak | 1]);
        *c = (hashed_a ^ g & mask(a) ^ hashed_b ^ (e ^ a) & mask(b)).to_le_bytes();
    }
}

//! AES and the kernels on blocks.

use super::super::Forms;
use super::{bytes_of128, sample, words128};
use crate::aes_hash::AesHash;
use crate::aes_prg::AesPrg;
use crate::aes_sum::AesSum;
use crate::isa::Isa;
use crate::label_hash::three_halves::BYTES;
use crate::label_hash::{Halves, Label, LabelHash, Negated, Tweak};
use crate::label_sums::{sum_portable, sum_within};
use crate::leaf_streams::LeafStreams;

const KEY: [u8; 16] = *b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";
/// Gates or blocks: some whole registers of every form, and a rest.
const COUNT: usize = 45;

/// The cipher itself, through the kernel that sums images.
pub(super) fn aes(forms: Forms) -> Vec<u8> {
    let plaintext: [u8; 16] = core::array::from_fn(|i| 0x11 * i as u8);
    let image = AesSum::with(forms.aes, &KEY).of(&[u128::from_le_bytes(plaintext)]);
    image.to_le_bytes().to_vec()
}

pub(super) fn stream(forms: Forms) -> Vec<u8> {
    let mut bytes = vec![0; 16 * COUNT + 5];
    AesPrg::with(forms.aes, &KEY, 7).fill(&mut bytes);
    bytes
}

pub(super) fn hash(forms: Forms) -> Vec<u8> {
    let mut blocks = words128(1, COUNT);
    AesHash::with(forms.aes, &KEY).hash(3, &mut blocks);
    bytes_of128(&blocks)
}

pub(super) fn sums(forms: Forms) -> Vec<u8> {
    let (sum, mut blocks) = (AesSum::with(forms.aes, &KEY), words128(2, COUNT));
    let of_all = sum.of(&blocks);
    sum.hash_each(&mut blocks);
    blocks.push(of_all);
    bytes_of128(&blocks)
}

fn some_labels(seed: u64) -> Vec<Label> {
    sample(seed, 16 * COUNT).as_chunks().0.to_vec()
}

/// Gate numbers on both sides of a change of the key.
const FIRST: u64 = 500;

pub(super) fn labels(forms: Forms) -> Vec<u8> {
    let mut hash = LabelHash::with(forms.aes, &KEY);
    let (mut one, mut gates) = (some_labels(3), some_labels(4));
    hash.hash(FIRST, &mut one);
    hash.hash_gates(FIRST, Tweak::Second, 3, &mut gates);
    [one, gates].concat().into_flattened()
}

fn delta() -> Label {
    let mut delta = [0x5b; 16];
    delta[0] |= 1;
    delta
}

const NEGATED: Negated = Negated { a: true, b: false, c: true };

pub(super) fn half_gates(forms: Forms) -> Vec<u8> {
    let mut hash = LabelHash::with(forms.aes, &KEY);
    let (a, b) = (some_labels(5), some_labels(6));
    let [mut zero, mut garbler, mut evaluator, mut got] = [(); 4].map(|()| vec![[0; 16]; COUNT]);
    let halves = Halves { garbler: &mut garbler[..], evaluator: &mut evaluator[..] };
    hash.garble(FIRST, &delta(), NEGATED, [&a, &b], &mut zero, halves);
    let halves = Halves { garbler: &garbler[..], evaluator: &evaluator[..] };
    hash.evaluate(FIRST, [&a, &b], &mut got, halves);
    [zero, garbler, evaluator, got].concat().into_flattened()
}

pub(super) fn three_halves(forms: Forms) -> Vec<u8> {
    let mut hash = LabelHash::with(forms.aes, &KEY);
    let (a, b, coins) = (some_labels(7), some_labels(8), sample(9, COUNT));
    let (mut zero, mut got) = (vec![[0; 16]; COUNT], vec![[0; 16]; COUNT]);
    let mut sent = vec![0; BYTES * COUNT];
    hash.garble_three_halves(FIRST, &delta(), NEGATED, [&a, &b], &mut zero, &coins, &mut sent);
    hash.evaluate_three_halves(FIRST, [&a, &b], &mut got, &sent);
    [zero.into_flattened(), got.into_flattened(), sent].concat()
}

pub(super) fn label_sums(forms: Forms) -> Vec<u8> {
    let mut arena = sample(10, 4 * 16 * COUNT);
    let len = 16 * COUNT;
    match forms.bytes {
        Isa::Portable => sum_portable(&mut arena, 0, len, &[len, 2 * len, 3 * len], &delta()),
        _ => sum_within(&mut arena, 0, len, &[len, 2 * len, 3 * len], &delta()),
    }
    arena
}

pub(super) fn leaf_streams(forms: Forms) -> Vec<u8> {
    const DEPTH: usize = 3;
    const LEN: usize = 16 * 11;
    let keys = sample(11, 16 << DEPTH);
    let mut streams = LeafStreams::with(forms.aes, &[DEPTH], keys.as_chunks().0, false);
    let (mut columns, mut correction) = (vec![0; DEPTH * LEN], vec![0; LEN]);
    streams.receive(0, &sample(12, LEN), &mut columns, &mut correction);
    [columns, correction].concat()
}

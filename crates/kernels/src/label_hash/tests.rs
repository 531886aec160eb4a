//! Every implementation is compared with the definition, and gates are compared with the values that they
//! compute.

use aes::cipher::{BlockCipherEncrypt, KeyInit};

use super::*;

pub(super) const ROOT: &[u8; 16] = b"sixteen byte key";

pub(super) fn permuted(key: &[u8; 16], x: u128) -> u128 {
    let mut block: aes::Block = x.to_le_bytes().into();
    Aes128::new(key.into()).encrypt_block(&mut block);
    u128::from_le_bytes(block.into())
}

pub(super) fn labels(seed: u8, len: usize) -> Vec<Label> {
    (0..len).map(|j| permuted(&[seed; 16], j as u128).to_le_bytes()).collect()
}

pub(super) fn sum(x: Label, y: Label) -> Label {
    (u128::from_le_bytes(x) ^ u128::from_le_bytes(y)).to_le_bytes()
}

/// Around the change of a key.
pub(super) const STARTS: [u64; 4] = [0, 500, 511, 1 << 40];

#[test]
fn every_implementation_gives_the_hash_of_its_definition() {
    for isa in AesIsa::available() {
        let mut hash = LabelHash::with(isa, ROOT);
        for first in STARTS {
            let given = labels(1, 40);
            let mut hashed = given.clone();
            hash.hash(first, &mut hashed);
            for ((x, hashed), number) in given.into_iter().zip(hashed).zip(first..) {
                let x = u128::from_le_bytes(x);
                let (left, right) = (x >> 64, x & u128::from(u64::MAX));
                let input = ((left ^ right) << 64 | left) ^ u128::from(2 * number);
                let key = permuted(ROOT, u128::from(2 * number / 1024)).to_le_bytes();
                let expected = permuted(&key, input) ^ input;
                assert_eq!(u128::from_le_bytes(hashed), expected, "{isa:?}, number {number}");
            }
        }
    }
}

#[test]
pub(super) fn labels_of_a_gate_share_a_tweak_and_gates_do_not() {
    for isa in AesIsa::available() {
        let mut hash = LabelHash::with(isa, ROOT);
        for (first, labels_of_gate) in
            STARTS.into_iter().flat_map(|first| [1, 2, 3, 16, 256].map(|n| (first, n)))
        {
            for gates in [0, 1, 5, 30] {
                let given = labels(2, gates * labels_of_gate);
                let [mut with_first, mut with_second] = [given.clone(), given.clone()];
                hash.hash_gates(first, Tweak::First, labels_of_gate, &mut with_first);
                hash.hash_gates(first, Tweak::Second, labels_of_gate, &mut with_second);
                for (at, x) in given.iter().enumerate() {
                    let x = u128::from_le_bytes(*x);
                    let (left, right) = (x >> 64, x & u128::from(u64::MAX));
                    let number = first + (at / labels_of_gate) as u64;
                    for (tweak, hashed) in [(2 * number, &with_first), (2 * number + 1, &with_second)] {
                        let input = ((left ^ right) << 64 | left) ^ u128::from(tweak);
                        let key = permuted(ROOT, u128::from(tweak / 1024)).to_le_bytes();
                        assert_eq!(u128::from_le_bytes(hashed[at]), permuted(&key, input) ^ input, "{isa:?}");
                    }
                }
            }
        }
    }
}

/// Labels for zero, ciphertexts, and what the evaluator gets for operands 00, 10, 01 and 11.
type Gates = ([Vec<Label>; 3], [Vec<Label>; 4]);

fn gates(isa: AesIsa, first: u64, negated: Negated, delta: Label, [a, b]: [&[Label]; 2]) -> Gates {
    let mut hash = LabelHash::with(isa, ROOT);
    let blank = vec![[0; 16]; a.len()];
    let (mut c, mut g, mut e) = (blank.clone(), blank.clone(), blank.clone());
    let halves = Halves { garbler: &mut g[..], evaluator: &mut e[..] };
    hash.garble(first, &delta, negated, [a, b], &mut c, halves);
    let evaluated = [0, 1, 2, 3].map(|x| {
        let active = |labels: &[Label], bit: u8| -> Vec<Label> {
            labels.iter().map(|zero| if bit == 1 { sum(*zero, delta) } else { *zero }).collect()
        };
        let (a, b, mut c) = (active(a, x & 1), active(b, x >> 1), blank.clone());
        let mut hash = LabelHash::with(isa, ROOT);
        hash.evaluate(first, [&a, &b], &mut c, Halves { garbler: &g, evaluator: &e });
        c
    });
    ([c, g, e], evaluated)
}

#[test]
fn gates_compute_their_function_and_every_implementation_the_same() {
    let mut delta = labels(9, 1)[0];
    delta[0] |= 1;
    for first in STARTS {
        for len in (0..20).chain([70]) {
            let (a, b) = (labels(1, len), labels(2, len));
            for n in 0..8 {
                let negated = Negated { a: n & 1 == 1, b: n & 2 == 2, c: n & 4 == 4 };
                let expected = gates(AesIsa::Portable, first, negated, delta, [&a, &b]);
                for isa in AesIsa::available() {
                    let gates = gates(isa, first, negated, delta, [&a, &b]);
                    assert!(gates == expected, "{isa:?}, {len} gates from {first}, {negated:?}");
                    let ([zero, ..], evaluated) = gates;
                    for (x, active) in (0_u8..).zip(evaluated) {
                        let (a, b) = ((x & 1 == 1) ^ negated.a, (x >> 1 == 1) ^ negated.b);
                        let bit = (a && b) ^ negated.c;
                        let right = zero.iter().map(|zero| if bit { sum(*zero, delta) } else { *zero });
                        assert!(active.into_iter().eq(right), "{isa:?}, {x:02b}, {negated:?}");
                    }
                }
            }
        }
    }
}

/// With one tweak for both halves the sum of the two ciphertexts would be the label, or the label and the
/// offset.
#[test]
fn a_gate_of_a_wire_with_itself_shows_nothing() {
    let mut delta = labels(9, 1)[0];
    delta[0] |= 1;
    let a = labels(1, 1000);
    let ([_, g, e], _) = gates(AesIsa::best(), 0, Negated::default(), delta, [&a, &a]);
    for ((a, g), e) in a.iter().zip(g).zip(e) {
        let shown = sum(sum(g, e), *a);
        assert!(shown != [0; 16] && shown != delta);
    }
}

#[test]
fn numbers_give_different_gates_under_one_key_and_under_two() {
    let mut delta = labels(9, 1)[0];
    delta[0] |= 1;
    let same = vec![labels(1, 1)[0]; 1100];
    let ([c, g, e], _) = gates(AesIsa::best(), 0, Negated::default(), delta, [&same, &same]);
    for mut row in [c, g, e] {
        row.sort_unstable();
        row.dedup();
        assert_eq!(row.len(), 1100);
    }
}

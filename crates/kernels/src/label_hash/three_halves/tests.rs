//! Tests each step of the module's argument, and that gates give the right results.

use super::super::tests::{ROOT, STARTS, labels, sum};
use super::*;
use crate::isa::AesIsa;

/// A row of a matrix over (A_L, A_R, B_L, B_R), the first in the lowest bit.
type Row = u8;

/// Rows as they are written in the module, left to right.
fn row(written: &str) -> Row {
    written.bytes().enumerate().map(|(at, bit)| (bit - b'0') << at).sum()
}

/// `r_ij`, by the module's formula.
fn control_bits([a, b]: [u8; 2], rho: u8, [i, j]: [u8; 2]) -> [u8; 2] {
    let n = i ^ j;
    [rho & 1 ^ i & a ^ n & (a ^ b), rho >> 1 & 1 ^ j & b ^ n & (a ^ b)]
}

/// `R_ij`, left and right.
fn matrix(r: [u8; 2], [i, j]: [u8; 2]) -> [Row; 2] {
    let taken = |of: [&str; 2]| (r[0] * row(of[0])) ^ (r[1] * row(of[1]));
    [taken(["1110", "1001"]) ^ (i * row("0010")), taken(["1001", "0111"]) ^ (j * row("0100"))]
}

/// `D_ij` as two sums of the six unknowns (A_0 left and right, B_0, Delta).
fn differences(colours: [u8; 2], rho: u8, at: [u8; 2]) -> [u8; 2] {
    let t = (at[0] ^ colours[0]) & (at[1] ^ colours[1]);
    let matrix = matrix(control_bits(colours, rho, at), at);
    [0, 1].map(|half| {
        let row: Row = matrix[half];
        // A label of colour 1 is one of colour 0 and Delta.
        let of_delta = (at[0] * (row & 3)) ^ (at[1] * (row >> 2 & 3)) ^ t << half;
        row | of_delta << 4
    })
}

#[test]
fn the_equations_without_unknowns_hold_for_all_colours_and_coins() {
    for n in 0..16_u8 {
        let (colours, rho) = ([n & 1, n >> 1 & 1], n >> 2);
        let d = |i, j| differences(colours, rho, [i, j]);
        for half in [0, 1] {
            assert_eq!(d(0, 0)[half] ^ d(0, 1)[half] ^ d(1, 0)[half] ^ d(1, 1)[half], 0, "{n:04b}");
        }
        assert_eq!(d(0, 0)[0] ^ d(0, 1)[0], d(0, 0)[1] ^ d(1, 0)[1], "{n:04b}");
    }
}

/// A vector of the eight equations (left and right of 00, 01, 10, 11) by what stands in each.
fn column(stands: impl Fn(u8, u8) -> [u8; 2]) -> u8 {
    let places = [(0, 0), (0, 1), (1, 0), (1, 1)];
    places.iter().rev().fold(0, |column, (i, j)| {
        let [left, right] = stands(*i, *j);
        column << 2 | right << 1 | left
    })
}

fn rank(vectors: &[u128]) -> usize {
    let mut basis: Vec<u128> = Vec::new();
    for vector in vectors {
        let rest = basis.iter().fold(*vector, |rest, other| rest.min(rest ^ other));
        if rest != 0 {
            basis.push(rest);
        }
    }
    basis.len()
}

/// The unknowns reach all that the hashes do and no more, so what has to hold without them are three
/// equations, and those tested above are they.
#[test]
fn there_are_no_other_equations() {
    let unknowns = [
        column(|_, _| [1, 0]),
        column(|_, _| [0, 1]),
        column(|i, _| [i, 0]),
        column(|_, j| [0, j]),
        column(|i, j| [i ^ j; 2]),
    ];
    let hashes = [0, 1].map(|of| {
        [
            column(|i, _| [u8::from(i == of), 0]),
            column(|_, j| [0, u8::from(j == of)]),
            column(|i, j| [u8::from(i ^ j == of); 2]),
        ]
    });
    let wide = |vectors: &[u8]| vectors.iter().map(|v| u128::from(*v)).collect::<Vec<_>>();
    let all = [&unknowns[..], hashes.as_flattened()].concat();
    assert_eq!((rank(&wide(&unknowns)), rank(&wide(hashes.as_flattened())), rank(&wide(&all))), (5, 5, 5));
    // Left and right of 00, 01, 10, 11, the first in the lowest bit.
    let equations = [0b01_01_01_01, 0b10_10_10_10, 0b00_10_01_11_u8];
    assert_eq!(rank(&wide(&equations)), 3);
    for (equation, unknown) in equations.into_iter().flat_map(|e| unknowns.map(|u| (e, u))) {
        assert_eq!((equation & unknown).count_ones() % 2, 0);
    }
}

/// The evaluator's matrix depends on the coins alone, and on nothing else that the garbler knows.
#[test]
fn any_one_control_matrix_is_uniform_whatever_the_colours_of_zero_are() {
    for n in 0..4_u8 {
        let at = [n & 1, n >> 1];
        let seen = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|colours| {
            let mut matrices = [0, 1, 2, 3].map(|rho| matrix(control_bits(colours, rho, at), at));
            matrices.sort_unstable();
            matrices
        });
        assert!(seen.iter().all(|matrices| *matrices == seen[0]));
        assert!(seen[0].windows(2).all(|two| two[0] != two[1]));
    }
}

/// Control bits open to `r_ij` for every choice of colours, coins and pads; each that the evaluator may not
/// know is padded by a bit of a label that it does not have.
#[test]
fn control_bits_open_to_those_of_the_colours() {
    for n in 0..16 * 64_u32 {
        let bit = |at: u32| (n >> at & 1) as u8;
        let (colours, coins) = ([bit(0), bit(1)], bit(2) | bit(3) << 1);
        let pads = [4, 5, 6, 7, 8, 9].map(bit);
        let sent = controls(colours, coins, pads);
        assert!(sent < 32);
        for at in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            let [i, j] = at.map(usize::from);
            let seen = [pads[i], pads[2 + j], pads[4 + (i ^ j)]];
            assert_eq!(opened(at, sent, seen), control_bits(colours, coins, at));
            // With other pads of the labels that the evaluator does not have, all eight that open to the same
            // are as likely.
            let mut of_others: Vec<u8> = (0..8)
                .map(|others: u8| {
                    let mut pads = pads;
                    pads[1 - i] = others & 1;
                    pads[3 - j] = others >> 1 & 1;
                    pads[5 - (i ^ j)] = others >> 2;
                    controls(colours, coins, pads)
                })
                .collect();
            of_others.sort_unstable();
            of_others.dedup();
            assert_eq!(of_others.len(), 8);
        }
    }
}

/// What is known of AES's output where halves of Delta are added to half a hash has all of its entropy.
#[test]
fn no_sum_of_halves_of_delta_undoes_what_the_hash_adds() {
    let sigma = |x: u128| x << 64 ^ x & (!0 << 64) ^ x >> 64;
    for n in 0..4 {
        let images: Vec<u128> = (0..128)
            .map(|at| {
                let delta = 1_u128 << at;
                let left = if n & 1 == 1 { delta & u128::from(u64::MAX) } else { 0 };
                let right = if n & 2 == 2 { delta >> 64 } else { 0 };
                let hashed = sigma(delta);
                portable::half(hashed) ^ left ^ right | u128::from(portable::pad(hashed)) << 64
            })
            .collect();
        assert_eq!(rank(&images), 65, "{n:02b}");
    }
}

/// Labels for zero and what is sent, and what the evaluator gets for operands 00, 10, 01 and 11.
type Garbling = (Vec<Label>, Vec<u8>, [Vec<Label>; 4]);

fn gates(
    isa: AesIsa,
    first: u64,
    negated: Negated,
    delta: Label,
    [a, b]: [&[Label]; 2],
    coins: &[u8],
) -> Garbling {
    let (mut zero, mut sent) = (vec![[0; 16]; a.len()], vec![0; a.len() * BYTES]);
    let mut hash = LabelHash::with(isa, ROOT);
    hash.garble_three_halves(first, &delta, negated, [a, b], &mut zero, coins, &mut sent);
    let evaluated = [0, 1, 2, 3].map(|x| {
        let active = |labels: &[Label], bit: u8| -> Vec<Label> {
            labels.iter().map(|zero| if bit == 1 { sum(*zero, delta) } else { *zero }).collect()
        };
        let mut c = vec![[0; 16]; a.len()];
        let mut hash = LabelHash::with(isa, ROOT);
        hash.evaluate_three_halves(first, [&active(a, x & 1), &active(b, x >> 1)], &mut c, &sent);
        c
    });
    (zero, sent, evaluated)
}

fn odd(mut delta: Label) -> Label {
    delta[0] |= 1;
    delta
}

#[test]
fn gates_compute_their_function_and_every_implementation_the_same() {
    for (seed, first) in (9..).zip(STARTS) {
        let delta = odd(labels(seed, 1)[0]);
        for len in (0..20).chain([70]) {
            let (a, b) = (labels(1, len), labels(2, len));
            let coins: Vec<u8> = labels(3, len).iter().map(|label| label[5]).collect();
            for n in 0..8 {
                let negated = Negated { a: n & 1 == 1, b: n & 2 == 2, c: n & 4 == 4 };
                let expected = gates(AesIsa::Portable, first, negated, delta, [&a, &b], &coins);
                for isa in AesIsa::available() {
                    let garbling = gates(isa, first, negated, delta, [&a, &b], &coins);
                    assert!(garbling == expected, "{isa:?}, {len} gates from {first}, {negated:?}");
                }
                let (zero, _, evaluated) = expected;
                for (x, active) in (0_u8..).zip(evaluated) {
                    let (a, b) = ((x & 1 == 1) ^ negated.a, (x >> 1 == 1) ^ negated.b);
                    let bit = (a && b) ^ negated.c;
                    let right = zero.iter().map(|zero| if bit { sum(*zero, delta) } else { *zero });
                    assert!(active.into_iter().eq(right), "{x:02b}, {negated:?}");
                }
            }
        }
    }
}

/// All colours of zero, coins and operands, with many labels each.
#[test]
fn every_combination_of_colours_and_coins_is_right() {
    for n in 0..16_u8 {
        let coloured = |seed, colour: u8| -> Vec<Label> {
            let mut labels = labels(seed, 300);
            labels.iter_mut().for_each(|label| label[0] = label[0] & 0xfe | colour);
            labels
        };
        let (a, b) = (coloured(20 + n, n & 1), coloured(40 + n, n >> 1 & 1));
        let delta = odd(labels(60 + n, 1)[0]);
        let (zero, _, evaluated) =
            gates(AesIsa::best(), 77, Negated::default(), delta, [&a, &b], &[n >> 2; 300]);
        for (x, active) in (0..4).zip(evaluated) {
            let right = zero.iter().map(|zero| if x == 3 { sum(*zero, delta) } else { *zero });
            assert!(active.into_iter().eq(right), "{n:04b} at {x:02b}");
        }
    }
}

/// The hashes by the definition of the parent module, with the three tweaks of a gate.
#[test]
fn the_first_label_is_made_of_hashes_with_three_tweaks() {
    let number = 1_u64 << 33 | 5;
    let delta = odd(labels(9, 1)[0]);
    let [mut a, mut b] = [labels(1, 1)[0], labels(2, 1)[0]];
    (a[0], b[0]) = (a[0] & 0xfe, b[0] & 0xfe);
    let (zero, sent, _) = gates(AesIsa::best(), number, Negated::default(), delta, [&[a], &[b]], &[0]);
    let hashed = |label: Label, tweak: u128| {
        let x = u128::from_le_bytes(label);
        let (left, right) = (x >> 64, x & u128::from(u64::MAX));
        let input = ((left ^ right) << 64 | left) ^ tweak;
        let key = super::super::tests::permuted(ROOT, u128::from(number / 512)).to_le_bytes();
        super::super::tests::permuted(&key, input) ^ input
    };
    let t = u128::from(2 * number);
    let [h_a, h_b, h_x] = [hashed(a, t), hashed(b, t + 1), hashed(sum(a, b), t + (1 << 64))];
    // With colours and coins of zero no control matrix takes anything for 00.
    let half = |h: u128| portable::half(h) as u64;
    let expected = u128::from(half(h_a) ^ half(h_x)) | u128::from(half(h_b) ^ half(h_x)) << 64;
    assert_eq!(u128::from_le_bytes(zero[0]), expected);
    assert_eq!(
        sent[24] & 3,
        portable::pad(h_a) ^ portable::pad(h_x) | (portable::pad(h_b) ^ portable::pad(h_x)) << 1
    );
}

/// A + B is zero, or Delta where the evaluator may not look; no sum of what is sent is a half that only the
/// garbler knows.
#[test]
fn a_gate_of_a_wire_with_itself_shows_nothing() {
    let delta = odd(labels(9, 1)[0]);
    let a = labels(1, 1000);
    let halves = |label: &Label| {
        let x = u128::from_le_bytes(*label);
        [x as u64, (x >> 64) as u64]
    };
    let [d_l, d_r] = halves(&delta);
    let sum_of = |all: &[u64], which: usize| {
        all.iter().enumerate().fold(0, |sum, (at, one)| if which >> at & 1 == 1 { sum ^ one } else { sum })
    };
    for negated in [Negated::default(), Negated { b: true, ..Negated::default() }] {
        let (_, sent, _) = gates(AesIsa::best(), 0, negated, delta, [&a, &a], &[2; 1000]);
        let (pairs, rest) = sent.split_at(16_000);
        for ((label, pair), third) in a.iter().zip(pairs.as_chunks::<16>().0).zip(rest.as_chunks::<8>().0) {
            let [g_0, g_1] = halves(pair);
            let g_2 = u64::from_le_bytes(*third);
            let [a_l, a_r] = halves(label);
            for n in 1..8 {
                let shown = sum_of(&[g_0, g_1, g_2], n);
                for m in 0..16 {
                    assert_ne!(shown, sum_of(&[a_l, a_r, d_l, d_r], m));
                }
            }
        }
    }
}

#[test]
fn numbers_give_different_gates_under_one_key_and_under_two() {
    let delta = odd(labels(9, 1)[0]);
    let same = vec![labels(1, 1)[0]; 1100];
    let (mut zero, sent, _) = gates(AesIsa::best(), 0, Negated::default(), delta, [&same, &same], &[1; 1100]);
    let mut rows: Vec<[u8; 8]> = sent[..1100 * 24].as_chunks().0.to_vec();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), 3300);
    zero.sort_unstable();
    zero.dedup();
    assert_eq!(zero.len(), 1100);
}

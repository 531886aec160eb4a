//! Every implementation against products bit by bit.

use super::parts::{PARTS, PLACES};
use super::*;
use crate::aes_prg::AesPrg;

struct Of40;
struct Of42;
struct Of64;

impl Modulus for Of40 {
    const DEGREE: u32 = 40;
    const TAPS: &'static [u32] = &[20, 15, 10];
}

impl Modulus for Of42 {
    const DEGREE: u32 = 42;
    const TAPS: &'static [u32] = &[7];
}

impl Modulus for Of64 {
    const DEGREE: u32 = 64;
    const TAPS: &'static [u32] = &[4, 3, 1];
}

/// Horner's rule, with a reduction after every step.
fn reference<M: Modulus>(a: u64, b: u64) -> u64 {
    (0..M::DEGREE).rev().fold(0, |product, bit| {
        let carry = product >> (M::DEGREE - 1) & 1;
        let doubled = (product << 1 & (u64::MAX >> (64 - M::DEGREE))) ^ carry;
        let reduced = M::TAPS.iter().fold(doubled, |sum, tap| sum ^ carry << tap);
        reduced ^ (a * (b >> bit & 1))
    })
}

fn random<M: Modulus>(seed: u8, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count * 8];
    AesPrg::new(&[seed; 16], 0).fill(&mut bytes);
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word) >> (64 - M::DEGREE)).collect()
}

fn multiplies_as_the_reference<M: Modulus>() {
    let bits = || (0..M::DEGREE).map(|bit| 1 << bit).chain([u64::MAX >> (64 - M::DEGREE)]);
    let (mut a, mut b): (Vec<u64>, Vec<u64>) = bits().flat_map(|a| bits().map(move |b| (a, b))).unzip();
    a.extend(random::<M>(1, 300));
    b.extend(random::<M>(2, 300));
    let expected: Vec<u64> = a.iter().zip(&b).map(|(a, b)| reference::<M>(*a, *b)).collect();
    for isa in ClmulIsa::available() {
        for from in (a.len() - 70..=a.len()).chain([0]) {
            let mut products = vec![7; a.len() - from];
            multiply_with::<M>(isa, &mut products, &a[from..], &b[from..]);
            assert!(products == expected[from..], "{isa:?}, from {from}");
        }
    }
    assert_eq!(product::<M>(a[9], b[9]), expected[9]);
}

#[test]
fn every_implementation_multiplies_as_the_reference() {
    multiplies_as_the_reference::<Of40>();
    multiplies_as_the_reference::<Of42>();
    multiplies_as_the_reference::<Of64>();
}

fn combines_as_the_reference<M: Modulus>() {
    let (rows, factors) = (random::<M>(3, 8 * 70), random::<M>(4, 8));
    for (count, seed) in (0..=8).flat_map(|count| [(count, 0u32), (count, 0b0101_1010), (count, 0b1111_1111)])
    {
        for len in 0..=70 {
            let factor = |k: usize| if seed >> k & 1 == 1 { 1 } else { factors[k] };
            let mut terms: Vec<(&[u64], u64)> =
                (0..count).map(|k| (&rows[k * 70..k * 70 + len], factor(k))).collect();
            terms.extend(terms.first().map(|(row, _)| (*row, 0)));
            let sum =
                |i: usize| terms.iter().fold(factors[7], |sum, (row, f)| sum ^ reference::<M>(row[i], *f));
            let expected: Vec<u64> = (0..len).map(sum).collect();
            for isa in ClmulIsa::available() {
                let mut dst = vec![7; len];
                combine_with::<M>(isa, &mut dst, &terms, factors[7]);
                assert!(dst == expected, "{isa:?}, {count} terms of {len}");
            }
        }
    }
}

#[test]
fn every_implementation_combines_as_the_reference() {
    combines_as_the_reference::<Of40>();
    combines_as_the_reference::<Of42>();
    combines_as_the_reference::<Of64>();
}

fn sums_products_as_the_reference<M: Modulus>() {
    let (a, b) = (random::<M>(5, 70), random::<M>(6, 70));
    for len in 0..=70 {
        let expected = a[..len].iter().zip(&b).fold(0, |sum, (a, b)| sum ^ reference::<M>(*a, *b));
        for isa in ClmulIsa::available() {
            let sum = inner_product_with(isa, &a[..len], &b[..len]);
            assert_eq!(reduce::<M>(sum), expected, "{isa:?}, {len} products");
        }
        assert_eq!(inner_product::<M>(&a[..len], &b[..len]), expected);
    }
}

#[test]
fn every_implementation_sums_products_as_the_reference() {
    sums_products_as_the_reference::<Of40>();
    sums_products_as_the_reference::<Of42>();
    sums_products_as_the_reference::<Of64>();
}

/// The value at a place, whose digits of base three say where each variable is.
fn at(row: &[u64], i: usize, place: usize) -> u64 {
    let fits = |part: usize, variable: u32| {
        let digit = place / 3_usize.pow(variable) % 3;
        digit == 2 || digit == part >> variable & 1
    };
    let parts = (0..PARTS).filter(|part| (0..4).all(|variable| fits(*part, variable)));
    parts.fold(0, |sum, part| sum ^ row[part * (row.len() / PARTS) + i])
}

#[test]
fn every_implementation_multiplies_parts_as_the_reference() {
    let (u, w) = (random::<Of64>(7, PARTS * 19), random::<Of64>(8, PARTS * 19));
    for len in 0..=19 {
        let (u, w) = (&u[..PARTS * len], &w[..PARTS * len]);
        let sum =
            |place| (0..len).fold(0, |sum, i| sum ^ reference::<Of64>(at(u, i, place), at(w, i, place)));
        let expected: [u64; PLACES] = core::array::from_fn(sum);
        for isa in ClmulIsa::available() {
            let products = parts::products_with(isa, u, w).map(reduce::<Of64>);
            assert_eq!(products, expected, "{isa:?}, {len}");
        }
    }
}

fn folds_as_the_reference<M: Modulus>() {
    let (row, factors) = (random::<M>(9, PARTS * 37), random::<M>(2, PARTS - 1));
    for len in 0..=37 {
        let row = &row[..PARTS * len];
        let product = |i: usize, k: usize| reference::<M>(row[i] ^ row[(k + 1) * len + i], factors[k]);
        let folded = |i: usize| (0..PARTS - 1).fold(row[i], |sum, k| sum ^ product(i, k));
        let expected: Vec<u64> = (0..len).map(folded).collect();
        for isa in ClmulIsa::available() {
            let mut row = row.to_vec();
            parts::fold_with::<M>(isa, &mut row, factors.clone().try_into().expect("15 factors"));
            assert_eq!(row[..len], expected, "{isa:?}, {len}");
        }
    }
}

#[test]
fn every_implementation_folds_parts_as_the_reference() {
    folds_as_the_reference::<Of40>();
    folds_as_the_reference::<Of64>();
}

#[test]
#[should_panic(expected = "sixteen parts")]
fn a_row_without_sixteen_parts_panics() {
    parts::fold::<Of64>(&mut [0; 24], [1; PARTS - 1]);
}

#[test]
#[should_panic(expected = "sixteen parts")]
fn rows_of_different_lengths_panic() {
    parts::products(&[0; 16], &[0; 32]);
}

#[test]
#[should_panic(expected = "rows of one length")]
fn terms_of_another_length_than_the_sum_panic() {
    combine::<Of40>(&mut [0; 3], &[(&[0; 4], 1)], 0);
}

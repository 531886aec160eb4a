//! Every implementation against products bit by bit.

use super::*;
use crate::aes_prg::AesPrg;

struct Of128;

impl Modulus for Of128 {
    const DEGREE: u32 = 128;
    const TAPS: &'static [u32] = &[7, 2, 1];
}

/// Horner's rule, with a reduction after every step.
fn reference(a: u128, b: u128) -> u128 {
    (0..Of128::DEGREE).rev().fold(0, |product, bit| {
        let carry = product >> (Of128::DEGREE - 1) & 1;
        let doubled = (product << 1) ^ carry;
        let reduced = Of128::TAPS.iter().fold(doubled, |sum, tap| sum ^ carry << tap);
        reduced ^ (a * (b >> bit & 1))
    })
}

fn random(seed: u8, count: usize) -> Vec<u128> {
    let mut bytes = vec![0; count * 16];
    AesPrg::new(&[seed; 16], 0).fill(&mut bytes);
    bytes.as_chunks().0.iter().map(|word| u128::from_le_bytes(*word)).collect()
}

#[test]
fn every_implementation_multiplies_as_the_reference() {
    let bits = || (0..Of128::DEGREE).map(|bit| 1 << bit).chain([u128::MAX]);
    let (mut a, mut b): (Vec<u128>, Vec<u128>) = bits().flat_map(|a| bits().map(move |b| (a, b))).unzip();
    a.extend(random(1, 300));
    b.extend(random(2, 300));
    let expected: Vec<u128> = a.iter().zip(&b).map(|(a, b)| reference(*a, *b)).collect();
    for isa in ClmulIsa::available() {
        for from in (a.len() - 70..=a.len()).chain([0]) {
            let mut products = vec![7; a.len() - from];
            multiply_with::<Of128>(isa, &mut products, &a[from..], &b[from..]);
            assert!(products == expected[from..], "{isa:?}, from {from}");
        }
    }
    assert_eq!(product::<Of128>(a[9], b[9]), expected[9]);
}

#[test]
fn every_implementation_combines_as_the_reference() {
    let (rows, factors) = (random(3, 8 * 70), random(4, 8));
    for (count, seed) in (0..=8).flat_map(|count| [(count, 0u32), (count, 0b0101_1010), (count, 0b1111_1111)])
    {
        for len in 0..=70 {
            let factor = |k: usize| if seed >> k & 1 == 1 { 1 } else { factors[k] };
            let mut terms: Vec<(&[u128], u128)> =
                (0..count).map(|k| (&rows[k * 70..k * 70 + len], factor(k))).collect();
            terms.extend(terms.first().map(|(row, _)| (*row, 0)));
            let sum = |i: usize| terms.iter().fold(factors[7], |sum, (row, f)| sum ^ reference(row[i], *f));
            let expected: Vec<u128> = (0..len).map(sum).collect();
            for isa in ClmulIsa::available() {
                let mut dst = vec![7; len];
                combine_with::<Of128>(isa, &mut dst, &terms, factors[7]);
                assert!(dst == expected, "{isa:?}, {count} terms of {len}");
            }
        }
    }
}

#[test]
fn every_implementation_sums_products_as_the_reference() {
    let (a, b) = (random(5, 70), random(6, 70));
    for len in 0..=70 {
        let expected = a[..len].iter().zip(&b).fold(0, |sum, (a, b)| sum ^ reference(*a, *b));
        for isa in ClmulIsa::available() {
            let sum = inner_product_with::<Of128>(isa, &a[..len], &b[..len]);
            assert_eq!(sum, expected, "{isa:?}, {len} products");
        }
        assert_eq!(inner_product::<Of128>(&a[..len], &b[..len]), expected);
    }
}

#[test]
#[should_panic(expected = "rows of one length")]
fn terms_of_another_length_than_the_sum_panic() {
    combine::<Of128>(&mut [0; 3], &[(&[0; 4], 1)], 0);
}

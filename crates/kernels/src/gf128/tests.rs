//! Every implementation against the reference of the field crate, and published values.

use polyclave_field::Gf128;

use super::*;
use crate::aes_prg::AesPrg;

fn random(seed: u8, elements: usize) -> Vec<u8> {
    let mut bytes = vec![0; elements * BYTES];
    AesPrg::new(&[seed; 16], 0).fill(&mut bytes);
    bytes
}

fn elements(bytes: &[u8]) -> Vec<Gf128> {
    bytes.as_chunks().0.iter().map(|element| Gf128::from_bytes(*element)).collect()
}

fn bytes(elements: impl IntoIterator<Item = Gf128>) -> Vec<u8> {
    elements.into_iter().flat_map(Gf128::to_bytes).collect()
}

#[test]
fn every_implementation_multiplies_every_pair_of_bits_as_the_reference() {
    let bits = || (0..128).map(|bit| Gf128::from_bytes((1u128 << bit).to_be_bytes()));
    let (a, b): (Vec<Gf128>, Vec<Gf128>) = bits().flat_map(|a| bits().map(move |b| (a, b))).unzip();
    let expected = bytes(a.iter().zip(&b).map(|(a, b)| *a * *b));
    for isa in ClmulIsa::available() {
        let mut products = vec![0; expected.len()];
        multiply_with(isa, &mut products, &bytes(a.clone()), &bytes(b.clone()));
        assert!(products == expected, "{isa:?}");
    }
}

#[test]
fn every_implementation_multiplies_dense_elements_as_the_reference() {
    let (mut a, mut b) = (random(1, 300), random(2, 300));
    a[..16].fill(0xff);
    b[..32].fill(0xff);
    let expected = bytes(elements(&a).iter().zip(&elements(&b)).map(|(a, b)| *a * *b));
    for isa in ClmulIsa::available() {
        for count in (0..20).chain([300]) {
            let len = count * BYTES;
            // One byte into the memory, so that nothing is aligned, and nothing beyond is touched.
            let mut dst = vec![0xa5; len + 2];
            multiply_with(isa, &mut dst[1..=len], &a[..len], &b[..len]);
            assert!(dst[1..=len] == expected[..len], "{isa:?}, {count} elements");
            assert_eq!([dst[0], dst[len + 1]], [0xa5; 2]);
        }
    }
}

#[test]
fn every_implementation_adds_multiples_as_the_reference() {
    let (dst, src) = (random(3, 50), random(4, 50));
    let constant = elements(&random(5, 1))[0];
    let expected = bytes(elements(&dst).iter().zip(&elements(&src)).map(|(d, s)| *d + *s * constant));
    for isa in ClmulIsa::available() {
        let mut sums = dst.clone();
        scale_add_with(isa, &mut sums, &src, &constant.to_bytes());
        assert!(sums == expected, "{isa:?}");
    }
}

#[test]
fn every_implementation_sums_products_as_the_reference() {
    for (sums, count) in [(0, 3), (1, 0), (1, 1), (3, 2), (2, 3), (5, 16), (4, 127), (7, 128)] {
        let (weights, row) = (random(6, sums * count), random(7, count));
        let weight = elements(&weights);
        let sum =
            |i: usize| -> Gf128 { weight[i * count..].iter().zip(elements(&row)).map(|(w, e)| *w * e).sum() };
        let expected = bytes((0..sums).map(sum));
        for isa in ClmulIsa::available() {
            let mut dst = vec![0xa5; sums * BYTES];
            weighted_sums_with(isa, &mut dst, &weights, &row);
            assert!(dst == expected, "{isa:?}, {sums} sums of {count}");
        }
    }
}

/// McGrew and Viega 2004, appendix B, test case 2.
#[test]
fn the_product_of_the_published_ghash_comes_out() {
    let h = 0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e_u128.to_be_bytes();
    let block = 0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78_u128.to_be_bytes();
    let mut product = [0; 16];
    multiply(&mut product, &block, &h);
    assert_eq!(u128::from_be_bytes(product), 0x5e2e_c746_9170_6288_2c85_b068_5353_deb7);
}

#[test]
#[should_panic(expected = "whole sums")]
fn weights_that_make_no_whole_sums_panic() {
    weighted_sums(&mut [0; 16], &[0; 48], &[0; 32]);
}

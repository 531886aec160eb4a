//! Every implementation against schoolbook polynomials, and the laws of the field.

use super::*;

/// The product of two polynomials over GF(2), then the remainder of the long division by the field
/// polynomial.
fn schoolbook(a: u8, b: u8) -> u8 {
    let mut product = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ u16::from(a) << bit);
    for degree in (8..15).rev() {
        if product >> degree & 1 == 1 {
            product ^= 0x11b << (degree - 8);
        }
    }
    product as u8
}

/// All pairs of bytes.
fn pairs() -> (Vec<u8>, Vec<u8>) {
    (0..=255).flat_map(|a| (0..=255).map(move |b| (a, b))).unzip()
}

fn times(a: u8, b: u8) -> u8 {
    let mut product = [0];
    multiply(&mut product, &[a], &[b]);
    product[0]
}

#[test]
fn portable_multiply_equals_schoolbook_on_all_pairs() {
    let (a, b) = pairs();
    let mut products = vec![0; a.len()];
    portable::multiply(&mut products, &a, &b);
    for ((&product, &a), &b) in products.iter().zip(&a).zip(&b) {
        assert_eq!(product, schoolbook(a, b), "{a} * {b}");
    }
}

#[test]
fn every_implementation_multiplies_all_pairs_as_portable() {
    let (a, b) = pairs();
    let mut expected = vec![0; a.len()];
    portable::multiply(&mut expected, &a, &b);
    for isa in Isa::available() {
        let mut products = vec![0; a.len()];
        multiply_with(isa, &mut products, &a, &b);
        assert!(products == expected, "{isa:?}");
    }
}

#[test]
fn every_implementation_multiplies_any_length_at_any_offset() {
    let (a, b) = pairs();
    for isa in Isa::available() {
        for len in 0..200 {
            for offset in [0, 1, 13] {
                let (a, b) = (&a[777 + offset..][..len], &b[12_345..][..len]);
                let mut dst = vec![0xa5; offset + len + 3];
                multiply_with(isa, &mut dst[offset..offset + len], a, b);
                for i in 0..len {
                    assert_eq!(dst[offset + i], schoolbook(a[i], b[i]), "{isa:?}, {len} bytes, byte {i}");
                }
                assert!(dst[..offset].iter().chain(&dst[offset + len..]).all(|&byte| byte == 0xa5));
            }
        }
    }
}

#[test]
fn the_product_of_fips_197_comes_out() {
    // Section 4.2: {57} * {83} = {c1}, {57} * {13} = {fe}.
    assert_eq!(times(0x57, 0x83), 0xc1);
    assert_eq!(times(0x57, 0x13), 0xfe);
}

#[test]
fn nonzero_bytes_form_a_group() {
    for a in 1..=255 {
        assert_eq!(times(a, 1), a);
        let inverses = (1..=255).filter(|&b| times(a, b) == 1).count();
        assert_eq!(inverses, 1);
        // Lagrange: the order of every element divides 255.
        let power = (0..255).fold(1, |power, _| times(power, a));
        assert_eq!(power, 1);
    }
}

proptest::proptest! {
    #[test]
    fn products_commute_associate_and_distribute(a: u8, b: u8, c: u8) {
        assert_eq!(times(a, b), times(b, a));
        assert_eq!(times(times(a, b), c), times(a, times(b, c)));
        assert_eq!(times(a, b ^ c), times(a, b) ^ times(a, c));
    }
}

#[test]
#[should_panic(expected = "another length")]
fn factors_of_another_length_panic() {
    multiply(&mut [0; 4], &[0; 4], &[0; 3]);
}

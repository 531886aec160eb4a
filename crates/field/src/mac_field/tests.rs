//! Each field is compared with polynomials as lists of coefficients, and its embedding and projection with
//! the field of cells.

mod polynomial;

use polynomial::Polynomial;

use super::*;
use crate::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, Gf128, Gf256};

/// Elements without a pattern.
fn some<F: MacField>(count: u32) -> Vec<F::Word> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u128;
    let mut next = || {
        state =
            state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(0x1405_7b7e_f767_814f);
        F::truncate(F::Word::from_bytes(&(state >> 32 ^ state << 65).to_le_bytes()[..size_of::<F::Word>()]))
    };
    (0..count).map(|_| next()).collect()
}

fn polynomial<F: MacField>(x: F::Word) -> Polynomial {
    Polynomial::new(
        (0..8 * size_of::<F::Word>() as u32).filter(|i| x.shift_right(*i).and(F::Word::ONE) == F::Word::ONE),
    )
}

/// The product of cells: AES's field, or that of six bits.
fn cell_product<F: MacField>(a: u8, b: u8) -> u8 {
    if F::CELL_BITS == 8 {
        return (Gf256(a) * Gf256(b)).0;
    }
    let factor = |cell: u8| Polynomial::new((0..6).filter(|i| cell >> i & 1 == 1));
    let product = factor(a).times(&factor(b)).modulo(&Polynomial::new([6, 4, 3, 1, 0]));
    product.exponents().fold(0, |cell, i| cell | 1 << i)
}

fn cells<F: MacField>() -> impl Iterator<Item = u8> + Clone {
    0..=u8::MAX >> (8 - F::CELL_BITS)
}

fn products_are_those_of_polynomials<F: MacField>(modulus: &[u32]) {
    let modulus = Polynomial::new(modulus.iter().copied());
    for (a, b) in some::<F>(40).into_iter().zip(some::<F>(41).into_iter().skip(1)) {
        let product = polynomial::<F>(a).times(&polynomial::<F>(b)).modulo(&modulus);
        assert_eq!(polynomial::<F>(F::multiply(a, b)), product, "{}", F::NAME);
    }
    // The last bit that there is, squared, is reduced in both steps.
    let last = F::Word::ONE.shift_left(F::BITS - 1);
    let square = polynomial::<F>(last).times(&polynomial::<F>(last)).modulo(&modulus);
    assert_eq!(polynomial::<F>(F::multiply(last, last)), square, "{}", F::NAME);
}

#[test]
fn products_are_those_of_polynomials_in_all_fields() {
    products_are_those_of_polynomials::<Gf2_40>(&[40, 20, 15, 10, 0]);
    products_are_those_of_polynomials::<Gf2_42>(&[42, 7, 0]);
    products_are_those_of_polynomials::<Gf2_64>(&[64, 4, 3, 1, 0]);
    products_are_those_of_polynomials::<Gf2_128>(&[128, 7, 2, 1, 0]);
}

#[test]
fn all_moduli_are_irreducible() {
    let moduli: [&[u32]; 4] = [&[40, 20, 15, 10, 0], &[42, 7, 0], &[64, 4, 3, 1, 0], &[128, 7, 2, 1, 0]];
    for modulus in moduli {
        assert!(Polynomial::new(modulus.iter().copied()).is_irreducible(), "{modulus:?}");
    }
}

#[test]
fn the_modulus_that_the_paper_writes_for_42_bits_has_seven_factors_of_degree_six() {
    let paper = Polynomial::new([42, 21, 0]);
    assert!(!paper.is_irreducible());
    let sextics = (64..128u32).map(|bits| Polynomial::new((0..7).filter(move |i| bits >> i & 1 == 1)));
    let factors: Vec<Polynomial> =
        sextics.filter(|sextic| sextic.is_irreducible() && paper.modulo(sextic).is_zero()).collect();
    assert_eq!(factors.len(), 7);
    assert_eq!(factors.iter().fold(Polynomial::new([0]), |product, factor| product.times(factor)), paper);
}

fn embedding_keeps_sums_and_products<F: MacField>() {
    assert_eq!(F::embed(1), F::Word::ONE);
    for a in cells::<F>() {
        for b in cells::<F>() {
            assert_eq!(F::embed(a ^ b), F::embed(a) ^ F::embed(b));
            assert_eq!(
                F::embed(cell_product::<F>(a, b)),
                F::multiply(F::embed(a), F::embed(b)),
                "{}",
                F::NAME
            );
        }
    }
}

#[test]
fn embedding_keeps_sums_and_products_in_all_fields() {
    embedding_keeps_sums_and_products::<Gf2_40>();
    embedding_keeps_sums_and_products::<Gf2_42>();
    embedding_keeps_sums_and_products::<Gf2_64>();
    embedding_keeps_sums_and_products::<Gf2_128>();
}

fn projection_is_linear_over_cells_and_undoes_embedding<F: MacField>() {
    for cell in cells::<F>() {
        assert_eq!(F::project(F::embed(cell)), cell, "{}", F::NAME);
        for (x, y) in some::<F>(20).into_iter().zip(some::<F>(30).into_iter().skip(10)) {
            let product = F::multiply(F::embed(cell), x);
            assert_eq!(F::project(product), cell_product::<F>(cell, F::project(x)), "{}", F::NAME);
            assert_eq!(F::project(x ^ y), F::project(x) ^ F::project(y));
        }
    }
}

#[test]
fn projection_is_linear_over_cells_and_undoes_embedding_in_all_fields() {
    projection_is_linear_over_cells_and_undoes_embedding::<Gf2_40>();
    projection_is_linear_over_cells_and_undoes_embedding::<Gf2_42>();
    projection_is_linear_over_cells_and_undoes_embedding::<Gf2_64>();
    projection_is_linear_over_cells_and_undoes_embedding::<Gf2_128>();
}

#[test]
fn projection_from_40_bits_sees_the_bits_whose_place_is_a_multiple_of_five() {
    for place in 0..40 {
        assert_eq!(Gf2_40::project(1 << place) != 0, place % 5 == 0);
    }
    assert_eq!(Gf2_40::embed(2), 1 << 5 | 1);
}

/// The image of x is the least root of the polynomial of cells; the other roots are its conjugates.
#[test]
fn the_image_of_x_is_the_least_root_in_42_and_64_bits() {
    fn is_least<F: MacField<Word = u64>>() {
        let square = |root: &u64| Some(F::multiply(*root, *root));
        let mut others = std::iter::successors(Some(F::embed(2)), square).take(F::CELL_BITS.into()).skip(1);
        assert!(others.all(|other| other > F::embed(2)), "{}", F::NAME);
    }
    is_least::<Gf2_42>();
    is_least::<Gf2_64>();
}

#[test]
fn the_field_of_128_bits_is_that_of_gcm_with_bits_reversed() {
    let gcm = |x: u128| Gf128::from_bytes(x.reverse_bits().to_be_bytes());
    for (a, b) in some::<Gf2_128>(40).into_iter().zip(some::<Gf2_128>(41).into_iter().skip(1)) {
        assert_eq!(gcm(Gf2_128::multiply(a, b)), gcm(a) * gcm(b));
    }
    for cell in 0..=255 {
        assert_eq!(gcm(Gf2_128::embed(cell)), Gf128::embed(Gf256(cell)));
    }
}

fn rows_are_elements_one_by_one<F: MacField>() {
    for len in (0..=70).chain([300]) {
        let (a, b) = (some::<F>(len), some::<F>(len + 9).split_off(9));
        let row: Vec<u8> = (0..len).map(|i| (i * 37 + 11) as u8 & (u8::MAX >> (8 - F::CELL_BITS))).collect();
        let pairs = || a.iter().copied().zip(b.iter().copied());
        let sum = |products: Vec<F::Word>| products.into_iter().fold(F::Word::ZERO, BitXor::bitxor);

        let mut dst = a.clone();
        F::multiply_rows(&mut dst, &a, &b);
        let products: Vec<F::Word> = pairs().map(|(a, b)| F::multiply(a, b)).collect();
        assert_eq!(dst, products);
        assert_eq!(F::inner_product(&a, &b), sum(products));

        let factor = some::<F>(3)[2];
        F::combine(&mut dst, &[(&a, factor), (&b, F::Word::ONE), (&b, F::Word::ZERO)], factor);
        assert_eq!(dst, pairs().map(|(a, b)| F::multiply(a, factor) ^ b ^ factor).collect::<Vec<_>>());
        F::combine(&mut dst, &[], factor);
        assert_eq!(dst, vec![factor; len as usize]);

        F::embed_row(&mut dst, &row);
        assert_eq!(dst, row.iter().map(|cell| F::embed(*cell)).collect::<Vec<_>>());
        assert_eq!(F::embedded_inner_product(&a, &row), F::inner_product(&a, &dst));
        let mut cells = row.clone();
        F::project_row(&mut cells, &a);
        assert_eq!(cells, a.iter().map(|x| F::project(*x)).collect::<Vec<_>>());
    }
}

#[test]
fn rows_are_elements_one_by_one_in_all_fields() {
    rows_are_elements_one_by_one::<Gf2_40>();
    rows_are_elements_one_by_one::<Gf2_42>();
    rows_are_elements_one_by_one::<Gf2_64>();
    rows_are_elements_one_by_one::<Gf2_128>();
}

fn rows_written_are_little_endian_and_read_back<F: MacField>() {
    for len in 0..=70 {
        let row = some::<F>(len);
        let mut bytes = vec![0xa5; row.len() * F::BYTES];
        F::write_row(&row, &mut bytes);
        for (bytes, element) in bytes.chunks(F::BYTES).zip(&row) {
            let places = bytes.iter().zip((0..).step_by(8));
            let word =
                places.fold(F::Word::ZERO, |w, (byte, at)| w ^ F::Word::from_bytes(&[*byte]).shift_left(at));
            assert_eq!(word, *element);
        }
        let mut back = vec![F::Word::ONE; row.len()];
        F::read_row(&bytes, &mut back);
        assert_eq!(back, row);
        bytes.fill(0xff);
        F::read_row(&bytes, &mut back);
        assert!(back.iter().all(|all| F::truncate(*all) == *all), "bits beyond the field are dropped");
    }
}

#[test]
fn rows_written_are_little_endian_and_read_back_in_all_fields() {
    rows_written_are_little_endian_and_read_back::<Gf2_40>();
    rows_written_are_little_endian_and_read_back::<Gf2_42>();
    rows_written_are_little_endian_and_read_back::<Gf2_64>();
    rows_written_are_little_endian_and_read_back::<Gf2_128>();
}

#[test]
#[should_panic(expected = "rows of one length")]
fn rows_of_different_lengths_panic() {
    Gf2_40::combine(&mut [0; 3], &[(&[0; 3], 1), (&[0; 4], 2)], 0);
}

//! The kernels on elements of larger fields.

use super::super::Forms;
use super::{bytes_of64, bytes_of128, sample};
use crate::cells::{Embedding, Projection};
use crate::isa::ClmulIsa;
use crate::words64::parts;
use crate::{Modulus, column_words, gf128, words64, words128};

/// Elements: some whole registers of every form, and a rest.
const COUNT: usize = 45;

/// X^64 + X^4 + X^3 + X + 1.
struct Of64;

impl Modulus for Of64 {
    const DEGREE: u32 = 64;
    const TAPS: &'static [u32] = &[4, 3, 1];
}

/// X^40 + X^20 + X^15 + X^10 + 1.
struct Of40;

impl Modulus for Of40 {
    const DEGREE: u32 = 40;
    const TAPS: &'static [u32] = &[20, 15, 10];
}

/// X^128 + X^7 + X^2 + X + 1.
struct Of128;

impl Modulus for Of128 {
    const DEGREE: u32 = 128;
    const TAPS: &'static [u32] = &[7, 2, 1];
}

fn elements<M: Modulus>(seed: u64, count: usize) -> Vec<u64> {
    super::words64(seed, count).iter().map(|word| word >> (64 - M::DEGREE)).collect()
}

pub(super) fn ghash(forms: Forms) -> Vec<u8> {
    let h = 0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e_u128.to_be_bytes();
    let block = 0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78_u128.to_be_bytes();
    let mut product = vec![0; 16];
    gf128::multiply_with(forms.clmul, &mut product, &block, &h);
    product
}

pub(super) fn gf128(forms: Forms) -> Vec<u8> {
    let (a, b) = (sample(1, 16 * COUNT), sample(2, 16 * COUNT));
    let (mut products, mut sums, mut weighted) =
        (vec![0; 16 * COUNT], sample(3, 16 * COUNT), vec![0; 16 * 3]);
    gf128::multiply_with(forms.clmul, &mut products, &a, &b);
    gf128::scale_add_with(forms.clmul, &mut sums, &a, b.first_chunk().expect("an element"));
    gf128::weighted_sums_with(forms.clmul, &mut weighted, &sample(4, 3 * 16 * COUNT), &a);
    [products, sums, weighted].concat()
}

fn words64_of<M: Modulus>(isa: ClmulIsa) -> Vec<u64> {
    let (a, b) = (elements::<M>(5, COUNT), elements::<M>(6, COUNT));
    let (mut products, mut combined) = (vec![0; COUNT], vec![0; COUNT]);
    words64::multiply_with::<M>(isa, &mut products, &a, &b);
    words64::combine_with::<M>(isa, &mut combined, &[(&a, b[0]), (&b, 1)], a[1]);
    let sum = words64::reduce::<M>(words64::inner_product_with(isa, &a, &b));
    [products, combined, vec![sum]].concat()
}

pub(super) fn words64(forms: Forms) -> Vec<u8> {
    bytes_of64(&[words64_of::<Of64>(forms.clmul), words64_of::<Of40>(forms.clmul)].concat())
}

pub(super) fn words128(forms: Forms) -> Vec<u8> {
    let (a, b) = (super::words128(7, COUNT), super::words128(8, COUNT));
    let (mut products, mut combined) = (vec![0; COUNT], vec![0; COUNT]);
    words128::multiply_with::<Of128>(forms.clmul, &mut products, &a, &b);
    words128::combine_with::<Of128>(forms.clmul, &mut combined, &[(&a, b[0]), (&b, 1)], a[1]);
    let sum = words128::inner_product_with::<Of128>(forms.clmul, &a, &b);
    bytes_of128(&[products, combined, vec![sum]].concat())
}

pub(super) fn parts(forms: Forms) -> Vec<u8> {
    let count = parts::PARTS * 9;
    let (u, mut row) = (elements::<Of64>(9, count), elements::<Of64>(10, count));
    let products = parts::products_with(forms.clmul, &u, &row);
    let factors = elements::<Of64>(11, parts::PARTS - 1);
    parts::fold_with::<Of64>(forms.clmul, &mut row, *factors.first_chunk().expect("a factor for each part"));
    [bytes_of128(&products), bytes_of64(&row[..count / parts::PARTS])].concat()
}

pub(super) fn column_words(forms: Forms) -> Vec<u8> {
    const STRIDE: usize = 8 * COUNT;
    let columns = sample(12, 64 * STRIDE);
    let (mut narrow, mut wide) = (elements::<Of64>(13, COUNT), elements::<Of64>(14, COUNT));
    column_words::add_words_with::<Of64, 4>(forms.bytes, &columns, STRIDE, &mut narrow);
    column_words::add_words_with::<Of64, 64>(forms.bytes, &columns, STRIDE, &mut wide);
    bytes_of64(&[narrow, wide].concat())
}

fn map<const BYTES: usize>(seed: u64) -> [u128; 8] {
    let words = super::words128(seed, 8);
    core::array::from_fn(|bit| words[bit] >> (128 - 8 * BYTES))
}

pub(super) fn cells(forms: Forms) -> Vec<u8> {
    let cells = sample(15, 100);
    let (mut small, mut large) = (vec![0; cells.len()], vec![0; cells.len()]);
    Embedding::<5>::new(map::<5>(16)).words64_with(forms.bytes, &mut small, &cells);
    Embedding::<16>::new(map::<16>(17)).words128_with(forms.bytes, &mut large, &cells);
    let (mut of_small, mut of_large) = (vec![0; cells.len()], vec![0; cells.len()]);
    Projection::<5>::new(map::<5>(18)).cells64_with(forms.bytes, &mut of_small, &small);
    Projection::<16>::new(map::<16>(19)).cells128_with(forms.bytes, &mut of_large, &large);
    [bytes_of64(&small), bytes_of128(&large), of_small, of_large].concat()
}

/// The form without registers of 32 bytes converts cells by the chosen kernel of `cells`.
pub(super) fn cell_products(forms: Forms) -> Vec<u8> {
    let (weights, cells) = (elements::<Of64>(20, 150), sample(21, 150));
    let sum = Embedding::<8>::new(map::<8>(22)).inner_product64_with(forms.clmul, &weights, &cells);
    words64::reduce::<Of64>(sum).to_le_bytes().to_vec()
}

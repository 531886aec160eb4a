//! Every implementation is compared with converting one cell or one word after the other, with random maps.

use super::*;
use crate::aes_prg::AesPrg;
use crate::isa::ClmulIsa;

fn random(seed: u8, count: usize) -> Vec<u128> {
    let mut bytes = vec![0; count * 16];
    AesPrg::new(&[seed; 16], 0).fill(&mut bytes);
    bytes.as_chunks().0.iter().map(|word| u128::from_le_bytes(*word)).collect()
}

/// Eight words of this many bytes.
fn columns<const BYTES: usize>(seed: u8) -> [u128; 8] {
    let words = random(seed, 8);
    std::array::from_fn(|i| words[i] >> (128 - 8 * BYTES))
}

fn cells() -> Vec<u8> {
    (0..=255u8).chain((0..70).map(|i: u8| i.wrapping_mul(73))).collect()
}

fn embeds_as_one_by_one<const BYTES: usize>() {
    let (map, cells) = (Embedding::<BYTES>::new(columns::<BYTES>(1)), cells());
    for isa in Isa::available() {
        for len in (0..=70).chain([cells.len()]) {
            let mut words = vec![7; len];
            map.words64_with(isa, &mut words, &cells[..len]);
            assert!(
                words.iter().zip(&cells).all(|(w, cell)| u128::from(*w) == map.word(*cell)),
                "{isa:?}, {len}"
            );
        }
    }
}

#[test]
fn every_implementation_embeds_as_one_by_one() {
    embeds_as_one_by_one::<5>();
    embeds_as_one_by_one::<6>();
    embeds_as_one_by_one::<8>();
    let (map, cells) = (Embedding::new(columns::<16>(1)), cells());
    for isa in Isa::available() {
        for len in (0..=70).chain([cells.len()]) {
            let mut words = vec![7; len];
            map.words128_with(isa, &mut words, &cells[..len]);
            assert!(words.iter().zip(&cells).all(|(w, cell)| *w == map.word(*cell)), "{isa:?}, {len}");
        }
    }
}

fn projects_as_one_by_one<const BYTES: usize>() {
    let map = Projection::<BYTES>::new(columns::<BYTES>(2));
    let bits = (0..8 * BYTES).map(|bit| 1 << bit);
    let words: Vec<u64> = bits.chain(random(3, 70).into_iter().map(|word| word as u64)).collect();
    for isa in Isa::available() {
        for len in (0..=70).chain([words.len()]) {
            let mut cells = vec![7; len];
            map.cells64_with(isa, &mut cells, &words[..len]);
            assert!(words.iter().zip(&cells).all(|(w, c)| map.cell((*w).into()) == *c), "{isa:?}, {len}");
        }
    }
}

#[test]
fn every_implementation_projects_as_one_by_one() {
    projects_as_one_by_one::<5>();
    projects_as_one_by_one::<6>();
    projects_as_one_by_one::<8>();
    let map = Projection::new(columns::<16>(2));
    let words: Vec<u128> = (0..128).map(|bit| 1 << bit).chain(random(3, 70)).collect();
    for isa in Isa::available() {
        for len in (0..=70).chain([words.len()]) {
            let mut cells = vec![7; len];
            map.cells128_with(isa, &mut cells, &words[..len]);
            assert!(words.iter().zip(&cells).all(|(w, c)| map.cell(*w) == *c), "{isa:?}, {len}");
        }
    }
}

fn sums_products_as_row_by_row<const BYTES: usize>() {
    let (map, cells) = (Embedding::<BYTES>::new(columns::<BYTES>(5)), cells());
    let weights: Vec<u64> =
        random(6, cells.len()).iter().map(|word| (word >> (128 - 8 * BYTES)) as u64).collect();
    for len in (0..=70).chain([255, 256, 257, cells.len()]) {
        let mut images = vec![0; len];
        map.words64(&mut images, &cells[..len]);
        let expected = crate::words64::inner_product_unreduced(&images, &weights[..len]);
        for isa in ClmulIsa::available() {
            let sum = map.inner_product64_with(isa, &weights[..len], &cells[..len]);
            assert_eq!(sum, expected, "{isa:?}, {len}");
        }
    }
}

#[test]
fn every_implementation_sums_products_as_row_by_row() {
    sums_products_as_row_by_row::<5>();
    sums_products_as_row_by_row::<6>();
    sums_products_as_row_by_row::<8>();
}

#[test]
fn the_image_of_a_cell_is_the_sum_of_its_bits_images() {
    let images = columns::<16>(4);
    let map = Embedding::<16>::new(images);
    assert_eq!(map.word(0b1001_0010), images[1] ^ images[4] ^ images[7]);
    assert_eq!(map.word(0), 0);
}

#[test]
fn a_bit_of_a_cell_is_the_parity_under_its_mask() {
    let map = Projection::<8>::new([1, 2, 3, 1 << 63, 0xff, 0, 0, u64::MAX.into()]);
    assert_eq!(map.cell(3 | 1 << 63), 0b1000_1011);
}

#[test]
#[should_panic(expected = "rows of one length")]
fn fewer_cells_than_words_panic() {
    Embedding::<8>::new([0; 8]).words64(&mut [0; 3], &[0; 2]);
}

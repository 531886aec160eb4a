//! Images as [`super::avx2`] makes them, multiplied with VPCLMULQDQ while they are in registers.

use core::arch::x86_64::__m256i;

use super::Tables;
use super::avx2::{BLOCK, by_pairs, images, load as load_cells, padded};
use crate::words::registers::ymm::{clmul, load, splat, sum_of_pairs, xor};

/// See [`super::Embedding::inner_product64`]; lengths were checked there.
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq")]
pub(super) fn inner_product64<const BYTES: usize>(
    tables: &Tables<BYTES>,
    weights: &[u64],
    cells: &[u8],
) -> u128 {
    let ((weights, weights_part), (cells, cells_part)) = (weights.as_chunks(), cells.as_chunks());
    let mut sum = [splat(0); 2];
    for (weights, cells) in weights.iter().zip(cells) {
        sum = add_block(tables, sum, weights, cells);
    }
    if !weights_part.is_empty() {
        sum = add_block(tables, sum, &padded(weights_part), &padded(cells_part));
    }
    sum_of_pairs(xor(sum[0], sum[1]))
}

/// Adds the products of even words to the first sum and of odd words to the second.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq")]
fn add_block<const BYTES: usize>(
    tables: &Tables<BYTES>,
    [mut even, mut odd]: [__m256i; 2],
    weights: &[u64; BLOCK],
    cells: &[u8; BLOCK],
) -> [__m256i; 2] {
    let images = images(tables, 0, by_pairs(load_cells(cells)));
    for (weights, images) in weights.as_chunks().0.iter().zip(images) {
        let weights = load(weights);
        even = xor(even, clmul::<0x00>(weights, images));
        odd = xor(odd, clmul::<0x11>(weights, images));
    }
    [even, odd]
}

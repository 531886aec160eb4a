//! Every implementation against the definition.

use super::*;
use crate::aes_prg::AesPrg;

/// Every block as a number of 128 bits.
fn transposed<B: Block + Into<u128>>(
    isa: Isa,
    columns: &[u8],
    stride: usize,
    count: usize,
    len: usize,
) -> Vec<u128> {
    let mut blocks = vec![B::from(0xa5); len];
    columns_to_blocks_with(isa, columns, stride, count, &mut blocks);
    blocks.into_iter().map(B::into).collect()
}

#[test]
fn bit_j_of_column_i_is_bit_i_of_block_j() {
    for isa in Isa::available() {
        for count in [0, 1, 7, 8, 40, 64, 65, 127, 128] {
            for len in [0usize, 1, 7, 8, 127, 128, 255, 256, 257, 511, 512, 1000] {
                let stride = len.div_ceil(8) + 3;
                let mut columns = vec![0; 128 * stride];
                AesPrg::new(&[1; 16], len as u64).fill(&mut columns);
                let bit = |i: usize, j: usize| u128::from(columns[i * stride + j / 8] >> (j % 8) & 1) << i;
                let expected = |j: usize| (0..count).fold(0, |sum, i| sum | bit(i, j));
                let expected: Vec<u128> = (0..len).map(expected).collect();
                let blocks = transposed::<u128>(isa, &columns, stride, count, len);
                assert!(blocks == expected, "{isa:?}, {count} columns, {len} blocks");
                if count <= 64 {
                    let blocks = transposed::<u64>(isa, &columns, stride, count, len);
                    assert!(blocks == expected, "{isa:?}, {count} columns, {len} words");
                }
            }
        }
    }
}

#[test]
fn sizes_that_do_not_fit_panic() {
    for (columns, stride, count, len) in [(99, 1, 129, 8), (99, 1, 2, 9), (31, 16, 2, 128), (0, 0, 1, 1)] {
        let call = || columns_to_blocks(&vec![0; columns], stride, count, &mut vec![0_u128; len]);
        assert!(std::panic::catch_unwind(call).is_err());
    }
}

#[test]
fn a_word_has_no_room_for_more_columns_than_bits() {
    let call = || columns_to_blocks(&[0; 65], 1, 65, &mut [0_u64; 8]);
    assert!(std::panic::catch_unwind(call).is_err());
}

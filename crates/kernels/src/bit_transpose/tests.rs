//! Every implementation against the definition.

use super::*;
use crate::aes_prg::AesPrg;

#[test]
fn bit_j_of_column_i_is_bit_i_of_block_j() {
    for isa in Isa::available() {
        for count in [0, 1, 7, 8, 40, 64, 65, 127, 128] {
            for len in [0usize, 1, 7, 8, 127, 128, 255, 256, 257, 511, 512, 1000] {
                let stride = len.div_ceil(8) + 3;
                let mut columns = vec![0; 128 * stride];
                AesPrg::new(&[1; 16], len as u64).fill(&mut columns);
                let mut blocks = vec![u128::MAX; len];
                columns_to_blocks_with(isa, &columns, stride, count, &mut blocks);
                for (j, block) in blocks.into_iter().enumerate() {
                    let bit = |i: usize| u128::from(columns[i * stride + j / 8] >> (j % 8) & 1) << i;
                    let expected = (0..count).fold(0, |sum, i| sum | bit(i));
                    assert_eq!(block, expected, "{isa:?}, {count} columns, block {j} of {len}");
                }
            }
        }
    }
}

#[test]
fn sizes_that_do_not_fit_panic() {
    for (columns, stride, count, len) in [(99, 1, 129, 8), (99, 1, 2, 9), (31, 16, 2, 128), (0, 0, 1, 1)] {
        let call = || columns_to_blocks(&vec![0; columns], stride, count, &mut vec![0; len]);
        assert!(std::panic::catch_unwind(call).is_err());
    }
}

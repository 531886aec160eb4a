//! SKINNY-64-128 as a device might compute it: plain code without tables, so without an index that depends on
//! the key (Beierle et al., CRYPTO 2016, ePrint 2016/660). The servers evaluate another description of it,
//! that of the catalog.

use crate::encryption::KEY_BYTES;

const ROUNDS: usize = 36;
/// Bit 0 of each of the 16 cells, of which the first has the highest bits.
const LOW: u64 = 0x1111_1111_1111_1111;
const TWEAKEY_PERMUTATION: [u32; 16] = [9, 15, 8, 13, 10, 14, 12, 11, 0, 1, 2, 3, 4, 5, 6, 7];

/// Encrypts one block.
pub fn encrypt(key: &[u8; KEY_BYTES], block: u64) -> u64 {
    let tweakey = u128::from_be_bytes(*key);
    let (mut first, mut second) = ((tweakey >> 64) as u64, tweakey as u64);
    let (mut state, mut constant) = (block, 0);
    for _ in 0..ROUNDS {
        constant = constant << 1 & 0x3f | (constant >> 5 ^ constant >> 4 ^ 1) & 1;
        state = substituted(state) ^ (constant & 15) << 60 ^ (constant >> 4) << 44 ^ 2 << 28;
        state ^= (first ^ second) & 0xffff_ffff_0000_0000;
        state = mixed(state);
        (first, second) = (permuted(first), shifted(permuted(second)));
    }
    state
}

/// SubCells.
fn substituted(mut x: u64) -> u64 {
    for iteration in 0..4 {
        x ^= !(x >> 3 | x >> 2) & LOW;
        if iteration < 3 {
            x = x << 1 & !LOW | x >> 3 & LOW;
        }
    }
    x
}

/// ShiftRows and MixColumns.
fn mixed(x: u64) -> u64 {
    let row = |i: u32| ((x >> (48 - 16 * i)) as u16).rotate_right(4 * i);
    let [a, b, c, d] = [0, 1, 2, 3].map(row);
    [a ^ c ^ d, a, b ^ c, a ^ c].into_iter().fold(0, |state, row| state << 16 | u64::from(row))
}

/// The permutation of the tweakey's cells.
fn permuted(x: u64) -> u64 {
    TWEAKEY_PERMUTATION.into_iter().fold(0, |all, from| all << 4 | x >> (60 - 4 * from) & 15)
}

/// The LFSR on the upper half of the tweakey's second block.
fn shifted(x: u64) -> u64 {
    let moved = x << 1 & !LOW | (x >> 3 ^ x >> 2) & LOW;
    moved & 0xffff_ffff_0000_0000 | x & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the paper, appendix B.
    #[test]
    fn block_of_the_paper_is_encrypted_as_there() {
        let key = 0x9eb9_3640_d088_da63_76a3_9d1c_8bea_71e1_u128.to_be_bytes();
        assert_eq!(encrypt(&key, 0xcf16_cfe8_fd0f_98aa), 0x6ced_a1f4_3de9_2b9e);
    }
}

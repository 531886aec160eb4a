//! The transpose of eight columns and eight blocks at a time, in words of 64 bits.

use super::Block;

/// Blocks from `done` on, a multiple of eight.
pub(super) fn columns_to_blocks<B: Block>(
    columns: &[u8],
    stride: usize,
    count: usize,
    blocks: &mut [B],
    done: usize,
) {
    for (byte, eight) in (done / 8..).zip(blocks[done..].chunks_mut(8)) {
        eight.fill(B::default());
        for group in (0..count).step_by(8) {
            let rows = (group..count.min(group + 8)).zip(0..);
            let word = rows.fold(0, |word, (i, r)| word | u64::from(columns[i * stride + byte]) << (8 * r));
            for (block, bits) in eight.iter_mut().zip(turned(word).to_le_bytes()) {
                *block |= B::from(bits) << group;
            }
        }
    }
}

/// Bit `j` of byte `i` becomes bit `i` of byte `j`.
pub(crate) fn turned(mut x: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0xf0f0_f0f0)] {
        let swap = (x ^ (x >> shift)) & mask;
        x ^= swap ^ (swap << shift);
    }
    x
}

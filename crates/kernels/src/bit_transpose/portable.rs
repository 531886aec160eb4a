//! The transpose of eight columns and eight blocks at a time, in words of 64 bits.

use super::Block;
use crate::planes::turned;

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

//! From bit columns to blocks: bit `j` of column `i` becomes bit `i` of block `j`, as oblivious transfer
//! extension needs it. Blocks are words of 64 or of 128 bits.
//!
//! Eight columns at a time are 8 x 8 bit matrices, turned by three rounds of masked swaps (Warren, "Hacker's
//! Delight", section 7-3): in one word of portable code, or between eight registers of 32 bytes. Then bytes
//! are interleaved. With AVX-512, bytes are interleaved first, and one instruction turns eight matrices. Cost
//! with AVX2: about eight instructions a block; with AVX-512 three.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
#[cfg(test)]
mod tests;

pub(crate) use portable::turned;

use crate::isa::Isa;

/// A word for the bits of as many columns.
pub trait Block: sealed::Block {
    /// The lowest bits of a block of 128.
    fn lowest(block: u128) -> Self;
}

impl Block for u64 {
    fn lowest(block: u128) -> u64 {
        block as u64
    }
}

impl Block for u128 {
    fn lowest(block: u128) -> u128 {
        block
    }
}

mod sealed {
    use core::ops::{BitOrAssign, Shl};

    /// Every bit pattern is one, and there is no padding.
    pub trait Block: Copy + Default + From<u8> + BitOrAssign + Shl<usize, Output = Self> {}

    impl Block for u64 {}
    impl Block for u128 {}
}

/// Sets bit `i` of `blocks[j]` to bit `j` of `columns[i * stride..]` (bit `j % 8` of byte `j / 8`) for all
/// `i < count`, and all other bits to zero.
///
/// # Panics
/// When there are more columns than a block has bits, or when they would overlap or leave `columns`.
pub fn columns_to_blocks<B: Block>(columns: &[u8], stride: usize, count: usize, blocks: &mut [B]) {
    let bytes = blocks.len().div_ceil(8);
    assert!(count <= 8 * size_of::<B>(), "more columns than a block has bits");
    if count > 0 && bytes > 0 {
        assert!(count == 1 || stride >= bytes, "the columns overlap");
        let end = (count - 1).checked_mul(stride).and_then(|start| start.checked_add(bytes));
        assert!(end.is_some_and(|end| end <= columns.len()), "the columns are too short");
    }
    columns_to_blocks_with(Isa::best(), columns, stride, count, blocks);
}

/// Assumes that the processor has `isa` and that sizes were checked.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn columns_to_blocks_with<B: Block>(
    isa: Isa,
    columns: &[u8],
    stride: usize,
    count: usize,
    blocks: &mut [B],
) {
    let done = match (isa, size_of::<B>()) {
        (Isa::Portable, _) => 0,
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2, 8) => unsafe { avx2::columns_to_blocks::<B, 8>(columns, stride, count, blocks) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2, _) => unsafe { avx2::columns_to_blocks::<B, 16>(columns, stride, count, blocks) },
        // SAFETY: as above, and those of AVX2 with them. Half a tile may be left.
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512Gfni, 8) => unsafe {
            let done = avx512::columns_to_blocks::<B, 8>(columns, stride, count, blocks);
            let rest = columns.get(done / 8..).unwrap_or_default();
            done + avx2::columns_to_blocks::<B, 8>(rest, stride, count, &mut blocks[done..])
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512Gfni, _) => unsafe {
            let done = avx512::columns_to_blocks::<B, 16>(columns, stride, count, blocks);
            let rest = columns.get(done / 8..).unwrap_or_default();
            done + avx2::columns_to_blocks::<B, 16>(rest, stride, count, &mut blocks[done..])
        },
    };
    portable::columns_to_blocks(columns, stride, count, blocks, done);
}

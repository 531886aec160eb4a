//! Transposes between blocks (the inputs of a cipher, one after another) and rows (one byte position of all
//! blocks).
//!
//! Widths that are multiples of eight go through byte interleaves in SSE2, which every x86-64 processor
//! has; other widths, leftover lanes and other processors go byte by byte. Cost: a fifth of an instruction
//! per byte for the interleaves and their loads and stores; the byte loop is some five times slower.

mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(test)]
mod tests;

/// Takes blocks apart: byte `i` of every block goes to `rows[i * stride..i * stride + lanes]`, where
/// `lanes = blocks.len() / width`. Bytes of `rows` between these stay as they are.
///
/// # Panics
/// When `width` is zero or does not divide `blocks.len()`, when rows would overlap (`stride < lanes` with
/// more than one row) or leave `rows`.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub fn blocks_to_rows(blocks: &[u8], width: usize, rows: &mut [u8], stride: usize) {
    let lanes = lanes(blocks.len(), width, rows.len(), stride);
    let done = match width % 8 {
        // SAFETY: SSE2 belongs to x86-64.
        #[cfg(target_arch = "x86_64")]
        0 => unsafe { sse2::blocks_to_rows(blocks, width, rows, stride, lanes) },
        _ => 0,
    };
    portable::blocks_to_rows(blocks, width, rows, stride, done..lanes);
}

/// Puts blocks together, the inverse of [`blocks_to_rows`].
///
/// # Panics
/// As [`blocks_to_rows`].
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub fn rows_to_blocks(rows: &[u8], stride: usize, width: usize, blocks: &mut [u8]) {
    let lanes = lanes(blocks.len(), width, rows.len(), stride);
    let done = match width % 8 {
        // SAFETY: SSE2 belongs to x86-64.
        #[cfg(target_arch = "x86_64")]
        0 => unsafe { sse2::rows_to_blocks(rows, stride, width, blocks, lanes) },
        _ => 0,
    };
    portable::rows_to_blocks(rows, stride, width, blocks, done..lanes);
}

/// The number of blocks, all sizes checked.
fn lanes(blocks: usize, width: usize, rows: usize, stride: usize) -> usize {
    assert!(width > 0, "blocks of no bytes");
    assert!(blocks.is_multiple_of(width), "the last block is cut off");
    let lanes = blocks / width;
    if lanes > 0 {
        assert!(width == 1 || stride >= lanes, "the rows overlap");
        let end = (width - 1).checked_mul(stride).and_then(|start| start.checked_add(lanes));
        assert!(end.is_some_and(|end| end <= rows), "the rows are too short");
    }
    lanes
}

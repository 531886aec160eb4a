//! Transposes of any width, byte by byte.
//!
//! Lanes are taken in strips of 64, so that a strip of blocks stays in the first-level cache while its
//! rows are passed one after the other.

use core::ops::Range;

const STRIP: usize = 64;

/// See [`super::blocks_to_rows`]; only the given lanes.
pub(super) fn blocks_to_rows(
    blocks: &[u8],
    width: usize,
    rows: &mut [u8],
    stride: usize,
    lanes: Range<usize>,
) {
    for first in lanes.clone().step_by(STRIP) {
        let strip = first..lanes.end.min(first + STRIP);
        for i in 0..width {
            let row = &mut rows[i * stride..][strip.clone()];
            let bytes = blocks[first * width + i..].iter().step_by(width);
            for (byte, &source) in row.iter_mut().zip(bytes) {
                *byte = source;
            }
        }
    }
}

/// See [`super::rows_to_blocks`]; only the given lanes.
pub(super) fn rows_to_blocks(
    rows: &[u8],
    stride: usize,
    width: usize,
    blocks: &mut [u8],
    lanes: Range<usize>,
) {
    for first in lanes.clone().step_by(STRIP) {
        let strip = first..lanes.end.min(first + STRIP);
        for i in 0..width {
            let row = &rows[i * stride..][strip.clone()];
            let bytes = blocks[first * width + i..].iter_mut().step_by(width);
            for (byte, &source) in bytes.zip(row) {
                *byte = source;
            }
        }
    }
}

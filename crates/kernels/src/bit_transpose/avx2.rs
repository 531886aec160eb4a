//! Tiles of 256 blocks: bits are swapped between eight registers, then bytes are interleaved between sixteen.
//! Two tiles at a time use up a cache line of every column, since lines of columns at a stride of a power of
//! two drive each other out.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use zeroize::optimization_barrier;

use super::Block;

/// Blocks of a tile: the bits of a register.
const TILE: usize = 256;

/// Bytes between the two phases: `bytes[r][g]` is byte g of the blocks 8c + r, for all c, where a block has G
/// bytes.
type Bytes<const G: usize> = [[[u8; 32]; G]; 8];

/// Turns whole tiles of blocks of `G` bytes, 8 or 16, and returns how many blocks that were.
///
/// # Safety
/// Besides AVX2: `B` has `G` bytes, `count` is at most `8 * G`, and `columns` has `blocks.len()` bits from
/// every `i * stride` with `i < count`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn columns_to_blocks<B: Block, const G: usize>(
    columns: &[u8],
    stride: usize,
    count: usize,
    blocks: &mut [B],
) -> usize {
    let mut bytes: [Bytes<G>; 2] = [[[[0; 32]; G]; 8]; 2];
    let tiles = blocks.as_chunks_mut::<TILE>().0;
    for (pair, tiles) in tiles.chunks_mut(2).enumerate() {
        for group in 0..count.div_ceil(8) {
            for (half, bytes) in bytes.iter_mut().enumerate().take(tiles.len()) {
                let at = 8 * group * stride + (2 * pair + half) * 32;
                // SAFETY: the caller warrants 32 bytes for each row that is a column.
                let mut rows = unsafe { load(&columns[at..], stride, count - 8 * group) };
                turn(&mut rows);
                for (r, row) in rows.iter().enumerate() {
                    // SAFETY: the array has the 32 bytes written; the store has no alignment.
                    unsafe { _mm256_storeu_si256(bytes[r][group].as_mut_ptr().cast(), *row) };
                }
            }
        }
        for (bytes, blocks) in bytes.iter().zip(tiles) {
            for (r, bytes) in bytes.iter().enumerate() {
                // SAFETY: the caller warrants the size of a block.
                unsafe { interleave(bytes, r, blocks) };
            }
        }
    }
    // By whole registers, which `zeroize` of an array is not.
    bytes = [[[[0; 32]; G]; 8]; 2];
    optimization_barrier(&bytes);
    blocks.len() / TILE * TILE
}

/// 32 bytes of each of at most 8 columns, and zeros for the others. The next line of each is fetched, since
/// columns at a large stride look unpredictable to the processor.
///
/// # Safety
/// Besides AVX2: `columns` has 32 bytes from every `i * stride` with `i < min(8, count)`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(columns: &[u8], stride: usize, count: usize) -> [__m256i; 8] {
    let mut rows = [_mm256_setzero_si256(); 8];
    // Always eight steps, so that rows stay in registers.
    for (i, row) in rows.iter_mut().enumerate() {
        if i < count {
            let column = columns.as_ptr().wrapping_add(i * stride);
            // SAFETY: the caller warrants 32 bytes here; the load has no alignment.
            *row = unsafe { _mm256_loadu_si256(column.cast()) };
            // A prefetch has no effect on memory, wherever it points.
            _mm_prefetch::<_MM_HINT_T0>(column.wrapping_add(64).cast());
        }
    }
    rows
}

/// Bit `j` of every byte of row `i` becomes bit `i` of that byte of row `j`.
#[inline]
#[target_feature(enable = "avx2")]
fn turn(rows: &mut [__m256i; 8]) {
    swap::<4>(rows, _mm256_set1_epi8(0x0f));
    swap::<2>(rows, _mm256_set1_epi8(0x33));
    swap::<1>(rows, _mm256_set1_epi8(0x55));
}

/// Swaps the bits of row `i` outside of the mask with those of row `i + DISTANCE` inside.
#[inline]
#[target_feature(enable = "avx2")]
fn swap<const DISTANCE: i32>(rows: &mut [__m256i; 8], mask: __m256i) {
    let distance = DISTANCE as usize;
    for i in (0..8).filter(|i| i & distance == 0) {
        let (a, b) = (rows[i], rows[i + distance]);
        let swap = _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi64::<DISTANCE>(a), b), mask);
        rows[i] = _mm256_xor_si256(a, _mm256_slli_epi64::<DISTANCE>(swap));
        rows[i + distance] = _mm256_xor_si256(b, swap);
    }
}

/// Puts the blocks `8c + r` together from their `G` bytes. Each step interleaves register i with i + G / 2,
/// which rotates the bits of (register, byte in half); after as many steps as the register has bits, the
/// register and, if blocks have 8 bytes, the word in a half are c.
///
/// # Safety
/// Besides AVX2: `B` has `G` bytes, 8 or 16.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn interleave<B: Block, const G: usize>(bytes: &[[u8; 32]; G], r: usize, blocks: &mut [B; TILE]) {
    let mut registers = [_mm256_setzero_si256(); G];
    for (register, bytes) in registers.iter_mut().zip(bytes) {
        // SAFETY: the array has the 32 bytes read; the load has no alignment.
        *register = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    }
    for _ in 0..G.ilog2() {
        let from = registers;
        for i in 0..G / 2 {
            registers[2 * i] = _mm256_unpacklo_epi8(from[i], from[i + G / 2]);
            registers[2 * i + 1] = _mm256_unpackhi_epi8(from[i], from[i + G / 2]);
        }
    }
    for (i, register) in registers.into_iter().enumerate() {
        let halves = [_mm256_castsi256_si128(register), _mm256_extracti128_si256::<1>(register)];
        for (half, vector) in halves.into_iter().enumerate() {
            let first = half * TILE / 2 + 8 * (i * 16 / G) + r;
            // SAFETY: a block covers the 8 or 16 bytes written; the stores have no alignment.
            unsafe {
                if G == 16 {
                    _mm_storeu_si128(core::ptr::from_mut(&mut blocks[first]).cast(), vector);
                } else {
                    _mm_storel_pd(core::ptr::from_mut(&mut blocks[first]).cast(), _mm_castsi128_pd(vector));
                    _mm_storeh_pd(
                        core::ptr::from_mut(&mut blocks[first + 8]).cast(),
                        _mm_castsi128_pd(vector),
                    );
                }
            }
        }
    }
}

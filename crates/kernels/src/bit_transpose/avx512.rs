//! Tiles of 512 blocks: bytes are interleaved between eight registers, so that the bits of eight columns at
//! one byte lie in a word; the Galois field instructions turn each word; then bytes are interleaved between
//! as many registers as a block has bytes.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use zeroize::optimization_barrier;

use super::Block;

/// Blocks of a tile: the bits of a register.
const TILE: usize = 512;
/// Bytes of a register.
const BYTES: usize = 64;
/// Blocks from a quarter of a register to the next: the bits of 16 bytes.
const QUARTER: usize = TILE / 4;

/// Between the two phases: quarter q of `bytes[i][g]` is byte g of the sixteen blocks from
/// `q * QUARTER + 16 * i` on, where a block has G bytes.
type Bytes<const G: usize> = [[Line; G]; 8];

/// A register in memory. It would lie across two lines of the cache if it were not aligned.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; BYTES]);

const ZEROS: Line = Line([0; BYTES]);

/// Turns whole tiles of blocks of `G` bytes, 8 or 16, and returns how many blocks that were.
///
/// # Safety
/// Besides the instructions: `B` has `G` bytes, `count` is at most `8 * G`, and `columns` has `blocks.len()`
/// bits from every `i * stride` with `i < count`.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
pub(super) unsafe fn columns_to_blocks<B: Block, const G: usize>(
    columns: &[u8],
    stride: usize,
    count: usize,
    blocks: &mut [B],
) -> usize {
    let mut bytes: Bytes<G> = [[ZEROS; G]; 8];
    for (tile, blocks) in blocks.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        for group in 0..count.div_ceil(8) {
            let at = 8 * group * stride + tile * BYTES;
            // SAFETY: the caller warrants 64 bytes for each row that is a column.
            let rows = unsafe { load(&columns[at..], stride, count - 8 * group) };
            for (row, bytes) in turn(rows).into_iter().zip(&mut bytes) {
                // SAFETY: the line covers the 64 bytes written, and is aligned.
                unsafe { _mm512_store_si512(bytes[group].0.as_mut_ptr().cast(), row) };
            }
        }
        for (i, bytes) in bytes.iter().enumerate() {
            // SAFETY: the caller warrants the size of a block.
            unsafe { write(bytes, i, blocks) };
        }
    }
    // By whole registers, which `zeroize` of an array is not.
    bytes = [[ZEROS; G]; 8];
    optimization_barrier(&bytes);
    blocks.len() / TILE * TILE
}

/// 64 bytes of each of at most 8 columns, the last column first, and zeros for the others. The next line of
/// each is fetched, since columns at a large stride look unpredictable to the processor.
///
/// # Safety
/// Besides the instructions: `columns` has 64 bytes from every `i * stride` with `i < min(8, count)`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(columns: &[u8], stride: usize, count: usize) -> [__m512i; 8] {
    let mut rows = [_mm512_setzero_si512(); 8];
    // Always eight steps, so that rows stay in registers.
    for (i, row) in rows.iter_mut().rev().enumerate() {
        if i < count {
            let column = columns.as_ptr().wrapping_add(i * stride);
            // SAFETY: the caller warrants 64 bytes here; the load has no alignment.
            *row = unsafe { _mm512_loadu_si512(column.cast()) };
        }
    }
    rows
}

/// From rows of bytes to registers of words: in each quarter of register i there are two words, of the bytes
/// 2 i and 2 i + 1 of that quarter of all rows. Byte r of a word has bit r of these eight bytes, that of the
/// last row lowest.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn turn(rows: [__m512i; 8]) -> [__m512i; 8] {
    // Byte r has bit r. The instruction multiplies each byte of the first argument by the word of the second
    // one as a matrix, whose first byte is the row for the highest bit.
    let unit = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    let mut words = interleave(rows);
    for word in &mut words {
        *word = _mm512_gf2p8affine_epi64_epi8::<0>(unit, *word);
    }
    words
}

/// Interleaves the bytes of eight registers, in each quarter by itself: the bytes at one place come to lie
/// side by side. Each step interleaves register i with i + 4, which rotates the bits of (register, byte in
/// half a quarter).
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave(registers: [__m512i; 8]) -> [__m512i; 8] {
    let [a, b, c, d, e, f, g, h] = registers;
    let [a, b, c, d, e, f, g, h] = interleave_pairs([a, b, c, d], [e, f, g, h]);
    let [a, b, c, d, e, f, g, h] = interleave_pairs([a, b, c, d], [e, f, g, h]);
    interleave_pairs([a, b, c, d], [e, f, g, h])
}

/// The same with sixteen.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave_both(low: [__m512i; 8], high: [__m512i; 8]) -> [[__m512i; 8]; 2] {
    let (low, high) = interleave_halves(low, high);
    let (low, high) = interleave_halves(low, high);
    let (low, high) = interleave_halves(low, high);
    interleave_halves(low, high).into()
}

/// Register i of sixteen with i + 8.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave_halves(low: [__m512i; 8], high: [__m512i; 8]) -> ([__m512i; 8], [__m512i; 8]) {
    let ([a, b, c, d, e, f, g, h], [i, j, k, l, m, n, o, p]) = (low, high);
    (interleave_pairs([a, b, c, d], [i, j, k, l]), interleave_pairs([e, f, g, h], [m, n, o, p]))
}

/// The bytes of two registers each. Written out, since the compiler leaves a loop that keeps its registers in
/// memory.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave_pairs([a, b, c, d]: [__m512i; 4], [e, f, g, h]: [__m512i; 4]) -> [__m512i; 8] {
    [
        _mm512_unpacklo_epi8(a, e),
        _mm512_unpackhi_epi8(a, e),
        _mm512_unpacklo_epi8(b, f),
        _mm512_unpackhi_epi8(b, f),
        _mm512_unpacklo_epi8(c, g),
        _mm512_unpackhi_epi8(c, g),
        _mm512_unpacklo_epi8(d, h),
        _mm512_unpackhi_epi8(d, h),
    ]
}

/// Puts the blocks together that these bytes belong to: in each quarter sixteen, from `16 * i` on.
///
/// # Safety
/// Besides the instructions: `B` has `G` bytes, 8 or 16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn write<B: Block, const G: usize>(bytes: &[Line; G], i: usize, blocks: &mut [B; TILE]) {
    // SAFETY: the lines have the 64 bytes read, and are aligned.
    let load = |line: &Line| unsafe { _mm512_load_si512(line.0.as_ptr().cast()) };
    let eight = |from: &[Line]| from.first_chunk().expect("a block has 8 or 16 bytes").each_ref().map(load);
    let mut put = |place: usize, registers: [__m512i; 4]| {
        for (quarter, whole) in by_quarter(registers).into_iter().enumerate() {
            let first = quarter * QUARTER + 16 * i + place * BYTES / G;
            let to = &mut blocks[first..][..BYTES / G];
            // SAFETY: these blocks cover the 64 bytes written; the store has no alignment.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), whole) };
        }
    };
    let mut put_eight = |place: usize, [a, b, c, d, e, f, g, h]: [__m512i; 8]| {
        put(place, [a, b, c, d]);
        put(place + 1, [e, f, g, h]);
    };
    if G == 8 {
        put_eight(0, interleave(eight(bytes)));
    } else {
        let [low, high] = interleave_both(eight(bytes), eight(&bytes[8..]));
        put_eight(0, low);
        put_eight(2, high);
    }
}

/// Quarter q of register r becomes quarter r of register q.
#[inline]
#[target_feature(enable = "avx512f")]
fn by_quarter([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    const EVEN: i32 = 0x88;
    const ODD: i32 = 0xdd;
    let (even, odd) = (_mm512_shuffle_i32x4::<EVEN>(a, b), _mm512_shuffle_i32x4::<ODD>(a, b));
    let (more_even, more_odd) = (_mm512_shuffle_i32x4::<EVEN>(c, d), _mm512_shuffle_i32x4::<ODD>(c, d));
    [
        _mm512_shuffle_i32x4::<EVEN>(even, more_even),
        _mm512_shuffle_i32x4::<EVEN>(odd, more_odd),
        _mm512_shuffle_i32x4::<ODD>(even, more_even),
        _mm512_shuffle_i32x4::<ODD>(odd, more_odd),
    ]
}

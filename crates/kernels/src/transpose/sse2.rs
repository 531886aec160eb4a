//! Transposes by interleaving bytes: eight bytes of sixteen blocks at a time.
//!
//! Number the bytes of eight registers by a register index of three bits and a position of four.
//! Interleaving the registers whose indices differ in one bit moves that bit to the low end of the
//! position, and the top bit of the position into its place in the index.
//!
//! Lanes are taken in strips of a cache line: no more than eight rows are then in use at once, as many as
//! the ways of a first-level cache, should the stride put all rows into the same sets.
//!
//! Both functions assume a width that is a multiple of eight; they handle the lanes up to the last
//! multiple of sixteen and return their number.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

const STRIP: usize = 64;

#[target_feature(enable = "sse2")]
pub(super) fn blocks_to_rows(
    blocks: &[u8],
    width: usize,
    rows: &mut [u8],
    stride: usize,
    lanes: usize,
) -> usize {
    let done = lanes - lanes % 16;
    for first in (0..done).step_by(STRIP) {
        let strip = first..done.min(first + STRIP);
        for byte in (0..width).step_by(8) {
            for lane in strip.clone().step_by(16) {
                take_apart(blocks, width, rows, stride, lane, byte);
            }
        }
    }
    done
}

/// Eight bytes of the sixteen blocks from `lane`.
#[inline]
#[target_feature(enable = "sse2")]
fn take_apart(blocks: &[u8], width: usize, rows: &mut [u8], stride: usize, lane: usize, byte: usize) {
    let mut registers = [_mm_setzero_si128(); 8];
    for (pair, register) in registers.iter_mut().enumerate() {
        let at = (lane + 2 * pair) * width + byte;
        *register = _mm_set_epi64x(half(blocks, at + width), half(blocks, at));
    }
    // Position (lane 0, byte 2..0), index (lane 3..1); the fourth step exchanges what the first put
    // into the index, lane bit 0, with byte bit 0.
    interleave::<4>(&mut registers);
    interleave::<2>(&mut registers);
    interleave::<1>(&mut registers);
    interleave::<4>(&mut registers);
    // Now the index bits 4, 2, 1 are the byte bits 0, 2, 1.
    for (index, register) in registers.into_iter().enumerate() {
        let row = byte + ((index >> 2) | ((index & 3) << 1));
        let target = rows[row * stride + lane..].first_chunk_mut::<16>().expect("sizes were checked");
        // SAFETY: the reference covers the 16 bytes written; the store has no alignment.
        unsafe { _mm_storeu_si128(target.as_mut_ptr().cast(), register) };
    }
}

#[target_feature(enable = "sse2")]
pub(super) fn rows_to_blocks(
    rows: &[u8],
    stride: usize,
    width: usize,
    blocks: &mut [u8],
    lanes: usize,
) -> usize {
    let done = lanes - lanes % 16;
    for first in (0..done).step_by(STRIP) {
        let strip = first..done.min(first + STRIP);
        for byte in (0..width).step_by(8) {
            for lane in strip.clone().step_by(16) {
                put_together(rows, stride, blocks, width, lane, byte);
            }
        }
    }
    done
}

/// Eight bytes of the sixteen blocks from `lane`.
#[inline]
#[target_feature(enable = "sse2")]
fn put_together(rows: &[u8], stride: usize, blocks: &mut [u8], width: usize, lane: usize, byte: usize) {
    let mut registers = [_mm_setzero_si128(); 8];
    for (row, register) in registers.iter_mut().enumerate() {
        let source = rows[(byte + row) * stride + lane..].first_chunk::<16>().expect("sizes were checked");
        // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
        *register = unsafe { _mm_loadu_si128(source.as_ptr().cast()) };
    }
    // Position (lane 3..0), index (byte 2..0); three steps leave lane bit 0 above the byte bits.
    interleave::<4>(&mut registers);
    interleave::<2>(&mut registers);
    interleave::<1>(&mut registers);
    for (pair, register) in registers.into_iter().enumerate() {
        let at = (lane + 2 * pair) * width + byte;
        *half_mut(blocks, at) = _mm_cvtsi128_si64(register).to_le_bytes();
        let upper = _mm_unpackhi_epi64(register, register);
        *half_mut(blocks, at + width) = _mm_cvtsi128_si64(upper).to_le_bytes();
    }
}

/// Interleaves the registers whose indices differ in `BIT`.
#[inline]
#[target_feature(enable = "sse2")]
fn interleave<const BIT: usize>(registers: &mut [__m128i; 8]) {
    // A loop of constant length without branches is one the compiler unrolls into registers.
    for pair in 0..4 {
        let low = 2 * (pair - pair % BIT) + pair % BIT;
        let (a, b) = (registers[low], registers[low + BIT]);
        registers[low] = _mm_unpacklo_epi8(a, b);
        registers[low + BIT] = _mm_unpackhi_epi8(a, b);
    }
}

#[inline]
fn half(blocks: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(*blocks[at..].first_chunk().expect("sizes were checked"))
}

#[inline]
fn half_mut(blocks: &mut [u8], at: usize) -> &mut [u8; 8] {
    blocks[at..].first_chunk_mut().expect("sizes were checked")
}

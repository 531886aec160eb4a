//! Transposes of sixteen blocks of 8 or 16 bytes, by interleaving bytes.
//!
//! Number the bytes of `N` registers by a register index and a position of four bits. Interleaving the
//! registers whose indices differ in one bit moves that bit to the low end of the position, and the top
//! bit of the position into its place in the index. Four such steps, from the highest index bit to the
//! lowest, exchange index and position of sixteen registers.
//!
//! Each function handles the lanes up to the last multiple of sixteen and returns their number.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

pub(super) fn blocks_to_rows_16(blocks: &[u8], rows: &mut [u8], stride: usize, lanes: usize) -> usize {
    let done = lanes - lanes % 16;
    for (group, blocks) in blocks.as_chunks::<16>().0.as_chunks::<16>().0.iter().enumerate() {
        let mut registers = [zero(); 16];
        for (register, block) in registers.iter_mut().zip(blocks) {
            *register = load(block);
        }
        transpose(&mut registers);
        for (row, register) in registers.into_iter().enumerate() {
            store(chunk_mut(rows, row * stride + 16 * group), register);
        }
    }
    done
}

pub(super) fn rows_to_blocks_16(rows: &[u8], stride: usize, blocks: &mut [u8], lanes: usize) -> usize {
    let done = lanes - lanes % 16;
    for (group, blocks) in blocks.as_chunks_mut::<16>().0.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let mut registers = [zero(); 16];
        for (row, register) in registers.iter_mut().enumerate() {
            *register = load(chunk(rows, row * stride + 16 * group));
        }
        transpose(&mut registers);
        for (block, register) in blocks.iter_mut().zip(registers) {
            store(block, register);
        }
    }
    done
}

pub(super) fn blocks_to_rows_8(blocks: &[u8], rows: &mut [u8], stride: usize, lanes: usize) -> usize {
    let done = lanes - lanes % 16;
    for (group, pairs) in blocks.as_chunks::<16>().0.as_chunks::<8>().0.iter().enumerate() {
        let mut registers = [zero(); 8];
        for (register, pair) in registers.iter_mut().zip(pairs) {
            *register = load(pair);
        }
        // Position (lane 0, byte 2..0), index (lane 3..1); the fourth step exchanges what the first put
        // into the index, lane bit 0, with byte bit 0.
        interleave(&mut registers, 4);
        interleave(&mut registers, 2);
        interleave(&mut registers, 1);
        interleave(&mut registers, 4);
        // Now the index bits 4, 2, 1 are the byte bits 0, 2, 1.
        for (index, register) in registers.into_iter().enumerate() {
            let row = (index >> 2) | ((index & 3) << 1);
            store(chunk_mut(rows, row * stride + 16 * group), register);
        }
    }
    done
}

pub(super) fn rows_to_blocks_8(rows: &[u8], stride: usize, blocks: &mut [u8], lanes: usize) -> usize {
    let done = lanes - lanes % 16;
    for (group, pairs) in blocks.as_chunks_mut::<16>().0.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut registers = [zero(); 8];
        for (row, register) in registers.iter_mut().enumerate() {
            *register = load(chunk(rows, row * stride + 16 * group));
        }
        // Position (lane 3..0), index (byte 2..0); three steps leave lane bit 0 above the byte bits.
        interleave(&mut registers, 4);
        interleave(&mut registers, 2);
        interleave(&mut registers, 1);
        for (pair, register) in pairs.iter_mut().zip(registers) {
            store(pair, register);
        }
    }
    done
}

/// Exchanges index and position.
#[inline]
fn transpose(registers: &mut [__m128i; 16]) {
    interleave(registers, 8);
    interleave(registers, 4);
    interleave(registers, 2);
    interleave(registers, 1);
}

/// Interleaves the registers whose indices differ in `bit`.
#[inline]
fn interleave<const N: usize>(registers: &mut [__m128i; N], bit: usize) {
    for index in (0..N).filter(|index| index & bit == 0) {
        let (a, b) = (registers[index], registers[index | bit]);
        // SAFETY: SSE2 belongs to x86-64.
        unsafe {
            registers[index] = _mm_unpacklo_epi8(a, b);
            registers[index | bit] = _mm_unpackhi_epi8(a, b);
        }
    }
}

#[inline]
fn zero() -> __m128i {
    // SAFETY: SSE2 belongs to x86-64.
    unsafe { _mm_setzero_si128() }
}

#[inline]
fn chunk(bytes: &[u8], at: usize) -> &[u8; 16] {
    bytes[at..].first_chunk().expect("sizes were checked")
}

#[inline]
fn chunk_mut(bytes: &mut [u8], at: usize) -> &mut [u8; 16] {
    bytes[at..].first_chunk_mut().expect("sizes were checked")
}

#[inline]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: SSE2 belongs to x86-64; the reference covers the 16 bytes read, at any alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
fn store(bytes: &mut [u8; 16], vector: __m128i) {
    // SAFETY: SSE2 belongs to x86-64; the reference covers the 16 bytes written, at any alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector) }
}

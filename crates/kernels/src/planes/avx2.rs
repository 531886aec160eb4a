//! Registers of 32 bytes.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::formulas::Register;
use super::maps::{self, Places};
use super::{Factors, Planes, Terms, rows};

/// Exists only inside of the functions below, whose callers have found the instructions.
#[derive(Clone, Copy)]
struct Bits(__m256i);

impl Register for Bits {
    const BYTES: usize = 32;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Bits {
        let bytes: &[u8; 32] = bytes.first_chunk().expect("it has 32 bytes");
        // SAFETY: the reference covers all bytes read, at any alignment; the instruction is there, as the
        // type says.
        Bits(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let bytes: &mut [u8; 32] = bytes.first_chunk_mut().expect("it has 32 bytes");
        // SAFETY: the reference covers all bytes written, at any alignment; the instruction is there, as the
        // type says.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Bits) -> Bits {
        // SAFETY: the instruction is there, as the type says.
        Bits(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Bits) -> Bits {
        // SAFETY: the instruction is there, as the type says.
        Bits(unsafe { _mm256_and_si256(self.0, other.0) })
    }
}

/// See [`super::add_products`].
#[target_feature(enable = "avx2")]
pub(super) fn add_products(
    factors: Factors,
    terms: Terms,
    sum: &mut [u8],
    x: [Planes<'_>; 2],
    y: [Planes<'_>; 2],
) {
    rows::add_products::<Bits>(factors, terms, sum, x, y);
}

/// See [`super::PlaneMap`].
#[target_feature(enable = "avx2")]
pub(super) fn sums(places: &[Places], ins: &[u8], outs: &mut [u8], len: usize) {
    maps::sums::<Bits>(places, ins, outs, len);
}

/// Cells of a register.
const CELLS: usize = 32;

/// See [`super::split`]: as many whole registers as there are. Returns how many cells that is.
#[target_feature(enable = "avx2")]
pub(super) fn split(cells: &[u8], bits: usize, planes: &mut [u8], stride: usize) -> usize {
    let whole = cells.as_chunks::<CELLS>().0;
    for (at, cells) in whole.iter().enumerate() {
        // SAFETY: the reference covers all bytes read, at any alignment.
        let mut cells = unsafe { _mm256_loadu_si256(cells.as_ptr().cast()) };
        // From the highest bit on, each becomes the highest one in its turn.
        for bit in (0..8).rev() {
            if bit < bits {
                let plane = _mm256_movemask_epi8(cells).to_le_bytes();
                planes[bit * stride + at * plane.len()..][..plane.len()].copy_from_slice(&plane);
            }
            cells = _mm256_add_epi8(cells, cells);
        }
    }
    whole.len() * CELLS
}

/// See [`super::join`]: as many whole registers as there are. Returns how many cells that is.
#[target_feature(enable = "avx2")]
pub(super) fn join(planes: &[u8], stride: usize, bits: usize, cells: &mut [u8]) -> usize {
    // Byte j of the register gets byte j / 8 of the plane, and of it bit j % 8.
    let spread = _mm256_setr_epi8(
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3,
    );
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let whole = cells.as_chunks_mut::<CELLS>().0;
    let count = whole.len() * CELLS;
    for (at, cells) in whole.iter_mut().enumerate() {
        let mut sum = _mm256_setzero_si256();
        for bit in 0..bits {
            let plane = planes[bit * stride + at * 4..].first_chunk().expect("lengths were checked");
            let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(i32::from_le_bytes(*plane)), spread);
            let is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, own), own);
            sum = _mm256_or_si256(sum, _mm256_and_si256(is_set, _mm256_set1_epi8(1_i8 << bit)));
        }
        // SAFETY: the reference covers all bytes written, at any alignment.
        unsafe { _mm256_storeu_si256(cells.as_mut_ptr().cast(), sum) }
    }
    count
}

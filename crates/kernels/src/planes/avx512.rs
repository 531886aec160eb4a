//! Registers of 64 bytes.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::formulas::Register;
use super::maps::{self, Places};
use super::{Factors, Planes, Terms, rows};

/// Exists only inside of the functions below, whose callers have found the instructions.
#[derive(Clone, Copy)]
struct Bits(__m512i);

impl Register for Bits {
    const BYTES: usize = 64;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Bits {
        let bytes: &[u8; 64] = bytes.first_chunk().expect("it has 64 bytes");
        // SAFETY: the reference covers all bytes read, at any alignment; the instruction is there, as the
        // type says.
        Bits(unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let bytes: &mut [u8; 64] = bytes.first_chunk_mut().expect("it has 64 bytes");
        // SAFETY: the reference covers all bytes written, at any alignment; the instruction is there, as the
        // type says.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Bits) -> Bits {
        // SAFETY: the instruction is there, as the type says.
        Bits(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Bits) -> Bits {
        // SAFETY: the instruction is there, as the type says.
        Bits(unsafe { _mm512_and_si512(self.0, other.0) })
    }
}

/// See [`super::add_products`].
#[target_feature(enable = "avx512f")]
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
#[target_feature(enable = "avx512f")]
pub(super) fn sums(places: &[Places], ins: &[u8], outs: &mut [u8], len: usize) {
    maps::sums::<Bits>(places, ins, outs, len);
}

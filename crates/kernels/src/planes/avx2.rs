//! Registers of 32 bytes.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::formulas::Register;
use super::{Factors, Planes, rows};

/// Exists only inside of [`add_cross_products`], whose caller has found the instructions.
#[derive(Clone, Copy)]
struct Bits(__m256i);

impl Register for Bits {
    const BYTES: usize = 32;

    #[inline(always)]
    fn load(bytes: &[u8]) -> Bits {
        let bytes: &[u8; 32] = bytes.first_chunk().expect("it has 32 bytes");
        // SAFETY: the reference covers all bytes read, at any alignment; the instruction is there, as the type says.
        Bits(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        let bytes: &mut [u8; 32] = bytes.first_chunk_mut().expect("it has 32 bytes");
        // SAFETY: the reference covers all bytes written, at any alignment; the instruction is there, as the type says.
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

/// See [`super::add_cross_products`].
#[target_feature(enable = "avx2")]
pub(super) fn add_cross_products(factors: Factors, sum: &mut [u8], x: [Planes<'_>; 2], y: [Planes<'_>; 2]) {
    rows::add_cross_products::<Bits>(factors, sum, x, y);
}

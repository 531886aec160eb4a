//! Sums in registers of 32 bytes, eight of them at a time.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use crate::label_hash::Label;

/// See [`super::sum_within`].
///
/// # Safety
/// Every row of `len` bytes lies in the arena.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sum(arena: &mut [u8], dst: usize, len: usize, sources: &[usize], constant: &Label) {
    // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
    let constant = unsafe { _mm_loadu_si128(constant.as_ptr().cast()) };
    let (both, arena) = (_mm256_broadcastsi128_si256(constant), arena.as_mut_ptr());
    let mut at = 0;
    // SAFETY: the caller's promise, and no step goes beyond `len`.
    unsafe {
        while at + 256 <= len {
            step::<8>(arena, dst, at, sources, both);
            at += 256;
        }
        while at + 32 <= len {
            step::<1>(arena, dst, at, sources, both);
            at += 32;
        }
        if at < len {
            let mut sum = constant;
            for row in sources {
                sum = _mm_xor_si128(sum, _mm_loadu_si128(arena.add(row + at).cast()));
            }
            _mm_storeu_si128(arena.add(dst + at).cast(), sum);
        }
    }
}

/// # Safety
/// 32 N bytes from `at` on lie in every row, and every row in the arena.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn step<const N: usize>(arena: *mut u8, dst: usize, at: usize, sources: &[usize], both: __m256i) {
    let mut sums = [both; N];
    for row in sources {
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller's promise; the load has no alignment.
            *sum = _mm256_xor_si256(*sum, unsafe { _mm256_loadu_si256(arena.add(row + at + 32 * i).cast()) });
        }
    }
    for (i, sum) in sums.into_iter().enumerate() {
        // SAFETY: the caller's promise; the store has no alignment.
        unsafe { _mm256_storeu_si256(arena.add(dst + at + 32 * i).cast(), sum) };
    }
}

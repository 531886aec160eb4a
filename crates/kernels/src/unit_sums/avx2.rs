//! The sums with AVX2: four entries a register, of 64 bits or stored in five to seven bytes. Each mask has
//! its own sum in a register.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use zeroize::Zeroize;

use super::{AHEAD, GROUP, LINE, Masks, Sums};
use crate::memory::prefetch;

/// The widths of entries that this is for.
pub(super) const WIDTHS: core::ops::RangeInclusive<usize> = 5..=8;

/// Most entries of a vector: an index is a byte.
const MAX_ENTRIES: usize = 256;
const HALF: usize = 16;
/// Fours of entries of a vector of 64.
const USUAL: usize = 16;

/// See [`Sums::add_up`]; lengths were checked there. Gives the sums of four output bits at a time, with the
/// numbers of the four and of the vector.
#[target_feature(enable = "avx2")]
pub(super) fn add_up(
    kernel: &Sums<u64>,
    vectors: &[u8],
    width: usize,
    h: &[u8],
    put: impl FnMut(usize, usize, [u64; GROUP]),
) {
    match width {
        5 => add_up_of::<5>(kernel, vectors, h, put),
        6 => add_up_of::<6>(kernel, vectors, h, put),
        7 => add_up_of::<7>(kernel, vectors, h, put),
        _ => add_up_of::<8>(kernel, vectors, h, put),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_up_of<const WIDTH: usize>(
    kernel: &Sums<u64>,
    vectors: &[u8],
    h: &[u8],
    mut put: impl FnMut(usize, usize, [u64; GROUP]),
) {
    let len = kernel.entries * WIDTH;
    for (bits, masks) in kernel.masks.iter().enumerate() {
        for (i, h) in h.iter().enumerate() {
            (0..len).step_by(LINE).for_each(|at| prefetch(vectors, i * len + at + AHEAD));
            // h is public.
            let (order, far) = (usize::from(h % GROUP as u8), usize::from(h / GROUP as u8));
            let vector = &vectors[i * len..];
            if WIDTH == 8 || vector.len() >= len + HALF {
                put(bits, i, sums::<WIDTH>(&masks[order], far, vector));
            } else {
                // Loads reach beyond the entries.
                let mut padded = [0; MAX_ENTRIES * 8 + HALF];
                padded[..len].copy_from_slice(vector);
                put(bits, i, sums::<WIDTH>(&masks[order], far, &padded));
                padded.zeroize();
            }
        }
    }
}

/// The sums of one vector.
#[inline]
#[target_feature(enable = "avx2")]
fn sums<const WIDTH: usize>(masks: &[Masks<u64>], far: usize, vector: &[u8]) -> [u64; GROUP] {
    let mut kept = [_mm256_setzero_si256(); GROUP];
    if let Ok(masks) = <&[Masks<u64>; USUAL]>::try_from(masks) {
        // The compiler sees that nothing lies beyond, and has no branches.
        let vector = &vector[..USUAL * GROUP * WIDTH + if WIDTH == 8 { 0 } else { HALF }];
        for v in 0..USUAL {
            add(&mut kept, load::<WIDTH>(vector, v * GROUP * WIDTH), &masks[(v ^ far) % USUAL]);
        }
    } else {
        for v in 0..masks.len() {
            add(&mut kept, load::<WIDTH>(vector, v * GROUP * WIDTH), &masks[v ^ far]);
        }
    }
    // Lanes 0 and 1, then 2 and 3, of each are added.
    let pair = |a, b| _mm256_xor_si256(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    let (first, second) = (pair(kept[0], kept[1]), pair(kept[2], kept[3]));
    let low = _mm256_permute2x128_si256::<0x20>(first, second);
    let high = _mm256_permute2x128_si256::<0x31>(first, second);
    let mut sums = [0; GROUP];
    // SAFETY: the array is the 32 bytes written; the store has no alignment.
    unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), _mm256_xor_si256(low, high)) };
    sums
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(kept: &mut [__m256i; GROUP], four: __m256i, masks: &Masks<u64>) {
    for (kept, of_bit) in kept.iter_mut().zip(&masks.0) {
        *kept = _mm256_xor_si256(*kept, _mm256_and_si256(four, mask(of_bit)));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn mask(mask: &[u64; GROUP]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read; the load has no alignment.
    unsafe { _mm256_loadu_si256(mask.as_ptr().cast()) }
}

/// Four entries.
#[inline]
#[target_feature(enable = "avx2")]
fn load<const WIDTH: usize>(bytes: &[u8], at: usize) -> __m256i {
    if WIDTH == 8 {
        let four = &bytes[at..at + GROUP * 8];
        // SAFETY: the slice is the 32 bytes read; the load has no alignment.
        return unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
    }
    let (low, high) = (&bytes[at..at + HALF], &bytes[at + 2 * WIDTH..at + 2 * WIDTH + HALF]);
    // SAFETY: the slices are the 16 bytes read each; the loads have no alignment.
    let (low, high) =
        unsafe { (_mm_loadu_si128(low.as_ptr().cast()), _mm_loadu_si128(high.as_ptr().cast())) };
    let places: [i8; HALF] = const {
        let (mut places, mut i) = ([-1; HALF], 0);
        while i < HALF {
            if i % 8 < WIDTH {
                places[i] = (i / 8 * WIDTH + i % 8) as i8;
            }
            i += 1;
        }
        places
    };
    // SAFETY: the array is the 16 bytes read; the load has no alignment.
    let places = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(places.as_ptr().cast()) });
    _mm256_shuffle_epi8(_mm256_set_m128i(high, low), places)
}

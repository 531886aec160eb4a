//! From bit columns to elements of a field: word v of every column, times the power of X that is the column's
//! number, added up.
//!
//! An authenticated bit has a block of 64 bits, bit c of it in column c. The MAC of the element with the bits
//! x_0 .. x_(w-1) is the sum of X^k times block k. If the bits of an element lie side by side, that is the
//! sum of X^c times the word that column c has there, and no block has to be made. Cost of an element: 64
//! loads, and twice as many shifts and additions, for 8 elements at a time.

#[cfg(test)]
mod tests;

use core::array::from_fn;

use zeroize::Zeroizing;

use crate::isa::Isa;
use crate::words::Modulus;
use crate::words64::reduce;

/// Columns.
const COLUMNS: usize = 64;
/// Words that are worked on at once.
const LANES: usize = 8;

/// Adds to each of the sums its elements: word v of column c, `width` bits of it from bit `v * width` of
/// `columns[c * stride..]` on, times X^c, for all 64 columns. The width is 2, 4, 8, 16, 32 or 64.
///
/// # Panics
/// When the width is another, or columns would overlap or leave `columns`.
pub fn add_words<M: Modulus>(columns: &[u8], stride: usize, width: usize, sums: &mut [u64]) {
    const { assert!(M::DEGREE == 64, "elements are words") };
    let bytes = (sums.len() * width).div_ceil(8);
    assert!(stride >= bytes && (COLUMNS - 1) * stride + bytes <= columns.len(), "the columns are too short");
    let add = match width {
        2 => add_words_with::<M, 2>,
        4 => add_words_with::<M, 4>,
        8 => add_words_with::<M, 8>,
        16 => add_words_with::<M, 16>,
        32 => add_words_with::<M, 32>,
        64 => add_words_with::<M, 64>,
        _ => panic!("words of 2 to 64 bits, a power of two, not {width}"),
    };
    add(Isa::best(), columns, stride, sums);
}

/// Eight words take as many bytes as a word has bits. Assumes that the processor has `isa` and that sizes
/// were checked.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn add_words_with<M: Modulus, const WIDTH: usize>(
    isa: Isa,
    columns: &[u8],
    stride: usize,
    sums: &mut [u64],
) {
    match isa {
        Isa::Portable => portable::<M, WIDTH>(columns, stride, sums),
        // SAFETY: these variants exist only where their instructions were detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::<M, WIDTH>(columns, stride, sums) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Gfni => unsafe { avx512::<M, WIDTH>(columns, stride, sums) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<M: Modulus, const WIDTH: usize>(columns: &[u8], stride: usize, sums: &mut [u64]) {
    portable::<M, WIDTH>(columns, stride, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn avx512<M: Modulus, const WIDTH: usize>(columns: &[u8], stride: usize, sums: &mut [u64]) {
    portable::<M, WIDTH>(columns, stride, sums);
}

/// What the compiler makes the other forms of, too.
#[inline(always)]
fn portable<M: Modulus, const WIDTH: usize>(columns: &[u8], stride: usize, sums: &mut [u64]) {
    let mut at = 0;
    let mut eights = sums.chunks_exact_mut(LANES);
    for sums in &mut eights {
        let first = |c: usize| columns[c * stride + at..].first_chunk::<WIDTH>().expect("sizes were checked");
        add_lanes::<M>(|c| words(first(c)), sums);
        at += WIDTH;
    }
    let rest = eights.into_remainder();
    if rest.is_empty() {
        return;
    }
    let bytes = (rest.len() * WIDTH).div_ceil(LANES);
    let mut last = Zeroizing::new([0; WIDTH]);
    let last_words = |c: usize| {
        last[..bytes].copy_from_slice(&columns[c * stride + at..][..bytes]);
        words(&last)
    };
    add_lanes::<M>(last_words, rest);
}

/// At most eight sums, of the words of every column.
#[inline(always)]
fn add_lanes<M: Modulus>(mut words: impl FnMut(usize) -> [u64; LANES], sums: &mut [u64]) {
    let (mut low, mut high) = ([0_u64; LANES], [0_u64; LANES]);
    for c in 0..COLUMNS {
        let words = words(c);
        low.iter_mut().zip(words).for_each(|(sum, word)| *sum ^= word << c);
        high.iter_mut().zip(words).for_each(|(sum, word)| *sum ^= word >> 1 >> (COLUMNS - 1 - c));
    }
    for ((sum, low), high) in sums.iter_mut().zip(low).zip(high) {
        *sum ^= reduce::<M>(u128::from(high) << 64 | u128::from(low));
    }
}

/// Eight words.
#[inline(always)]
fn words<const WIDTH: usize>(bytes: &[u8; WIDTH]) -> [u64; LANES] {
    match WIDTH {
        64 => from_fn(|i| u64::from_le_bytes(bytes.as_chunks().0[i])),
        32 => from_fn(|i| u64::from(u32::from_le_bytes(bytes.as_chunks().0[i]))),
        16 => from_fn(|i| u64::from(u16::from_le_bytes(bytes.as_chunks().0[i]))),
        _ => from_fn(|i| {
            let bit = i * WIDTH;
            u64::from(bytes[bit / 8]) >> (bit % 8) & (u64::MAX >> (64 - WIDTH))
        }),
    }
}

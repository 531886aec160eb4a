//! Look-ups with AVX2, for 32 cells at once.
//!
//! Eight registers with the bytes of 32 words, or with one byte of all of them each, differ by a rotation of
//! the bits of an address: with m for the register, w for the word in a lane and k for the byte in a word, in
//! binary, words are at `m2 m1 m0 : w k2 k1 k0` and bytes at `k2 k1 k0 : m2 m1 m0 w`, the register before the
//! colon and the place in its lane behind it. Interleaving the registers of the first half with those of the
//! second rotates by one. Within a byte's register lanes hold cells by pairs, even pairs in the lower and odd
//! ones in the upper lane.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::Tables;

/// Cells at once.
pub(super) const BLOCK: usize = 32;

/// See [`super::Embedding`]; lengths were checked there.
#[target_feature(enable = "avx2")]
pub(super) fn embed64<const BYTES: usize>(tables: &Tables<BYTES>, dst: &mut [u64], cells: &[u8]) {
    let ((whole, part), (cells, cells_part)) = (dst.as_chunks_mut(), cells.as_chunks());
    for (words, cells) in whole.iter_mut().zip(cells) {
        embed_block64(tables, words, cells);
    }
    if !part.is_empty() {
        let mut words = [0; BLOCK];
        embed_block64(tables, &mut words, &padded(cells_part));
        part.copy_from_slice(&words[..part.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn embed_block64<const BYTES: usize>(tables: &Tables<BYTES>, dst: &mut [u64; BLOCK], cells: &[u8; BLOCK]) {
    let words = images(tables, 0, by_pairs(load(cells)));
    for (dst, words) in dst.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        // SAFETY: the reference covers the 32 bytes written; the store has no alignment.
        unsafe { _mm256_storeu_si256(dst.as_mut_ptr().cast(), words) }
    }
}

/// As [`embed64`].
#[target_feature(enable = "avx2")]
pub(super) fn embed128(tables: &Tables<16>, dst: &mut [u128], cells: &[u8]) {
    let ((whole, part), (cells, cells_part)) = (dst.as_chunks_mut(), cells.as_chunks());
    for (words, cells) in whole.iter_mut().zip(cells) {
        embed_block128(tables, words, cells);
    }
    if !part.is_empty() {
        let mut words = [0; BLOCK];
        embed_block128(tables, &mut words, &padded(cells_part));
        part.copy_from_slice(&words[..part.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn embed_block128(tables: &Tables<16>, dst: &mut [u128; BLOCK], cells: &[u8; BLOCK]) {
    let cells = by_pairs(load(cells));
    let (lower, upper) = (images(tables, 0, cells), images(tables, 8, cells));
    for ((dst, lower), upper) in dst.as_chunks_mut::<4>().0.iter_mut().zip(lower).zip(upper) {
        let (even, odd) = (_mm256_unpacklo_epi64(lower, upper), _mm256_unpackhi_epi64(lower, upper));
        let [first, second] =
            [_mm256_permute2x128_si256::<0x20>(even, odd), _mm256_permute2x128_si256::<0x31>(even, odd)];
        // SAFETY: the reference covers the 64 bytes written, two of four elements in each; stores have no
        // alignment.
        unsafe {
            _mm256_storeu_si256(dst.as_mut_ptr().cast(), first);
            _mm256_storeu_si256(dst[2..].as_mut_ptr().cast(), second);
        }
    }
}

/// Eight bytes of the images, from the given one on, as words.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn images<const BYTES: usize>(
    tables: &Tables<BYTES>,
    from: usize,
    cells: __m256i,
) -> [__m256i; 8] {
    let mut bytes = [_mm256_setzero_si256(); 8];
    for (byte, tables) in bytes.iter_mut().zip(&tables[from..]) {
        *byte = look_up(tables, cells);
    }
    rotate(rotate(rotate(bytes)))
}

/// See [`super::Projection`]; lengths were checked there.
#[target_feature(enable = "avx2")]
pub(super) fn project64<const BYTES: usize>(tables: &Tables<BYTES>, dst: &mut [u8], src: &[u64]) {
    let ((whole, part), (src, src_part)) = (dst.as_chunks_mut(), src.as_chunks());
    for (cells, words) in whole.iter_mut().zip(src) {
        project_block64(tables, cells, words);
    }
    if !part.is_empty() {
        let mut cells = [0; BLOCK];
        project_block64(tables, &mut cells, &padded(src_part));
        part.copy_from_slice(&cells[..part.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn project_block64<const BYTES: usize>(tables: &Tables<BYTES>, dst: &mut [u8; BLOCK], src: &[u64; BLOCK]) {
    let mut words = [_mm256_setzero_si256(); 8];
    for (register, words) in words.iter_mut().zip(src.as_chunks::<4>().0) {
        // SAFETY: the reference covers the 32 bytes read; the load has no alignment.
        *register = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
    }
    store(dst, in_order(sum_of_bytes(tables, 0, words)));
}

/// As [`project64`].
#[target_feature(enable = "avx2")]
pub(super) fn project128(tables: &Tables<16>, dst: &mut [u8], src: &[u128]) {
    let ((whole, part), (src, src_part)) = (dst.as_chunks_mut(), src.as_chunks());
    for (cells, words) in whole.iter_mut().zip(src) {
        project_block128(tables, cells, words);
    }
    if !part.is_empty() {
        let mut cells = [0; BLOCK];
        project_block128(tables, &mut cells, &padded(src_part));
        part.copy_from_slice(&cells[..part.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn project_block128(tables: &Tables<16>, dst: &mut [u8; BLOCK], src: &[u128; BLOCK]) {
    let (mut lower, mut upper) = ([_mm256_setzero_si256(); 8], [_mm256_setzero_si256(); 8]);
    for ((lower, upper), src) in lower.iter_mut().zip(&mut upper).zip(src.as_chunks::<4>().0) {
        // SAFETY: the reference covers the 64 bytes read, two of four elements each time; loads have no
        // alignment.
        let [first, second] = unsafe {
            [_mm256_loadu_si256(src.as_ptr().cast()), _mm256_loadu_si256(src[2..].as_ptr().cast())]
        };
        let [even, odd] = [
            _mm256_permute2x128_si256::<0x20>(first, second),
            _mm256_permute2x128_si256::<0x31>(first, second),
        ];
        (*lower, *upper) = (_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd));
    }
    let sum = _mm256_xor_si256(sum_of_bytes(tables, 0, lower), sum_of_bytes(tables, 8, upper));
    store(dst, in_order(sum));
}

/// What eight bytes of the words, from the given one on, contribute.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_bytes<const BYTES: usize>(tables: &Tables<BYTES>, from: usize, words: [__m256i; 8]) -> __m256i {
    let mut sum = _mm256_setzero_si256();
    for (byte, tables) in rotate(rotate(rotate(rotate(words)))).into_iter().zip(&tables[from..]) {
        sum = _mm256_xor_si256(sum, look_up(tables, byte));
    }
    sum
}

#[inline]
#[target_feature(enable = "avx2")]
fn look_up(tables: &[[u8; 16]; 2], bytes: __m256i) -> __m256i {
    // SAFETY: the references cover the 16 bytes read; the loads have no alignment.
    let [lower, upper] = tables.each_ref().map(|table| unsafe { _mm_loadu_si128(table.as_ptr().cast()) });
    let (lower, upper) = (_mm256_broadcastsi128_si256(lower), _mm256_broadcastsi128_si256(upper));
    let nibble = _mm256_set1_epi8(0x0f);
    let lower = _mm256_shuffle_epi8(lower, _mm256_and_si256(bytes, nibble));
    let upper = _mm256_shuffle_epi8(upper, _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble));
    _mm256_xor_si256(lower, upper)
}

/// One rotation of the bits of addresses.
#[inline]
#[target_feature(enable = "avx2")]
fn rotate(x: [__m256i; 8]) -> [__m256i; 8] {
    let mut rotated = x;
    for i in 0..4 {
        rotated[2 * i] = _mm256_unpacklo_epi8(x[i], x[i + 4]);
        rotated[2 * i + 1] = _mm256_unpackhi_epi8(x[i], x[i + 4]);
    }
    rotated
}

/// Even pairs to the lower lane, odd ones to the upper lane.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn by_pairs(cells: __m256i) -> __m256i {
    let order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    let halves = _mm256_shuffle_epi8(cells, _mm256_broadcastsi128_si256(order));
    _mm256_permute4x64_epi64::<0b11_01_10_00>(halves)
}

/// Undoes [`by_pairs`].
#[inline]
#[target_feature(enable = "avx2")]
fn in_order(cells: __m256i) -> __m256i {
    let order = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    let halves = _mm256_permute4x64_epi64::<0b11_01_10_00>(cells);
    _mm256_shuffle_epi8(halves, _mm256_broadcastsi128_si256(order))
}

#[inline]
pub(super) fn padded<T: Copy + Default>(part: &[T]) -> [T; BLOCK] {
    let mut padded = [T::default(); BLOCK];
    padded[..part.len()].copy_from_slice(part);
    padded
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(cells: &[u8; BLOCK]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read; the load has no alignment.
    unsafe { _mm256_loadu_si256(cells.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(dst: &mut [u8; BLOCK], cells: __m256i) {
    // SAFETY: the reference covers the 32 bytes written; the store has no alignment.
    unsafe { _mm256_storeu_si256(dst.as_mut_ptr().cast(), cells) }
}

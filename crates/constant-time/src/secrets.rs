//! Bytes and words that memcheck takes for secret.

use polyclave_field::Word;
use polyclave_kernels::secret::mark_secret;

/// So many secret bytes without a pattern.
pub fn bytes(len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    mark_secret(&mut bytes);
    bytes
}

/// So many secret words, none with a bit at or above `bits`.
pub fn words<W: Word>(len: usize, bits: u32) -> Vec<W> {
    let width = size_of::<W>();
    let unused = 8 * width as u32 - bits;
    let word = |bytes: &[u8]| W::from_bytes(bytes).shift_left(unused).shift_right(unused);
    bytes(len * width).chunks_exact(width).map(word).collect()
}

/// A secret block.
pub fn block() -> [u8; 16] {
    *bytes(16).first_chunk().expect("it has 16 bytes")
}

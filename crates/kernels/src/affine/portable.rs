//! The affine combination on 64-bit words, eight bytes at a time.
//!
//! The image of a word is the sum over the eight bit positions of (that bit of every byte) times (its
//! column): the bits sit at the bottom of their bytes, so the integer product carries nothing from one
//! byte into the next. Tails are padded to a word, since of single bytes the compiler makes choices by
//! their bits. Assumes a multiplier whose time does not depend on its operands, as 64-bit processors
//! have. Cost: 32 word operations per term and word.

use super::Term;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;

/// The images of the eight bytes of `word`.
#[inline]
pub(super) const fn image(columns: &[u8; 8], word: u64) -> u64 {
    let mut sum = 0;
    let mut bit = 0;
    while bit < 8 {
        sum ^= ((word >> bit) & LOW_BITS) * columns[bit] as u64;
        bit += 1;
    }
    sum
}

/// See [`super::combine`]; lengths were checked there.
pub(super) fn combine(dst: &mut [u8], terms: &[Term<'_>], constant: u8) {
    dst.fill(constant);
    let (words, tail) = dst.as_chunks_mut::<8>();
    for term in terms {
        let columns = &term.map.columns;
        let (sources, source_tail) = term.src.as_chunks::<8>();
        for (word, source) in words.iter_mut().zip(sources) {
            *word = (u64::from_le_bytes(*word) ^ image(columns, u64::from_le_bytes(*source))).to_le_bytes();
        }
        if !tail.is_empty() {
            let word = padded(tail) ^ image(columns, padded(source_tail));
            tail.copy_from_slice(&word.to_le_bytes()[..tail.len()]);
        }
    }
}

/// Up to eight bytes as the low bytes of a word.
fn padded(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

//! Products on 64-bit words, eight bytes at a time.
//!
//! Horner's rule over the bits of the second factor, highest first: double the sum, then add the first
//! factor under the mask of the bit. The tail is padded to a word, since of single bytes the compiler makes
//! choices by their bits. Assumes a multiplier whose time does not depend on its operands, as 64-bit
//! processors have. Cost: about 100 word operations for eight products.

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
/// x^8 modulo the field polynomial.
const REDUCTION: u64 = 0x1b;

/// The products of the eight bytes of two words.
#[inline]
pub(super) const fn product(a: u64, b: u64) -> u64 {
    let mut sum = 0;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        let overflow = ((sum >> 7) & LOW_BITS) * REDUCTION;
        let doubled = ((sum & (LOW_BITS * 0x7f)) << 1) ^ overflow;
        sum = doubled ^ (a & (((b >> bit) & LOW_BITS) * 0xff));
    }
    sum
}

/// See [`super::multiply`]; lengths were checked there.
pub(super) fn multiply(dst: &mut [u8], a: &[u8], b: &[u8]) {
    let (words, tail) = dst.as_chunks_mut::<8>();
    let ((a, a_tail), (b, b_tail)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for ((word, a), b) in words.iter_mut().zip(a).zip(b) {
        *word = product(u64::from_le_bytes(*a), u64::from_le_bytes(*b)).to_le_bytes();
    }
    if !tail.is_empty() {
        let word = product(padded(a_tail), padded(b_tail));
        tail.copy_from_slice(&word.to_le_bytes()[..tail.len()]);
    }
}

/// Up to eight bytes as the low bytes of a word.
fn padded(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

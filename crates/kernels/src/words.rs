//! Fields whose elements are words (bit i is the coefficient of X^i), and how a product is reduced.
//!
//! A product is `high X^n + low`. With `X^n = 1 + sum of X^tap` a multiple of the modulus is subtracted whose
//! quotient is `high` and the part of `high sum of X^tap` beyond degree n: as long as no tap exceeds n / 2,
//! nothing beyond degree n comes from that part in its turn. All that is linear, so sums of products are
//! reduced once.

#[cfg(target_arch = "x86_64")]
pub(crate) mod registers;

/// A sparse irreducible polynomial `X^DEGREE + sum of X^tap over the TAPS + 1`.
pub trait Modulus {
    /// The degree, no more than a word has bits.
    const DEGREE: u32;
    /// The exponents in between, none zero and none above half of the degree.
    const TAPS: &'static [u32];
}

/// Fails to compile for a modulus that does not keep the rules, or not in words of this many bits.
pub(crate) const fn check<M: Modulus>(bits: u32) {
    assert!(
        M::DEGREE == bits || (bits == 64 && M::DEGREE > 32 && M::DEGREE < 64),
        "the degree suits the word"
    );
    let mut i = 0;
    while i < M::TAPS.len() {
        assert!(M::TAPS[i] > 0 && M::TAPS[i] <= M::DEGREE / 2, "two steps reduce a product");
        assert!(M::TAPS[i] < 64, "the lower terms are a word");
        i += 1;
    }
}

//! Products by [`crate::carryless`], and the reduction that all forms share.

use crate::Modulus;
use crate::carryless::carryless;

/// See [`super::reduce`] and [`crate::words`].
#[inline]
pub(super) fn reduce<M: Modulus>(sum: u128) -> u64 {
    let high = (sum >> M::DEGREE) as u64;
    let quotient = M::TAPS.iter().fold(high, |quotient, tap| quotient ^ (high >> (M::DEGREE - tap)));
    let low = M::TAPS.iter().fold(sum as u64 ^ quotient, |low, tap| low ^ (quotient << tap));
    low & (u64::MAX >> (u64::BITS - M::DEGREE))
}

/// See [`super::multiply`]; lengths were checked there.
pub(super) fn multiply<M: Modulus>(dst: &mut [u64], a: &[u64], b: &[u64]) {
    for ((product, a), b) in dst.iter_mut().zip(a).zip(b) {
        *product = reduce::<M>(carryless(*a, *b));
    }
}

/// See [`super::combine`]; lengths were checked there.
pub(super) fn combine<M: Modulus>(dst: &mut [u64], terms: &[(&[u64], u64)], constant: u64) {
    dst.fill(constant);
    for (src, factor) in terms {
        for (sum, x) in dst.iter_mut().zip(*src) {
            // Factors are public.
            *sum ^= if *factor == 1 { *x } else { reduce::<M>(carryless(*x, *factor)) };
        }
    }
}

/// See [`super::inner_product_unreduced`]; lengths were checked there.
pub(super) fn inner_product(a: &[u64], b: &[u64]) -> u128 {
    a.iter().zip(b).fold(0, |sum, (a, b)| sum ^ carryless(*a, *b))
}

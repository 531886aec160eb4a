//! Products by [`crate::carryless`] and Karatsuba's rule: 75 multiplications of integers a product.

use crate::Modulus;
use crate::carryless::carryless;

/// A sum of products, not reduced.
#[derive(Clone, Copy, Default)]
struct Wide {
    /// The product of the lower words.
    low: u128,
    /// The product of the sums of both words.
    sums: u128,
    /// The product of the upper words.
    high: u128,
}

impl Wide {
    #[inline]
    fn add_product(self, a: u128, b: u128) -> Wide {
        let words = |x: u128| [x as u64, (x >> 64) as u64];
        let ([a_low, a_high], [b_low, b_high]) = (words(a), words(b));
        Wide {
            low: self.low ^ carryless(a_low, b_low),
            sums: self.sums ^ carryless(a_low ^ a_high, b_low ^ b_high),
            high: self.high ^ carryless(a_high, b_high),
        }
    }

    /// See [`crate::words`].
    #[inline]
    fn reduce<M: Modulus>(self) -> u128 {
        let middle = self.sums ^ self.low ^ self.high;
        let (low, high) = (self.low ^ (middle << 64), self.high ^ (middle >> 64));
        let quotient = M::TAPS.iter().fold(high, |quotient, tap| quotient ^ (high >> (M::DEGREE - tap)));
        M::TAPS.iter().fold(low ^ quotient, |low, tap| low ^ (quotient << tap))
    }
}

/// See [`super::multiply`]; lengths were checked there.
pub(super) fn multiply<M: Modulus>(dst: &mut [u128], a: &[u128], b: &[u128]) {
    for ((product, a), b) in dst.iter_mut().zip(a).zip(b) {
        *product = Wide::default().add_product(*a, *b).reduce::<M>();
    }
}

/// See [`super::combine`]; lengths were checked there.
pub(super) fn combine<M: Modulus>(dst: &mut [u128], terms: &[(&[u128], u128)], constant: u128) {
    dst.fill(constant);
    for (src, factor) in terms {
        for (sum, x) in dst.iter_mut().zip(*src) {
            // Factors are public.
            *sum ^= if *factor == 1 { *x } else { Wide::default().add_product(*x, *factor).reduce::<M>() };
        }
    }
}

/// See [`super::inner_product`]; lengths were checked there.
pub(super) fn inner_product<M: Modulus>(a: &[u128], b: &[u128]) -> u128 {
    a.iter().zip(b).fold(Wide::default(), |sum, (a, b)| sum.add_product(*a, *b)).reduce::<M>()
}

//! Products on 64-bit words, by Karatsuba's rule: 75 multiplications of integers a product, see
//! [`crate::carryless`].

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
        let ([a_low, a_high], [b_low, b_high]) = (words(a), words(b));
        Wide {
            low: self.low ^ carryless(a_low, b_low),
            sums: self.sums ^ carryless(a_low ^ a_high, b_low ^ b_high),
            high: self.high ^ carryless(a_high, b_high),
        }
    }

    /// See [`super`] for the shift and the polynomial.
    #[inline]
    fn reduce(self) -> u128 {
        let middle = self.sums ^ self.low ^ self.high;
        let (low, high) = (self.low ^ (middle << 64), self.high ^ (middle >> 64));
        let (low, high) = (low << 1, (high << 1) | (low >> 127));
        // What the shifts below push out at the right has degree 128 .. 134; one more step takes it in.
        let folded = low ^ (low << 127) ^ (low << 126) ^ (low << 121);
        high ^ folded ^ (folded >> 1) ^ (folded >> 2) ^ (folded >> 7)
    }
}

fn words(x: u128) -> [u64; 2] {
    [x as u64, (x >> 64) as u64]
}

fn elements(bytes: &[u8]) -> impl Iterator<Item = u128> {
    bytes.as_chunks().0.iter().map(|element| u128::from_be_bytes(*element))
}

/// See [`super::multiply`]; lengths were checked there.
pub(super) fn multiply(dst: &mut [u8], a: &[u8], b: &[u8]) {
    for ((product, a), b) in dst.as_chunks_mut().0.iter_mut().zip(elements(a)).zip(elements(b)) {
        *product = Wide::default().add_product(a, b).reduce().to_be_bytes();
    }
}

/// See [`super::scale_add`]; lengths were checked there.
pub(super) fn scale_add(dst: &mut [u8], src: &[u8], constant: &[u8; 16]) {
    let constant = u128::from_be_bytes(*constant);
    for (sum, x) in dst.as_chunks_mut().0.iter_mut().zip(elements(src)) {
        let product = Wide::default().add_product(x, constant).reduce();
        *sum = (u128::from_be_bytes(*sum) ^ product).to_be_bytes();
    }
}

/// See [`super::weighted_sums`]; lengths were checked there, and that there are elements.
pub(super) fn weighted_sums(dst: &mut [u8], weights: &[u8], row: &[u8]) {
    for (sum, weights) in dst.as_chunks_mut().0.iter_mut().zip(weights.chunks_exact(row.len())) {
        let pairs = elements(weights).zip(elements(row));
        let wide = pairs.fold(Wide::default(), |wide, (a, b)| wide.add_product(a, b));
        *sum = wide.reduce().to_be_bytes();
    }
}

//! Products on 64-bit words, with the multiplication of integers.
//!
//! Carries spoil a carry-less product, unless they have room: of an operand only every fifth bit is kept, in five copies,
//! so at most 13 ones meet in a place and their sum stays within its five bits, the lowest of which is the parity. (The idea
//! is BearSSL's `ghash_ctmul64`, which keeps every fourth bit and has 64-bit products.) Assumes a multiplier whose time
//! does not depend on its operands, as 64-bit processors have. Cost: 75 multiplications of words a product, by Karatsuba's
//! rule.

/// Every fifth bit.
const SPARSE: u64 = 0x1084_2108_4210_8421;
/// Every fifth bit of a product.
const WIDE_SPARSE: u128 = SPARSE as u128 | (SPARSE as u128) << 65;

/// The carry-less product of two words.
#[inline]
fn carryless(a: u64, b: u64) -> u128 {
    let copies = |x: u64| [0, 1, 2, 3, 4].map(|k| x & (SPARSE << k));
    let (a, b) = (copies(a), copies(b));
    let times = |i: usize, j: usize| u128::from(a[i]) * u128::from(b[j]);
    // The copies whose offsets add up to k, modulo 5.
    let sum = |k: usize| {
        times(0, k)
            ^ times(1, (k + 4) % 5)
            ^ times(2, (k + 3) % 5)
            ^ times(3, (k + 2) % 5)
            ^ times(4, (k + 1) % 5)
    };
    let kept = |k: usize| sum(k) & (WIDE_SPARSE << k);
    kept(0) | kept(1) | kept(2) | kept(3) | kept(4)
}

/// A sum of products, not reduced.
#[derive(Clone, Copy, Default)]
struct Wide {
    /// Of the lower words.
    low: u128,
    /// Of the sums of both words.
    sums: u128,
    /// Of the upper words.
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

//! GF(2^128) = GF(2)\[x\]/(x^128 + x^7 + x^2 + x + 1) as GCM writes it (NIST SP 800-38D, section 6.3), and
//! GF(2^8) inside.
//!
//! The first bit of the first byte, the most significant one, is the coefficient of x^0: multiplication by x
//! is a shift to the right. Multiplication is constant time: no branch and no table on the operands. Whole
//! vectors go through `polyclave_kernels::gf128`, which is tested equal to this.

use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Mul, MulAssign, Sub};

use polyclave_kernels::secret::const_mask;

use crate::Gf256;

/// An element. It is 16 bytes to everyone else: [`Gf128::to_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gf128(
    /// The bytes as a big-endian number: bit 127 - i is the coefficient of x^i.
    u128,
);

/// x^128 modulo the field polynomial: 1 + x + x^2 + x^7.
const REDUCTION: u128 = 0xe1 << 120;

/// A root of the polynomial of AES, the least of the eight when they are written as bytes: the image of x.
const ROOT: Gf128 = Gf128(0x56e8_09e4_d195_c929_ec6e_47b1_264e_1bf5);

/// The images of x^0 .. x^7.
const EMBEDDED: [Gf128; 8] = {
    let mut powers = [Gf128::ONE; 8];
    let mut i = 1;
    while i < 8 {
        powers[i] = powers[i - 1].times(ROOT);
        i += 1;
    }
    powers
};

impl Gf128 {
    /// The additive unit.
    pub const ZERO: Gf128 = Gf128(0);
    /// The multiplicative unit: the polynomial 1, the byte 80 and zeros.
    pub const ONE: Gf128 = Gf128(1 << 127);

    /// Reads a block of GCM.
    pub const fn from_bytes(bytes: [u8; 16]) -> Gf128 {
        Gf128(u128::from_be_bytes(bytes))
    }

    /// Writes a block of GCM.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The same element in the larger field: sums and products of images are images of sums and products. So
    /// a sharing over GF(2^8), its points and its Lagrange coefficients carry over. Constant time.
    pub const fn embed(small: Gf256) -> Gf128 {
        let (mut image, mut i) = (0, 0);
        while i < 8 {
            image ^= EMBEDDED[i].0 & const_mask((small.0 >> i) as u128);
            i += 1;
        }
        Gf128(image)
    }

    /// The product, in constant time: SP 800-38D, algorithm 1.
    pub const fn times(self, other: Gf128) -> Gf128 {
        let (mut multiple, mut product, mut i) = (self.0, 0, 0);
        while i < 128 {
            product ^= multiple & const_mask(other.0 >> (127 - i));
            multiple = (multiple >> 1) ^ (REDUCTION & const_mask(multiple));
            i += 1;
        }
        Gf128(product)
    }

    /// This element to a public power.
    pub fn pow(self, exponent: u128) -> Gf128 {
        let bits = (0..u128::BITS - exponent.leading_zeros()).rev();
        bits.fold(Gf128::ONE, |power, i| {
            let square = power * power;
            if exponent >> i & 1 == 1 { square * self } else { square }
        })
    }

    /// The multiplicative inverse, and 0 for 0: the power 2^128 - 2.
    pub fn inverse_or_zero(self) -> Gf128 {
        self.pow(u128::MAX - 1)
    }
}

impl Add for Gf128 {
    type Output = Gf128;
    #[allow(clippy::suspicious_arithmetic_impl)] // Addition of polynomials over GF(2).
    fn add(self, other: Gf128) -> Gf128 {
        Gf128(self.0 ^ other.0)
    }
}

impl Sub for Gf128 {
    type Output = Gf128;
    #[allow(clippy::suspicious_arithmetic_impl)] // Every element is its own negative.
    fn sub(self, other: Gf128) -> Gf128 {
        self + other
    }
}

impl Mul for Gf128 {
    type Output = Gf128;
    fn mul(self, other: Gf128) -> Gf128 {
        self.times(other)
    }
}

impl AddAssign for Gf128 {
    fn add_assign(&mut self, other: Gf128) {
        *self = *self + other;
    }
}

impl MulAssign for Gf128 {
    fn mul_assign(&mut self, other: Gf128) {
        *self = *self * other;
    }
}

impl Sum for Gf128 {
    fn sum<I: Iterator<Item = Gf128>>(iter: I) -> Gf128 {
        iter.fold(Gf128::ZERO, Add::add)
    }
}

impl Product for Gf128 {
    fn product<I: Iterator<Item = Gf128>>(iter: I) -> Gf128 {
        iter.fold(Gf128::ONE, Mul::mul)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(hex: u128) -> Gf128 {
        Gf128::from_bytes(hex.to_be_bytes())
    }

    fn all() -> impl Iterator<Item = Gf256> {
        (0..=255).map(Gf256)
    }

    /// Elements without a pattern: powers of one without a small order.
    fn some() -> impl Iterator<Item = Gf128> {
        (1..30u128).map(|k| element(0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78).pow(k * 0x1234_5678_9abc_def1))
    }

    /// McGrew and Viega 2004, appendix B, test case 2: one block of ciphertext, then the lengths.
    #[test]
    fn products_are_those_of_the_published_ghash() {
        let h = element(0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
        let first = element(0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78) * h;
        assert_eq!(first, element(0x5e2e_c746_9170_6288_2c85_b068_5353_deb7));
        let hash = (first + element(0x80)) * h;
        assert_eq!(hash, element(0xf38c_bb1a_d692_23dc_c345_7ae5_b6b0_f885));
    }

    #[test]
    fn products_commute_associate_and_distribute() {
        for (a, b) in some().zip(some().skip(3)) {
            let c = a + Gf128::ONE;
            assert_eq!(a * b, b * a);
            assert_eq!((a * b) * c, a * (b * c));
            assert_eq!(a * (b + c), a * b + a * c);
            assert_eq!(a * Gf128::ONE, a);
        }
    }

    #[test]
    fn every_element_but_zero_has_its_inverse() {
        assert!(some().all(|a| a * a.inverse_or_zero() == Gf128::ONE));
        assert_eq!(Gf128::ZERO.inverse_or_zero(), Gf128::ZERO);
    }

    #[test]
    fn the_image_of_x_is_a_root_of_the_polynomial_of_aes_and_the_least() {
        let at = |x: Gf128| x.pow(8) + x.pow(4) + x.pow(3) + x + Gf128::ONE;
        assert_eq!(at(ROOT), Gf128::ZERO);
        // The eight roots are conjugates.
        assert!((1..8).all(|k| at(ROOT.pow(1 << k)) == Gf128::ZERO && ROOT.pow(1 << k) > ROOT));
    }

    #[test]
    fn embedding_keeps_sums_and_products_and_tells_all_elements_apart() {
        assert_eq!(Gf128::embed(Gf256::ONE), Gf128::ONE);
        for a in all() {
            for b in all() {
                assert_eq!(Gf128::embed(a * b), Gf128::embed(a) * Gf128::embed(b));
                assert_eq!(Gf128::embed(a + b), Gf128::embed(a) + Gf128::embed(b));
                assert_eq!(Gf128::embed(a) == Gf128::embed(b), a == b);
            }
        }
    }
}

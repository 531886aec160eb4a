//! GF(2^8) = GF(2)\[x\]/(x^8 + x^4 + x^3 + x + 1), the field of AES (FIPS-197, section 4).
//!
//! Multiplication is constant time: no branch and no table on the operands. Whole vectors go through
//! `polyclave_kernels::gf256`, which is tested equal to this.

use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Mul, MulAssign, Sub};

use polyclave_kernels::secret::const_mask;

/// An element; bit i of the byte is the coefficient of x^i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gf256(pub u8);

impl Gf256 {
    /// The additive unit.
    pub const ZERO: Gf256 = Gf256(0);
    /// The multiplicative unit.
    pub const ONE: Gf256 = Gf256(1);

    /// The product, in constant time.
    pub const fn times(self, other: Gf256) -> Gf256 {
        let (mut a, mut product, mut i) = (self.0, 0, 0);
        while i < 8 {
            product ^= a & const_mask((other.0 >> i) as u128) as u8;
            a = (a << 1) ^ (0x1b & const_mask((a >> 7) as u128) as u8);
            i += 1;
        }
        Gf256(product)
    }

    /// This element to a public power.
    pub fn pow(self, exponent: u32) -> Gf256 {
        let bits = (0..u32::BITS - exponent.leading_zeros()).rev();
        bits.fold(Gf256::ONE, |power, i| {
            let square = power * power;
            if exponent >> i & 1 == 1 { square * self } else { square }
        })
    }

    /// The multiplicative inverse, and 0 for 0 (what AES calls inversion): the power 254.
    pub fn inverse_or_zero(self) -> Gf256 {
        self.pow(254)
    }

    /// The coefficients l with f(at) = sum of `l[i]` f(`points[i]`) for every polynomial of degree below the
    /// number of points (Lagrange). The points must differ.
    pub fn lagrange(points: &[Gf256], at: Gf256) -> Vec<Gf256> {
        let others = |i: usize| points.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, p)| *p);
        let coefficient = |i: usize| -> Gf256 {
            let numerator: Gf256 = others(i).map(|p| at - p).product();
            let denominator: Gf256 = others(i).map(|p| points[i] - p).product();
            numerator * denominator.inverse_or_zero()
        };
        (0..points.len()).map(coefficient).collect()
    }
}

impl Add for Gf256 {
    type Output = Gf256;
    #[allow(clippy::suspicious_arithmetic_impl)] // Addition of polynomials over GF(2).
    fn add(self, other: Gf256) -> Gf256 {
        Gf256(self.0 ^ other.0)
    }
}

impl Sub for Gf256 {
    type Output = Gf256;
    #[allow(clippy::suspicious_arithmetic_impl)] // Every element is its own negative.
    fn sub(self, other: Gf256) -> Gf256 {
        self + other
    }
}

impl Mul for Gf256 {
    type Output = Gf256;
    fn mul(self, other: Gf256) -> Gf256 {
        self.times(other)
    }
}

impl AddAssign for Gf256 {
    fn add_assign(&mut self, other: Gf256) {
        *self = *self + other;
    }
}

impl MulAssign for Gf256 {
    fn mul_assign(&mut self, other: Gf256) {
        *self = *self * other;
    }
}

impl Sum for Gf256 {
    fn sum<I: Iterator<Item = Gf256>>(iter: I) -> Gf256 {
        iter.fold(Gf256::ZERO, Add::add)
    }
}

impl Product for Gf256 {
    fn product<I: Iterator<Item = Gf256>>(iter: I) -> Gf256 {
        iter.fold(Gf256::ONE, Mul::mul)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Gf256> {
        (0..=255).map(Gf256)
    }

    #[test]
    fn product_equals_schoolbook_reduction() {
        for a in all() {
            for b in all() {
                let mut wide =
                    (0..8).filter(|i| b.0 >> i & 1 == 1).fold(0u16, |w, i| w ^ (u16::from(a.0) << i));
                for i in (8..16).rev() {
                    if wide >> i & 1 == 1 {
                        wide ^= 0x11b << (i - 8);
                    }
                }
                assert_eq!(u16::from((a * b).0), wide);
            }
        }
    }

    #[test]
    fn every_element_but_zero_has_its_inverse() {
        assert!(all().skip(1).all(|a| a * a.inverse_or_zero() == Gf256::ONE));
        assert_eq!(Gf256::ZERO.inverse_or_zero(), Gf256::ZERO);
    }

    #[test]
    fn lagrange_recovers_a_polynomial_anywhere() {
        let polynomial = |x: Gf256| Gf256(7) + Gf256(0x53) * x + Gf256(0xca) * x * x;
        let points = [Gf256(1), Gf256(2), Gf256(9)];
        for at in all() {
            let weights = Gf256::lagrange(&points, at);
            let value: Gf256 = points.iter().zip(weights).map(|(p, w)| w * polynomial(*p)).sum();
            assert_eq!(value, polynomial(at));
        }
    }
}

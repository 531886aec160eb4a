//! GF(2^16) = GF(2)\[X\]/(X^16 + X^5 + X^3 + X + 1), the symbols of codes that are longer than 256.
//!
//! An element is a `u16`, bit i the coefficient of X^i; addition is XOR. Products take constant time: no
//! branch and no table on an element. Those of rows are loops over bits in which every lane does the same,
//! which the compiler turns into vector instructions.

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Gf2_16;

/// X^16 modulo the polynomial.
const TAIL: u16 = 0x2b;

/// The highest bit of x in all places.
const fn spread_highest(x: u16) -> u16 {
    ((x as i16) >> 15) as u16
}

/// X times x.
const fn times_x(x: u16) -> u16 {
    (x << 1) ^ (TAIL & spread_highest(x))
}

impl Gf2_16 {
    /// The product.
    #[inline]
    pub const fn multiply(a: u16, b: u16) -> u16 {
        let (mut product, mut i) = (0, 0);
        while i < 16 {
            product = times_x(product) ^ (a & spread_highest(b << i));
            i += 1;
        }
        product
    }

    /// The inverse, and 0 for 0: the power 2^16 - 2.
    pub const fn inverse_or_zero(a: u16) -> u16 {
        let (mut power, mut square, mut i) = (1, a, 1);
        while i < 16 {
            square = Gf2_16::multiply(square, square);
            power = Gf2_16::multiply(power, square);
            i += 1;
        }
        power
    }

    /// `dst[i] += src[i]`.
    ///
    /// # Panics
    /// If lengths differ; so all below.
    pub fn add_row(dst: &mut [u16], src: &[u16]) {
        assert_eq!(dst.len(), src.len(), "as many elements");
        dst.iter_mut().zip(src).for_each(|(x, y)| *x ^= y);
    }

    /// `dst[i] *= src[i]`.
    pub fn multiply_row(dst: &mut [u16], src: &[u16]) {
        assert_eq!(dst.len(), src.len(), "as many elements");
        dst.iter_mut().zip(src).for_each(|(x, y)| *x = Gf2_16::multiply(*x, *y));
    }

    /// `dst[i] += factor * src[i]`. The factor is public: zero costs nothing.
    pub fn add_multiple(dst: &mut [u16], src: &[u16], factor: u16) {
        assert_eq!(dst.len(), src.len(), "as many elements");
        if factor == 0 {
            return;
        }
        // The multiples of the factor by X^15, .., 1.
        let mut multiples = [factor; 16];
        for i in (0..15).rev() {
            multiples[i] = times_x(multiples[i + 1]);
        }
        for (x, y) in dst.iter_mut().zip(src) {
            let mut sum = *x;
            for (i, multiple) in multiples.iter().enumerate() {
                sum ^= multiple & spread_highest(y << i);
            }
            *x = sum;
        }
    }

    /// The sum of `a[i] b[i]`.
    pub fn inner_product(a: &[u16], b: &[u16]) -> u16 {
        assert_eq!(a.len(), b.len(), "as many elements");
        a.iter().zip(b).fold(0, |sum, (x, y)| sum ^ Gf2_16::multiply(*x, *y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements without a pattern.
    fn elements() -> Vec<u16> {
        (0..500u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 16) as u16).collect()
    }

    #[test]
    fn product_equals_schoolbook_reduction() {
        for a in elements() {
            for b in elements() {
                let ones = (0..16).filter(|i| b >> i & 1 == 1);
                let mut wide = ones.fold(0u32, |wide, i| wide ^ u32::from(a) << i);
                for i in (16..31).rev() {
                    if wide >> i & 1 == 1 {
                        wide ^= 0x1_002b << (i - 16);
                    }
                }
                assert_eq!(u32::from(Gf2_16::multiply(a, b)), wide);
            }
        }
    }

    /// So there are no divisors of zero, and the polynomial is irreducible.
    #[test]
    fn every_element_but_zero_has_its_inverse() {
        assert!((1..=u16::MAX).all(|a| Gf2_16::multiply(a, Gf2_16::inverse_or_zero(a)) == 1));
        assert_eq!(Gf2_16::inverse_or_zero(0), 0);
    }

    #[test]
    fn rows_equal_single_elements() {
        let a = elements();
        let b: Vec<u16> = a.iter().rev().copied().collect();
        let products: Vec<u16> = a.iter().zip(&b).map(|(x, y)| Gf2_16::multiply(*x, *y)).collect();
        let mut row = a.clone();
        Gf2_16::multiply_row(&mut row, &b);
        assert_eq!(row, products);
        assert_eq!(Gf2_16::inner_product(&a, &b), products.iter().fold(0, |sum, x| sum ^ x));
        for factor in [0, 1, 2, 0x8000, 0xface] {
            let mut row = a.clone();
            Gf2_16::add_multiple(&mut row, &b, factor);
            let expected = a.iter().zip(&b).map(|(x, y)| x ^ Gf2_16::multiply(factor, *y));
            assert!(row.iter().copied().eq(expected), "{factor}");
        }
        let mut row = a.clone();
        Gf2_16::add_row(&mut row, &b);
        assert!(row.iter().copied().eq(a.iter().zip(&b).map(|(x, y)| x ^ y)));
    }
}

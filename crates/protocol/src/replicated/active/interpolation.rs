//! Polynomials over K = GF(2^64) that are given by their values at the first of these points: point i is the
//! element of F = GF(2^8) with the coordinates i ([`element`]). So the first sixteen are GF(16).

use polyclave_field::subfields::element;
use polyclave_field::{Gf2_64, Gf256, MacField};

/// Point i.
pub(super) fn point(i: usize) -> u64 {
    Gf2_64::embed(element(i as u8).0)
}

/// Polynomials through so many points.
pub(super) struct Interpolation {
    /// For each point, the inverse of the product of its differences to the others.
    inverses: Vec<Gf256>,
}

impl Interpolation {
    /// For polynomials of a smaller degree than there are points.
    pub(super) fn through(points: usize) -> Interpolation {
        let inverse = |i: usize| {
            let others = (0..points).filter(|j| *j != i);
            others.map(|j| difference(i, j)).fold(Gf256::ONE, |product, x| product * x).inverse_or_zero()
        };
        Interpolation { inverses: (0..points).map(inverse).collect() }
    }

    /// The coefficients that make the value at a public place from the values at the points.
    pub(super) fn at(&self, place: u64) -> Vec<u64> {
        // The differences to the points before one, and to those behind it.
        let mut all = vec![1; self.inverses.len()];
        for i in 1..all.len() {
            all[i] = Gf2_64::multiply(all[i - 1], place ^ point(i - 1));
        }
        let mut behind = 1;
        for (i, (coefficient, inverse)) in all.iter_mut().zip(&self.inverses).enumerate().rev() {
            let differences = Gf2_64::multiply(*coefficient, behind);
            *coefficient = Gf2_64::multiply(differences, Gf2_64::embed(inverse.0));
            behind = Gf2_64::multiply(behind, place ^ point(i));
        }
        all
    }

    /// The same for the value at point `place`, which is none of those.
    pub(super) fn at_point(&self, place: usize) -> Vec<Gf256> {
        let differences = |i: usize| {
            let others = (0..self.inverses.len()).filter(|j| *j != i);
            others.map(|j| difference(place, j)).fold(Gf256::ONE, |product, x| product * x)
        };
        self.inverses.iter().enumerate().map(|(i, inverse)| differences(i) * *inverse).collect()
    }
}

/// Of two points.
fn difference(i: usize, j: usize) -> Gf256 {
    element(i as u8) + element(j as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x^3 + a x + b, from four values.
    fn polynomial(x: u64) -> u64 {
        let [a, b] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
        let square = Gf2_64::multiply(x, x);
        Gf2_64::multiply(square ^ a, x) ^ b
    }

    #[test]
    fn a_polynomial_is_fixed_by_its_values() {
        for points in [4, 5, 17, 31, 33] {
            let values: Vec<u64> = (0..points).map(|i| polynomial(point(i))).collect();
            let interpolation = Interpolation::through(points);
            for place in [0x1234_5678, u64::MAX, 2, point(1)] {
                assert_eq!(Gf2_64::inner_product(&interpolation.at(place), &values), polynomial(place));
            }
            for place in [points, points + 7] {
                let coefficients: Vec<u64> =
                    interpolation.at_point(place).iter().map(|c| Gf2_64::embed(c.0)).collect();
                assert_eq!(Gf2_64::inner_product(&coefficients, &values), polynomial(point(place)));
            }
        }
    }
}

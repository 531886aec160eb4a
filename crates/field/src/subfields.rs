//! The fields between GF(2) and F = GF(2^8) of AES, all computed by the compiler.
//!
//! x = OMEGA xh + xl with xh, xl in GF(16), and N = ZETA n1 + n0 with n1, n0 in GF(4). Both are the least
//! elements of trace 1 over the smaller field, so that a norm is NU xh^2 + xh xl + xl^2, and MU n1^2 + n1
//! n0 + n0^2. 1 and MU are a basis of GF(4).

use crate::Gf256;

/// The least element with OMEGA + OMEGA^16 = 1.
pub const OMEGA: u8 = least_of_trace_one(8);
/// The least element of GF(16) with ZETA + ZETA^4 = 1.
pub const ZETA: u8 = least_of_trace_one(4);
/// OMEGA^17, an element of GF(16).
pub const NU: u8 = product(OMEGA, power_of_two(OMEGA, 4));
/// ZETA^5, an element of GF(4).
pub const MU: u8 = product(ZETA, power_of_two(ZETA, 2));
/// A basis of GF(16) over GF(2): 1, and then always the least element that is no sum of those before.
pub const GF16: [u8; 4] = basis();
/// The same of GF(4).
pub const GF4: [u8; 2] = basis();

/// The element of GF(2^8) with these coordinates: bit 4i + 2j + k is that of OMEGA^i ZETA^j MU^k. So the
/// lower half is xl and the upper half xh, and in each of them the lower half is n0 and the upper half n1.
pub const fn element(coordinates: u8) -> Gf256 {
    Gf256(ELEMENTS[coordinates as usize])
}

/// By coordinates, which are public.
static ELEMENTS: [u8; 256] = {
    let (mut all, mut coordinates) = ([0; 256], 1);
    while coordinates < 256 {
        let bit = (coordinates as u8).ilog2();
        let omega = if bit & 4 > 0 { OMEGA } else { 1 };
        let zeta = if bit & 2 > 0 { ZETA } else { 1 };
        let mu = if bit & 1 > 0 { MU } else { 1 };
        all[coordinates] = all[coordinates ^ 1 << bit] ^ product(omega, product(zeta, mu));
        coordinates += 1;
    }
    all
};

/// The coordinates of a public element: the inverse of [`element`].
pub fn coordinates(x: Gf256) -> u8 {
    COORDINATES[usize::from(x.0)]
}

/// By element.
static COORDINATES: [u8; 256] = {
    let (mut all, mut coordinates) = ([0; 256], 0);
    while coordinates < 256 {
        all[element(coordinates as u8).0 as usize] = coordinates as u8;
        coordinates += 1;
    }
    all
};

const fn product(a: u8, b: u8) -> u8 {
    Gf256(a).times(Gf256(b)).0
}

const fn power_of_two(x: u8, squarings: u32) -> u8 {
    let (mut power, mut i) = (x, 0);
    while i < squarings {
        power = product(power, power);
        i += 1;
    }
    power
}

/// In the field of this degree, over that of half the degree.
const fn least_of_trace_one(degree: u32) -> u8 {
    let mut x = 0;
    while power_of_two(x, degree) != x || x ^ power_of_two(x, degree / 2) != 1 {
        x += 1;
    }
    x
}

/// Of the field of 2^D elements.
const fn basis<const D: usize>() -> [u8; D] {
    let (mut basis, mut found, mut spanned) = ([0; D], 0, [false; 256]);
    spanned[0] = true;
    let mut x = 1;
    while found < D {
        if power_of_two(x, D as u32) == x && !spanned[x as usize] {
            basis[found] = x;
            found += 1;
            let mut sum = 0;
            while sum < 256 {
                // Each pair is visited from both sides, and one side is enough.
                if spanned[sum] {
                    spanned[sum ^ x as usize] = true;
                }
                sum += 1;
            }
        }
        x = x.wrapping_add(1);
    }
    basis
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the specification.
    #[test]
    fn the_constants_are_the_least_ones() {
        assert_eq!([OMEGA, NU, ZETA, MU], [18, 13, 92, 188]);
    }

    fn is_in(degree: u32, x: u8) -> bool {
        Gf256(x).pow(1 << degree).0 == x
    }

    #[test]
    fn bases_span_the_subfields() {
        let sums = |basis: &[u8]| -> Vec<u8> {
            let sum =
                |bits: usize| (0..basis.len()).fold(0, |sum, i| sum ^ (basis[i] * (bits >> i & 1) as u8));
            let mut all: Vec<u8> = (0..1 << basis.len()).map(sum).collect();
            all.sort_unstable();
            all
        };
        let field = |degree| (0..=255).filter(|x| is_in(degree, *x)).collect::<Vec<u8>>();
        assert_eq!(sums(&GF16), field(4));
        assert_eq!(sums(&GF4), field(2));
        assert_eq!(basis::<8>(), [1, 2, 4, 8, 16, 32, 64, 128]);
    }

    #[test]
    fn the_inverse_is_the_product_of_the_tower_for_every_element() {
        for x in (0..=255).map(Gf256) {
            let n = x.pow(16) * x;
            let m = n.pow(4) * n;
            let v = n.pow(4) * m * m;
            assert!(is_in(4, n.0) && is_in(2, m.0) && is_in(4, v.0));
            assert_eq!(x.pow(16) * v, x.inverse_or_zero());
            // The norms from coordinates, as records are made of them.
            let high = x + x.pow(16);
            let low = x + Gf256(OMEGA) * high;
            assert!(is_in(4, high.0) && is_in(4, low.0));
            assert_eq!(n, Gf256(NU) * high * high + high * low + low * low);
            let high = n + n.pow(4);
            let low = n + Gf256(ZETA) * high;
            assert!(is_in(2, high.0) && is_in(2, low.0));
            assert_eq!(m, Gf256(MU) * high * high + high * low + low * low);
        }
    }

    #[test]
    fn coordinates_are_those_of_the_subfields() {
        for x in (0..=255).map(Gf256) {
            let (high, low) = (element(coordinates(x) >> 4), element(coordinates(x) & 15));
            assert!(is_in(4, high.0) && is_in(4, low.0));
            assert_eq!(Gf256(OMEGA) * high + low, x);
            assert_eq!(element(coordinates(x)), x);
            let (high, low) = (element(coordinates(low) >> 2), element(coordinates(low) & 3));
            assert!(is_in(2, high.0) && is_in(2, low.0));
        }
    }
}

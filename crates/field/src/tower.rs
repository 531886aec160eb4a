//! GF(2^128) as GCM writes it ([`Gf128`]), seen as pairs over GF(2^64) ([`Gf2_64`](crate::Gf2_64)).
//!
//! The smaller field lies in the larger one: iota takes X to a root g of X^64 + X^4 + X^3 + X + 1. Over it 1
//! and t are a basis, with t^2 = t + delta for an element delta of trace 1. So x = iota(x_0) + iota(x_1) t
//! has coordinates (x_0, x_1), sums are those of coordinates, a product by iota(c) multiplies both by c, and
//! x y = (x_0 y_0 + delta x_1 y_1) + ((x_0 + x_1)(y_0 + y_1) + x_0 y_0) t.
//!
//! Both maps are linear over GF(2), computed by the compiler, and take constant time.

use polyclave_kernels::secret::mask;

use crate::Gf128;

/// X^61, the least power of X that has trace 1 over GF(2): t^2 = t + iota(delta).
pub const DELTA: u64 = 1 << 61;

/// g, the least of the 64 roots when they are written as bytes.
const ROOT: u128 = 0x0bea_edea_771b_3f0b_945d_c8a6_0210_280c;

/// t, the lesser of the two solutions.
const T: u128 = 0x1ea2_66d5_5e83_e3cd_76b6_f9c2_c870_b28a;

/// The images of the coordinates' bits, those of x_0 first.
static IMAGES: [u128; 128] = images();

/// The coordinates of every bit of an element, as bits of a number: those of x_0 are the lower half.
static COORDINATES: [u128; 128] = inverse(images());

/// iota(x).
pub fn embed(x: u64) -> Gf128 {
    join([x, 0])
}

/// The element of these coordinates.
pub fn join([x0, x1]: [u64; 2]) -> Gf128 {
    of_number(apply(&IMAGES, u128::from(x0) | u128::from(x1) << 64))
}

/// The coordinates of an element.
pub fn split(x: Gf128) -> [u64; 2] {
    let coordinates = apply(&COORDINATES, number(x));
    [coordinates as u64, (coordinates >> 64) as u64]
}

fn apply(columns: &[u128; 128], x: u128) -> u128 {
    let column = |(i, column): (usize, &u128)| column & mask(x >> i);
    columns.iter().enumerate().map(column).fold(0, |sum, term| sum ^ term)
}

const fn number(x: Gf128) -> u128 {
    u128::from_be_bytes(x.to_bytes())
}

const fn of_number(x: u128) -> Gf128 {
    Gf128::from_bytes(x.to_be_bytes())
}

/// The powers of g, and t times them.
const fn images() -> [u128; 128] {
    let (root, t) = (of_number(ROOT), of_number(T));
    let mut images = [0; 128];
    let (mut power, mut i) = (Gf128::ONE, 0);
    while i < 64 {
        images[i] = number(power);
        images[64 + i] = number(power.times(t));
        power = power.times(root);
        i += 1;
    }
    images
}

/// The inverse of the linear map with these columns: Gauss and Jordan's elimination.
const fn inverse(mut columns: [u128; 128]) -> [u128; 128] {
    let mut sides = [0; 128];
    let mut place = 0;
    while place < 128 {
        sides[place] = 1 << place;
        place += 1;
    }
    let mut bit = 0;
    while bit < 128 {
        let mut pivot = bit;
        while columns[pivot] >> bit & 1 == 0 {
            pivot += 1;
        }
        let (column, side) = (columns[pivot], sides[pivot]);
        (columns[pivot], sides[pivot]) = (columns[bit], sides[bit]);
        (columns[bit], sides[bit]) = (column, side);
        let mut other = 0;
        while other < 128 {
            if other != bit && columns[other] >> bit & 1 == 1 {
                columns[other] ^= column;
                sides[other] ^= side;
            }
            other += 1;
        }
        bit += 1;
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gf2_64, MacField};

    /// Words without a pattern.
    fn words() -> impl Iterator<Item = u64> + Clone {
        (1..40u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32))
    }

    fn elements() -> impl Iterator<Item = Gf128> + Clone {
        words().zip(words().skip(5)).map(|(a, b)| of_number(u128::from(a) << 64 | u128::from(b)))
    }

    #[test]
    fn the_image_of_x_is_a_root_of_the_polynomial_and_the_least() {
        let at = |x: Gf128| x.pow(64) + x.pow(4) + x.pow(3) + x + Gf128::ONE;
        let root = embed(2);
        assert_eq!(at(root), Gf128::ZERO);
        let conjugates = (1..64).map(|k| root.pow(1 << k));
        assert!(conjugates.into_iter().all(|other| at(other) == Gf128::ZERO && other > root));
    }

    #[test]
    fn t_solves_its_equation_and_delta_is_the_least_that_has_trace_one() {
        let t = join([0, 1]);
        assert_eq!(t * t, t + embed(DELTA));
        assert!(t < t + Gf128::ONE);
        let trace = |x: Gf128| (0..64).map(|k| x.pow(1 << k)).sum::<Gf128>();
        assert_eq!(trace(embed(DELTA)), Gf128::ONE);
        assert!((0..61).all(|k| trace(embed(1 << k)) == Gf128::ZERO));
    }

    #[test]
    fn embedding_keeps_sums_and_products() {
        assert_eq!(embed(1), Gf128::ONE);
        for (a, b) in words().zip(words().skip(7)) {
            assert_eq!(embed(a ^ b), embed(a) + embed(b));
            assert_eq!(embed(Gf2_64::multiply(a, b)), embed(a) * embed(b));
        }
    }

    #[test]
    fn coordinates_come_back_and_are_linear_over_the_smaller_field() {
        for (x, c) in elements().zip(words()) {
            let [x0, x1] = split(x);
            assert_eq!(join([x0, x1]), x);
            assert_eq!(embed(x0) + embed(x1) * join([0, 1]), x);
            assert_eq!(split(embed(c) * x), [x0, x1].map(|coordinate| Gf2_64::multiply(c, coordinate)));
        }
        assert!((0..64).all(|i| split(join([1 << i, 1 << (63 - i)])) == [1 << i, 1 << (63 - i)]));
    }

    #[test]
    fn products_follow_from_three_products_of_coordinates() {
        for (x, y) in elements().zip(elements().skip(3)) {
            let ([x0, x1], [y0, y1]) = (split(x), split(y));
            let low = Gf2_64::multiply(x0, y0);
            let high = Gf2_64::multiply(x1, y1);
            let both = Gf2_64::multiply(x0 ^ x1, y0 ^ y1);
            assert_eq!(split(x * y), [low ^ Gf2_64::multiply(DELTA, high), both ^ low]);
        }
    }
}

//! Evaluation and interpolation of polynomials over GF(2^16) on subspaces over GF(2) and their cosets, with n
//! log n / 2 products: Lin, Chung, Han 2014, "Novel Polynomial Basis and Its Application to Reed-Solomon
//! Erasure Codes", sections II and III.
//!
//! Point p is the element with the bits of p, so the first 2^i points are the subspace V_i spanned by 1, X,
//! .., X^(i-1), and 2^i points from a multiple of 2^i on are a coset. s_i, the product of all x - v for v in
//! V_i, is linear over GF(2), and so is s^_i = s_i / s_i(X^i), which is constant on cosets of V_i and adds
//! one from the first half of a coset of V_(i+1) to the second. The basis is X_j, the product of the s^_i for
//! the bits i of j. Its degree is j: **a polynomial has a degree below D if and only if its coefficients from
//! D on are zero**, in this basis as in that of powers.
//!
//! With a polynomial of degree below 2^(i+1) as f + s^_i g, f and g of degree below 2^i, on the first half of
//! a coset it is f + t g and on the second f + (t + 1) g, where t is the value of s^_i there: a public
//! constant. So one level is the products by t and two sums.
//!
//! Many polynomials are transformed at once: row j holds the j-th coefficients (or values) of all of them,
//! its lanes.

use polyclave_field::Gf2_16;

/// s^_i(X^j) in row i, column j.
static VALUES: [[u16; 16]; 16] = values();

/// s^_0(x) = x, and s_(i+1) is a multiple of s^_i (s^_i + 1).
const fn values() -> [[u16; 16]; 16] {
    let mut values = [[0; 16]; 16];
    let (mut i, mut j) = (0, 0);
    while j < 16 {
        values[0][j] = 1 << j;
        j += 1;
    }
    while i < 15 {
        let scale = Gf2_16::inverse_or_zero(next(values[i][i + 1]));
        j = 0;
        while j < 16 {
            values[i + 1][j] = Gf2_16::multiply(scale, next(values[i][j]));
            j += 1;
        }
        i += 1;
    }
    values
}

const fn next(x: u16) -> u16 {
    Gf2_16::multiply(x, x ^ 1)
}

/// s^_i at a point.
fn twiddle(i: usize, point: usize) -> u16 {
    VALUES[i]
        .iter()
        .enumerate()
        .fold(0, |sum, (j, value)| sum ^ (value & ((point >> j & 1) as u16).wrapping_neg()))
}

/// From coefficients to the values at as many points from `first` on.
///
/// # Panics
/// If the rows are not a power of two, or `first` no multiple of their number; so all below.
pub(crate) fn evaluate(rows: &mut [u16], lanes: usize, first: usize) {
    for i in (0..levels(rows, lanes, first)).rev() {
        for (c, coset) in rows.chunks_exact_mut(lanes << (i + 1)).enumerate() {
            let (f, g) = coset.split_at_mut(lanes << i);
            Gf2_16::add_multiple(f, g, twiddle(i, first + (c << (i + 1))));
            Gf2_16::add_row(g, f);
        }
    }
}

/// From the values at as many points from `first` on to coefficients.
pub(crate) fn interpolate(rows: &mut [u16], lanes: usize, first: usize) {
    for i in 0..levels(rows, lanes, first) {
        for (c, coset) in rows.chunks_exact_mut(lanes << (i + 1)).enumerate() {
            let (f, g) = coset.split_at_mut(lanes << i);
            Gf2_16::add_row(g, f);
            Gf2_16::add_multiple(f, g, twiddle(i, first + (c << (i + 1))));
        }
    }
}

/// From coefficients to the values at `count` points from `first` on, a power of two and no more than there
/// are coefficients. The values are the first rows; the others hold nothing of use.
pub(crate) fn evaluate_some(rows: &mut [u16], lanes: usize, first: usize, count: usize) {
    let some = count.trailing_zeros() as usize;
    for i in (some..levels(rows, lanes, first)).rev() {
        let (f, g) = rows[..lanes << (i + 1)].split_at_mut(lanes << i);
        Gf2_16::add_multiple(f, g, twiddle(i, first));
    }
    evaluate(&mut rows[..lanes << some], lanes, first);
}

fn levels(rows: &[u16], lanes: usize, first: usize) -> usize {
    let count = rows.len() / lanes;
    assert!(count.is_power_of_two() && count * lanes == rows.len(), "a power of two of rows");
    assert!(first.is_multiple_of(count) && first + count <= 1 << 16, "the points are a coset");
    count.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> Vec<u16> {
        (1..=count as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 15) as u16).collect()
    }

    /// s^_i by its definition.
    fn subspace(i: usize, x: u16) -> u16 {
        let product = |x: u16| (0..1 << i).fold(1, |product, v: u16| Gf2_16::multiply(product, x ^ v));
        Gf2_16::multiply(product(x), Gf2_16::inverse_or_zero(product(1 << i)))
    }

    fn naive(coefficients: &[u16], x: u16) -> u16 {
        let term = |(j, c): (usize, &u16)| {
            (0..16).filter(|i| j >> i & 1 == 1).fold(*c, |term, i| Gf2_16::multiply(term, subspace(i, x)))
        };
        coefficients.iter().enumerate().map(term).fold(0, |sum, term| sum ^ term)
    }

    #[test]
    fn evaluation_equals_that_by_definition() {
        for (size, first) in
            [(1, 0), (1, 5), (2, 0), (2, 6), (8, 0), (8, 24), (32, 0), (32, 65_504), (64, 192)]
        {
            let coefficients = noise(size);
            let mut values = coefficients.clone();
            evaluate(&mut values, 1, first);
            let expected = (first..first + size).map(|p| naive(&coefficients, p as u16));
            assert!(values.into_iter().eq(expected), "{size} points from {first} on");
        }
    }

    #[test]
    fn interpolation_undoes_evaluation() {
        for (size, first) in [(1, 3), (2, 0), (256, 0), (256, 512), (4096, 8192), (65_536, 0)] {
            let mut rows = noise(size);
            evaluate(&mut rows, 1, first);
            assert!(size == 1 || rows != noise(size));
            interpolate(&mut rows, 1, first);
            assert_eq!(rows, noise(size));
        }
    }

    #[test]
    fn coefficients_beyond_the_degree_are_zero_and_only_those() {
        for degree in [0, 1, 5, 8, 14, 15] {
            let power = |p: u16| (0..degree).fold(1, |power, _| Gf2_16::multiply(power, p));
            let mut rows: Vec<u16> = (0..16).map(power).collect();
            interpolate(&mut rows, 1, 0);
            assert!(rows[degree] != 0 && rows[degree + 1..].iter().all(|c| *c == 0), "{degree}");
        }
    }

    #[test]
    fn some_values_are_the_first_of_all() {
        for count in [1, 2, 8, 32] {
            let (mut some, mut all) = (noise(32 * 3), noise(32 * 3));
            evaluate(&mut all, 3, 64);
            evaluate_some(&mut some, 3, 64, count);
            assert_eq!(some[..count * 3], all[..count * 3]);
        }
    }

    #[test]
    fn lanes_are_transformed_one_by_one() {
        let rows = noise(16 * 5);
        let mut together = rows.clone();
        evaluate(&mut together, 5, 48);
        for lane in 0..5 {
            let of_lane = |rows: &[u16]| rows.iter().skip(lane).step_by(5).copied().collect::<Vec<_>>();
            let mut alone = of_lane(&rows);
            evaluate(&mut alone, 1, 48);
            assert_eq!(of_lane(&together), alone);
        }
    }
}

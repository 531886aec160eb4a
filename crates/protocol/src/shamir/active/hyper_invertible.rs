//! Hyper-invertible matrices (Beerliova-Trubiniova and Hirt 2008, section 3): every square submatrix is
//! invertible.
//!
//! Row i maps the values of a polynomial of degree below n at n points to its value at the i-th of n other
//! points. Any n of these 2n values determine the polynomial, and so the others. So any n of the inputs and
//! outputs together determine all of them, by a bijection. That is why the outputs are random if honest
//! dealers' inputs are, and why all inputs are correct if enough outputs are ([`super::dealt`]).

use polyclave_field::Gf256;

/// The n x n matrix, row by row: interpolation from the points 1 .. n to the points n + 1 .. 2n.
pub(super) fn matrix(n: usize) -> Vec<Vec<Gf256>> {
    let point = |i: usize| Gf256(i as u8 + 1);
    let from: Vec<Gf256> = (0..n).map(point).collect();
    (n..2 * n).map(|i| Gf256::lagrange(&from, point(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Subsets of 0 .. n, as lists.
    fn subsets(n: usize, size: usize) -> impl Iterator<Item = Vec<usize>> {
        let sets = (0..1u32 << n).filter(move |set| set.count_ones() as usize == size);
        sets.map(move |set| (0..n).filter(|i| set >> i & 1 == 1).collect())
    }

    /// By Gaussian elimination.
    fn is_invertible(mut rows: Vec<Vec<Gf256>>) -> bool {
        for k in 0..rows.len() {
            let Some(pivot) = (k..rows.len()).find(|i| rows[*i][k] != Gf256::ZERO) else { return false };
            rows.swap(k, pivot);
            let inverse = rows[k][k].inverse_or_zero();
            let (above, below) = rows.split_at_mut(k + 1);
            for row in below {
                let factor = row[k] * inverse;
                row.iter_mut().zip(&above[k]).for_each(|(x, y)| *x += factor * *y);
            }
        }
        true
    }

    fn part(matrix: &[Vec<Gf256>], rows: &[usize], columns: &[usize]) -> Vec<Vec<Gf256>> {
        rows.iter().map(|i| columns.iter().map(|k| matrix[*i][*k]).collect()).collect()
    }

    #[test]
    fn every_square_submatrix_is_invertible() {
        for n in 1..=9 {
            let matrix = matrix(n);
            for size in 1..=n {
                for rows in subsets(n, size) {
                    for columns in subsets(n, size) {
                        assert!(is_invertible(part(&matrix, &rows, &columns)), "{n} {rows:?} {columns:?}");
                    }
                }
            }
        }
    }

    /// Whatever t dealers deal, and though t checkers see their outputs, those that are kept are uniform:
    /// together with what the checkers see they are a bijective image of what the n - t others dealt.
    #[test]
    fn kept_outputs_are_uniform_given_what_t_parties_deal_and_see() {
        for n in 4..=9 {
            for t in 1..=(n - 1) / 3 {
                let matrix = matrix(n);
                for honest in subsets(n, n - t) {
                    for seen in subsets(2 * t, t) {
                        let rows: Vec<usize> = seen.into_iter().chain(2 * t..n).collect();
                        assert!(is_invertible(part(&matrix, &rows, &honest)), "{n} {t} {rows:?} {honest:?}");
                    }
                }
            }
        }
    }
}

//! Vector oblivious linear evaluation over GF(2^f) from all leaves of a tree or all but one: Roy 2022, section 3.1.
//!
//! Each leaf x stretches to a stream r_x. The holder of all leaves has u, the sum of all r_x, and v, the sum of x r_x; the
//! other side, which lacks leaf alpha and numbers the others by z = x - alpha, has w, the sum of z r_x = v + alpha u. In bits:
//! column k of v is the sum of the streams whose number has bit k, and the columns of all k and u come out of one pass that
//! folds the streams in halves.
//!
//! Streams are AES in counter mode under the leaf: a pseudorandom function under keys that are independent. With m leaves a
//! search for any of them is m times easier: 12 bits of 128 for f = 8.

use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::shape::Shape;
use super::tile::TILE_BYTES;
use super::tree::Seed;

/// The streams of the leaves of all trees.
pub(super) struct Streams {
    shape: Shape,
    leaves: Vec<AesPrg>,
    /// One piece of each stream of a tree.
    pieces: Zeroizing<Vec<u8>>,
    /// Leaf 0 of every tree is not known and counts as zero.
    punctured: bool,
}

impl Streams {
    /// From the leaves, tree by tree.
    pub(super) fn new(shape: Shape, leaves: &[Seed], punctured: bool) -> Streams {
        Streams {
            shape,
            leaves: leaves.iter().map(|seed| AesPrg::new(seed, 0)).collect(),
            pieces: Zeroizing::new(vec![0; TILE_BYTES << shape.expansion()]),
            punctured,
        }
    }

    /// Writes the next piece of a tree's columns (as long as `sum` each) and of the sum of all its streams.
    pub(super) fn next(&mut self, tree: usize, columns: &mut [u8], sum: &mut [u8]) {
        let (len, count) = (sum.len(), 1 << self.shape.expansion());
        let pieces = &mut self.pieces[..count * len];
        let leaves = &mut self.leaves[tree * count..(tree + 1) * count];
        let unknown = usize::from(self.punctured);
        pieces[..unknown * len].fill(0);
        for (leaf, piece) in leaves.iter_mut().zip(pieces.chunks_exact_mut(len)).skip(unknown) {
            leaf.fill(piece);
        }
        fold(pieces, columns, sum);
    }
}

/// Folds `2^f` rows: column k becomes the sum of the rows whose number has bit k, `sum` that of all rows.
fn fold(rows: &mut [u8], columns: &mut [u8], sum: &mut [u8]) {
    let len = sum.len();
    let mut count = rows.len() / len;
    for column in columns.chunks_exact_mut(len) {
        count /= 2;
        column.fill(0);
        for y in 0..count {
            let (low, high) = rows.split_at_mut((2 * y + 1) * len);
            let (even, odd) = (&mut low[y * len..], &high[..len]);
            add(column, odd);
            if y == 0 {
                add(&mut even[..len], odd);
            } else {
                let (target, even) = even.split_at_mut(y * len);
                set_sum(&mut target[..len], &even[..len], odd);
            }
        }
    }
    sum.copy_from_slice(&rows[..len]);
}

/// `sum += term`.
pub(super) fn add(sum: &mut [u8], term: &[u8]) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
}

/// `sum = a + b`.
fn set_sum(sum: &mut [u8], a: &[u8], b: &[u8]) {
    sum.iter_mut().zip(a).zip(b).for_each(|((sum, a), b)| *sum = a ^ b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_k_is_the_sum_of_the_rows_whose_number_has_bit_k() {
        for f in 1..=8 {
            let mut rows = vec![0; 16 << f];
            AesPrg::new(&[9; 16], f).fill(&mut rows);
            let given = rows.clone();
            let sum_where = |wanted: &dyn Fn(usize) -> bool| {
                let mut sum = vec![0; 16];
                given
                    .chunks_exact(16)
                    .enumerate()
                    .filter(|(x, _)| wanted(*x))
                    .for_each(|(_, r)| add(&mut sum, r));
                sum
            };
            let (mut columns, mut sum) = (vec![1; 16 * f as usize], vec![1; 16]);
            fold(&mut rows, &mut columns, &mut sum);
            assert_eq!(sum, sum_where(&|_| true));
            for (k, column) in columns.chunks_exact(16).enumerate() {
                assert_eq!(column, sum_where(&|x| x >> k & 1 == 1), "f {f}, column {k}");
            }
        }
    }
}

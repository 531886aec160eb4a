//! Vector oblivious linear evaluation over GF(2^f). One side has all leaves of a tree, the other side all but one: Roy 2022, section 3.1.
//!
//! Each leaf x stretches to a stream r_x. The holder of all leaves has u, the sum of all r_x, and v, the sum of x r_x; the
//! other side, which lacks leaf alpha and numbers the others by z = x - alpha, has w, the sum of z r_x = v + alpha u. In bits:
//! column k of v is the sum of the streams whose number has bit k, and the columns of all k and u come out of one pass that
//! folds the streams in halves.
//!
//! Streams are AES in counter mode under the leaf: a pseudorandom function under keys that are independent. With m leaves a
//! search for any of them is m times easier: 12 bits of 128 for f = 8.

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::fold::fold;
use polyclave_kernels::memory::Wiped;

use super::shape::Shape;
use super::tile::TILE_BYTES;
use super::tree::Seed;

/// The streams of the leaves of all trees.
pub(super) struct Streams {
    shape: Shape,
    leaves: Vec<AesPrg>,
    /// One piece of each stream of a tree.
    pieces: Wiped<u8>,
    /// Leaf 0 of every tree is not known and counts as zero.
    punctured: bool,
}

impl Streams {
    /// From the leaves, tree by tree.
    pub(super) fn new(shape: Shape, leaves: &[Seed], punctured: bool) -> Streams {
        Streams {
            shape,
            leaves: leaves.iter().map(|seed| AesPrg::new(seed, 0)).collect(),
            pieces: Wiped::zeros(TILE_BYTES << shape.expansion()),
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

/// `sum += term`.
pub(super) fn add(sum: &mut [u8], term: &[u8]) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
}

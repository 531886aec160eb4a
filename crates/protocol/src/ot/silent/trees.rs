//! Trees of seeds of one missing leaf, for the noise of silent transfers: Yang, Weng, Lan, Zhang and Wang
//! 2020, "Ferret: Fast Extension for Correlated OT with Small Communication" (CCS 2020, ePrint 2020/924),
//! the protocol for a single point.
//!
//! The sender of transfers grows a tree from a root that it draws. The receiver has a point alpha. At each
//! level it learns, by one transfer of two messages, the sum of all nodes on the side that its path does
//! not take, so it knows every leaf but the one at alpha. The sender also sends Delta plus the sum of all
//! its leaves v. From it the receiver computes what it takes for its leaf at alpha: v + Delta there. So its
//! leaves w are v + e Delta, where e is 1 at alpha alone.
//!
//! **Order.** The children of node j of L are node j and node L + j of the next level: a side is a half of
//! the level, and the bit of alpha for a level is the bit of that number. **The lowest bit** of every v is
//! zero, and that of Delta is one, so the lowest bit of a w is its bit of e. The receiver keeps no other
//! record of e.
//!
//! Children are `P(x) + x` under two permutations, one for each side: AES under two keys that are new for
//! each direction of each session. As a random permutation each gives a one-way node, up to about (number of
//! nodes) (evaluations of AES) / 2^128 (`kernels::aes_sum`).
//!
//! Constant time in alpha: the receiver computes all nodes, with zero for the one that it lacks, and adds
//! what its children should have been with a mask at every place.

use polyclave_kernels::aes_sum::AesSum;
use polyclave_kernels::secret::{mask, masks};
use zeroize::Zeroizing;

use super::super::binding::Binding;

/// The two permutations of one direction.
pub(super) struct Children([AesSum; 2]);

/// What the receiver has of one tree.
#[derive(Clone, Copy)]
pub(super) struct Punctured<'a> {
    /// The bits of alpha, that of the first level lowest.
    pub(super) alpha: u64,
    /// The sum of each level's nodes on the other side.
    pub(super) sums: &'a [u128],
    /// Delta plus the sum of all leaves of the sender.
    pub(super) correction: u128,
}

/// Leaves of the sender: all but the lowest bit.
const LEAF: u128 = !1;

/// Places whose masks are made at once.
const MASKS: usize = 256;

impl Children {
    /// Bound to the session and the direction.
    pub(super) fn new(binding: &Binding) -> Self {
        let mut keys = [[0; 16]; 2];
        binding.hasher("silent: children").finalize_xof().fill(keys.as_flattened_mut());
        Children(keys.each_ref().map(AesSum::new))
    }

    /// Turns the first half of these nodes into the nodes of the next level, which are twice as many.
    fn descend(&self, nodes: &mut [u128]) {
        let [left, right] = halves(nodes);
        right.copy_from_slice(left);
        self.0[0].hash_each(left);
        self.0[1].hash_each(right);
    }

    /// Writes all leaves of the tree of a root, a power of two. `note` is told the sums of both sides of each
    /// level.
    pub(super) fn grow(&self, root: u128, leaves: &mut [u128], mut note: impl FnMut([u128; 2])) {
        leaves[0] = root;
        let all = leaves.len();
        for len in levels(all) {
            let nodes = &mut leaves[..len];
            self.descend(nodes);
            if len == all {
                nodes.iter_mut().for_each(|leaf| *leaf &= LEAF);
            }
            note(halves(nodes).map(|side| sum(side)));
        }
    }

    /// Writes all leaves w of a tree with a missing leaf.
    pub(super) fn grow_punctured(&self, tree: Punctured<'_>, leaves: &mut [u128]) {
        // The children of zero, which are public.
        let mut zero = [0; 2];
        self.descend(&mut zero);
        let (mut alpha, mut path) = (tree.alpha, 0);
        let all = leaves.len();
        leaves[0] = 0;
        for (len, sum_of_other_side) in levels(all).zip(tree.sums) {
            let nodes = &mut leaves[..len];
            self.descend(nodes);
            let mut garbage = zero;
            if len == all {
                nodes.iter_mut().chain(&mut garbage).for_each(|leaf| *leaf &= LEAF);
            }
            let sides = halves(nodes);
            let sums = sides.each_ref().map(|side| sum(side));
            // What the children of the missing node, for which they were computed from zero, must change by.
            // On the other side the sum with the right one there is known. On the path's side the node is
            // missing again, or is the leaf at alpha: the sum of all w, with it, is the correction.
            let is_right = mask(u128::from(alpha & 1));
            let of_other = |side: usize| sum_of_other_side ^ sums[side];
            let mut of_path = garbage;
            if len == all {
                // All others: both sides without what is there in place of this leaf, and with the sibling.
                let all_but_one = |side: usize| sums[side] ^ garbage[side] ^ sum_of_other_side;
                for (side, change) in of_path.iter_mut().enumerate() {
                    *change ^= tree.correction ^ all_but_one(side);
                }
            }
            let changes = [
                (is_right & of_other(0)) ^ (!is_right & of_path[0]),
                (is_right & of_path[1]) ^ (!is_right & of_other(1)),
            ];
            let [left, right] = sides;
            each_mask(path, left.len(), |node, mask| {
                left[node] ^= changes[0] & mask;
                right[node] ^= changes[1] & mask;
            });
            path |= mask(alpha) & (len as u64 / 2);
            alpha >>= 1;
        }
    }
}

/// The sum of the weights of 16 bytes at alpha, over all places.
pub(super) fn weight_at(alpha: u64, weights: &[[u8; 16]]) -> u128 {
    let mut sum = 0;
    each_mask(alpha, weights.len(), |place, mask| sum ^= u128::from_le_bytes(weights[place]) & mask);
    sum
}

/// Tells `take` a mask for each of the first `len` places: all ones at one place, which is secret, and zero
/// elsewhere.
fn each_mask(place: u64, len: usize, mut take: impl FnMut(usize, u128)) {
    let mut room = Zeroizing::new([0; MASKS]);
    for start in (0..len).step_by(MASKS) {
        let row = &mut room[..MASKS.min(len - start)];
        masks(row, |i| {
            let difference = (start + i) as u64 ^ place;
            !(difference | difference.wrapping_neg()) >> 63
        });
        row.iter()
            .enumerate()
            .for_each(|(i, mask)| take(start + i, u128::from(*mask) << 64 | u128::from(*mask)));
    }
}

/// The numbers of nodes of all levels below the root.
fn levels(leaves: usize) -> impl Iterator<Item = usize> {
    (1..).map(|level| 1 << level).take_while(move |len| *len <= leaves)
}

fn halves(nodes: &mut [u128]) -> [&mut [u128]; 2] {
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    [left, right]
}

fn sum(nodes: &[u128]) -> u128 {
    nodes.iter().fold(0, |sum, node| sum ^ node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Party;

    const DELTA: u128 = 0x5be0_cd19_137e_2179_1f83_d9ab_fb41_bd6b;
    const DEPTH: usize = 5;

    fn children(label: &[u8]) -> Children {
        Children::new(&Binding::new(label, Party(0), Party(1), Party(0)))
    }

    #[test]
    fn leaves_differ_by_delta_at_alpha_and_nowhere_else() {
        let children = children(b"trees");
        for alpha in 0..1_u64 << DEPTH {
            let mut sent = [0; 1 << DEPTH];
            let mut sums = Vec::new();
            children.grow(0x1234 + u128::from(alpha), &mut sent, |sides| sums.push(sides));
            let correction = DELTA ^ sum(&sent);
            // For each level the side that the path does not take.
            let sums: Vec<u128> =
                sums.iter().enumerate().map(|(i, sides)| sides[usize::from(alpha >> i & 1 == 0)]).collect();
            let mut received = [0x77; 1 << DEPTH];
            children.grow_punctured(Punctured { alpha, sums: &sums, correction }, &mut received);
            for (j, (w, v)) in received.iter().zip(&sent).enumerate() {
                let is_alpha = j as u64 == alpha;
                assert_eq!(w ^ v, if is_alpha { DELTA } else { 0 }, "alpha {alpha}, leaf {j}");
                assert_eq!(w & 1 == 1, is_alpha, "the lowest bit is that of the noise");
            }
        }
    }

    #[test]
    fn another_label_has_other_leaves() {
        let grown = |label: &[u8]| {
            let mut leaves = [0; 1 << DEPTH];
            children(label).grow(7, &mut leaves, |_| ());
            leaves
        };
        assert!(grown(b"one").iter().zip(&grown(b"other")).all(|(a, b)| a != b));
    }

    #[test]
    fn the_weight_at_a_place_is_found_by_its_number() {
        let weights: Vec<[u8; 16]> = (0..600_u128).map(|i| (i * i + 1).to_le_bytes()).collect();
        for place in [0, 1, 255, 256, 599] {
            assert_eq!(weight_at(place, &weights), u128::from(place * place + 1));
        }
        assert_eq!(weight_at(600, &weights), 0, "no such place");
    }
}

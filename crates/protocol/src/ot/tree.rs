//! All seeds but one for the sender of extended transfers, from base transfers: punctured pseudorandom
//! functions on trees.
//!
//! The receiver grows a binary tree of seeds of depth f, or less by one where f does not divide the columns
//! (Goldreich, Goldwasser and Micali 1986). The other
//! side has the point alpha. At each level it learns, by one base transfer, the sum of all nodes on the side
//! that its path does not take. It knows all of these nodes but one from the levels above. So it gets every
//! leaf except number alpha (Boyle et al. 2019; Roy 2022, "SoftSpokenOT", ePrint 2022/192, section 6). Base
//! transfers encrypt the two sums of each level.
//!
//! **Check** against wrong sums (the same section, for malicious security): each leaf gives a digest of 256
//! bits besides the seed. The grower sends the sum of a tree's digests, and a hash of all digests of all
//! trees. The other side computes the digest that it lacks from the sum, and compares the hash. If two points
//! alpha pass, the digests are the same (collisions aside), and so are the leaves from which they come. A
//! guess remains possible: whether wrong sums are found can depend on bits of alpha. That is the selective
//! failure that extension allows for, and the digests are compared behind the gate for such guesses
//! ([`Retirement::judge_guess`]).
//!
//! Assumes that keyed BLAKE3 is a random oracle; node, level and tree are part of each input. Constant time
//! in alpha: the punctured side numbers its nodes by their difference to the path, so that the unknown node
//! is always number 0. Cost: 32 bytes for each bit of alpha and 32 for each tree, and 2^(f+1) hashes a tree
//! at either side.

use polyclave_kernels::secret::ct_eq;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use super::base::Key;
use super::binding::Binding;
use super::shape::Shape;
use crate::Result;
use crate::interface::session::random_bytes;
use crate::retirement::Retirement;

/// A node: the key of a stream.
pub(super) type Seed = [u8; 16];
type Digest = [u8; 32];

const SUMS_BYTES: usize = 2 * size_of::<Seed>();
const DIGEST_BYTES: usize = size_of::<Digest>();

/// Bytes of the grower's message.
pub(super) fn message_bytes(shape: Shape) -> usize {
    shape.columns() * SUMS_BYTES + (shape.trees() + 1) * DIGEST_BYTES
}

/// Grows all trees: the leaves, tree by tree, and the message to the other side.
pub(super) fn grow(
    binding: &Binding,
    shape: Shape,
    keys: &[[Key; 2]],
) -> Result<(Zeroizing<Vec<Seed>>, Vec<u8>)> {
    let mut leaves = Zeroizing::new(Vec::with_capacity(shape.leaves(shape.trees())));
    let mut message = Vec::with_capacity(message_bytes(shape));
    let mut all = binding.hasher("tree: all digests");
    for (tree, depth) in shape.depths().into_iter().enumerate() {
        let keys = &keys[shape.first_column(tree)..][..depth];
        let mut nodes = Zeroizing::new(vec![Seed::default()]);
        random_bytes(&mut nodes[0])?;
        for (level, keys) in keys.iter().enumerate() {
            let parents = nodes.iter().enumerate();
            let children = parents.flat_map(|(y, seed)| children(binding, [tree, level, y], seed));
            nodes = Zeroizing::new(children.collect());
            let mut sums = *keys;
            nodes.iter().enumerate().for_each(|(y, node)| add(&mut sums[y % 2], node));
            message.extend_from_slice(sums.as_flattened());
        }
        let mut sum = Digest::default();
        for (y, node) in nodes.iter().enumerate() {
            let (seed, digest) = leaf(binding, [tree, depth, y], node);
            leaves.push(seed);
            add(&mut sum, &digest);
            all.update(&digest);
        }
        message.extend_from_slice(&sum);
    }
    message.extend_from_slice(all.finalize().as_bytes());
    Ok((leaves, message))
}

/// The choices of base transfers that lead to all leaves but those numbered by delta, a bit for each level of
/// each tree.
pub(super) fn choices(shape: Shape, delta: u128) -> Zeroizing<Vec<u8>> {
    let mut choices = Zeroizing::new(Vec::with_capacity(shape.columns()));
    for (tree, depth) in shape.depths().into_iter().enumerate() {
        let alpha = shape.alpha(delta, tree);
        choices.extend((0..depth).map(|level| 1 ^ path_bit(depth, alpha, level)));
    }
    choices
}

/// All leaves but one of every tree: leaf z of a tree is the grower's leaf `z ^ alpha`, and leaf 0 is zero.
pub(super) fn puncture(
    binding: &Binding,
    shape: Shape,
    delta: u128,
    keys: &[Key],
    message: &[u8],
    retired: &Retirement,
) -> Result<Zeroizing<Vec<Seed>>> {
    let mut rest = message;
    let mut leaves = Zeroizing::new(Vec::with_capacity(shape.leaves(shape.trees())));
    let mut all = binding.hasher("tree: all digests");
    for (tree, depth) in shape.depths().into_iter().enumerate() {
        let keys = &keys[shape.first_column(tree)..][..depth];
        let alpha = shape.alpha(delta, tree);
        let (sums, later) = rest.split_at(depth * SUMS_BYTES);
        let (digest_sum, later) = later.split_at(DIGEST_BYTES);
        rest = later;
        let mut nodes = Zeroizing::new(vec![Seed::default()]);
        for (level, (key, sums)) in keys.iter().zip(sums.as_chunks::<SUMS_BYTES>().0).enumerate() {
            let prefix = usize::from(alpha) >> (depth - level);
            let bit = path_bit(depth, alpha, level);
            nodes = next_level(binding, [tree, level, prefix], &nodes, bit, key, sums);
        }
        let mut digests = vec![Digest::default(); nodes.len()];
        digests[0].copy_from_slice(digest_sum);
        leaves.push(Seed::default());
        for z in 1..nodes.len() {
            let (seed, digest) = leaf(binding, [tree, depth, z ^ usize::from(alpha)], &nodes[z]);
            leaves.push(seed);
            digests[z] = digest;
            add(&mut digests[0], &digest);
        }
        unshift(&mut digests, alpha);
        all.update(digests.as_flattened());
    }
    let all = *all.finalize().as_bytes();
    let fault = || binding.fault("a tree of seeds that is not consistent");
    retired.judge_guess(|| (!ct_eq(&all, rest)).then(fault))?;
    Ok(leaves)
}

/// The nodes one level down. `bit` is the path's, `at` the tree, the level and the path so far.
fn next_level(
    binding: &Binding,
    at: [usize; 3],
    nodes: &[Seed],
    bit: u8,
    key: &Key,
    sums: &[u8; SUMS_BYTES],
) -> Zeroizing<Vec<Seed>> {
    let [tree, level, prefix] = at;
    let mut next = Zeroizing::new(Vec::with_capacity(2 * nodes.len()));
    for (z, node) in nodes.iter().enumerate() {
        let [mut left, mut right] = children(binding, [tree, level, z ^ prefix], node);
        swap(&mut left, &mut right, Choice::from(bit));
        next.extend([left, right]);
    }
    // The children of node 0 are unknown: on the path one stays so, the other is what is missing in its
    // side's sum.
    let (mut known, mut other) = (Seed::default(), Seed::default());
    known.copy_from_slice(&sums[size_of::<Seed>()..]);
    other.copy_from_slice(&sums[..size_of::<Seed>()]);
    swap(&mut known, &mut other, Choice::from(bit));
    add(&mut known, key);
    next.iter().skip(3).step_by(2).for_each(|node| add(&mut known, node));
    next[0] = Seed::default();
    next[1] = known;
    next
}

/// From numbers relative to alpha to true ones: element z goes to place `z ^ alpha`.
fn unshift(digests: &mut [Digest], alpha: u8) {
    let count = digests.len();
    for distance in (0..u8::BITS).map(|k| 1 << k).take_while(|d| *d < count) {
        let set = Choice::from(u8::from(alpha & distance as u8 != 0));
        for z in (0..count).filter(|z| z & distance == 0) {
            let (low, high) = digests.split_at_mut(z + distance);
            swap(&mut low[z], &mut high[0], set);
        }
    }
}

/// Which way the path to alpha goes from a level of a tree of this depth.
fn path_bit(depth: usize, alpha: u8, level: usize) -> u8 {
    alpha >> (depth - 1 - level) & 1
}

fn children(binding: &Binding, at: [usize; 3], seed: &Seed) -> [Seed; 2] {
    let mut both = Zeroizing::new([0; 2 * size_of::<Seed>()]);
    node_hasher(binding, "tree: children", at, seed).finalize_xof().fill(&mut *both);
    let (seeds, _) = both.as_chunks();
    [seeds[0], seeds[1]]
}

/// A leaf's seed of a stream and its digest, which is sent in sums.
fn leaf(binding: &Binding, at: [usize; 3], node: &Seed) -> (Seed, Digest) {
    let (mut seed, mut digest) = (Seed::default(), Digest::default());
    let mut reader = node_hasher(binding, "tree: leaf", at, node).finalize_xof();
    reader.fill(&mut digest);
    reader.fill(&mut seed);
    (seed, digest)
}

/// Bound to a place: tree, level and number.
fn node_hasher(binding: &Binding, purpose: &str, at: [usize; 3], node: &Seed) -> blake3::Hasher {
    let mut hasher = binding.hasher(purpose);
    hasher.update(&at.map(|x| x as u8)).update(node);
    hasher
}

fn add(sum: &mut [u8], term: &[u8]) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
}

fn swap(a: &mut [u8], b: &mut [u8], choice: Choice) {
    a.iter_mut().zip(b).for_each(|(a, b)| u8::conditional_swap(a, b, choice));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Party};

    const DELTA: u128 = 0x5be0_cd19_137e_2179_1f83_d9ab_fb41_bd6b;

    fn binding() -> Binding {
        Binding::new(b"label", Party(0), Party(1), Party(0))
    }

    fn shape(expansion: usize) -> Shape {
        Shape::new(40, expansion).expect("it is valid")
    }

    fn base_keys(shape: Shape) -> (Vec<[Key; 2]>, Vec<Key>) {
        let keys: Vec<[Key; 2]> = (0..shape.columns() as u8).map(|i| [[i; 16], [i ^ 0x80; 16]]).collect();
        let chosen = choices(shape, DELTA);
        let got = keys.iter().zip(chosen.iter()).map(|(keys, b)| keys[usize::from(*b)]).collect();
        (keys, got)
    }

    fn punctured(
        binding: &Binding,
        shape: Shape,
        keys: &[Key],
        message: &[u8],
    ) -> Result<Zeroizing<Vec<Seed>>> {
        puncture(binding, shape, DELTA, keys, message, &Retirement::default())
    }

    #[test]
    fn all_leaves_but_one_are_equal_and_that_one_is_unknown() {
        for expansion in 1..=8 {
            let shape = shape(expansion);
            let (keys, chosen) = base_keys(shape);
            let (grown, message) = grow(&binding(), shape, &keys).expect("randomness");
            assert_eq!(message.len(), message_bytes(shape));
            let got = punctured(&binding(), shape, &chosen, &message).expect("honest");
            for tree in 0..shape.trees() {
                let alpha = usize::from(shape.alpha(DELTA, tree));
                let row = shape.leaves(tree)..shape.leaves(tree + 1);
                for (z, got) in got[row.clone()].iter().enumerate() {
                    let expected = if z == 0 { Seed::default() } else { grown[row.start + (z ^ alpha)] };
                    assert_eq!(*got, expected, "expansion {expansion}, tree {tree}, leaf {z}");
                }
            }
        }
    }

    /// A wrong sum for the side that the other learns is found; for the other side it changes nothing.
    #[test]
    fn a_wrong_correction_is_found_or_without_effect() {
        for expansion in [1, 2, 4, 6, 8] {
            let shape = shape(expansion);
            let (keys, chosen) = base_keys(shape);
            let (_, message) = grow(&binding(), shape, &keys).expect("randomness");
            let honest = punctured(&binding(), shape, &chosen, &message).expect("honest");
            let mut found = 0;
            for byte in (0..message.len()).step_by(8) {
                let mut wrong = message.clone();
                wrong[byte] ^= 4;
                match punctured(&binding(), shape, &chosen, &wrong) {
                    Ok(leaves) => assert!(*leaves == *honest, "byte {byte}"),
                    Err(e) => {
                        assert!(matches!(e, Error::Peer { peer: Party(0), .. }));
                        found += 1;
                    }
                }
            }
            // One of the two sums of each level, and all digests; two probes for each seed and four for each
            // digest.
            assert_eq!(found, 2 * shape.columns() + 4 * (shape.trees() + 1), "expansion {expansion}");
        }
    }

    #[test]
    fn another_label_has_other_leaves() {
        let (keys, chosen) = base_keys(shape(4));
        let (_, message) = grow(&binding(), shape(4), &keys).expect("randomness");
        let other = Binding::new(b"another", Party(0), Party(1), Party(0));
        assert!(punctured(&other, shape(4), &chosen, &message).is_err());
    }
}

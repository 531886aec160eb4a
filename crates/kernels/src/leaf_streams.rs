//! The streams of all leaves of a tree, summed up as they are made: linear evaluation over GF(2^f) for
//! oblivious transfer extension.
//!
//! Each leaf x stretches to a stream r_x. The holder of all leaves has u, the sum of all r_x, and v, the sum
//! of x r_x. The other side, which lacks leaf alpha and numbers the others by z = x - alpha, has w, the sum
//! of z r_x = v + alpha u (Roy 2022, "SoftSpokenOT", ePrint 2022/192, section 3.1). In bits, column k of v is
//! the sum of the streams whose number has bit k. The receiver of transfers has all leaves, and adds its
//! choices to u: the correction. The sender adds the correction to those columns of w in which its Delta has
//! a one.
//!
//! Streams are AES-128 in counter mode as in [`crate::aes_prg`] with nonce 0: a pseudorandom function under
//! keys that are independent. With m leaves a search for any of them is m times easier: 12 bits of 128 for
//! depth 8.
//!
//! With VAES no stream reaches memory: those of two leaves at a time are made in registers and added to sums
//! in the first-level cache, which takes about as long as AES alone. The other forms write some of every
//! stream and [fold](crate::fold) that. There is no form for registers of 64 bytes, because most processors
//! that have them encrypt as many blocks in a cycle with those of 32 bytes.
//!
//! Assumes that the keys are used for nothing else. All round keys and sums are wiped on drop; what the
//! compiler spilled to the stack is out of reach. Cost: `2^f` AES calls for f columns of 16 bytes.

#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vaes256;

use crate::aes_prg::AesPrg;
#[cfg(target_arch = "x86_64")]
use crate::aes_prg::aesni::RoundKeys;
use crate::fold::fold;
use crate::isa::AesIsa;
use crate::memory::Wiped;

/// Bytes of a column come in such multiples: those of an AES block.
pub const GRAIN: usize = 16;
/// Bytes of each stream that are in memory at a time, where they are at all. The streams of 16 leaves fill
/// half of the first-level cache.
const PIECE: usize = 1024;

/// The streams of the leaves of some trees.
pub struct LeafStreams {
    trees: Vec<Tree>,
    /// Leaf 0 of every tree is not known, and its stream counts as zero.
    punctured: bool,
    leaves: Leaves,
}

/// Where the leaves of a tree are.
struct Tree {
    first: usize,
    depth: usize,
}

/// The leaves, tree by tree.
enum Leaves {
    /// Streams that are written, and memory for a piece of each one of a tree, of its columns and of the sum.
    Written(Vec<AesPrg>, Wiped<u8>),
    /// Round keys, and the number of the next block of every tree.
    #[cfg(target_arch = "x86_64")]
    Registers(Vec<RoundKeys>, Vec<u64>),
}

/// What is done with the sums of a tree's streams.
enum Use<'a> {
    /// The sum of all and the choices make the correction.
    Receive { choices: &'a [u8], correction: &'a mut [u8] },
    /// The correction is added to the columns whose byte in `delta` is all ones.
    Send { correction: &'a [u8], delta: &'a [u8] },
}

impl LeafStreams {
    /// From the keys of trees of these depths, one tree after another, with `2^depth` leaves each. If they
    /// are `punctured`, leaf 0 of each is not used.
    ///
    /// # Panics
    /// When a depth is not 1 to 8, or there are more or fewer keys than leaves.
    pub fn new(depths: &[usize], keys: &[[u8; 16]], punctured: bool) -> LeafStreams {
        LeafStreams::with(AesIsa::best(), depths, keys, punctured)
    }

    /// Assumes that the processor has `isa`.
    pub(crate) fn with(isa: AesIsa, depths: &[usize], keys: &[[u8; 16]], punctured: bool) -> LeafStreams {
        let mut leaves = 0;
        let mut tree = |depth: &usize| {
            assert!((1..=8).contains(depth), "trees of depth 1 to 8");
            leaves += 1 << depth;
            Tree { first: leaves - (1 << depth), depth: *depth }
        };
        let trees: Vec<_> = depths.iter().map(&mut tree).collect();
        assert_eq!(keys.len(), leaves, "whole trees");
        let leaves = match isa {
            #[cfg(target_arch = "x86_64")]
            AesIsa::Vaes256 | AesIsa::Vaes512 => {
                Leaves::Registers(vaes256::expand(keys), vec![0; trees.len()])
            }
            _ => {
                let deepest = depths.iter().max().map_or(0, |depth| (1 << depth) + depth + 1);
                let streams = keys.iter().map(|key| AesPrg::with(isa, key, 0)).collect();
                Leaves::Written(streams, Wiped::zeros(deepest * PIECE))
            }
        };
        LeafStreams { trees, punctured, leaves }
    }

    /// For the holder of all leaves: writes the next piece of a tree's columns, one after another, and the
    /// correction, which is the sum of all streams and of `choices`.
    ///
    /// # Panics
    /// When lengths do not fit or are no multiples of [`GRAIN`], or there is no such tree.
    pub fn receive(&mut self, tree: usize, choices: &[u8], columns: &mut [u8], correction: &mut [u8]) {
        assert_eq!(choices.len(), correction.len(), "a choice for every bit of the correction");
        self.next(tree, columns, Use::Receive { choices, correction });
    }

    /// For the holder of punctured trees: writes the next piece of a tree's columns, one after another, with
    /// `correction` added to those of them whose byte in `delta` is all ones. Where it is zero, nothing is
    /// added.
    ///
    /// # Panics
    /// When lengths do not fit or are no multiples of [`GRAIN`], or there is no such tree.
    pub fn send(&mut self, tree: usize, correction: &[u8], delta: &[u8], columns: &mut [u8]) {
        assert_eq!(delta.len(), self.trees[tree].depth, "a byte for every column");
        self.next(tree, columns, Use::Send { correction, delta });
    }

    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    fn next(&mut self, tree: usize, columns: &mut [u8], mut what: Use<'_>) {
        let len = what.len();
        assert!(len.is_multiple_of(GRAIN), "a part of a block");
        let Tree { first, depth } = self.trees[tree];
        assert_eq!(columns.len(), depth * len, "columns of another length");
        let count = 1 << depth;
        match &mut self.leaves {
            Leaves::Written(leaves, memory) => {
                let leaves = &mut leaves[first..][..count];
                for at in (0..len).step_by(PIECE) {
                    let range = at..len.min(at + PIECE);
                    write_and_fold(leaves, self.punctured, memory, range, columns, &mut what);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Leaves::Registers(keys, counters) => {
                let counter = &mut counters[tree];
                // SAFETY: this variant exists only where its instructions were detected.
                unsafe { vaes256::next(&keys[first..][..count], self.punctured, *counter, columns, what) };
                *counter += (len / GRAIN) as u64;
            }
        }
    }
}

impl Use<'_> {
    /// Bytes of each column.
    fn len(&self) -> usize {
        match self {
            Use::Receive { choices, .. } => choices.len(),
            Use::Send { correction, .. } => correction.len(),
        }
    }
}

/// One piece of the streams of a tree, folded to a range of its columns.
fn write_and_fold(
    leaves: &mut [AesPrg],
    punctured: bool,
    memory: &mut [u8],
    range: core::ops::Range<usize>,
    columns: &mut [u8],
    what: &mut Use<'_>,
) {
    let (len, depth) = (range.len(), leaves.len().ilog2() as usize);
    let (pieces, memory) = memory.split_at_mut(leaves.len() * len);
    let (sums, memory) = memory.split_at_mut(depth * len);
    let total = &mut memory[..len];
    let unknown = usize::from(punctured);
    pieces[..unknown * len].fill(0);
    for (leaf, piece) in leaves.iter_mut().zip(pieces.chunks_exact_mut(len)).skip(unknown) {
        leaf.fill(piece);
    }
    fold(pieces, sums, total);
    if let Use::Receive { choices, correction } = what {
        let choices = &choices[range.clone()];
        let terms = total.iter().zip(choices);
        correction[range.clone()].iter_mut().zip(terms).for_each(|(sum, (a, b))| *sum = a ^ b);
    }
    let stride = columns.len() / depth;
    for (k, (column, sum)) in columns.chunks_exact_mut(stride).zip(sums.chunks_exact(len)).enumerate() {
        let column = &mut column[range.clone()];
        column.copy_from_slice(sum);
        if let Use::Send { correction, delta } = what {
            let mask = delta[k];
            column.iter_mut().zip(&correction[range.clone()]).for_each(|(sum, term)| *sum ^= term & mask);
        }
    }
}

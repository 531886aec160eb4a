//! One direction of silent transfers with a peer: batches, and outputs one after another.

use std::collections::VecDeque;

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::gf128::{multiply, weighted_sums};
use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::mask;
use zeroize::Zeroizing;

use super::super::binding::Binding;
use super::MASK;
use super::code::{Code, Entries};
use super::parameters::Parameters;
use super::trees::{Children, Punctured, weight_at};

/// An element of GF(2^128), as [`polyclave_kernels::gf128`] writes it.
type Element = [u8; ELEMENT];

pub(super) const ELEMENT: usize = 16;

/// Bytes of two masked sums of a level.
const LEVEL: usize = 2 * size_of::<u128>();

/// What a batch takes from extension at this end.
pub(super) struct Taken {
    /// Of the secret bits: with the lowest bit zero at the sender, and the choice at the receiver.
    pub(super) secret: Entries,
    /// Of the mask of the check, whole blocks.
    pub(super) mask: Wiped<u128>,
}

/// The leaves of a batch.
pub(super) enum Leaves {
    /// At the sender: the roots of all trees.
    Grown(Wiped<u128>),
    /// At the receiver.
    Punctured {
        /// The places of the noise.
        alphas: Wiped<u64>,
        /// Tree by tree, level by level.
        sums: Wiped<u128>,
        /// By tree.
        corrections: Wiped<u128>,
    },
}

/// What outputs are made of.
struct Batch {
    code: Code,
    secret: Entries,
    leaves: Leaves,
    /// The number of the next tree.
    next: usize,
}

/// Outputs of one tree.
struct Room {
    outputs: Wiped<u128>,
    /// How many were taken.
    taken: usize,
}

/// One direction with a peer.
pub(super) struct Direction {
    parameters: Parameters,
    binding: Binding,
    children: Children,
    batches: VecDeque<Batch>,
    /// How many there were.
    made: u64,
    /// Trees in work: one whose outputs are whole blocks, and one for upper halves.
    rooms: [Room; 2],
    /// For leaves that are no outputs.
    room: Wiped<u128>,
}

/// Bytes of the sender's message about all trees of a batch.
pub(super) fn message_bytes(parameters: Parameters) -> usize {
    parameters.trees * (parameters.depth * LEVEL + size_of::<u128>())
}

impl Leaves {
    /// Draws roots, and writes the message with sums that are hidden by pads: those of message 0 and of
    /// message 1 of a transfer for each level of each tree.
    pub(super) fn offer(
        direction: &mut Direction,
        roots: Wiped<u128>,
        delta: u128,
        pads: [&[u128]; 2],
        message: &mut Vec<u8>,
    ) -> Leaves {
        let Parameters { depth, .. } = direction.parameters;
        for (tree, root) in roots.iter().enumerate() {
            let mut level = tree * depth;
            direction.children.grow(*root, &mut direction.room, |sums| {
                for (sum, pads) in sums.iter().zip(pads) {
                    message.extend((sum ^ pads[level]).to_le_bytes());
                }
                level += 1;
            });
            let correction = direction.room.iter().fold(delta, |sum, leaf| sum ^ leaf);
            message.extend(correction.to_le_bytes());
        }
        Leaves::Grown(roots)
    }

    /// Reads that message, with a choice bit for each level of each tree and the pad that it chose.
    pub(super) fn accept(parameters: Parameters, choices: &[u8], pads: &[u128], message: &[u8]) -> Leaves {
        let Parameters { trees, depth, .. } = parameters;
        let (mut alphas, mut sums) = (Wiped::zeros(trees), Wiped::zeros(trees * depth));
        let mut corrections = Wiped::zeros(trees);
        let block = |bytes: &[u8]| {
            let mut block = [0; size_of::<u128>()];
            block.copy_from_slice(bytes);
            u128::from_le_bytes(block)
        };
        for (tree, message) in message.chunks_exact(depth * LEVEL + size_of::<u128>()).enumerate() {
            let (levels, correction) = message.split_at(depth * LEVEL);
            for (level, both) in levels.chunks_exact(LEVEL).enumerate() {
                let at = tree * depth + level;
                let choice = choices[at / 8] >> (at % 8) & 1;
                let (zero, one) = both.split_at(size_of::<u128>());
                let (zero, one) = (block(zero), block(one));
                sums[at] = zero ^ (mask(u128::from(choice)) & (zero ^ one)) ^ pads[at];
                // The sum is that of the side to which the path does not go.
                alphas[tree] |= u64::from(choice ^ 1) << level;
            }
            corrections[tree] = block(correction);
        }
        Leaves::Punctured { alphas, sums, corrections }
    }

    /// Writes the leaves of a tree.
    fn write(&self, children: &Children, tree: usize, leaves: &mut [u128]) {
        match self {
            Leaves::Grown(roots) => children.grow(roots[tree], leaves, |_| ()),
            Leaves::Punctured { alphas, sums, corrections } => {
                let depth = sums.len() / corrections.len();
                let sums = &sums[tree * depth..][..depth];
                let tree = Punctured { alpha: alphas[tree], sums, correction: corrections[tree] };
                children.grow_punctured(tree, leaves);
            }
        }
    }
}

impl Direction {
    /// Without batches.
    pub(super) fn new(parameters: Parameters, binding: Binding) -> Self {
        let children = Children::new(&binding);
        let leaves = parameters.leaves();
        let rooms = [(); 2].map(|()| Room { outputs: Wiped::zeros(leaves), taken: leaves });
        let room = Wiped::zeros(leaves);
        Direction { parameters, binding, children, batches: VecDeque::new(), made: 0, rooms, room }
    }

    /// How many of what.
    pub(super) fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// The peer and what hashes are bound to.
    pub(super) fn binding(&self) -> &Binding {
        &self.binding
    }

    /// Both ends' check of a batch: the sum of all leaves with coefficients from a coin, plus the blocks of
    /// the mask times the powers of x. Besides, at the receiver, the sum of the coefficients at the places of
    /// the noise, for the [answer](masked).
    pub(super) fn sums(
        &mut self,
        leaves: &Leaves,
        taken: &Taken,
        coin: &[u8; 32],
    ) -> [Zeroizing<Element>; 2] {
        let seed = blake3::derive_key("polyclave 2026 silent transfers check", coin);
        let seed = seed.first_chunk().expect("it has 32 bytes");
        let mut chi = vec![0; self.room.len() * ELEMENT];
        let mut bytes = Wiped::zeros(chi.len());
        let [mut sum, mut of_tree] = [(); 2].map(|()| Zeroizing::new(Element::default()));
        let mut at_noise = 0;
        for tree in 0..self.parameters.trees {
            AesPrg::new(seed, tree as u64).fill(&mut chi);
            leaves.write(&self.children, tree, &mut self.room);
            write_bytes(&self.room, &mut bytes);
            weighted_sums(&mut *of_tree, &chi, &bytes);
            add(&mut sum, &of_tree);
            if let Leaves::Punctured { alphas, .. } = leaves {
                at_noise ^= weight_at(alphas[tree], chi.as_chunks().0);
            }
        }
        let mut blocks = Wiped::zeros(MASK * ELEMENT);
        write_bytes(&taken.mask, &mut blocks);
        weighted_sums(&mut *of_tree, powers().as_flattened(), &blocks);
        add(&mut sum, &of_tree);
        [sum, Zeroizing::new(at_noise.to_le_bytes())]
    }

    /// A batch that has passed the check.
    pub(super) fn put(&mut self, leaves: Leaves, taken: Taken) {
        let code = Code::new(&self.binding, self.made);
        self.made += 1;
        self.batches.push_back(Batch { code, secret: taken.secret, leaves, next: 0 });
    }

    /// Whether outputs for all of these are there: so many whole blocks, and so many upper halves.
    pub(super) fn has(&self, counts: [usize; 2]) -> bool {
        let leaves = self.parameters.leaves();
        let trees: usize = self.batches.iter().map(|batch| self.parameters.trees - batch.next).sum();
        let lack =
            |(room, count): (&Room, usize)| (count + room.taken).saturating_sub(leaves).div_ceil(leaves);
        self.rooms.iter().zip(counts).map(lack).sum::<usize>() <= trees
    }

    /// Writes the next outputs, of which there are enough: whole blocks, or blocks of which the upper half
    /// and the lowest bit count.
    pub(super) fn write(&mut self, are_whole: bool, blocks: &mut [u128]) {
        let room = &mut self.rooms[usize::from(!are_whole)];
        let mut rest = blocks;
        while !rest.is_empty() {
            if room.taken == room.outputs.len() {
                let batch = self.batches.front_mut().expect("there are enough");
                batch.leaves.write(&self.children, batch.next, &mut room.outputs);
                batch.code.add(batch.next, &batch.secret, are_whole, &mut room.outputs);
                (room.taken, batch.next) = (0, batch.next + 1);
                if batch.next == self.parameters.trees {
                    self.batches.pop_front();
                }
            }
            let (now, later) = rest.split_at_mut(rest.len().min(room.outputs.len() - room.taken));
            now.copy_from_slice(&room.outputs[room.taken..][..now.len()]);
            room.taken += now.len();
            rest = later;
        }
    }
}

/// Adds an answer times Delta to the sender's sum, so that it is the receiver's.
pub(super) fn add_product(sum: &mut Element, answer: &Element, delta: u128) {
    let mut product = Zeroizing::new(Element::default());
    multiply(&mut *product, answer, &*Zeroizing::new(delta.to_le_bytes()));
    add(sum, &product);
}

/// `sum += term`.
pub(super) fn add(sum: &mut Element, term: &Element) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
}

/// Elements with one bit each: number i has the bit that choice i has among 128 packed choices.
fn powers() -> [Element; MASK] {
    std::array::from_fn(|i| (1_u128 << i).to_le_bytes())
}

fn write_bytes(blocks: &[u128], bytes: &mut [u8]) {
    for (bytes, block) in bytes.as_chunks_mut::<ELEMENT>().0.iter_mut().zip(blocks) {
        *bytes = block.to_le_bytes();
    }
}

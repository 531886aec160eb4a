//! Labels that are opened for a bit that the evaluator knows (Mohassel, Rosulek and Zhang 2015, figure 2,
//! steps 2 to 5).
//!
//! For a wire whose bit v the evaluator knows, as one of the garblers does, this garbler sends the label of v
//! and a commitment to the other label. The evaluator commits to the label that it got, and so has the
//! commitments to both labels, in the order of the bit. The other garbler, which does not know v, sends a
//! digest of the same list.
//!
//! * *No garbler lies.* If one of the two garblers follows the protocol, and the digest fits, then the list
//!   is the right one (the digest is collision resistant). So the commitment at place v is that to the right
//!   label, and no other label with that commitment is known to anybody: a garbler that sends another needs
//!   a second preimage of 128 bits. A query of AES under one of the 512 keys of numbers meets at most 1,024
//!   of them, so that takes about 2^118 evaluations.
//! * *The evaluator learns nothing.* A commitment is the hash of a label under a tweak of its own, and a root
//!   that no gate has. The evaluator does not know Delta, so the commitment to the other label looks random
//!   to it: the assumption is that of half gates ([`polyclave_kernels::label_hash`]).
//!
//! # Differences from the paper
//! The paper's garblers send the commitments to both labels ahead, and labels later. Here the commitment to
//! the label that is sent is left out, because the evaluator computes it, and the other one travels with the
//! label: half the bytes, and the same list is compared. The commitments are not randomised, because labels
//! have 127 bits of entropy themselves.

use polyclave_kernels::label_hash::{Label, LabelHash, Tweak};
use polyclave_kernels::secret::mask;
use zeroize::Zeroizing;

use super::plan::{Extent, Section};
use super::seed::number;
use crate::garbling::LABEL;

/// Bytes of a wire: a label, and the commitment to the other.
pub(super) const OPENED: usize = 2 * LABEL;

/// Wires that have commitments.
#[derive(Clone, Copy)]
pub(super) enum Committed {
    /// The component of inputs that the first garbler opens.
    ByFirst,
    /// The component of inputs that the second garbler opens.
    BySecond,
    /// The evaluator's masks of outputs.
    Masks,
}

impl Committed {
    /// The number of a section's first wire. No other wire of the lot has it.
    pub(super) fn first(self, section: Section, extent: Extent) -> u64 {
        let Extent { inputs, outputs, .. } = extent;
        section.first(2 * inputs + outputs) + (self as usize * inputs) as u64
    }
}

/// Commitments of one lot.
pub(super) struct Commitments(LabelHash);

impl Commitments {
    /// With a root that follows from the name of the lot.
    pub(super) fn new(lot: &[u8; 32]) -> Commitments {
        Commitments(LabelHash::new(&root(lot, "polyclave 2026 garbled-three: root of commitments")))
    }

    /// To the labels for zero and for one of each wire, the first of which has the number `first`.
    pub(super) fn of_wires(&mut self, first: u64, zeros: &[Label], delta: u128) -> Zeroizing<Vec<Label>> {
        let both = zeros.iter().flat_map(|zero| [*zero, (number(zero) ^ delta).to_le_bytes()]);
        let mut labels = Zeroizing::new(both.collect::<Vec<Label>>());
        self.0.hash_gates(first, Tweak::First, 2, &mut labels);
        labels
    }

    /// At the evaluator: the commitments to both labels of each wire, from what was opened and the bits.
    pub(super) fn of_opened(
        &mut self,
        first: u64,
        opened: &[[u8; OPENED]],
        bits: &[u8],
    ) -> Zeroizing<Vec<Label>> {
        let mut own = Zeroizing::new(opened.iter().map(label_of).collect::<Vec<Label>>());
        self.0.hash(first, &mut own);
        let mut both = Zeroizing::new(Vec::with_capacity(2 * own.len()));
        for ((own, opened), bit) in own.iter().zip(opened).zip(bits) {
            let other = opened.last_chunk().expect("it has two halves");
            both.extend(in_order(number(own), number(other), *bit));
        }
        both
    }
}

/// What a garbler sends for wires whose bits it knows: the label of the bit, and the commitment to the other.
pub(super) fn open(zeros: &[Label], delta: u128, commitments: &[Label], bits: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut message = Zeroizing::new(Vec::with_capacity(zeros.len() * OPENED));
    for ((zero, both), bit) in zeros.iter().zip(commitments.as_chunks::<2>().0).zip(bits) {
        let [_, other] = in_order(number(&both[0]), number(&both[1]), *bit);
        message.extend_from_slice(&active(zero, delta, *bit));
        message.extend_from_slice(&other);
    }
    message
}

/// The label of a bit.
pub(super) fn active(zero: &Label, delta: u128, bit: u8) -> Label {
    (number(zero) ^ delta & mask(u128::from(bit))).to_le_bytes()
}

/// The label of what was opened.
pub(super) fn label_of(opened: &[u8; OPENED]) -> Label {
    *opened.first_chunk().expect("it has two halves")
}

/// Both in this order if the bit is 0, and otherwise the other way round.
fn in_order(first: u128, second: u128, bit: u8) -> [Label; 2] {
    let difference = (first ^ second) & mask(u128::from(bit));
    [first ^ difference, second ^ difference].map(u128::to_le_bytes)
}

/// A root of hashes, which all three parties know.
pub(super) fn root(lot: &[u8; 32], context: &str) -> [u8; 16] {
    let mut root = [0; 16];
    blake3::Hasher::new_derive_key(context).update(lot).finalize_xof().fill(&mut root);
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_gives_the_list_of_both_commitments_and_nothing_else_does() {
        let lot = [7; 32];
        let zeros: Vec<Label> = (0..5).map(|i| [i * 17 + 1; LABEL]).collect();
        let (delta, bits) = (0x1234_5678_9abc_def1_0fed_cba9_8765_4321, [0, 1, 1, 0, 1]);
        let list = Commitments::new(&lot).of_wires(40, &zeros, delta);
        let message = open(&zeros, delta, &list, &bits);
        let opened = message.as_chunks().0;
        assert_eq!(Commitments::new(&lot).of_opened(40, opened, &bits), list);
        for (i, bit) in bits.into_iter().enumerate() {
            assert_eq!(label_of(&opened[i]), active(&zeros[i], delta, bit));
            let mut other = bits;
            other[i] ^= 1;
            assert_ne!(Commitments::new(&lot).of_opened(40, opened, &other), list, "the wrong place");
        }
        assert_ne!(Commitments::new(&lot).of_opened(41, opened, &bits), list, "other wires");
        assert_ne!(Commitments::new(&[8; 32]).of_opened(40, opened, &bits), list, "another lot");
    }
}

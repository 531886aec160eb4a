//! What follows from the seed that both garblers have and the evaluator lacks: Delta, the labels of inputs,
//! and the masks of outputs.
//!
//! The seed of a lot is derived from the key of the two garblers, and the lot's name. So both garble the same
//! bytes without a message (Mohassel, Rosulek and Zhang 2015, section 3: P1 chooses r and sends it to P2;
//! here the key that the two have from their setup takes its place, so that neither of them chooses).

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::label_hash::Label;
use zeroize::Zeroizing;

use super::plan::{Extent, Section};
use super::roles::COMPONENTS;
use crate::garbling::LABEL;

/// A lot's seed.
#[derive(Clone)]
pub(super) struct Seed(Zeroizing<[u8; 32]>);

/// Labels for zero of a section, and masks of its outputs.
pub(super) struct Wires {
    bytes: Zeroizing<Vec<u8>>,
    extent: Extent,
}

/// The bytes of a key that follow from the name of a lot.
pub(super) fn of_lot<const N: usize>(key: &[u8; 32], lot: &[u8; 32]) -> Zeroizing<[u8; N]> {
    let mut derived = Zeroizing::new([0; N]);
    blake3::Hasher::new_keyed(key).update(lot).finalize_xof().fill(&mut *derived);
    derived
}

impl Seed {
    /// Of the key that the garblers have for a stream, and the name of a lot.
    pub(super) fn of(key: &[u8; 32], lot: &[u8; 32]) -> Seed {
        Seed(of_lot(key, lot))
    }

    /// As it was stored.
    pub(super) fn from_bytes(bytes: &[u8; 32]) -> Seed {
        Seed(Zeroizing::new(*bytes))
    }

    /// To be stored.
    pub(super) fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        self.0.clone()
    }

    /// The offset of all labels of the lot. Its lowest bit is 1: the labels of a wire have different colours.
    pub(super) fn delta(&self) -> Zeroizing<u128> {
        let half = self.0.first_chunk::<16>().expect("a seed has two halves");
        Zeroizing::new(u128::from_le_bytes(*half) | 1)
    }

    /// The wires of a section.
    pub(super) fn wires(&self, section: Section, extent: Extent) -> Wires {
        let key = self.0.last_chunk::<16>().expect("a seed has two halves");
        let labels = COMPONENTS * extent.inputs + extent.outputs;
        let mut bytes = Zeroizing::new(vec![0; labels * LABEL + extent.outputs]);
        AesPrg::new(key, section.nonce()).fill(&mut bytes);
        Wires { bytes, extent }
    }
}

impl Wires {
    /// The labels of one component of all inputs.
    pub(super) fn component(&self, component: usize) -> &[Label] {
        &self.labels()[component * self.extent.inputs..][..self.extent.inputs]
    }

    /// The label of an input: the sum of its components'.
    pub(super) fn input(&self, wire: usize) -> u128 {
        (0..COMPONENTS).fold(0, |sum, component| sum ^ number(&self.component(component)[wire]))
    }

    /// The labels of the wires that the evaluator masks outputs with.
    pub(super) fn masks(&self) -> &[Label] {
        &self.labels()[COMPONENTS * self.extent.inputs..]
    }

    /// The garblers' masks of outputs, a bit in a byte each.
    pub(super) fn own_masks(&self) -> impl Iterator<Item = u8> {
        self.bytes[self.labels().len() * LABEL..].iter().map(|byte| byte & 1)
    }

    fn labels(&self) -> &[Label] {
        let count = COMPONENTS * self.extent.inputs + self.extent.outputs;
        self.bytes[..count * LABEL].as_chunks().0
    }
}

/// The bits that the second garbler and the evaluator add to the outputs of a section, under their key.
pub(super) fn mask_bits(key: &[u8; 16], section: Section, extent: Extent) -> Zeroizing<Vec<u8>> {
    let mut bits = Zeroizing::new(vec![0; extent.outputs]);
    AesPrg::new(key, section.nonce()).fill(&mut bits);
    bits.iter_mut().for_each(|bit| *bit &= 1);
    bits
}

/// A label as the number that it is.
pub(super) fn number(label: &Label) -> u128 {
    u128::from_le_bytes(*label)
}

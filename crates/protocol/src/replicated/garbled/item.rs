//! One garbled circuit as a party keeps it until it is used: an item of a stock.
//!
//! An item moves: into what changes it, into the evaluation that uses it up, and never out again after an
//! error. So no wire gets labels for both values, and no table serves twice. (Of two labels of a wire the
//! evaluator learns Delta, and with it everything that the circuit computes.) What is stored has to be
//! removed durably before it is used, as everything in a stock.

use std::ops::Range;

use polyclave_kernels::label_hash::Label;
use polyclave_kernels::secret::ct_eq;
use zeroize::{Zeroize, Zeroizing};

use super::gates::GATE;
use super::plan::{Extent, Place, Plan, Section};
use super::roles::Role;
use super::seed::Seed;
use crate::garbling::LABEL;
use crate::{Error, Result};

/// Which circuits these are: the name of the lot, and lanes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) lot: [u8; 32],
    pub(super) lanes: Range<u64>,
}

/// A garbled circuit in some lanes, of which this party has its part. Can be used once.
pub struct Item {
    pub(super) name: Name,
    /// The digest of the circuit.
    pub(super) circuit: [u8; 32],
    pub(super) part: Part,
    /// By input port: what was given ahead.
    pub(super) given: Vec<Option<Given>>,
}

/// What only one of the roles has.
pub(super) enum Part {
    /// The seed, and the labels for zero of outputs.
    First { seed: Seed, outputs: Zeroizing<Vec<u8>> },
    /// The same, and the key of the evaluator's masks.
    Second { seed: Seed, outputs: Zeroizing<Vec<u8>>, masks: Zeroizing<[u8; 16]> },
    /// Tables, what decodes outputs (a bit in a byte each), the key of the masks, and their active labels.
    Evaluator {
        tables: Vec<u8>,
        decoding: Vec<u8>,
        masks: Zeroizing<[u8; 16]>,
        mask_labels: Zeroizing<Vec<u8>>,
    },
}

/// The value of an input that this item belongs to.
#[derive(Clone)]
pub(super) struct Given {
    /// Of this party's shares of it.
    pub(super) digest: [u8; 32],
    /// The active labels, at the evaluator.
    pub(super) labels: Zeroizing<Vec<u8>>,
}

impl Part {
    pub(super) fn role(&self) -> Role {
        match self {
            Part::First { .. } => Role::First,
            Part::Second { .. } => Role::Second,
            Part::Evaluator { .. } => Role::Evaluator,
        }
    }

    /// The seed, at a garbler.
    pub(super) fn seed(&self) -> Option<&Seed> {
        match self {
            Part::First { seed, .. } | Part::Second { seed, .. } => Some(seed),
            Part::Evaluator { .. } => None,
        }
    }

    /// The lengths of its parts, in the order in which they are stored.
    pub(super) fn lengths(role: Role, plan: &Plan, lanes: usize) -> [usize; 3] {
        let [gates, outputs] = [plan.total(lanes, |of| of.gates), plan.total(lanes, |of| of.outputs)];
        Part::lengths_of(role, gates, outputs)
    }

    /// The same by the numbers of gates and of output bits.
    pub(super) fn lengths_of(role: Role, gates: usize, outputs: usize) -> [usize; 3] {
        match role {
            Role::First | Role::Second => [outputs * LABEL, 0, 0],
            Role::Evaluator => [gates * GATE, outputs, outputs * LABEL],
        }
    }

    /// What has these lengths.
    pub(super) fn rows(&self) -> [&[u8]; 3] {
        match self {
            Part::First { outputs, .. } | Part::Second { outputs, .. } => [outputs, &[], &[]],
            Part::Evaluator { tables, decoding, mask_labels, .. } => [tables, decoding, mask_labels],
        }
    }
}

impl Item {
    /// The number of lanes.
    pub fn lanes(&self) -> usize {
        (self.name.lanes.end - self.name.lanes.start) as usize
    }

    /// Takes the last `lanes` lanes out of the item; the others are left in it. What is the same for all
    /// lanes has to be given before, and nothing else: if two items gave it different values, the evaluator
    /// would have both labels of a wire.
    pub(super) fn take(&mut self, plan: &Plan, lanes: usize) -> Result<Item> {
        if lanes == 0 || lanes >= self.lanes() {
            let of = self.lanes();
            return Err(Error::Misuse(format!("{lanes} lanes are to be taken from a circuit of {of}")));
        }
        let mut ports = plan.inputs.iter().zip(&self.given);
        if ports.any(|(place, given)| place.is_uniform != given.is_some()) {
            return Err(Error::misuse(
                "a garbled circuit is cut when all inputs that are the same for all lanes are given, and no others",
            ));
        }
        let Name { lot, lanes: all } = self.name.clone();
        let middle = all.end - lanes as u64;
        self.name.lanes = all.start..middle;
        let (part, given) = (self.part.take(plan, lanes), self.given.clone());
        Ok(Item { name: Name { lot, lanes: middle..all.end }, circuit: self.circuit, part, given })
    }

    /// Refuses a circuit, or a place in the ring, that it was not made for.
    pub(super) fn refuse_other(&self, plan: &Plan, circuit: &[u8; 32], role: Role) -> Result<()> {
        let lengths = self.part.rows().map(<[u8]>::len);
        let labels = |place: &Place| {
            let lanes = if place.is_uniform { 1 } else { self.lanes() };
            if role == Role::Evaluator { lanes * place.wires.len() * LABEL } else { 0 }
        };
        let fits =
            self.circuit == *circuit
                && self.part.role() == role
                && lengths == Part::lengths(role, plan, self.lanes())
                && self.given.len() == plan.inputs.len()
                && plan.inputs.iter().zip(&self.given).all(|(place, given)| {
                    given.as_ref().is_none_or(|given| given.labels.len() == labels(place))
                });
        match fits {
            true => Ok(()),
            false => Err(Error::misuse("the garbled circuit was made for another circuit or another party")),
        }
    }
}

impl Part {
    fn take(&mut self, plan: &Plan, lanes: usize) -> Part {
        let cut = |bytes: &mut Vec<u8>, of: fn(&Extent) -> usize, size: usize| {
            let end = bytes.len() - lanes * of(&plan.extent(Section::Lane(0))) * size;
            let uniform = of(&plan.extent(Section::Uniform)) * size;
            // Growing would leave copies behind.
            let mut taken = Vec::with_capacity(uniform + bytes.len() - end);
            taken.extend_from_slice(&bytes[..uniform]);
            taken.extend_from_slice(&bytes[end..]);
            bytes[end..].zeroize();
            bytes.truncate(end);
            taken
        };
        let outputs = |extent: &Extent| extent.outputs;
        match self {
            Part::First { seed, outputs: labels } => {
                Part::First { seed: seed.clone(), outputs: Zeroizing::new(cut(labels, outputs, LABEL)) }
            }
            Part::Second { seed, outputs: labels, masks } => Part::Second {
                seed: seed.clone(),
                outputs: Zeroizing::new(cut(labels, outputs, LABEL)),
                masks: masks.clone(),
            },
            Part::Evaluator { tables, decoding, masks, mask_labels } => Part::Evaluator {
                tables: cut(tables, |extent| extent.gates, GATE),
                decoding: cut(decoding, outputs, 1),
                masks: masks.clone(),
                mask_labels: Zeroizing::new(cut(mask_labels, outputs, LABEL)),
            },
        }
    }
}

impl Given {
    /// Refuses another value than the one that was given ahead.
    pub(super) fn refuse_other(&self, digest: &[u8; 32]) -> Result<()> {
        match ct_eq(&self.digest, digest) {
            true => Ok(()),
            false => Err(Error::misuse("the garbled circuit belongs to another value of this input")),
        }
    }

    /// The active labels.
    pub(super) fn labels(&self) -> &[Label] {
        self.labels.as_chunks().0
    }
}

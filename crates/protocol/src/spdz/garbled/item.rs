//! One garbled circuit as a party keeps it until it is used.
//!
//! An item moves: into what changes it, into the evaluation that uses it up, and never out again after an
//! error. So no wire gets labels for both masked values. (Of two labels the evaluator learns Delta, and with
//! it everything that is computed under this setup.) What is stored has to be removed durably before it is
//! used, as everything in a stock.

use polyclave_field::Gf2_64;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::gates::Gate;
use super::plan::{Plan, Port};
use super::wires::{Active, Mask};
use crate::authenticated::Authenticated;
use crate::{Error, Result};

/// A garbled circuit in some lanes, of which this party has its part.
pub(super) struct Item {
    /// No other circuit has it.
    pub(super) name: [u8; 32],
    /// The digest of the circuit.
    pub(super) circuit: [u8; 32],
    pub(super) lanes: usize,
    /// By input port, all lanes of each bit.
    pub(super) inputs: Vec<Masked>,
    /// The masks of all outputs, as bits in authenticated sharing.
    pub(super) outputs: Authenticated<Gf2_64>,
    pub(super) part: Part,
}

/// What only one of the parties has.
pub(super) enum Part {
    /// The difference of labels, and the labels for masked values of zero: of inputs, by port, and of
    /// outputs.
    Garbler { delta: Zeroizing<u128>, inputs: Vec<Zeroizing<Vec<u128>>>, outputs: Zeroizing<Vec<u128>> },
    /// The gates, with what this party knows of them.
    Evaluator { gates: Zeroizing<Vec<Gate>> },
}

/// An input.
pub(super) enum Masked {
    /// It waits for its value.
    Waiting(Zeroizing<Vec<Mask>>),
    /// It has one.
    Given(Given),
}

/// The value that an input has.
pub(super) struct Given {
    /// Of this party's shares of it.
    pub(super) digest: [u8; 32],
    /// At the evaluator.
    pub(super) active: Zeroizing<Vec<Active>>,
}

impl Item {
    /// Refuses a circuit, a number of lanes or a role that it was not made for.
    pub(super) fn refuse_other(
        &self,
        plan: &Plan,
        circuit: &[u8; 32],
        (lanes, garbles): (usize, bool),
    ) -> Result<()> {
        if self.lanes != lanes {
            let of = self.lanes;
            return Err(Error::Misuse(format!("{of} lanes were garbled, and {lanes} are to be evaluated")));
        }
        let input = |(input, port): (&Masked, &Port)| match input {
            Masked::Waiting(masks) => masks.len() == port.bits(lanes),
            Masked::Given(given) => given.active.len() == if garbles { 0 } else { port.bits(lanes) },
        };
        let all = plan.output_bits(lanes);
        let part = match &self.part {
            Part::Garbler { inputs, outputs, .. } => {
                let lengths = inputs.iter().map(|labels| labels.len());
                garbles && outputs.len() == all && lengths.eq(plan.inputs.iter().map(|port| port.bits(lanes)))
            }
            Part::Evaluator { gates } => !garbles && gates.len() == plan.gates(lanes),
        };
        let fits = part
            && self.circuit == *circuit
            && (self.outputs.values.len(), self.outputs.macs.len()) == (all, all)
            && self.inputs.len() == plan.inputs.len()
            && self.inputs.iter().zip(&plan.inputs).all(input);
        match fits {
            true => Ok(()),
            false => Err(Error::misuse("the garbled circuit was made for another circuit or another party")),
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
}

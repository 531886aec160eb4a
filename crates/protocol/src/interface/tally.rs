//! Counts of operations and rounds, taken by the running protocol itself.
//!
//! An *elementary operation* is a multiplication or an opening of one element (Damgard and Keller 2010,
//! section 3.2): every party sends one element to every other. A *round* is one exchange in which all parties
//! may send. Hello, input and output are counted apart from the evaluation.

use std::ops::{AddAssign, Sub};

/// Operations and rounds of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Exchanges, one after another.
    pub rounds: u64,
    /// Multiplications of two shared elements, opened or not.
    pub multiplications: u64,
    /// Openings of a shared element that is no product. With authenticated shares a product opens two, which
    /// count here.
    pub openings: u64,
    /// Multiplication triples that were made, of any field.
    pub triples: u64,
    /// Random shared bits that were made.
    pub bits: u64,
    /// Hashes of labels of wires. With garbled circuits the parties count different numbers.
    #[serde(default)]
    pub hash_calls: u64,
    /// Ciphertexts of garbled gates: of a label each, but of half a label under `garbled-three-halves`, where
    /// an AND has three, and five bits besides that are not counted here.
    #[serde(default)]
    pub ciphertexts: u64,
}

impl Counts {
    /// Elementary operations.
    pub fn operations(&self) -> u64 {
        self.multiplications + self.openings
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.rounds += other.rounds;
        self.multiplications += other.multiplications;
        self.openings += other.openings;
        self.triples += other.triples;
        self.bits += other.bits;
        self.hash_calls += other.hash_calls;
        self.ciphertexts += other.ciphertexts;
    }
}

impl Sub for Counts {
    type Output = Counts;
    fn sub(self, earlier: Counts) -> Counts {
        Counts {
            rounds: self.rounds - earlier.rounds,
            multiplications: self.multiplications - earlier.multiplications,
            openings: self.openings - earlier.openings,
            triples: self.triples - earlier.triples,
            bits: self.bits - earlier.bits,
            hash_calls: self.hash_calls - earlier.hash_calls,
            ciphertexts: self.ciphertexts - earlier.ciphertexts,
        }
    }
}

/// The parts of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Material made before the inputs are known.
    Preprocessing,
    /// Values becoming shared.
    Input,
    /// The evaluation itself.
    Online,
    /// Shared values being revealed to their owner.
    Output,
}

/// Counts by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Material made before the inputs are known.
    pub preprocessing: Counts,
    /// Values becoming shared.
    pub input: Counts,
    /// The evaluation itself.
    pub online: Counts,
    /// Shared values being revealed to their owner.
    pub output: Counts,
}

impl Tally {
    /// The counts of one phase.
    pub fn of(&mut self, phase: Phase) -> &mut Counts {
        match phase {
            Phase::Preprocessing => &mut self.preprocessing,
            Phase::Input => &mut self.input,
            Phase::Online => &mut self.online,
            Phase::Output => &mut self.output,
        }
    }
}

impl Sub for Tally {
    type Output = Tally;
    fn sub(self, earlier: Tally) -> Tally {
        Tally {
            preprocessing: self.preprocessing - earlier.preprocessing,
            input: self.input - earlier.input,
            online: self.online - earlier.online,
            output: self.output - earlier.output,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.preprocessing += other.preprocessing;
        self.input += other.input;
        self.online += other.online;
        self.output += other.output;
    }
}

/// What an evaluation is predicted to take, per lane where it depends on lanes. Expectations where a protocol
/// retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cost {
    /// Rounds online, for a batch of one lane.
    pub rounds: f64,
    /// Elementary operations online that every lane needs.
    pub operations_per_lane: f64,
    /// Elementary operations online that are done once for all lanes (uniform inputs).
    pub operations_uniform: f64,
    /// Rounds of preprocessing.
    pub preprocessing_rounds: f64,
    /// Elementary operations of preprocessing for every lane.
    pub preprocessing_per_lane: f64,
    /// Elementary operations of preprocessing done once.
    pub preprocessing_uniform: f64,
    /// Multiplication triples for every lane.
    pub triples_per_lane: f64,
    /// Multiplication triples needed once.
    pub triples_uniform: f64,
    /// Random bits for every lane.
    pub bits_per_lane: f64,
    /// Random bits needed once.
    pub bits_uniform: f64,
    /// Bytes of material that a party keeps for every lane from preprocessing to use.
    pub material_bytes_per_lane: usize,
}

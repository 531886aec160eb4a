//! Yao's garbled circuits between two parties: party 1 garbles, party 2 evaluates (Yao 1986). Pohle, Abidin
//! and Preneel 2022 compare their method with these.
//!
//! A wire has two labels of 128 bits, `W` for zero and `W + Delta` for one. The evaluator has one of them and
//! does not know which. Sums are sums of labels (free XOR: Kolesnikov and Schneider 2008). For each AND the
//! garbler sends ciphertexts. With them the evaluator computes the label of the result from the labels that
//! it has. There are two ciphertexts by half gates (Zahur, Rosulek, Evans 2015), or three of half a label by
//! three halves (Rosulek and Roy 2021). The lowest bit of a label is its colour, which is uniform, and the
//! lowest bit of Delta is 1 (point and permute).
//!
//! | file | what | source |
//! |---|---|---|
//! | `config.rs` | the protocol and what is kept: Delta, transfers | |
//! | `hash.rs` | the hash of a stream and its running number | Guo et al. 2020, ePrint 2019/1168 |
//! | [`polyclave_protocol::garbling`] | labels by wire, and sums of them; which lookups are ANDs | Kolesnikov and Schneider 2008 |
//! | `lookups.rs` | the ANDs of a layer | |
//! | `half_gates.rs` | ANDs in 32 bytes | Zahur et al. 2015, figure 2; [`polyclave_kernels::label_hash`] |
//! | `three_halves.rs` | ANDs in 25 bytes | Rosulek and Roy 2021, ePrint 2021/749; [`polyclave_kernels::label_hash::three_halves`] |
//! | `flight.rs` | which gates share a message | |
//! | `source.rs` | who gives an input, and transfers of what the evaluator gives | |
//! | `input.rs` | labels of inputs | |
//! | `output.rs` | decoding of labels, and detecting invalid ones | Bellare, Hoang, Rogaway 2012 |
//! | `shared.rs` | labels that are kept for a later circuit | |
//! | `projection/` | wires of several bits and projection gates: a protocol of its own | Pohle et al. 2022 |
//!
//! **Circuits** are Boolean ones: tables of two bits, ports of one ([`polyclave_cipher::boolean`]). Others
//! are refused.
//!
//! **Adversary**: passive, one of the two. Beyond that, labels are authentic: if the evaluator departs from
//! the protocol, or a stream of ciphertexts was damaged, the run ends in an error and not in a wrong output,
//! except with probability 2^-63 an output bit at the evaluator (64 bits of a hash are compared) and 2^-127
//! at the garbler. A garbler that departs from the protocol can garble another circuit and so learn the
//! evaluator's inputs.
//!
//! **Delta** is drawn once, when transfers are set up, because it is also the offset of the transfers. So the
//! blocks of a transfer are directly a wire's labels. It serves all sessions of a setup and all their streams
//! (threads), so these can hand shared values to each other. No tweak is used twice under it: each stream
//! derives the root of its hash from the session's label and its own number, and counts gates upwards over
//! all circuits and calls.
//!
//! **Assumption**: AES as an ideal cipher. A key of the hash serves for 512 gates. So an attacker that has a
//! setup's whole traffic needs about 2^116 evaluations of AES to learn anything of Delta, however much
//! traffic that is ([`polyclave_kernels::label_hash`] has the bound; one fixed key would lose a bit with
//! every doubling). Three halves assume more of the hash, and an attacker needs about 2^115 evaluations
//! ([`polyclave_kernels::label_hash::three_halves`]).
//!
//! **Cost** of an AND: four calls of the hash for the garbler, two for the evaluator, 32 bytes; by three
//! halves six, three and 25. Of an input bit: nothing if the garbler knows it; 4 bytes each way (128 /
//! expansion bits) if the evaluator gives it. Of an output bit: 16 bytes to each party that learns it.
//! Rounds: none that wait for an answer while gates are garbled; four for inputs of the evaluator; one for an
//! output. Memory: the labels of the wires that are in use, 32 bytes a slot and lane, and one message of
//! ciphertexts.
//!
//! # Differences from the paper
//! * Active labels of inputs that the garbler knows come from a generator that both parties have, and the
//!   garbler chooses the label for zero to fit. They are as uniform as labels that the garbler would send.
//! * Transfers are actively secure, though the rest is not.

mod config;
mod descriptor;
mod flight;
mod half_gates;
mod hash;
mod input;
mod lookups;
mod output;
pub mod projection;
mod shared;
mod source;
#[cfg(test)]
mod tests;
mod three_halves;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::label_hash::Label;
use zeroize::Zeroizing;

pub use config::{GarbledConfig, Gates, Setup};
pub use descriptor::{HALF, PROJECTION, THREE_HALVES};
pub use shared::Shared;

use flight::Flight;
use hash::Hash;
use polyclave_protocol::garbling::{Kind, Registers as Labels, lanes_near, refuse_unless_boolean};
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::Pairs;
use polyclave_protocol::pool::Pool;
use polyclave_protocol::protocol::{Input, Owner, Session};
use polyclave_protocol::release::Unverified;
use polyclave_protocol::tally::{Cost, Counts, Phase, Tally};
use polyclave_protocol::{Party, Result};
use three_halves::Coins;

/// The party that garbles.
const GARBLER: Party = Party(0);
/// The party that evaluates.
const EVALUATOR: Party = Party(1);

/// What a party does, and what only it knows.
enum Side {
    /// Holds labels for zero, the offset of those for one, and bits that control matrices are made of.
    Garbler { delta: Zeroizing<Label>, coins: Coins },
    /// Holds active labels.
    Evaluator,
}

/// Labels by slot.
pub struct Registers {
    labels: Labels,
    /// Whether any ciphertext has been on its way.
    is_under_way: bool,
}

impl Side {
    /// What a sum's labels change by where a one is added: the garbler's label for zero was that for one.
    fn of_constant(&self, one: bool) -> Label {
        match self {
            Side::Garbler { delta, .. } if one => **delta,
            _ => Label::default(),
        }
    }
}

/// One party in one session.
pub struct Garbled {
    gates: Gates,
    side: Side,
    /// The identity of the setup. Labels of one setup fit each other.
    setup: [u8; 32],
    hash: Hash,
    /// Active labels that both parties may know.
    known: AesPrg,
    transfers: Pairs,
    flight: Flight,
    pool: Pool,
    phase: Phase,
    tally: Tally,
}

impl Garbled {
    fn counts(&mut self) -> &mut Counts {
        self.tally.of(self.phase)
    }
}

/// Every map of bits is free.
impl Maps for Garbled {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

/// Nothing is made before the inputs are known.
pub struct Batch(());

impl Session for Garbled {
    type Shared = Shared;
    type Registers = Registers;
    type Batch = Batch;
    type Released = Unverified<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        let is_gate = |lookup: &&Lookup| Kind::of(&compiled.tables()[lookup.table]).is_garbled();
        let gates = compiled.lookups().filter(is_gate).count();
        let uniform = compiled.lookups().filter(is_gate).filter(|lookup| lookup.is_uniform()).count();
        Cost {
            rounds: if gates > 0 { 1.0 } else { 0.0 },
            operations_per_lane: (gates - uniform) as f64,
            operations_uniform: uniform as f64,
            ..Cost::default()
        }
    }

    fn lanes_at_once(&self, compiled: &Compiled) -> usize {
        lanes_near(compiled)
    }

    fn prepare(&mut self, compiled: &Compiled, _: usize, _: &mut dyn Net) -> Result<Batch> {
        refuse_unless_boolean(compiled)?;
        Ok(Batch(()))
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, _: &mut Batch) -> Result<Registers> {
        refuse_unless_boolean(compiled)?;
        Ok(Registers { labels: Labels::new(compiled, lanes, &self.pool), is_under_way: false })
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.put_in(ports, inputs, registers, net)
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers) {
        registers.labels.linear(maps, &self.side.of_constant(true));
    }

    fn lookup(
        &mut self,
        _: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers,
        _: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.look_up(lookups, registers, net)
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        self.take_out(port, registers)
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        shared.select(lanes, &self.pool)
    }

    /// Nothing to verify: labels are, when they are decoded.
    fn check(&mut self, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    fn release(
        &mut self,
        shared: &Shared,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Unverified<Cells>>> {
        Ok(self.reveal(shared, to, net)?.map(Unverified::new))
    }

    polyclave_protocol::counted_session!(self => self.phase, self.tally);
}

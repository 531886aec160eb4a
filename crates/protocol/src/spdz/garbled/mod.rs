//! Authenticated garbling between two parties, each of which may cheat: Wang, Ranellucci and Katz 2017
//! ("Authenticated garbling and efficient maliciously secure two-party computation", ePrint 2017/030), with
//! the half gates of Katz, Ranellucci, Rosulek and Wang 2018 ("Optimizing authenticated garbling for faster
//! secure two-party computation", ePrint 2018/578). For two operators in different cities: two one-way
//! messages online, however deep the circuit is.
//!
//! One party garbles, the other one evaluates. Each wire has a mask that neither knows: a sum of two bits,
//! each of which is authenticated towards the other party. So the garbler cannot garble another circuit, and
//! does not know which of its rows the evaluator uses. Inputs and outputs are values of `spdz-tower`
//! ([`super`]), under the same setup: a key that is stored for the one serves the other, and what is computed
//! here goes on there.
//!
//! | file | what | source |
//! |---|---|---|
//! | `config.rs` | the protocol | |
//! | `plan.rs`, `wires.rs` | a circuit as sums and ANDs; what belongs to its wires | |
//! | `ahead.rs` | masks, products of masks, garbling | function-independent and function-dependent preprocessing |
//! | `gates.rs` | ANDs, with the argument | KRRW18's half gates, WRK17's rows |
//! | `input.rs` | values go in: keys ahead, blocks online | input processing |
//! | `output.rs` | evaluation, and outputs become shared | argued there |
//! | `item.rs`, `storage.rs` | a garbled circuit that waits for its use | |
//! | `behind.rs` | a proof for a client and products for a check, made with a circuit | argued there |
//! | `few_rounds.rs` | `spdz-tower` as two nodes serve with it: with circuits from their stock | |
//!
//! **Adversary**: active, static, one of the two, with abort; the channel is private and authentic.
//! `gates.rs`, `input.rs` and `output.rs` say what each party can do and what it sees.
//! docs/security/garbled-authenticated.md puts it together.
//!
//! **The functionality of the papers' preprocessing** is authenticated bits, and ANDs of them, under one
//! Delta for each party. TinyOT's ([`crate::tinyot`]) are that, with tags of two widths. The papers give the
//! garbler's Delta three uses: keys of the evaluator's bits, the difference of labels, and (in rows) both at
//! once, so that the evaluator's tags turn r Delta + K into lambda Delta. So the tags of the evaluator's bits
//! in rows have the 128 bits of Delta. These are masks of wires and their products (`t` in `ahead.rs`). The
//! other party's tags are never added to labels, and 64 bits are enough for them: their only use is to be
//! forged with probability 2^-64.
//!
//! **After a failed check** the key is given up ([`MacKey::judge`](crate::authenticated::MacKey)), as under
//! `spdz`, because a guess at it could be the reason. After any error of a peer the session makes and
//! evaluates nothing more, and the garbled circuit is gone.
//!
//! **Assumption**: AES as an ideal cipher, for hashes ([`polyclave_kernels::aes_hash`]). Delta is as old as
//! the setup. With q hashes under a key an attacker needs about 2^128 / q evaluations of AES. Each circuit
//! has keys of its own for its hashes: 2^108 for 64 lanes of AES, however many circuits there are. The offers
//! of TinyOT hash under the same Delta, with one key for a direction and a stream, so their hashes add up
//! over all that a session makes. 64 lanes of AES take about 2^20.7 of them with kappa = 64, which leaves
//! 2^107.3, and 2^12 times as many leave about 2^95. A new session has new keys. The rest is TinyOT's.
//!
//! **Cost** of an AND: a triple, two bits with wide tags, and three openings of a bit; 56 bytes from the
//! garbler, and eight hashes there, four at the evaluator. All that is ahead. Online 16 bytes and a bit for a
//! bit of a public input, from the garbler; a bit for each output, from the evaluator; and two digests.

mod ahead;
mod behind;
#[cfg(test)]
mod cheaters;
mod config;
mod few_rounds;
mod gates;
mod input;
mod item;
mod output;
mod plan;
mod storage;
#[cfg(test)]
mod tests;
mod wires;

use std::sync::Arc;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};
use polyclave_field::Gf2_64;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

pub use config::{GARBLED, GarbledAuthenticatedConfig};
pub(super) use few_rounds::of_two;

use super::{Shared, Spdz};
use crate::authenticated::Authenticated;
use crate::garbling::lanes_near;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Owner, Session};
use crate::interface::release::Checked;
use crate::interface::tally::{Cost, Counts, Phase, Tally};
use crate::tinyot::{Openings, TinyOt};
use crate::{Error, Party, Result};
use input::{Value, place_of};
use item::{Item, Masked, Part};
use plan::Plan;
use wires::{Active, Wires};

/// Bytes of a label.
const LABEL: usize = size_of::<u128>();
/// More lanes are not worth more, and their gates take much memory.
const LANES_AT_ONCE: usize = 64;

/// One party in one session.
pub struct GarbledAuthenticated {
    /// Values that go in and out.
    under: Spdz<Gf2_64>,
    /// Where circuits are made.
    tinyot: Option<TinyOt>,
    openings: Openings,
    evaluator: Party,
    peer: Party,
    /// Of the stream.
    label: [u8; 40],
    /// Circuits that were made.
    made: u64,
    /// Whether there was an error of a peer.
    failed: bool,
    /// By the digest of the circuit.
    plans: Vec<([u8; 32], Arc<Plan>)>,
}

/// A garbled circuit that waits for its only use. Some of its inputs may have their values.
pub struct GarbledCircuit(Option<Item>);

/// An evaluation under way.
pub struct GarbledRegisters {
    plan: Arc<Plan>,
    item: Option<Item>,
    /// At the evaluator, what inputs have.
    wires: Option<Wires<Active>>,
    /// Outputs, by the names of their ports.
    settled: Vec<(String, Shared<Gf2_64>)>,
}

impl GarbledAuthenticated {
    fn new(under: Spdz<Gf2_64>, tinyot: Option<TinyOt>, evaluator: Party, label: [u8; 40]) -> Self {
        let me = under.arithmetic.key.me();
        GarbledAuthenticated {
            under,
            tinyot,
            openings: Openings::new(&[&label[..], b" garbled circuits"].concat(), me),
            evaluator,
            peer: Party(1 - (me.0 & 1)),
            label,
            made: 0,
            failed: false,
            plans: Vec::new(),
        }
    }

    /// Makes several circuits at once, each of which can be used on its own. Material is cheaper by the lot.
    pub fn make(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<GarbledCircuit>> {
        let plan = self.plan(compiled)?;
        self.guarded(|session| session.garble(&compiled.digest(), &plan, (lanes, count), net))
            .map(|items| items.into_iter().map(|item| GarbledCircuit(Some(item))).collect())
    }

    /// Fixes the value of an input of a garbled circuit, ahead of its use: from now on the circuit belongs to
    /// this value, such as a key. What is opened for it is checked at once. After an error the circuit is
    /// gone.
    pub fn give(
        &mut self,
        compiled: &Compiled,
        circuit: GarbledCircuit,
        input: &str,
        value: &Shared<Gf2_64>,
        net: &mut dyn Net,
    ) -> Result<GarbledCircuit> {
        let plan = self.plan(compiled)?;
        let mut item = circuit.0.ok_or_else(spent)?;
        item.refuse_other(&plan, &compiled.digest(), (item.lanes, self.garbles()))?;
        let index = compiled.inputs().iter().position(|port| port.name == input);
        let index =
            index.ok_or_else(|| Error::Misuse(format!("{} has no input {input}", compiled.name())))?;
        if matches!(item.inputs[index], Masked::Given(_)) {
            return Err(Error::Misuse(format!("input {input} of the garbled circuit was given before")));
        }
        self.refuse_other_key(&item)?;
        self.under.arithmetic.refuse_unchecked(&value.unchecked)?;
        Self::refuse_other_shape(&compiled.inputs()[index], value, item.lanes)?;
        let values = vec![Value::shared(index, value.clone())];
        self.guarded(|session| {
            session.deliver(&mut [(&mut item, values)], &plan, net)?;
            session.under.arithmetic.check(net)
        })?;
        Ok(GarbledCircuit(Some(item)))
    }

    /// This party's part of a garbled circuit, to be stored. A stock has to mark it as spent, durably, before
    /// it is restored and used.
    pub fn save(&self, circuit: GarbledCircuit) -> Result<Zeroizing<Vec<u8>>> {
        Ok(circuit.0.ok_or_else(spent)?.save(self.under.arithmetic.key.me()))
    }

    /// Reads what this party has stored, in this session or another one under the same key.
    pub fn restore(&self, bytes: &[u8]) -> Result<GarbledCircuit> {
        let item = Item::restore(bytes, self.under.arithmetic.key.me())?;
        self.refuse_other_key(&item)?;
        match matches!(item.part, Part::Garbler { .. }) == self.garbles() {
            true => Ok(GarbledCircuit(Some(item))),
            false => Err(Error::misuse("the garbled circuit was made with another evaluator")),
        }
    }

    /// A value of single bits as a port of wider cells takes it, such as an output as `spdz-tower` takes it.
    /// Local.
    pub fn in_cells(&self, value: &Shared<Gf2_64>, port: &CompiledPort) -> Result<Shared<Gf2_64>> {
        let (width, count, lanes) = (usize::from(port.bits), port.cells.len(), value.lanes);
        if value.bits != 1 || !matches!(width, 1 | 2 | 4 | 8) || value.count != count * width {
            return Err(Error::Misuse(format!("the shared value does not fit input {}", port.name)));
        }
        let mut bits = Authenticated::zero(value.count * lanes);
        for bit in 0..value.count {
            let (cell, place) = place_of(bit, width);
            let (from, to) = (bit * lanes, (place * count + cell) * lanes);
            for lane in 0..lanes {
                bits.values[to + lane] = u64::from(value.cells[from + lane]);
                bits.macs[to + lane] = value.macs[from + lane];
            }
        }
        let mut wide = Shared::of_bits(port, lanes, &bits);
        wide.known_bits = Some(bits);
        wide.unchecked = value.unchecked.clone();
        Ok(wide)
    }

    fn tinyot(&mut self) -> Result<&mut TinyOt> {
        self.tinyot.as_mut().ok_or_else(|| Error::misuse("this session makes no garbled circuits"))
    }

    fn garbles(&self) -> bool {
        self.peer == self.evaluator
    }

    /// At the garbler, refuses a circuit of another MAC key, which is the upper half of Delta.
    fn refuse_other_key(&self, item: &Item) -> Result<()> {
        let Part::Garbler { delta, .. } = &item.part else { return Ok(()) };
        let own = self.under.arithmetic.key.reveal_own_share();
        match ct_eq(&upper(**delta).to_le_bytes(), &own.to_le_bytes()) {
            true => Ok(()),
            false => Err(Error::misuse("the garbled circuit was made under another MAC key")),
        }
    }

    fn counts(&mut self) -> &mut Counts {
        let arithmetic = &mut self.under.arithmetic;
        arithmetic.tally.of(arithmetic.phase)
    }

    /// The name of the next circuit.
    fn next_name(&mut self) -> [u8; 32] {
        let mut hasher =
            blake3::Hasher::new_derive_key("polyclave 2026 garbled-authenticated: name of a circuit");
        hasher.update(&self.label).update(&self.made.to_le_bytes());
        self.made += 1;
        *hasher.finalize().as_bytes()
    }

    fn plan(&mut self, compiled: &Compiled) -> Result<Arc<Plan>> {
        let digest = compiled.digest();
        if let Some((_, plan)) = self.plans.iter().find(|(of, _)| *of == digest) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(Plan::of(compiled)?);
        self.plans.push((digest, plan.clone()));
        Ok(plan)
    }

    /// Runs something after which, if a peer is the cause of an error, nothing more is computed here.
    fn guarded<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.failed {
            return Err(Error::misuse("an earlier error has ended the session; begin another one"));
        }
        self.under.arithmetic.key.refuse_retired()?;
        let outcome = run(self);
        if outcome.as_ref().is_err_and(|error| !matches!(error, Error::Misuse(_))) {
            self.give_up();
        }
        outcome.inspect_err(|error| self.under.arithmetic.key.retire_after(error))
    }

    /// Nothing more is computed or released in this session, also of values that are in rounds.
    fn give_up(&mut self) {
        self.failed = true;
        self.under.arithmetic.is_over = true;
    }
}

impl GarbledCircuit {
    /// In how many lanes it can be evaluated.
    pub fn lanes(&self) -> usize {
        self.0.as_ref().map_or(0, |item| item.lanes)
    }
}

/// Of a tag or key of 128 bits, what one of 64 bits is.
fn upper(block: u128) -> u64 {
    (block >> 64) as u64
}

fn spent() -> Error {
    Error::misuse("a garbled circuit is used again")
}

/// Every linear map is free.
impl Maps for GarbledAuthenticated {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

impl Session for GarbledAuthenticated {
    type Shared = Shared<Gf2_64>;
    type Registers = GarbledRegisters;
    type Batch = GarbledCircuit;
    type Released = Checked<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        let Ok(plan) = Plan::of(compiled) else { return Cost::default() };
        let uniform = plan.gates(0) as f64;
        let lane = plan.gates(1) as f64 - uniform;
        let [inputs, more] = [0, 1].map(|lanes| plan.input_bits(lanes) as f64);
        Cost {
            rounds: 1.0,
            preprocessing_rounds: 4.0,
            operations_per_lane: lane,
            operations_uniform: uniform,
            preprocessing_per_lane: 3.0 * lane,
            preprocessing_uniform: 3.0 * uniform,
            triples_per_lane: lane,
            triples_uniform: uniform,
            bits_per_lane: 2.0 * lane + more - inputs,
            bits_uniform: 2.0 * uniform + inputs,
            material_bytes_per_lane: lane as usize * size_of::<gates::Gate>(),
        }
    }

    fn lanes_at_once(&self, compiled: &Compiled) -> usize {
        lanes_near(compiled).min(LANES_AT_ONCE)
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<GarbledCircuit> {
        let mut made = self.make(compiled, lanes, 1, net)?;
        made.pop().ok_or_else(|| Error::misuse("no circuit was made"))
    }

    fn registers(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        batch: &mut GarbledCircuit,
    ) -> Result<GarbledRegisters> {
        let plan = self.plan(compiled)?;
        let item = batch.0.take().ok_or_else(spent)?;
        item.refuse_other(&plan, &compiled.digest(), (lanes, self.garbles()))?;
        self.refuse_other_key(&item)?;
        Ok(GarbledRegisters { plan, item: Some(item), wires: None, settled: Vec::new() })
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared<Gf2_64>>],
        registers: &mut GarbledRegisters,
        net: &mut dyn Net,
    ) -> Result<()> {
        let mut item = registers.item.take().ok_or_else(spent)?;
        let plan = registers.plan.clone();
        let wires = self.guarded(|session| session.put_in((ports, &plan), inputs, &mut item, net))?;
        (registers.item, registers.wires) = (Some(item), Some(wires));
        Ok(())
    }

    /// A garbled circuit is evaluated as a whole, at the end.
    fn linear(&mut self, _: &[Linear], _: &mut GarbledRegisters) {}

    fn lookup(
        &mut self,
        _: &Compiled,
        _: &[Lookup],
        _: &mut GarbledRegisters,
        _: &mut GarbledCircuit,
        _: &mut dyn Net,
    ) -> Result<()> {
        Ok(())
    }

    /// The evaluation, and the outputs become shared. One message.
    fn settle(
        &mut self,
        compiled: &Compiled,
        registers: &mut GarbledRegisters,
        net: &mut dyn Net,
    ) -> Result<bool> {
        let (item, wires) =
            (registers.item.take().ok_or_else(spent)?, registers.wires.take().ok_or_else(spent)?);
        let plan = registers.plan.clone();
        registers.settled =
            self.guarded(|session| session.share_outputs(compiled, &plan, item, wires, net))?.outputs;
        Ok(true)
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut GarbledRegisters) -> Shared<Gf2_64> {
        let settled = registers.settled.iter().find(|(name, _)| *name == port.name);
        settled.expect("all outputs were shared when the evaluation ended").1.clone()
    }

    fn select_lanes(&self, shared: &Shared<Gf2_64>, lanes: &[usize]) -> Shared<Gf2_64> {
        self.under.select_lanes(shared, lanes)
    }

    /// Of what was opened for shared inputs.
    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.guarded(|session| session.under.check(net))
    }

    fn release(
        &mut self,
        shared: &Shared<Gf2_64>,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Checked<Cells>>> {
        self.guarded(|session| session.under.release(shared, to, net))
    }

    fn enter(&mut self, phase: Phase) {
        self.under.enter(phase);
    }

    fn tally(&self) -> Tally {
        self.under.tally()
    }
}

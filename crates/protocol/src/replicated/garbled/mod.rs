//! Garbled circuits among three parties, one of which may cheat: Mohassel, Rosulek and Zhang, "Fast and
//! Secure Three-party Computation: The Garbled Circuit Approach" (CCS 2015), section 3, figure 2. For
//! operators in different cities: two one-way messages online, however deep the circuit is.
//!
//! Two parties garble the same circuit from a seed that the third lacks. The third has the circuit from one
//! of them and a digest of it from the other, and evaluates it. Inputs and outputs are values of
//! [`replicated-active`](super::active), under the same setup: a key that is stored for the one serves the
//! other, and what is computed here goes on there.
//!
//! | file | what | source |
//! |---|---|---|
//! | `config.rs`, `roles.rs` | the protocol; who does what, and who knows which component | |
//! | `plan.rs` | sections of a circuit: lanes, and what is the same in all | |
//! | `seed.rs` | what both garblers know | figure 2, step 1 |
//! | `gates.rs` | half gates, layer by layer | Zahur, Rosulek, Evans 2015 |
//! | `ahead.rs` | garbling, before inputs are known | figure 2, steps 1 to 4 |
//! | `commitments.rs`, `claim.rs` | labels that are opened, and digests of what the other garbler sends | figure 2, steps 2 to 5 |
//! | `input.rs` | labels of inputs: of keys ahead, of blocks online | figure 2, steps 4 and 5 |
//! | `output.rs` | outputs become shared | argued there |
//! | `opened.rs` | or all learn the sum of an output and a shared value | argued there |
//! | `item.rs`, `storage.rs` | a garbled circuit that waits for its use | |
//! | `few_rounds.rs` | `replicated-active` as nodes serve with it: with circuits from their stock | |
//! | `shape.rs` | cells of bits and of bytes | |
//!
//! **Adversary**: active, static, one of the three, with abort; the channels are private and authentic.
//!
//! * *The evaluator cheats*: it has one label of each input wire, of a circuit that two honest parties
//!   garbled, so its view is that of garbled circuits (privacy), and it can tell no output but the right one
//!   (authenticity; `output.rs`).
//! * *A garbler cheats*: the other one follows the protocol. Everything that the cheater sends is compared
//!   with what the honest garbler says of it, so the evaluator evaluates the right circuit on the right
//!   labels, or stops. A garbler receives nothing but outputs under a mask that it lacks, or nothing at all.
//! * *No selective failure*: each comparison depends on what a cheater changed and on what it knows, not on a
//!   component that it lacks.
//! * *After an error* of a peer nothing more is computed or released in the session, and the garbled circuit
//!   is gone ([`Item`]).
//!
//! **Assumption**: AES as an ideal cipher for gates and commitments: about 2^116 evaluations to learn
//! anything of a lot's Delta, however many circuits it has ([`polyclave_kernels::label_hash`]), and about
//! 2^118 to open a commitment to another label. The hash of digests is collision resistant, and the keys of
//! the setup give pseudorandom seeds and masks.
//!
//! **Cost** of an AND: four calls of the hash at each garbler, two at the evaluator, 32 bytes from the first
//! garbler, ahead. Ahead besides, of an output bit: 1 and 32 bytes; of a bit of a key, once for a lot: 48
//! bytes from the first garbler and 32 from the second. Online, of a public input bit 16 bytes from the
//! first garbler, of a shared one as of a key; of an output bit a bit; of one that is opened with an addend
//! as of a shared input, and a bit from the first garbler and to each. Memory: tables until they are used.
//!
//! # Differences from the paper
//! * The paper's third party deals its input among the garblers. Here all inputs are shared already, and the
//!   evaluator knows two of three components, so their labels are opened in places that it can verify.
//! * The seed comes from the setup, and commitments are opened in half the bytes (`commitments.rs`).
//! * Outputs stay shared (`output.rs`). Everything else in figure 2 is as it is there.
//! * Several circuits share a Delta and the labels of a key: the lanes of a lot. Each wire still has one
//!   active label, and all tweaks differ, so it is one garbled circuit with many outputs.
//! * *Inputs may be chosen when the tables are known already*, which the paper's proof does not treat. With
//!   AES as an ideal cipher this changes nothing. Let each wire's active label be drawn ahead. Each ciphertext
//!   and each commitment to an inactive label has a hash at Delta plus that label as a summand, which is
//!   uniform and of no other use until the evaluator asks the cipher at this point. So what it has before and
//!   after it gets labels is uniform whatever the bits are. The bits that it decodes are masked by m
//!   (`output.rs`), so nothing that was sent ahead has to be opened to a certain output.

mod ahead;
#[cfg(test)]
mod cheaters;
mod claim;
mod commitments;
mod config;
mod few_rounds;
mod gates;
mod input;
mod item;
mod opened;
mod output;
mod plan;
mod roles;
mod seed;
mod shape;
mod storage;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};
use zeroize::Zeroizing;

pub use config::{GARBLED, GarbledThreeConfig};
pub use few_rounds::{FewRounds, FewRoundsConfig};

use super::security::AdversaryModel;
use super::shared::Shared;
use super::{Active, Replicated};
use crate::garbling::{self, lanes_near};
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Owner, Session, check_cells};
use crate::interface::release::Checked;
use crate::interface::tally::{Cost, Phase, Tally};
use crate::{Error, Result};
use gates::{GATE, Walk};
use input::Value;
use item::{Given, Item};
use opened::Addend;
use plan::{Place, Plan};
use roles::{Role, Seats};

/// More lanes are not worth more, and their tables take much memory.
const LANES_AT_ONCE: usize = 64;

type Key = Zeroizing<[u8; 32]>;

/// What a party has of the setup for its role in one stream.
pub enum Keys {
    First { garbling: Key },
    Second { garbling: Key, masking: Key },
    Evaluator { masking: Key },
}

/// One party in one session.
pub struct GarbledThree {
    /// Values that go in and out.
    under: Replicated<Active>,
    seats: Seats,
    role: Role,
    keys: Keys,
    /// Of the stream.
    label: [u8; 40],
    /// Lots that were garbled.
    made: u64,
    /// By the digest of the circuit.
    plans: Vec<([u8; 32], Arc<Plan>)>,
}

/// A garbled circuit that waits for its only use. The values of some of its inputs may be fixed.
pub struct GarbledCircuit(Option<Item>);

/// An evaluation under way.
pub struct GarbledRegisters {
    plan: Arc<Plan>,
    lanes: usize,
    item: Option<Item>,
    /// At the evaluator: active labels, and the gates that are done.
    labels: Option<(garbling::Registers, Walk)>,
    /// What is added to the output that is opened.
    addend: Option<Addend>,
    /// Outputs, by the names of their ports.
    settled: Vec<(String, Shared)>,
}

impl GarbledThree {
    fn new(under: Replicated<Active>, seats: Seats, keys: Keys, label: [u8; 40]) -> GarbledThree {
        let role = seats.role(under.ring.me);
        GarbledThree { under, seats, role, keys, label, made: 0, plans: Vec::new() }
    }

    /// Fixes the value of an input of a garbled circuit, ahead of its use: from now on the circuit belongs to
    /// this value, such as a key. One message from each garbler. After an error the circuit is gone.
    pub fn give(
        &mut self,
        compiled: &Compiled,
        circuit: GarbledCircuit,
        input: &str,
        value: &Shared,
        net: &mut dyn Net,
    ) -> Result<GarbledCircuit> {
        let plan = self.plan(compiled)?;
        let mut item = circuit.into_item()?;
        item.refuse_other(&plan, &compiled.digest(), self.role)?;
        let port = compiled.inputs().iter().position(|port| port.name == input);
        let port = port.ok_or_else(|| Error::Misuse(format!("{} has no input {input}", compiled.name())))?;
        if item.given[port].is_some() {
            return Err(Error::Misuse(format!("input {input} of the garbled circuit was given before")));
        }
        let value = self.bits_of(&compiled.inputs()[port], value, item.lanes())?;
        let given = self.deliver(&item, &plan, &[Value::shared(&plan.inputs[port], &value)], net);
        item.given[port] = self.or_give_up(given)?.pop();
        Ok(GarbledCircuit(Some(item)))
    }

    /// Takes some lanes out of a garbled circuit, all of whose inputs that are the same for all lanes have
    /// been [given](GarbledThree::give), and no others. All parties take the same. Never communicates.
    pub fn take(
        &mut self,
        compiled: &Compiled,
        from: &mut GarbledCircuit,
        lanes: usize,
    ) -> Result<GarbledCircuit> {
        let plan = self.plan(compiled)?;
        let item = from.0.as_mut().ok_or_else(spent)?;
        item.refuse_other(&plan, &compiled.digest(), self.role)?;
        if item.lanes() == lanes {
            return Ok(GarbledCircuit(from.0.take()));
        }
        Ok(GarbledCircuit(Some(item.take(&plan, lanes)?)))
    }

    /// This party's part of a garbled circuit, to be stored. A stock has to mark it as spent, durably, before
    /// it is restored and used.
    pub fn save(&self, circuit: GarbledCircuit) -> Result<Zeroizing<Vec<u8>>> {
        Ok(circuit.into_item()?.save(self.under.ring.me))
    }

    /// Reads what this party has stored, in this session or another one.
    pub fn restore(&self, bytes: &[u8]) -> Result<GarbledCircuit> {
        let item = Item::restore(bytes, self.under.ring.me)?;
        match item.part.role() == self.role {
            true => Ok(GarbledCircuit(Some(item))),
            false => Err(Error::misuse("the garbled circuit was made with another evaluator")),
        }
    }

    /// A value in cells of another width, such as an output as `replicated-active` takes it. Local.
    pub fn in_cells(&self, value: &Shared, bits: u8) -> Result<Shared> {
        shape::in_cells(value, bits)
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

    /// The plan of a circuit, which was made before.
    fn note_plan(&mut self, compiled: &Compiled, plan: &Arc<Plan>) {
        let digest = compiled.digest();
        if self.plans.iter().all(|(of, _)| *of != digest) {
            self.plans.push((digest, plan.clone()));
        }
    }

    /// Everything between inputs and outputs. Never communicates.
    fn evaluate_layers(&mut self, compiled: &Compiled, registers: &mut GarbledRegisters) -> Result<()> {
        compiled.layers().iter().try_for_each(|layer| {
            self.linear(&layer.linear, registers);
            self.look_up(&layer.lookups, registers)
        })
    }

    fn look_up(&mut self, lookups: &[Lookup], registers: &mut GarbledRegisters) -> Result<()> {
        let GarbledRegisters { plan, lanes, item, labels, .. } = registers;
        let ands = plan.ands(lookups, *lanes);
        let counts = self.under.ring.counts();
        counts.multiplications += ands;
        let Some((labels, walk)) = labels else { return Ok(()) };
        counts.hash_calls += 2 * ands;
        let item = item.as_ref().ok_or_else(spent)?;
        let item::Part::Evaluator { tables, .. } = &item.part else { return Err(spent()) };
        walk.evaluate(plan, item.name.lanes.clone(), lookups, labels, tables);
        Ok(())
    }

    /// A verified value in the cells of a port.
    fn bits_of(&self, port: &CompiledPort, value: &Shared, lanes: usize) -> Result<Shared> {
        self.under.model.refuse_unverified(&value.unchecked)?;
        let value = shape::in_cells(value, port.bits)?;
        let lanes = if port.uniform { 1 } else { lanes };
        match (value.count, value.lanes) == (port.cells.len(), lanes) {
            true => Ok(value),
            false => Err(Error::Misuse(format!("the shared value does not fit input {}", port.name))),
        }
    }

    /// An input's value, as this party has it.
    fn value_of(
        &mut self,
        (place, port): (&Place, &CompiledPort),
        input: &Input<'_, Shared>,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Value> {
        match input {
            Input::Public(cells) => {
                check_cells(port, cells, lanes)?;
                Ok(Value::public(place, cells))
            }
            Input::Mine(cells) => {
                Ok(Value::shared(place, &self.under.ring.share_own(port, cells, lanes, net)?))
            }
            Input::From(owner) => {
                Ok(Value::shared(place, &self.under.ring.receive_share(port, *owner, lanes, net)?))
            }
            Input::Shared(shared) => Ok(Value::shared(place, &self.bits_of(port, shared, lanes)?)),
        }
    }

    /// Gives inputs that were not given before, and what is added to an output that is to be opened, of which
    /// it returns the labels.
    fn put_in(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        addend: Option<Value>,
        registers: &mut GarbledRegisters,
        net: &mut dyn Net,
    ) -> Result<Option<Given>> {
        let mut item = registers.item.take().ok_or_else(spent)?;
        let (mut missing, mut values) = (Vec::new(), Vec::new());
        for (index, (port, input)) in ports.iter().zip(inputs).enumerate() {
            let value = self.value_of((&registers.plan.inputs[index], port), input, registers.lanes, net)?;
            match &item.given[index] {
                Some(given) => value.refuse_other(given)?,
                None => {
                    missing.push(index);
                    values.push(value);
                }
            }
        }
        let is_opened = addend.is_some();
        values.extend(addend);
        let mut given = self.deliver(&item, &registers.plan, &values, net)?;
        let of_addend = if is_opened { given.pop() } else { None };
        missing.into_iter().zip(given).for_each(|(index, given)| item.given[index] = Some(given));
        if let Some((labels, _)) = &mut registers.labels {
            for (port, given) in ports.iter().zip(&item.given) {
                let given = given.as_ref().map(Given::labels).unwrap_or_default();
                let count = port.cells.len();
                for (cell, views) in port.cells.iter().enumerate() {
                    for (_, slot) in views {
                        let of_lanes = given.iter().skip(cell).step_by(count.max(1));
                        let row = labels.row_mut(*slot).iter_mut();
                        row.zip(of_lanes).for_each(|(to, label)| *to = *label);
                    }
                }
            }
        }
        registers.item = Some(item);
        Ok(of_addend)
    }

    /// As [`Replicated::or_give_up`]. If a party cheats, no other session under the setup goes on either.
    fn or_give_up<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if matches!(outcome, Err(Error::OneOfTwo { .. } | Error::Peer { .. })) {
            self.under.model.retire();
        }
        self.under.or_give_up(outcome)
    }

    /// What the evaluator has found out: one of the garblers cheats.
    fn garblers_differ(&self, what: &'static str) -> Error {
        Error::OneOfTwo { first: self.seats.first, second: self.seats.second, what }
    }
}

impl GarbledCircuit {
    /// Lanes that are left.
    pub fn lanes(&self) -> usize {
        self.0.as_ref().map_or(0, Item::lanes)
    }

    fn into_item(self) -> Result<Item> {
        self.0.ok_or_else(spent)
    }
}

fn spent() -> Error {
    Error::misuse("a garbled circuit is used again")
}

/// Every linear map is free.
impl Maps for GarbledThree {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

impl Session for GarbledThree {
    type Shared = Shared;
    type Registers = GarbledRegisters;
    type Batch = GarbledCircuit;
    type Released = Checked<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        let Ok(plan) = Plan::of(compiled) else { return Cost::default() };
        let [lane, uniform] = [plan::Section::Lane(0), plan::Section::Uniform].map(|s| plan.extent(s));
        Cost {
            rounds: 1.0,
            preprocessing_rounds: 1.0,
            operations_per_lane: lane.gates as f64,
            operations_uniform: uniform.gates as f64,
            material_bytes_per_lane: lane.gates * GATE,
            ..Cost::default()
        }
    }

    fn lanes_at_once(&self, compiled: &Compiled) -> usize {
        lanes_near(compiled).min(LANES_AT_ONCE)
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<GarbledCircuit> {
        self.under.model.refuse_unverified(&Default::default())?;
        let plan = self.plan(compiled)?;
        let garbled = self.garble(compiled, &plan, lanes, net);
        Ok(GarbledCircuit(Some(self.or_give_up(garbled)?)))
    }

    fn registers(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        batch: &mut GarbledCircuit,
    ) -> Result<GarbledRegisters> {
        self.under.model.refuse_unverified(&Default::default())?;
        let plan = self.plan(compiled)?;
        let item = batch.0.take().ok_or_else(spent)?;
        item.refuse_other(&plan, &compiled.digest(), self.role)?;
        if item.lanes() != lanes {
            return Err(Error::Misuse(format!(
                "{} lanes were garbled, and {lanes} are to be evaluated",
                item.lanes()
            )));
        }
        let labels = (self.role == Role::Evaluator).then(|| {
            let labels = garbling::Registers::new(compiled, lanes, &self.under.ring.pool);
            (labels, Walk::new(&item.name.lot))
        });
        Ok(GarbledRegisters { plan, lanes, item: Some(item), labels, addend: None, settled: Vec::new() })
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut GarbledRegisters,
        net: &mut dyn Net,
    ) -> Result<()> {
        let done = self.put_in(ports, inputs, None, registers, net);
        self.or_give_up(done).map(|_| ())
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut GarbledRegisters) {
        if let Some((labels, _)) = &mut registers.labels {
            labels.linear(maps, &Default::default());
        }
    }

    fn lookup(
        &mut self,
        _: &Compiled,
        lookups: &[Lookup],
        registers: &mut GarbledRegisters,
        _: &mut GarbledCircuit,
        _: &mut dyn Net,
    ) -> Result<()> {
        self.look_up(lookups, registers)
    }

    /// The outputs become shared. One round.
    fn settle(
        &mut self,
        compiled: &Compiled,
        registers: &mut GarbledRegisters,
        net: &mut dyn Net,
    ) -> Result<bool> {
        let item = registers.item.take().ok_or_else(spent)?;
        let labels = registers.labels.as_ref().map(|(labels, _)| labels);
        let settled = self.share_outputs(compiled, &registers.plan, item, labels, net);
        registers.settled = self.or_give_up(settled)?;
        Ok(true)
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut GarbledRegisters) -> Shared {
        let settled = registers.settled.iter().find(|(name, _)| *name == port.name);
        settled.expect("all outputs were shared when the evaluation ended").1.clone()
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        shared.select(lanes)
    }

    /// Nothing is left to verify: values were, before they became shared.
    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.under.check(net)
    }

    fn release(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<Checked<Cells>>> {
        self.under.release(shared, to, net)
    }

    fn enter(&mut self, phase: Phase) {
        self.under.enter(phase);
    }

    fn tally(&self) -> Tally {
        self.under.tally()
    }
}

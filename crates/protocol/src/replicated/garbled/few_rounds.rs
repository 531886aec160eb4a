//! `replicated-active` as nodes serve with it: the same protocol, and a few blocks at a time go through
//! garbled circuits from the stock, if there are some. That takes two one-way messages in place of forty
//! rounds, for nodes that are far from each other.
//!
//! Everything else is `replicated-active`: setup, stored values, clients, elements, checks. The values that
//! go into a garbled circuit are proven before ([`Session::check`]), and what comes out needs no proof.
//!
//! **When a circuit is used** is the same at all parties: for a circuit that is [kept](Kept), for at most
//! [`LANES`] lanes, if the stock gives one for each lane. Its claim is durable at each party before the party
//! uses the circuit ([`Stock`]).
//!
//! **Order of messages.** The labels for all lanes are sent before anything is waited for, and so are the
//! outputs of all lanes.

use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};
use zeroize::Zeroizing;

use super::kept::{Kept, Made};
use super::{GarbledCircuit, GarbledRegisters, GarbledThree, GarbledThreeConfig};
use crate::evaluate::{evaluate, prepare};
use crate::interface::dealt::HeldSeeds;
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, Input, Owner, ProtocolConfig, Session};
use crate::interface::release::Checked;
use crate::interface::service::{
    Element, ElementArithmetic, Elements, Refreshed, ServiceConfig, ServiceSession, Stored,
};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::stock::{Kind, Stock};
use crate::interface::tally::{Cost, Phase, Tally};
use crate::replicated::config::{ReplicatedActiveConfig, Setup};
use crate::replicated::shared::Shared;
use crate::replicated::{Active, Batch, Mask, Registers, Replicated};
use crate::{Error, Party, PartySet, Result};

/// The most lanes that go through garbled circuits together. More of them take so many bytes that rounds are
/// faster: a circuit of AES-128 takes 115 kB online and 176 kB ahead.
const LANES: usize = 8;

/// So many circuits are garbled at a time: more of them no longer fit the processor's cache.
const LOT: usize = 16;

/// `replicated-active`, with garbled circuits from a stock.
#[derive(Default)]
pub struct FewRoundsConfig {
    rounds: ReplicatedActiveConfig,
    circuits: GarbledThreeConfig,
}

impl FewRoundsConfig {
    fn session(
        &self,
        setup: &Setup,
        stream: Stream,
        serving: PartySet,
        stock: Option<Arc<dyn Stock>>,
    ) -> Result<FewRounds> {
        let garbled = self.circuits.join(setup, stream, serving)?;
        Ok(FewRounds { garbled, stock })
    }
}

impl ProtocolConfig for FewRoundsConfig {
    type Setup = Setup;
    type Session = FewRounds;

    fn name(&self) -> &'static str {
        self.rounds.name()
    }

    fn parties(&self) -> usize {
        self.rounds.parties()
    }

    fn adversary(&self) -> Adversary {
        self.rounds.adversary()
    }

    fn promise(&self) -> String {
        self.rounds.promise()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        self.rounds.handshake(parameters)
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        self.rounds.setup(net)
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<FewRounds> {
        self.session(setup, stream, serving, None)
    }
}

impl ServiceConfig for FewRoundsConfig {
    fn quorum(&self) -> usize {
        self.rounds.quorum()
    }

    fn save_setup(&self, setup: &Setup) -> Zeroizing<Vec<u8>> {
        self.rounds.save_setup(setup)
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup> {
        self.rounds.restore_setup(me, bytes)
    }

    fn renew(&self, setup: &Setup, net: &mut dyn Net) -> Result<Setup> {
        self.rounds.renew(setup, net)
    }

    fn kinds(&self, me: Party) -> Vec<Kind> {
        let role = self.circuits.role(me);
        Kept::all().iter().map(|kept| kept.kind(role)).collect()
    }

    /// Nobody waits for circuits.
    fn keeps_stock(&self) -> bool {
        false
    }

    fn make_material(
        &self,
        setup: &Setup,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.session(setup, stream, net.members(), None)?.make_circuits(kind, count, net)
    }

    fn join_stocked(
        &self,
        setup: &Setup,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<FewRounds> {
        self.session(setup, stream, serving, Some(stock))
    }

    fn refresh(
        &self,
        old: &Setup,
        new: &Setup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        self.rounds.refresh(old, new, stream, stored, net)
    }

    fn components(&self) -> Vec<PartySet> {
        self.rounds.components()
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        self.rounds.combine(serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        self.rounds.combine_elements(serving, messages)
    }
}

/// One party in one session.
pub struct FewRounds {
    garbled: GarbledThree,
    stock: Option<Arc<dyn Stock>>,
}

/// What an evaluation goes through.
pub enum FewRoundsBatch {
    Rounds(Batch),
    Circuits(Circuits),
}

/// A circuit for each lane.
pub struct Circuits {
    kept: &'static Kept,
    of_lanes: Vec<GarbledCircuit>,
}

/// An evaluation under way.
pub enum FewRoundsRegisters {
    Rounds(Box<Registers<2>>),
    Circuits(Evaluations),
}

/// An evaluation of a circuit for each lane.
pub struct Evaluations {
    kept: &'static Kept,
    of_lanes: Vec<GarbledRegisters>,
}

impl FewRounds {
    fn rounds(&self) -> &Replicated<Active> {
        &self.garbled.under
    }

    fn rounds_mut(&mut self) -> &mut Replicated<Active> {
        &mut self.garbled.under
    }

    /// This party's parts of new circuits, one after another.
    fn make_circuits(&mut self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let role = self.garbled.role;
        let kept = Kept::all().iter().find(|kept| kept.kind(role) == *kind);
        let kept = kept.ok_or_else(|| Error::misuse(format!("{} are not made here", kind.name)))?;
        let Made { compiled, plan } = kept.made();
        self.garbled.note_plan(compiled, plan);
        // Allocated at its full size: growing would leave copies behind.
        let mut items = Zeroizing::new(Vec::with_capacity(count * kind.item_bytes));
        for first in (0..count).step_by(LOT) {
            let lanes = LOT.min(count - first);
            let mut lot = self.garbled.prepare(compiled, lanes, net)?;
            for _ in 0..lanes {
                let one = self.garbled.take(compiled, &mut lot, 1)?;
                items.extend_from_slice(&self.garbled.save(one)?);
            }
        }
        Ok(items)
    }

    /// Circuits for some lanes, if there are any for this computation.
    fn take(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Option<Circuits>> {
        let Some(stock) = self.stock.as_ref().filter(|_| lanes <= LANES) else { return Ok(None) };
        let Some(kept) = Kept::of(&compiled.digest()) else { return Ok(None) };
        let kind = kept.kind(self.garbled.role);
        let Some(items) = stock.take_if_there(&kind, lanes, net)? else { return Ok(None) };
        let of_lanes = items.chunks(kind.item_bytes).map(|item| self.garbled.restore(item));
        let of_lanes: Vec<GarbledCircuit> = of_lanes.collect::<Result<_>>()?;
        let Made { compiled, plan } = kept.made();
        self.garbled.note_plan(compiled, plan);
        match of_lanes.len() == lanes {
            true => Ok(Some(Circuits { kept, of_lanes })),
            false => Err(Error::System(format!("the stock gave other than {lanes} {}", kind.name))),
        }
    }

    /// Blocks through circuits, all but the first of them opened in their sum with x. One message from each
    /// garbler, and one from the evaluator.
    fn through_circuits(
        &mut self,
        Circuits { kept, mut of_lanes }: Circuits,
        blocks: &Cells,
        round_keys: &Shared,
        (mask, masked): (&Mask, &[u8]),
        net: &mut dyn Net,
    ) -> Result<(Shared, Vec<u8>)> {
        let Made { compiled, .. } = kept.made();
        let [inputs, outputs] = [compiled.inputs(), compiled.outputs()];
        let addends = self.rounds_mut().unmask(mask, 0, masked, &outputs[0])?;
        let values = [Value::Public(blocks.clone()), self.proven(Value::Shared(round_keys.clone()), net)?];
        let mut registers = Vec::new();
        for (lane, circuit) in of_lanes.iter_mut().enumerate() {
            let [block, keys] = [values[0].of_lane(lane)?, values[1].of_lane(lane)?];
            let (inputs_of_lane, mut of_lane) =
                ([block.input(), keys.input()], self.garbled.registers(compiled, 1, circuit)?);
            match lane {
                0 => self.garbled.inputs(inputs, &inputs_of_lane, &mut of_lane, net)?,
                _ => {
                    let addend = addends.select(&[lane - 1]);
                    self.garbled.put_in_with_addend(compiled, &inputs_of_lane, &addend, &mut of_lane, net)?;
                }
            }
            registers.push(of_lane);
        }
        for of_lane in &mut registers {
            self.garbled.evaluate_layers(compiled, of_lane)?;
        }
        self.garbled.settle(compiled, &mut registers[0], net)?;
        let first = self.garbled.output(&outputs[0], &mut registers[0]);
        let mut sum = Vec::with_capacity(masked.len());
        for of_lane in &mut registers[1..] {
            let mut bits = Cells::zero(outputs[0].cells.len(), 1, 1);
            bits.rows_mut().copy_from_slice(&self.garbled.open_sum(compiled, of_lane, net)?);
            sum.extend(bits.to_blocks());
        }
        Ok((first, sum))
    }

    /// The values that go into circuits, proven: the block, and the round keys. What is added to a block is
    /// added before.
    fn block_and_keys(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<[Value; 2]> {
        let is_of_key = |(port, _): &(&CompiledPort, &Input<'_, Shared>)| port.uniform;
        let (keys, blocks): (Vec<_>, Vec<_>) = ports.iter().zip(inputs).partition(is_of_key);
        let (&[(port, keys)], &[(of_block, first), ref others @ ..]) = (&keys[..], &blocks[..]) else {
            return Err(Error::misuse("a circuit of a block takes blocks, and round keys behind them"));
        };
        let keys = Value::Shared(self.rounds_mut().share(port, keys, lanes, net)?);
        let block = match first {
            Input::Public(cells) if others.is_empty() => Value::Public((*cells).clone()),
            first => {
                let mut sum = self.rounds_mut().share(of_block, first, lanes, net)?;
                for (port, other) in others {
                    let other = self.rounds_mut().share(port, other, lanes, net)?;
                    sum = sum.plus(&other)?;
                }
                Value::Shared(sum)
            }
        };
        Ok([self.proven(block, net)?, self.proven(keys, net)?])
    }

    /// A value that goes into circuits: if nobody has proven it, it is proven first.
    fn proven(&mut self, value: Value, net: &mut dyn Net) -> Result<Value> {
        if matches!(&value, Value::Shared(value) if value.unchecked.is_pending()) {
            self.rounds_mut().check(net)?;
        }
        Ok(value)
    }
}

/// What a circuit gets.
enum Value {
    Public(Cells),
    Shared(Shared),
}

impl Value {
    /// The value of one lane in cells of one bit; of all lanes if it is the same in all.
    fn of_lane(&self, lane: usize) -> Result<Value> {
        Ok(match self {
            Value::Public(cells) => {
                let bytes = cells.part(lane..lane + 1).to_blocks();
                let bits = Cells::from_blocks(8 * bytes.len(), 1, &bytes);
                Value::Public(bits.map_err(|error| Error::Misuse(error.to_string()))?)
            }
            Value::Shared(shared) if shared.lanes == 1 => Value::Shared(shared.clone()),
            Value::Shared(shared) => Value::Shared(shared.select(&[lane])),
        })
    }

    fn input(&self) -> Input<'_, Shared> {
        match self {
            Value::Public(cells) => Input::Public(cells),
            Value::Shared(shared) => Input::Shared(shared),
        }
    }
}

impl Maps for FewRounds {
    fn is_local(&self, matrix: &Matrix) -> bool {
        self.rounds().is_local(matrix)
    }
}

impl Session for FewRounds {
    type Shared = Shared;
    type Registers = FewRoundsRegisters;
    type Batch = FewRoundsBatch;
    type Released = Checked<Cells>;

    /// Of rounds: what a computation costs at most.
    fn cost(&self, compiled: &Compiled) -> Cost {
        self.rounds().cost(compiled)
    }

    fn lanes_at_once(&self, compiled: &Compiled) -> usize {
        self.rounds().lanes_at_once(compiled)
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<FewRoundsBatch> {
        let taken = self.take(compiled, lanes, net);
        // After a claim that failed here the others may be in the middle of an evaluation.
        match self.garbled.or_give_up(taken)? {
            Some(circuits) => Ok(FewRoundsBatch::Circuits(circuits)),
            None => self.rounds_mut().prepare(compiled, lanes, net).map(FewRoundsBatch::Rounds),
        }
    }

    fn registers(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        batch: &mut FewRoundsBatch,
    ) -> Result<FewRoundsRegisters> {
        match batch {
            FewRoundsBatch::Rounds(batch) => {
                let registers = self.rounds_mut().registers(compiled, lanes, batch)?;
                Ok(FewRoundsRegisters::Rounds(Box::new(registers)))
            }
            FewRoundsBatch::Circuits(Circuits { kept, of_lanes }) => {
                if of_lanes.len() != lanes {
                    return Err(Error::misuse("there is not a circuit for each lane"));
                }
                let circuit = &kept.made().compiled;
                let registers = of_lanes.iter_mut().map(|one| self.garbled.registers(circuit, 1, one));
                let of_lanes = registers.collect::<Result<_>>()?;
                Ok(FewRoundsRegisters::Circuits(Evaluations { kept, of_lanes }))
            }
        }
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut FewRoundsRegisters,
        net: &mut dyn Net,
    ) -> Result<()> {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().inputs(ports, inputs, registers, net),
            FewRoundsRegisters::Circuits(Evaluations { kept, of_lanes }) => {
                let values = self.block_and_keys(ports, inputs, of_lanes.len(), net);
                let values = self.garbled.or_give_up(values)?;
                let ports = kept.made().compiled.inputs();
                for (lane, registers) in of_lanes.iter_mut().enumerate() {
                    let [block, keys] = [values[0].of_lane(lane)?, values[1].of_lane(lane)?];
                    self.garbled.inputs(ports, &[block.input(), keys.input()], registers, net)?;
                }
                Ok(())
            }
        }
    }

    /// A garbled circuit is evaluated as a whole, at the end.
    fn linear(&mut self, maps: &[Linear], registers: &mut FewRoundsRegisters) {
        if let FewRoundsRegisters::Rounds(registers) = registers {
            self.rounds_mut().linear(maps, registers);
        }
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut FewRoundsRegisters,
        batch: &mut FewRoundsBatch,
        net: &mut dyn Net,
    ) -> Result<()> {
        match (registers, batch) {
            (FewRoundsRegisters::Rounds(registers), FewRoundsBatch::Rounds(batch)) => {
                self.rounds_mut().lookup(compiled, lookups, registers, batch, net)
            }
            _ => Ok(()),
        }
    }

    fn settle(
        &mut self,
        compiled: &Compiled,
        registers: &mut FewRoundsRegisters,
        net: &mut dyn Net,
    ) -> Result<bool> {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().settle(compiled, registers, net),
            FewRoundsRegisters::Circuits(Evaluations { kept, of_lanes }) => {
                let circuit = &kept.made().compiled;
                for registers in &mut *of_lanes {
                    self.garbled.evaluate_layers(circuit, registers)?;
                }
                for registers in of_lanes {
                    self.garbled.settle(circuit, registers, net)?;
                }
                Ok(true)
            }
        }
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut FewRoundsRegisters) -> Shared {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().output(port, registers),
            FewRoundsRegisters::Circuits(Evaluations { kept, of_lanes }) => {
                let of_bits = kept.made().compiled.outputs().iter().find(|of_bits| of_bits.name == port.name);
                let of_bits = of_bits.expect("both circuits have the same outputs");
                let outputs: Vec<Shared> =
                    of_lanes.iter_mut().map(|registers| self.garbled.output(of_bits, registers)).collect();
                let joined = Shared::join(&outputs.iter().collect::<Vec<_>>());
                self.garbled.in_cells(&joined, port.bits).expect("bits of whole cells")
            }
        }
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        self.rounds().select_lanes(shared, lanes)
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.rounds_mut().check(net)
    }

    fn release(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<Checked<Cells>>> {
        self.rounds_mut().release(shared, to, net)
    }

    fn enter(&mut self, phase: Phase) {
        self.rounds_mut().enter(phase);
    }

    fn tally(&self) -> Tally {
        self.rounds().tally()
    }
}

impl ServiceSession for FewRounds {
    type Mask = Mask;

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        self.rounds().lanes_within(compiled, bytes)
    }

    fn can_join(&self, a: &Shared, b: &Shared) -> bool {
        self.rounds().can_join(a, b)
    }

    fn join_lanes(&self, parts: &[&Shared]) -> Shared {
        self.rounds().join_lanes(parts)
    }

    fn save(&self, value: &Shared) -> Zeroizing<Vec<u8>> {
        self.rounds().save(value)
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared> {
        self.rounds().restore(bytes)
    }

    fn lanes(&self, value: &Shared, lanes: Range<usize>) -> Shared {
        self.rounds().lanes(value, lanes)
    }

    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Mask, Vec<u8>)> {
        self.rounds_mut().mask_input(len, net)
    }

    fn dealt_mask(&mut self, seeds: &HeldSeeds, len: usize) -> Result<Mask> {
        self.rounds_mut().dealt_mask(seeds, len)
    }

    fn mask_elements(&self, mask: &Mask) -> Elements {
        self.rounds().mask_elements(mask)
    }

    fn unmask(&mut self, mask: &Mask, at: usize, masked: &[u8], port: &CompiledPort) -> Result<Shared> {
        self.rounds_mut().unmask(mask, at, masked, port)
    }

    fn evaluate_and_open_sum(
        &mut self,
        compiled: &Compiled,
        blocks: &Cells,
        round_keys: &Shared,
        masked: (&Mask, &[u8]),
        net: &mut dyn Net,
    ) -> Result<Option<(Shared, Vec<u8>)>> {
        let lanes = blocks.lanes();
        if self.stock.is_none() || lanes > LANES || Kept::of(&compiled.digest()).is_none() {
            return Ok(None);
        }
        if masked.1.len() != lanes.saturating_sub(1) * 16 {
            return Err(Error::misuse("there is not a block of text for each block but the first"));
        }
        match prepare(self, compiled, lanes, net)? {
            FewRoundsBatch::Circuits(circuits) => {
                self.enter(Phase::Online);
                let done = self.through_circuits(circuits, blocks, round_keys, masked, net);
                self.garbled.or_give_up(done).map(Some)
            }
            batch => {
                let inputs = [Input::Public(blocks), Input::Shared(round_keys)];
                let output = evaluate(self, compiled, lanes, &inputs, batch, net)?.remove(0);
                let sum = self.open_sum(&self.lanes(&output, 1..lanes), masked, net)?;
                Ok(Some((self.lanes(&output, 0..1), sum)))
            }
        }
    }

    fn block_bytes(&self, value: &Shared) -> usize {
        self.rounds().block_bytes(value)
    }

    fn bytes_for_client(&mut self, value: &Shared, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.rounds_mut().bytes_for_client(value, bytes, net)
    }

    fn elements(&mut self, blocks: &Shared, net: &mut dyn Net) -> Result<Elements> {
        self.rounds_mut().elements(blocks, net)
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self.rounds_mut()
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        self.rounds().save_elements(elements)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        self.rounds().restore_elements(bytes)
    }
}

//! Protocols as nodes serve with them where they are far from each other: a few blocks at a time go through
//! garbled circuits from the stock, if there are some. That takes two or three one-way messages in place of
//! thirty or forty rounds.
//!
//! Everything else is the protocol that the nodes serve with: setup, stored values, clients, elements,
//! checks. [`Garbles`] is what circuits on its values have to do: those of `replicated-active`
//! ([`crate::replicated`]) and those of `spdz-tower` ([`crate::spdz`]).
//!
//! **When a circuit is used** is the same at all parties: for a circuit that is [kept](Kept), for at most
//! [`LANES`] lanes, if the stock gives one for each lane. Its claim is durable at each party before the party
//! uses the circuit ([`Stock`]).
//!
//! **Order of messages.** What all lanes are given is sent before anything is waited for, and so are the
//! outputs of all lanes.

mod config;
mod kept;

use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::{Cells, Cipher, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Table};
use zeroize::Zeroizing;

pub use config::{FewRoundsConfig, GarblesConfig};
pub use kept::{COUNT, Kept, Size};

use crate::evaluate::{evaluate, prepare};
use crate::interface::dealt::HeldSeeds;
use crate::interface::net::Net;
use crate::interface::protocol::{Faults, Input, Owner, Session};
use crate::interface::service::{ElementArithmetic, Elements, OwnMask, ServiceSession};
use crate::interface::stock::{Kind, Stock};
use crate::interface::tally::{Cost, Phase, Tally};
use crate::{Error, Party, Result};

/// The most lanes that go through garbled circuits together. More of them take so many bytes that rounds are
/// faster: a circuit of AES-128 takes 25 to 115 kB online and 176 to 480 kB ahead.
const LANES: usize = 8;

/// So many circuits are garbled at a time: more of them no longer fit the processor's cache.
const LOT: usize = 16;

/// A value of the protocol whose values go in and out.
pub type Shared<G> = <<G as Garbles>::Rounds as Session>::Shared;

/// A mask of the protocol, and bytes under it.
pub type Masked<'a, G> = (&'a <<G as Garbles>::Rounds as ServiceSession>::Mask, &'a [u8]);

/// One party in a session of a protocol and of garbled circuits on its values.
pub trait Garbles: Send + 'static {
    /// Values that go in and out.
    type Rounds: ServiceSession;
    /// A garbled circuit of one lane that waits for its only use.
    type Circuit: Send + 'static;
    /// An evaluation of a circuit for each lane.
    type Evaluations: 'static;

    /// The session of the protocol.
    fn rounds(&self) -> &Self::Rounds;

    /// The same.
    fn rounds_mut(&mut self) -> &mut Self::Rounds;

    /// This party's parts of new circuits, to be stored.
    fn make(&mut self, kept: &Kept, count: usize, net: &mut dyn Net) -> Result<Vec<Zeroizing<Vec<u8>>>>;

    /// Bytes of each part.
    fn item_bytes(&self, kept: &Kept) -> usize;

    /// Reads such a part. The stock has marked it as spent, durably.
    fn restore(&self, item: &[u8]) -> Result<Self::Circuit>;

    /// Begins to evaluate.
    fn begin(&mut self, kept: &Kept, circuits: Vec<Self::Circuit>) -> Result<Self::Evaluations>;

    /// Shares of an input, which all parties see alike.
    fn share(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared<Self>>,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared<Self>>;

    /// The sum of two values of one shape.
    fn plus(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>>;

    /// Gives the block and the round keys of each lane to its circuit. What has to be checked of them before
    /// is checked here.
    fn give(
        &mut self,
        kept: &Kept,
        values: [Value<Shared<Self>>; 2],
        evaluations: &mut Self::Evaluations,
        net: &mut dyn Net,
    ) -> Result<()>;

    /// Evaluates, and shares the outputs.
    fn settle(&mut self, kept: &Kept, evaluations: &mut Self::Evaluations, net: &mut dyn Net) -> Result<()>;

    /// The output of all lanes, in the cells of a port.
    fn output(
        &mut self,
        kept: &Kept,
        port: &CompiledPort,
        evaluations: &mut Self::Evaluations,
    ) -> Result<Shared<Self>>;

    /// Whether circuits can open sums as soon as they are evaluated.
    const OPENS_SUMS: bool = false;

    /// Blocks through a circuit for each, all but the first opened in their sum with what is under a mask
    /// ([`ServiceSession::evaluate_and_open_sum`]).
    fn open_sums(
        &mut self,
        _kept: &Kept,
        _circuits: Vec<Self::Circuit>,
        _values: [Value<Shared<Self>>; 2],
        _masked: Masked<'_, Self>,
        _net: &mut dyn Net,
    ) -> Result<(Shared<Self>, Vec<u8>)> {
        Err(Error::misuse("these circuits open no sums"))
    }

    /// After an error of a peer, or of a claim, nothing more is computed or released.
    fn or_give_up<T>(&mut self, outcome: Result<T>) -> Result<T>;
}

/// What circuits get.
pub enum Value<S> {
    /// In all lanes.
    Public(Cells),
    /// In all lanes, or the same for all.
    Shared(S),
}

impl<S> Value<S> {
    /// Of a public value, the bits of one lane.
    pub fn bits_of_lane(cells: &Cells, lane: usize) -> Result<Cells> {
        let bytes = cells.part(lane..lane + 1).to_blocks();
        Cells::from_blocks(8 * bytes.len(), 1, &bytes).map_err(|error| Error::Misuse(error.to_string()))
    }
}

/// Refuses a value of more or fewer lanes than an input has.
pub fn refuse_other_lanes(port: &CompiledPort, given: usize, wanted: usize) -> Result<()> {
    match given == wanted {
        true => Ok(()),
        false => Err(Error::Misuse(format!("input {} has {wanted} lanes, and {given} are given", port.name))),
    }
}

/// One party in one session.
pub struct FewRounds<G: Garbles> {
    garbled: G,
    stock: Option<Arc<dyn Stock>>,
}

/// A circuit for each lane.
type Taken<G> = (&'static Kept, Vec<<G as Garbles>::Circuit>);

/// What an evaluation goes through.
pub enum FewRoundsBatch<G: Garbles> {
    Rounds(<G::Rounds as Session>::Batch),
    /// A circuit for each lane.
    Circuits(&'static Kept, Vec<G::Circuit>),
}

/// An evaluation under way.
pub enum FewRoundsRegisters<G: Garbles> {
    Rounds(Box<<G::Rounds as Session>::Registers>),
    /// In so many lanes.
    Circuits(&'static Kept, usize, G::Evaluations),
}

impl<G: Garbles> FewRounds<G> {
    fn new(garbled: G, stock: Option<Arc<dyn Stock>>) -> Self {
        FewRounds { garbled, stock }
    }

    fn rounds(&self) -> &G::Rounds {
        self.garbled.rounds()
    }

    fn rounds_mut(&mut self) -> &mut G::Rounds {
        self.garbled.rounds_mut()
    }

    /// This party's parts of new circuits, one after another.
    fn make_circuits(
        &mut self,
        kept: &Kept,
        (kind, count): (&Kind, usize),
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        // Allocated at its full size: growing would leave copies behind.
        let mut items = Zeroizing::new(Vec::with_capacity(count * kind.item_bytes));
        for first in (0..count).step_by(LOT) {
            for item in self.garbled.make(kept, LOT.min(count - first), net)? {
                items.extend_from_slice(&item);
            }
        }
        Ok(items)
    }

    /// Circuits for some lanes, if there are any for this computation.
    fn take(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Option<Taken<G>>> {
        let Some(stock) = self.stock.as_ref().filter(|_| lanes <= LANES) else { return Ok(None) };
        let Some(kept) = Kept::of(&compiled.digest()) else { return Ok(None) };
        let kind = kept.kind(self.garbled.item_bytes(kept));
        let Some(items) = stock.take_if_there(&kind, lanes, net)? else { return Ok(None) };
        let circuits = items.chunks(kind.item_bytes).map(|item| self.garbled.restore(item));
        let circuits: Vec<G::Circuit> = circuits.collect::<Result<_>>()?;
        match circuits.len() == lanes {
            true => Ok(Some((kept, circuits))),
            false => Err(Error::System(format!("the stock gave other than {lanes} {}", kind.name))),
        }
    }

    /// The block, and the round keys. What is added to a block is added before.
    fn block_and_keys(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared<G>>],
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<[Value<Shared<G>>; 2]> {
        let is_of_key = |(port, _): &(&CompiledPort, &Input<'_, Shared<G>>)| port.uniform;
        let (keys, blocks): (Vec<_>, Vec<_>) = ports.iter().zip(inputs).partition(is_of_key);
        let (&[(port, keys)], &[(of_block, first), ref others @ ..]) = (&keys[..], &blocks[..]) else {
            return Err(Error::misuse("a circuit of a block takes blocks, and round keys behind them"));
        };
        let keys = Value::Shared(self.garbled.share(port, keys, lanes, net)?);
        let block = match first {
            Input::Public(cells) if others.is_empty() => Value::Public((*cells).clone()),
            first => {
                let mut sum = self.garbled.share(of_block, first, lanes, net)?;
                for (port, other) in others {
                    let other = self.garbled.share(port, other, lanes, net)?;
                    sum = self.garbled.plus(&sum, &other)?;
                }
                Value::Shared(sum)
            }
        };
        Ok([block, keys])
    }
}

impl<G: Garbles> Maps for FewRounds<G> {
    fn is_local(&self, matrix: &Matrix) -> bool {
        self.rounds().is_local(matrix)
    }

    fn split(&self, matrix: &Matrix) -> (Matrix, Matrix) {
        self.rounds().split(matrix)
    }

    fn pays_for_views(&self) -> bool {
        self.rounds().pays_for_views()
    }

    fn wants(&self, table: &Table) -> Vec<Matrix> {
        self.rounds().wants(table)
    }
}

impl<G: Garbles> Session for FewRounds<G> {
    type Shared = Shared<G>;
    type Registers = FewRoundsRegisters<G>;
    type Batch = FewRoundsBatch<G>;
    type Released = <G::Rounds as Session>::Released;

    /// Of rounds: what a computation costs at most.
    fn cost(&self, compiled: &Compiled) -> Cost {
        self.rounds().cost(compiled)
    }

    fn lanes_at_once(&self, compiled: &Compiled) -> usize {
        self.rounds().lanes_at_once(compiled)
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<FewRoundsBatch<G>> {
        let taken = self.take(compiled, lanes, net);
        // After a claim that failed here the others may be in the middle of an evaluation.
        match self.garbled.or_give_up(taken)? {
            Some((kept, circuits)) => Ok(FewRoundsBatch::Circuits(kept, circuits)),
            None => self.rounds_mut().prepare(compiled, lanes, net).map(FewRoundsBatch::Rounds),
        }
    }

    fn registers(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        batch: &mut FewRoundsBatch<G>,
    ) -> Result<FewRoundsRegisters<G>> {
        match batch {
            FewRoundsBatch::Rounds(batch) => {
                let registers = self.rounds_mut().registers(compiled, lanes, batch)?;
                Ok(FewRoundsRegisters::Rounds(Box::new(registers)))
            }
            FewRoundsBatch::Circuits(kept, circuits) => {
                if circuits.len() != lanes {
                    return Err(Error::misuse("there is not a circuit for each lane"));
                }
                let begun = self.garbled.begin(kept, std::mem::take(circuits))?;
                Ok(FewRoundsRegisters::Circuits(kept, lanes, begun))
            }
        }
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared<G>>],
        registers: &mut FewRoundsRegisters<G>,
        net: &mut dyn Net,
    ) -> Result<()> {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().inputs(ports, inputs, registers, net),
            FewRoundsRegisters::Circuits(kept, lanes, evaluations) => {
                let values = self.block_and_keys(ports, inputs, *lanes, net);
                let values = self.garbled.or_give_up(values)?;
                let given = self.garbled.give(kept, values, evaluations, net);
                self.garbled.or_give_up(given)
            }
        }
    }

    /// A garbled circuit is evaluated as a whole, at the end.
    fn linear(&mut self, maps: &[Linear], registers: &mut FewRoundsRegisters<G>) {
        if let FewRoundsRegisters::Rounds(registers) = registers {
            self.rounds_mut().linear(maps, registers);
        }
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut FewRoundsRegisters<G>,
        batch: &mut FewRoundsBatch<G>,
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
        registers: &mut FewRoundsRegisters<G>,
        net: &mut dyn Net,
    ) -> Result<bool> {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().settle(compiled, registers, net),
            FewRoundsRegisters::Circuits(kept, _, evaluations) => {
                let settled = self.garbled.settle(kept, evaluations, net);
                self.garbled.or_give_up(settled).map(|()| true)
            }
        }
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut FewRoundsRegisters<G>) -> Shared<G> {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().output(port, registers),
            FewRoundsRegisters::Circuits(kept, _, evaluations) => {
                self.garbled.output(kept, port, evaluations).expect("bits of whole cells")
            }
        }
    }

    fn select_lanes(&self, shared: &Shared<G>, lanes: &[usize]) -> Shared<G> {
        self.rounds().select_lanes(shared, lanes)
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.rounds_mut().check(net)
    }

    fn release(
        &mut self,
        shared: &Shared<G>,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Self::Released>> {
        self.rounds_mut().release(shared, to, net)
    }

    fn enter(&mut self, phase: Phase) {
        self.rounds_mut().enter(phase);
    }

    fn tally(&self) -> Tally {
        self.rounds().tally()
    }

    fn faults(&self) -> Faults {
        self.rounds().faults()
    }
}

impl<G: Garbles> ServiceSession for FewRounds<G> {
    type Mask = <G::Rounds as ServiceSession>::Mask;

    fn form(&self, cipher: Cipher) -> Cipher {
        self.rounds().form(cipher)
    }

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        self.rounds().lanes_within(compiled, bytes)
    }

    fn can_join(&self, a: &Shared<G>, b: &Shared<G>) -> bool {
        self.rounds().can_join(a, b)
    }

    fn join_lanes(&self, parts: &[&Shared<G>]) -> Shared<G> {
        self.rounds().join_lanes(parts)
    }

    fn save(&self, value: &Shared<G>) -> Zeroizing<Vec<u8>> {
        self.rounds().save(value)
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared<G>> {
        self.rounds().restore(bytes)
    }

    fn lanes(&self, value: &Shared<G>, lanes: Range<usize>) -> Shared<G> {
        self.rounds().lanes(value, lanes)
    }

    fn mask_of(
        &mut self,
        owner: Party,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Option<OwnMask<Self::Mask>>> {
        self.rounds_mut().mask_of(owner, len, net)
    }

    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Self::Mask, Vec<u8>)> {
        self.rounds_mut().mask_input(len, net)
    }

    fn dealt_mask(&mut self, seeds: &HeldSeeds, len: usize) -> Result<Self::Mask> {
        self.rounds_mut().dealt_mask(seeds, len)
    }

    fn mask_elements(&self, mask: &Self::Mask) -> Elements {
        self.rounds().mask_elements(mask)
    }

    fn unmask(
        &mut self,
        mask: &Self::Mask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Shared<G>> {
        self.rounds_mut().unmask(mask, at, masked, port)
    }

    fn evaluate_and_open_sum(
        &mut self,
        compiled: &Compiled,
        blocks: &Cells,
        round_keys: &Shared<G>,
        masked: Masked<'_, G>,
        net: &mut dyn Net,
    ) -> Result<Option<(Shared<G>, Vec<u8>)>> {
        let lanes = blocks.lanes();
        let is_kept = || Kept::of(&compiled.digest()).is_some();
        if !G::OPENS_SUMS || self.stock.is_none() || lanes > LANES || !is_kept() {
            return Ok(None);
        }
        if masked.1.len() != lanes.saturating_sub(1) * 16 {
            return Err(Error::misuse("there is not a block of text for each block but the first"));
        }
        match prepare(self, compiled, lanes, net)? {
            FewRoundsBatch::Circuits(kept, circuits) => {
                self.enter(Phase::Online);
                let values = [Value::Public(blocks.clone()), Value::Shared(round_keys.clone())];
                let done = self.garbled.open_sums(kept, circuits, values, masked, net);
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

    fn block_bytes(&self, value: &Shared<G>) -> usize {
        self.rounds().block_bytes(value)
    }

    fn bytes_for_client(&mut self, value: &Shared<G>, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.rounds_mut().bytes_for_client(value, bytes, net)
    }

    fn elements(&mut self, blocks: &Shared<G>, net: &mut dyn Net) -> Result<Elements> {
        self.rounds_mut().elements(blocks, net)
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self.rounds_mut().arithmetic()
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        self.rounds().save_elements(elements)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        self.rounds().restore_elements(bytes)
    }
}

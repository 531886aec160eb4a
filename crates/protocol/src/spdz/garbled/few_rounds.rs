//! `spdz-tower` as two nodes serve with it: a few blocks at a time go through garbled circuits from the stock
//! ([`crate::few_rounds`]), in three one-way messages in place of thirty rounds.
//!
//! A circuit of the stock belongs to no key. So round keys, too, are opened under the masks of its wires
//! online (`input.rs`), all lanes and the block together, in one exchange. The second node, which evaluates,
//! is the first to know that a request has begun. Its part of that opening travels with its answer of the
//! hello, and labels are on the way as soon as it is there.
//!
//! What goes in need not be checked before. If something was opened wrongly in this session, before or for
//! the circuit, then what goes in is another value than it should be, and the check that all that leaves the
//! session has behind it fails (`input.rs`). Values of other sessions that are not checked are refused.
//!
//! That check travels alongside (`spdz/arithmetic/alongside.rs`). Each party asks as soon as it knows what
//! was opened, and answers as soon as it is asked. So both answers are there when the outputs are:
//!
//! | message | first node to second | second to first |
//! |---|---|---|
//! | 1 | its part of what is opened | its part of what is opened |
//! | 2 | labels, question | question |
//! | 3 | answer | answer, outputs |
//!
//! Before the check has ended the parties see no more than where it comes last: labels of masked values, and
//! outputs under masks of which nobody knows both parts.
//!
//! What an output and the check take of material comes with the circuit (`behind.rs`). For what else a
//! request may need, triples are claimed behind the labels, so nobody waits for them. If the stock has none,
//! the session goes on: most requests need none.

use std::sync::{Arc, OnceLock};

use polyclave_cipher::{Compiled, CompiledPort};
use polyclave_field::Gf2_64;
use zeroize::Zeroizing;

use super::behind::{self, Behind};
use super::input::Value as Given;
use super::item::{Item, Masked};
use super::output::Settled;
use super::plan::Plan;
use super::{Active, GarbledAuthenticated, GarbledAuthenticatedConfig, GarbledCircuit, Wires, spent};
use crate::authenticated::Product;
use crate::few_rounds::{COUNT, FewRoundsConfig, Garbles, GarblesConfig, Kept, Value, refuse_other_lanes};
use crate::interface::any::AnyServiceConfig;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Session, check_cells};
use crate::interface::session::Stream;
use crate::spdz::proofs::Proofs;
use crate::spdz::registers::Registers;
use crate::spdz::{Setup, Shared, Spdz, SpdzConfig};
use crate::tinyot::TinyOt;
use crate::unchecked::Unchecked;
use crate::{Error, Party, Result};

/// `spdz-tower` between two nodes, with circuits. The first node, which proposes what is taken from the
/// stock, garbles: an evaluator that cheats cannot have a circuit used twice.
pub(in crate::spdz) fn of_two(rounds: SpdzConfig<Gf2_64>) -> Result<AnyServiceConfig> {
    let circuits = GarbledAuthenticatedConfig::with_evaluator(Party(1))?;
    Ok(AnyServiceConfig::new(FewRoundsConfig::new(rounds, circuits)))
}

/// Where everything is in a circuit.
fn plan(kept: &Kept) -> &'static Arc<Plan> {
    static PLANS: [OnceLock<Arc<Plan>>; COUNT] = [const { OnceLock::new() }; COUNT];
    PLANS[kept.at].get_or_init(|| Arc::new(Plan::of(kept.compiled()).expect("it is of bits")))
}

/// Bytes of a party's part of a circuit, and of what it has behind it.
fn item_bytes(kept: &Kept, garbles: bool) -> usize {
    Item::bytes_of(&kept.size, garbles) + Behind::BYTES
}

impl GarblesConfig for GarbledAuthenticatedConfig {
    type Rounds = SpdzConfig<Gf2_64>;
    type Session = GarbledAuthenticated;
    /// What makes circuits, who evaluates, and the name of the stream.
    type Part = (Option<TinyOt>, Party, [u8; 40]);

    fn item_bytes(&self, kept: &Kept, party: Party) -> usize {
        item_bytes(kept, party != self.evaluator())
    }

    fn part(&self, setup: &Setup<Gf2_64>, stream: &Stream, makes: bool) -> Result<Self::Part> {
        let tinyot = makes.then(|| self.tinyot(setup, stream)).transpose()?;
        Ok((tinyot, self.evaluator(), stream.label()))
    }

    fn join(&self, (tinyot, evaluator, label): Self::Part, rounds: Spdz<Gf2_64>) -> GarbledAuthenticated {
        GarbledAuthenticated::new(rounds, tinyot, evaluator, label)
    }
}

/// A circuit of the stock.
pub struct Stocked {
    circuit: GarbledCircuit,
    behind: Behind,
}

/// An evaluation in one lane.
pub struct Lane {
    item: Option<Item>,
    wires: Option<Wires<Active>>,
    behind: Option<Behind>,
    settled: Option<Output>,
}

/// An output, and what proves it to a client if it is a block.
type Output = (Shared<Gf2_64>, Option<Zeroizing<Vec<u8>>>);

impl Garbles for GarbledAuthenticated {
    type Rounds = Spdz<Gf2_64>;
    type Circuit = Stocked;
    type Evaluations = Vec<Lane>;

    fn rounds(&self) -> &Spdz<Gf2_64> {
        &self.under
    }

    fn rounds_mut(&mut self) -> &mut Spdz<Gf2_64> {
        &mut self.under
    }

    fn make(&mut self, kept: &Kept, count: usize, net: &mut dyn Net) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let digest = kept.compiled().digest();
        let (items, behind) = self.guarded(|session| {
            let items = session.garble(&digest, plan(kept), (1, count), net)?;
            let behind = session.make_behind(&items, kept.is_of_block(), net)?;
            Ok((items, behind))
        })?;
        let (me, len) = (self.under.arithmetic.key.me(), Garbles::item_bytes(self, kept));
        let saved = items.into_iter().zip(behind).map(|(item, behind)| {
            // Allocated at its full size: growing would leave copies behind.
            let mut bytes = Zeroizing::new(Vec::with_capacity(len));
            bytes.extend_from_slice(&item.save(me));
            behind.save(&mut bytes);
            bytes
        });
        Ok(saved.collect())
    }

    fn item_bytes(&self, kept: &Kept) -> usize {
        item_bytes(kept, self.garbles())
    }

    fn restore(&self, item: &[u8]) -> Result<Stocked> {
        let (circuit, behind) = item.split_at(item.len().saturating_sub(Behind::BYTES));
        let circuit = GarbledAuthenticated::restore(self, circuit)?;
        Ok(Stocked { circuit, behind: Behind::restore(behind)? })
    }

    fn begin(&mut self, kept: &Kept, circuits: Vec<Stocked>) -> Result<Vec<Lane>> {
        let digest = kept.compiled().digest();
        let lane = |Stocked { circuit, behind }: Stocked| {
            let item = circuit.0.ok_or_else(spent)?;
            item.refuse_other(plan(kept), &digest, (1, self.garbles()))?;
            match item.inputs.iter().all(|input| matches!(input, Masked::Waiting(_))) {
                true => Ok(Lane { item: Some(item), wires: None, behind: Some(behind), settled: None }),
                false => Err(Error::misuse("the garbled circuit belongs to a value")),
            }
        };
        circuits.into_iter().map(lane).collect()
    }

    fn share(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared<Gf2_64>>,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared<Gf2_64>> {
        let lanes = if port.uniform { 1 } else { lanes };
        let arithmetic = &mut self.under.arithmetic;
        match input {
            Input::Shared(shared) => {
                arithmetic.refuse_unchecked(&shared.unchecked)?;
                refuse_other_lanes(port, shared.lanes, lanes)?;
                Ok((*shared).clone())
            }
            Input::Public(cells) => {
                check_cells(port, cells, lanes)?;
                Ok(Shared::public(cells, &port.views(), &arithmetic.key))
            }
            Input::Mine(cells) => {
                check_cells(port, cells, lanes)?;
                arithmetic.share(net.me(), Some(cells), port, lanes, net)
            }
            Input::From(owner) => arithmetic.share(*owner, None, port, lanes, net),
        }
    }

    fn plus(&self, a: &Shared<Gf2_64>, b: &Shared<Gf2_64>) -> Result<Shared<Gf2_64>> {
        a.plus(b)
    }

    fn sums(
        &mut self,
        circuit: &Compiled,
        inputs: &[&Shared<Gf2_64>],
        lanes: usize,
    ) -> Result<Vec<Shared<Gf2_64>>> {
        let mut registers = Registers::new(circuit.lane_slots(), circuit.uniform_slots(), lanes);
        for (port, input) in circuit.inputs().iter().zip(inputs) {
            let lanes = if port.uniform { 1 } else { lanes };
            input.put(port, lanes, &mut registers)?;
        }
        circuit.layers().iter().for_each(|layer| self.under.linear(&layer.linear, &mut registers));
        let unchecked = Unchecked::join(inputs.iter().map(|input| &input.unchecked));
        Ok(circuit.outputs().iter().map(|port| Shared::of(port, &registers, unchecked.clone())).collect())
    }

    fn cells(&self, value: &Shared<Gf2_64>, port: &CompiledPort, cells: &[usize]) -> Result<Shared<Gf2_64>> {
        value.cells(port, cells)
    }

    fn give(
        &mut self,
        kept: &Kept,
        [block, keys]: [Value<Shared<Gf2_64>>; 2],
        lanes: &mut Vec<Lane>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let (plan, ports) = (plan(kept), kept.compiled().inputs());
        // After an error they are gone: what was opened under a mask is never opened under it again.
        let taken: Result<Vec<Item>> =
            lanes.iter_mut().map(|lane| lane.item.take().ok_or_else(spent)).collect();
        let mut taken = taken?;
        let mut items = Vec::with_capacity(lanes.len());
        for (number, item) in taken.iter_mut().enumerate() {
            let mut values = Vec::with_capacity(2);
            for (port, value) in [&block, &keys].into_iter().enumerate() {
                values.push(match value {
                    Value::Public(cells) => {
                        Given::public(port, &Value::<Shared<Gf2_64>>::bits_of_lane(cells, number)?)
                    }
                    Value::Shared(shared) => {
                        let number = if shared.lanes == 1 { 0 } else { number };
                        let shared = shared.select(&[number]);
                        Self::refuse_other_shape(&ports[port], &shared, 1)?;
                        Given::shared(port, shared)
                    }
                });
            }
            items.push((item, values));
        }
        let products = lanes.first_mut().and_then(|lane| lane.behind.as_mut()?.products.take());
        self.guarded(|session| session.give_and_check(&mut items, products.ok_or_else(spent)?, plan, net))?;
        for (lane, item) in lanes.iter_mut().zip(taken) {
            lane.wires = Some(self.wires_of(&item, plan)?);
            lane.item = Some(item);
        }
        Ok(())
    }

    fn settle(&mut self, kept: &Kept, lanes: &mut Vec<Lane>, net: &mut dyn Net) -> Result<()> {
        let (garbles, peer) = (self.garbles(), self.peer);
        // The evaluator's answer is before its outputs, and it sends these before it waits for the other one.
        if garbles {
            self.guarded(|session| session.under.arithmetic.judge_answer(peer, net))?;
        }
        for lane in lanes {
            let (item, wires) = (lane.item.take().ok_or_else(spent)?, lane.wires.take().ok_or_else(spent)?);
            let settled =
                self.guarded(|session| session.share_outputs(kept.compiled(), plan(kept), item, wires, net));
            let Settled { mut outputs, masked } = settled?;
            let behind = lane.behind.take().ok_or_else(spent)?;
            let is_first = self.under.arithmetic.key.is_first();
            let proof = kept.is_of_block().then(|| behind::message(&behind.proof, &masked, is_first));
            lane.settled = outputs.pop().map(|(_, output)| (output, proof));
        }
        match garbles {
            true => Ok(()),
            false => self.guarded(|session| session.under.arithmetic.judge_answer(peer, net)),
        }
    }

    fn output(&mut self, _: &Kept, port: &CompiledPort, lanes: &mut Vec<Lane>) -> Result<Shared<Gf2_64>> {
        let settled: Option<Vec<_>> = lanes.iter_mut().map(|lane| lane.settled.take()).collect();
        let (outputs, proofs): (Vec<_>, Vec<_>) = settled.ok_or_else(spent)?.into_iter().unzip();
        let mut output = self.in_cells(&Shared::join(&outputs.iter().collect::<Vec<_>>()), port)?;
        if let Some(proofs) = proofs.into_iter().collect::<Option<Vec<_>>>() {
            output.proofs = Proofs::of(self.under.arithmetic.stream, proofs);
        }
        Ok(output)
    }

    /// What `guarded` has not given up: a claim that failed.
    fn or_give_up<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if outcome.as_ref().is_err_and(|error| !matches!(error, Error::Misuse(_))) {
            self.give_up();
        }
        outcome
    }
}

impl GarbledAuthenticated {
    /// Gives some inputs of some circuits their values, and begins the check of what was opened for them.
    fn give_and_check(
        &mut self,
        items: &mut [(&mut Item, Vec<Given>)],
        products: [Product<Gf2_64>; 2],
        plan: &Plan,
        net: &mut dyn Net,
    ) -> Result<()> {
        let (garbles, peer) = (self.garbles(), self.peer);
        // Two elements of an answer, and three triples for each product of it.
        let wanted = 2 + 3 * (items.len() + 1);
        let masked = self.open(items, plan, net)?;
        if garbles {
            self.label(items, masked, net)?;
            self.under.arithmetic.ask(products, peer, net)?;
            self.under.arithmetic.stock_ahead(wanted, net)?;
            self.under.arithmetic.answer(peer, net)
        } else {
            self.under.arithmetic.ask(products, peer, net)?;
            self.label(items, masked, net)?;
            self.under.arithmetic.answer(peer, net)?;
            self.under.arithmetic.stock_ahead(wanted, net)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circuits_are_as_large_as_it_is_said() {
        for kept in Kept::all() {
            let plan = plan(kept);
            let bits = |ports: &[super::super::plan::Port]| -> Vec<usize> {
                ports.iter().map(|port| port.bits(1)).collect()
            };
            assert_eq!((plan.gates(1), &bits(&plan.inputs)[..]), (kept.size.ands, &kept.size.inputs[..]));
            assert_eq!(bits(&plan.outputs), [kept.size.outputs]);
        }
    }
}

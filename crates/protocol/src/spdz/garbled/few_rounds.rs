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
//! The triples for that check, and for the answer to the client, are claimed behind the labels, so nobody
//! waits for them.

use std::sync::{Arc, OnceLock};

use polyclave_cipher::CompiledPort;
use polyclave_field::Gf2_64;
use zeroize::Zeroizing;

use super::input::Value as Given;
use super::item::{Item, Masked};
use super::plan::Plan;
use super::{Active, GarbledAuthenticated, GarbledAuthenticatedConfig, GarbledCircuit, Wires, spent};
use crate::few_rounds::{COUNT, FewRoundsConfig, Garbles, GarblesConfig, Kept, Value, refuse_other_lanes};
use crate::interface::any::AnyServiceConfig;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, check_cells};
use crate::interface::session::Stream;
use crate::spdz::{Setup, Shared, Spdz, SpdzConfig};
use crate::tinyot::TinyOt;
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

impl GarblesConfig for GarbledAuthenticatedConfig {
    type Rounds = SpdzConfig<Gf2_64>;
    type Session = GarbledAuthenticated;
    /// What makes circuits, who evaluates, and the name of the stream.
    type Part = (Option<TinyOt>, Party, [u8; 40]);

    fn item_bytes(&self, kept: &Kept, party: Party) -> usize {
        Item::bytes_of(&kept.size, party != self.evaluator())
    }

    fn part(&self, setup: &Setup<Gf2_64>, stream: &Stream, makes: bool) -> Result<Self::Part> {
        let tinyot = makes.then(|| self.tinyot(setup, stream)).transpose()?;
        Ok((tinyot, self.evaluator(), stream.label()))
    }

    fn join(&self, (tinyot, evaluator, label): Self::Part, rounds: Spdz<Gf2_64>) -> GarbledAuthenticated {
        GarbledAuthenticated::new(rounds, tinyot, evaluator, label)
    }
}

/// An evaluation in one lane.
pub struct Lane {
    item: Option<Item>,
    wires: Option<Wires<Active>>,
    settled: Option<Shared<Gf2_64>>,
}

impl Garbles for GarbledAuthenticated {
    type Rounds = Spdz<Gf2_64>;
    type Circuit = GarbledCircuit;
    type Evaluations = Vec<Lane>;

    fn rounds(&self) -> &Spdz<Gf2_64> {
        &self.under
    }

    fn rounds_mut(&mut self) -> &mut Spdz<Gf2_64> {
        &mut self.under
    }

    fn make(&mut self, kept: &Kept, count: usize, net: &mut dyn Net) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let digest = kept.compiled().digest();
        let made = self.guarded(|session| session.garble(&digest, plan(kept), (1, count), net))?;
        Ok(made.into_iter().map(|item| item.save(self.under.arithmetic.key.me())).collect())
    }

    fn item_bytes(&self, kept: &Kept) -> usize {
        Item::bytes_of(&kept.size, self.garbles())
    }

    fn restore(&self, item: &[u8]) -> Result<GarbledCircuit> {
        GarbledAuthenticated::restore(self, item)
    }

    fn begin(&mut self, kept: &Kept, circuits: Vec<GarbledCircuit>) -> Result<Vec<Lane>> {
        let digest = kept.compiled().digest();
        let lane = |circuit: GarbledCircuit| {
            let item = circuit.0.ok_or_else(spent)?;
            item.refuse_other(plan(kept), &digest, (1, self.garbles()))?;
            match item.inputs.iter().all(|input| matches!(input, Masked::Waiting(_))) {
                true => Ok(Lane { item: Some(item), wires: None, settled: None }),
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
        self.guarded(|session| session.deliver(&mut items, plan, net))?;
        for (lane, item) in lanes.iter_mut().zip(taken) {
            lane.wires = Some(self.wires_of(&item, plan)?);
            lane.item = Some(item);
        }
        // Two elements of an answer, and three triples for each product of it.
        let wanted = 2 + 3 * (lanes.len() + 1);
        self.guarded(|session| session.under.arithmetic.stock_ahead(wanted, net))
    }

    fn settle(&mut self, kept: &Kept, lanes: &mut Vec<Lane>, net: &mut dyn Net) -> Result<()> {
        for lane in lanes {
            let (item, wires) = (lane.item.take().ok_or_else(spent)?, lane.wires.take().ok_or_else(spent)?);
            let outputs =
                self.guarded(|session| session.share_outputs(kept.compiled(), plan(kept), item, wires, net));
            lane.settled = outputs?.pop().map(|(_, output)| output);
        }
        Ok(())
    }

    fn output(&mut self, _: &Kept, port: &CompiledPort, lanes: &mut Vec<Lane>) -> Result<Shared<Gf2_64>> {
        let settled: Option<Vec<&Shared<Gf2_64>>> = lanes.iter().map(|lane| lane.settled.as_ref()).collect();
        self.in_cells(&Shared::join(&settled.ok_or_else(spent)?), port)
    }

    /// What `guarded` has not given up: a claim that failed.
    fn or_give_up<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if outcome.as_ref().is_err_and(|error| !matches!(error, Error::Misuse(_))) {
            self.give_up();
        }
        outcome
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

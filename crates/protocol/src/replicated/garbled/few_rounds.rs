//! `replicated-active` as nodes serve with it: a few blocks at a time go through garbled circuits from the
//! stock ([`crate::few_rounds`]), in two one-way messages in place of forty rounds.
//!
//! The values that go into a garbled circuit are proven before ([`Session::check`]), and what comes out needs
//! no proof.

use std::sync::{Arc, OnceLock};

use polyclave_cipher::{Cells, Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::item::{Item, Part};
use super::plan::Plan;
use super::{GarbledCircuit, GarbledRegisters, GarbledThree, GarbledThreeConfig, Keys};
use crate::few_rounds::{COUNT, FewRounds as Over, FewRoundsConfig as ConfigOver, Garbles, GarblesConfig};
use crate::few_rounds::{Kept, Value, refuse_other_lanes};
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Session};
use crate::interface::service::ServiceSession;
use crate::interface::session::Stream;
use crate::replicated::config::{ReplicatedActiveConfig, Setup};
use crate::replicated::shared::Shared;
use crate::replicated::{Active, Mask, Registers, Replicated};
use crate::unchecked::Unchecked;
use crate::{Party, Result};

/// `replicated-active`, with garbled circuits from a stock.
pub type FewRoundsConfig = ConfigOver<GarbledThreeConfig>;

/// One party in one session of it.
pub type FewRounds = Over<GarbledThree>;

impl Default for FewRoundsConfig {
    fn default() -> Self {
        Self::new(ReplicatedActiveConfig::default(), GarbledThreeConfig::default())
    }
}

/// A block, and round keys.
const INPUTS: usize = 2;

/// Where everything is in a circuit.
fn plan(kept: &Kept) -> &'static Arc<Plan> {
    static PLANS: [OnceLock<Arc<Plan>>; COUNT] = [const { OnceLock::new() }; COUNT];
    PLANS[kept.at].get_or_init(|| Arc::new(Plan::of(kept.compiled()).expect("it is of bits")))
}

impl GarblesConfig for GarbledThreeConfig {
    type Rounds = ReplicatedActiveConfig;
    type Session = GarbledThree;
    type Part = (Keys, [u8; 40]);

    fn item_bytes(&self, kept: &Kept, party: Party) -> usize {
        let role = self.role(party);
        Item::saved_bytes(role, Part::lengths_of(role, kept.size.ands, kept.size.outputs), INPUTS)
    }

    fn part(&self, setup: &Setup, stream: &Stream, _: bool) -> Result<(Keys, [u8; 40])> {
        Ok((self.keys(setup, stream), stream.label()))
    }

    fn join(&self, (keys, label): (Keys, [u8; 40]), rounds: Replicated<Active>) -> GarbledThree {
        GarbledThree::new(rounds, self.seats(), keys, label)
    }
}

impl Garbles for GarbledThree {
    type Rounds = Replicated<Active>;
    type Circuit = GarbledCircuit;
    type Evaluations = Vec<GarbledRegisters>;

    fn rounds(&self) -> &Replicated<Active> {
        &self.under
    }

    fn rounds_mut(&mut self) -> &mut Replicated<Active> {
        &mut self.under
    }

    fn make(&mut self, kept: &Kept, count: usize, net: &mut dyn Net) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let compiled = kept.compiled();
        self.note_plan(compiled, plan(kept));
        let mut lot = self.prepare(compiled, count, net)?;
        let lanes = (0..count).map(|_| {
            let one = self.take(compiled, &mut lot, 1)?;
            self.save(one)
        });
        lanes.collect()
    }

    fn item_bytes(&self, kept: &Kept) -> usize {
        let rows = Part::lengths_of(self.role, kept.size.ands, kept.size.outputs);
        Item::saved_bytes(self.role, rows, INPUTS)
    }

    fn restore(&self, item: &[u8]) -> Result<GarbledCircuit> {
        GarbledThree::restore(self, item)
    }

    fn begin(&mut self, kept: &Kept, circuits: Vec<GarbledCircuit>) -> Result<Vec<GarbledRegisters>> {
        let compiled = kept.compiled();
        self.note_plan(compiled, plan(kept));
        circuits.into_iter().map(|mut one| self.registers(compiled, 1, &mut one)).collect()
    }

    fn share(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared>,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared> {
        let shared = self.under.share(port, input, lanes, net)?;
        refuse_other_lanes(port, shared.lanes, if port.uniform { 1 } else { lanes })?;
        Ok(shared)
    }

    fn plus(&self, a: &Shared, b: &Shared) -> Result<Shared> {
        a.plus(b)
    }

    fn sums(&mut self, circuit: &Compiled, inputs: &[&Shared], lanes: usize) -> Result<Vec<Shared>> {
        let mut registers = Registers::new(circuit, lanes, &self.under.ring.pool);
        for (port, input) in circuit.inputs().iter().zip(inputs) {
            input.fill_port(port, &mut registers)?;
        }
        circuit.layers().iter().for_each(|layer| self.under.linear(&layer.linear, &mut registers));
        let unchecked = Unchecked::join(inputs.iter().map(|input| &input.unchecked));
        let output = |port| Shared { unchecked: unchecked.clone(), ..Shared::of_port(port, &registers) };
        Ok(circuit.outputs().iter().map(output).collect())
    }

    fn cells(&self, value: &Shared, port: &CompiledPort, cells: &[usize]) -> Result<Shared> {
        value.cells(port, cells)
    }

    fn give(
        &mut self,
        kept: &Kept,
        values: [Value<Shared>; 2],
        evaluations: &mut Vec<GarbledRegisters>,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.prove(&values, net)?;
        for (lane, registers) in evaluations.iter_mut().enumerate() {
            let [block, keys] = [of_lane(&values[0], lane)?, of_lane(&values[1], lane)?];
            self.inputs(kept.compiled().inputs(), &[input(&block), input(&keys)], registers, net)?;
        }
        Ok(())
    }

    fn settle(
        &mut self,
        kept: &Kept,
        evaluations: &mut Vec<GarbledRegisters>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let circuit = kept.compiled();
        for registers in &mut *evaluations {
            self.evaluate_layers(circuit, registers)?;
        }
        evaluations.iter_mut().try_for_each(|of| Session::settle(self, circuit, of, net).map(|_| ()))
    }

    fn output(
        &mut self,
        kept: &Kept,
        port: &CompiledPort,
        evaluations: &mut Vec<GarbledRegisters>,
    ) -> Result<Shared> {
        let of_bits = kept.compiled().outputs().iter().find(|of_bits| of_bits.name == port.name);
        let of_bits = of_bits.expect("both circuits have the same outputs");
        let outputs: Vec<Shared> =
            evaluations.iter_mut().map(|registers| Session::output(self, of_bits, registers)).collect();
        let joined = Shared::join(&outputs.iter().collect::<Vec<_>>());
        self.in_cells(&joined, port.bits)
    }

    const OPENS_SUMS: bool = true;

    /// One message from each garbler, and one from the evaluator.
    fn open_sums(
        &mut self,
        kept: &Kept,
        circuits: Vec<GarbledCircuit>,
        values: [Value<Shared>; 2],
        (mask, masked): (&Mask, &[u8]),
        net: &mut dyn Net,
    ) -> Result<(Shared, Vec<u8>)> {
        let compiled = kept.compiled();
        let port = &compiled.outputs()[0];
        let addends = self.under.unmask(mask, 0, masked, port)?;
        self.prove(&values, net)?;
        let mut evaluations = self.begin(kept, circuits)?;
        for (lane, registers) in evaluations.iter_mut().enumerate() {
            let [block, keys] = [of_lane(&values[0], lane)?, of_lane(&values[1], lane)?];
            let inputs = [input(&block), input(&keys)];
            match lane {
                0 => self.inputs(compiled.inputs(), &inputs, registers, net)?,
                _ => {
                    let addend = addends.select(&[lane - 1]);
                    self.put_in_with_addend(compiled, &inputs, &addend, registers, net)?;
                }
            }
        }
        for registers in &mut evaluations {
            self.evaluate_layers(compiled, registers)?;
        }
        Session::settle(self, compiled, &mut evaluations[0], net)?;
        let first = Session::output(self, port, &mut evaluations[0]);
        let mut sum = Vec::with_capacity(masked.len());
        for registers in &mut evaluations[1..] {
            let mut bits = Cells::zero(port.cells.len(), 1, 1);
            bits.rows_mut().copy_from_slice(&self.open_sum(compiled, registers, net)?);
            sum.extend(bits.to_blocks());
        }
        Ok((first, sum))
    }

    fn or_give_up<T>(&mut self, outcome: Result<T>) -> Result<T> {
        GarbledThree::or_give_up(self, outcome)
    }
}

impl GarbledThree {
    /// Proves what goes into circuits, if nobody has.
    fn prove(&mut self, values: &[Value<Shared>], net: &mut dyn Net) -> Result<()> {
        let unproven =
            |value: &Value<Shared>| matches!(value, Value::Shared(of) if of.unchecked.is_pending());
        match values.iter().any(unproven) {
            true => self.under.check(net),
            false => Ok(()),
        }
    }
}

/// The value of one lane; of all lanes if it is the same in all.
fn of_lane(value: &Value<Shared>, lane: usize) -> Result<Value<Shared>> {
    Ok(match value {
        Value::Public(cells) => Value::Public(Value::<Shared>::bits_of_lane(cells, lane)?),
        Value::Shared(shared) if shared.lanes == 1 => Value::Shared(shared.clone()),
        Value::Shared(shared) => Value::Shared(shared.select(&[lane])),
    })
}

fn input(value: &Value<Shared>) -> Input<'_, Shared> {
    match value {
        Value::Public(cells) => Input::Public(cells),
        Value::Shared(shared) => Input::Shared(shared),
    }
}

#[cfg(test)]
mod tests {
    use super::super::roles::Role;
    use super::*;

    #[test]
    fn circuits_are_as_large_as_it_is_said() {
        for kept in Kept::all() {
            for role in [Role::First, Role::Second, Role::Evaluator] {
                let said = Part::lengths_of(role, kept.size.ands, kept.size.outputs);
                assert_eq!(said, Part::lengths(role, plan(kept), 1));
            }
        }
    }
}

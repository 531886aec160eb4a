//! Where everything lives: slots, reused after the last use.

use std::collections::HashMap;

use super::schedule::Schedule;
use super::values::{Value, Values};
use super::{Compiled, CompiledPort, Layer, Linear, Lookup, Slot};
use crate::circuit::Op;
use crate::{Circuit, Matrix, Wire};

/// Slots by value, reused after the last use.
#[derive(Default)]
pub(super) struct Allocation {
    slots: HashMap<Value, Slot>,
    uses_left: HashMap<Value, usize>,
    free_lanes: Vec<u32>,
    free_uniform: Vec<u32>,
    lane_slots: u32,
    uniform_slots: u32,
}

impl Allocation {
    pub(super) fn run(circuit: &Circuit, values: &Values, schedule: &Schedule) -> Compiled {
        let mut allocation = Allocation::default();
        let sources = values.sums.values().flat_map(|(terms, _)| terms.iter().map(|(v, _)| v));
        let uses =
            sources.chain(values.starts.values().flatten()).chain(values.outputs.iter().flatten().flatten());
        uses.for_each(|v| *allocation.uses_left.entry(*v).or_insert(0) += 1);

        let inputs = circuit.inputs().iter().map(|port| {
            let mut cell = |w: &Wire| -> Vec<(Matrix, Slot)> {
                let views = values.of[w.index()].iter();
                views.map(|m| (*m, allocation.take((*w, *m), port.uniform))).collect()
            };
            let cells = port.cells.iter().map(&mut cell).collect();
            CompiledPort { name: port.name.clone(), bits: port.bits, uniform: port.uniform, cells }
        });
        let inputs = inputs.collect();

        let mut layers = Vec::with_capacity(schedule.sums.len());
        for (sums, lookups) in schedule.sums.iter().zip(&schedule.lookups) {
            let linear = sums.iter().map(|value| {
                let (terms, constant) = &values.sums[value];
                let dst = allocation.take(*value, values.uniform[value.0.index()]);
                let terms_at = terms.iter().map(|(v, m)| (allocation.slots[v], *m)).collect();
                terms.iter().for_each(|(v, _)| allocation.used(v));
                Linear { dst, terms: terms_at, constant: *constant }
            });
            let linear = linear.collect();
            let looked_up = lookups.iter().map(|wire| {
                let Op::Lookup { table, .. } = &circuit.ops()[wire.index()] else {
                    unreachable!("a schedule holds lookups only here")
                };
                let xs = values.starts[wire].iter().map(|v| allocation.slots[v]).collect();
                let uniform = values.uniform[wire.index()];
                let views = values.of[wire.index()].iter();
                let views = views.map(|m| (*m, allocation.take((*wire, *m), uniform))).collect();
                Lookup { table: table.index(), xs, views }
            });
            let looked_up = looked_up.collect();
            lookups.iter().flat_map(|wire| &values.starts[wire]).for_each(|v| allocation.used(v));
            layers.push(Layer { linear, lookups: looked_up });
        }

        let outputs = circuit.outputs().iter().zip(&values.outputs).map(|(port, cells)| {
            let cell = |vs: &Vec<Value>| vs.iter().map(|v| (v.1, allocation.slots[v])).collect();
            let cells = cells.iter().map(cell).collect();
            CompiledPort { name: port.name.clone(), bits: port.bits, uniform: port.uniform, cells }
        });
        Compiled {
            name: circuit.name().into(),
            digest: circuit.digest(),
            tables: circuit.tables().to_vec(),
            inputs,
            outputs: outputs.collect(),
            layers,
            lane_slots: allocation.lane_slots as usize,
            uniform_slots: allocation.uniform_slots as usize,
        }
    }

    fn take(&mut self, value: Value, uniform: bool) -> Slot {
        let (free, count) = match uniform {
            true => (&mut self.free_uniform, &mut self.uniform_slots),
            false => (&mut self.free_lanes, &mut self.lane_slots),
        };
        let index = free.pop().unwrap_or_else(|| {
            *count += 1;
            *count - 1
        });
        let slot = if uniform { Slot::Uniform(index) } else { Slot::Lanes(index) };
        self.slots.insert(value, slot);
        slot
    }

    fn used(&mut self, value: &Value) {
        let left = self.uses_left.get_mut(value).expect("every use was counted");
        *left -= 1;
        if *left == 0 {
            match self.slots[value] {
                Slot::Lanes(index) => self.free_lanes.push(index),
                Slot::Uniform(index) => self.free_uniform.push(index),
            }
        }
    }
}

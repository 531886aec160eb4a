//! Assigns a slot to every value. A slot is reused after the last use of its value.

use super::schedule::Schedule;
use super::values::{Value, Values};
use super::{Compiled, CompiledPort, Layer, Linear, Lookup, Slot};
use crate::circuit::Op;
use crate::{Circuit, Matrix, Wire};

/// Slots by value, reused after the last use.
pub(super) struct Allocation {
    slots: Vec<Option<Slot>>,
    uses_left: Vec<usize>,
    free_lanes: Vec<u32>,
    free_uniform: Vec<u32>,
    lane_slots: u32,
    uniform_slots: u32,
}

impl Allocation {
    pub(super) fn run(circuit: &Circuit, values: &Values, schedule: &Schedule) -> Compiled {
        let mut allocation = Allocation {
            slots: vec![None; values.known.len()],
            uses_left: vec![0; values.known.len()],
            free_lanes: Vec::new(),
            free_uniform: Vec::new(),
            lane_slots: 0,
            uniform_slots: 0,
        };
        let sources = values.sums.iter().flat_map(|(terms, _)| terms.iter().map(|(v, _)| v));
        let starts = values.starts.iter().flatten().flatten();
        let uses = sources.chain(starts).chain(values.outputs.iter().flatten().flatten());
        uses.for_each(|v| allocation.uses_left[v.index()] += 1);

        let inputs = circuit.inputs().iter().map(|port| {
            let mut cell = |w: &Wire| -> Vec<(Matrix, Slot)> {
                let views = values.of[w.index()].iter();
                views.map(|(m, value)| (*m, allocation.take(*value, port.uniform))).collect()
            };
            let cells = port.cells.iter().map(&mut cell).collect();
            CompiledPort { name: port.name.clone(), bits: port.bits, uniform: port.uniform, cells }
        });
        let inputs = inputs.collect();

        let mut layers = Vec::with_capacity(schedule.sums.len());
        for (sums, lookups) in schedule.sums.iter().zip(&schedule.lookups) {
            let linear = sums.iter().map(|value| {
                let (terms, constant) = &values.sums[value.index()];
                let (wire, _) = values.known[value.index()];
                let dst = allocation.take(*value, values.uniform[wire.index()]);
                let terms_at = terms.iter().map(|(v, m)| (allocation.at(*v), *m)).collect();
                terms.iter().for_each(|(v, _)| allocation.used(*v));
                Linear { dst, terms: terms_at, constant: *constant }
            });
            let linear = linear.collect();
            let looked_up = lookups.iter().map(|wire| {
                let Op::Lookup { table, .. } = &circuit.ops()[wire.index()] else {
                    unreachable!("a schedule holds lookups only here")
                };
                let xs = values.starts(*wire).iter().map(|v| allocation.at(*v)).collect();
                let uniform = values.uniform[wire.index()];
                let views = values.of[wire.index()].iter();
                let views = views.map(|(m, value)| (*m, allocation.take(*value, uniform))).collect();
                Lookup { table: table.index(), xs, views }
            });
            let looked_up = looked_up.collect();
            lookups.iter().flat_map(|wire| values.starts(*wire)).for_each(|v| allocation.used(*v));
            layers.push(Layer { linear, lookups: looked_up });
        }

        let outputs = circuit.outputs().iter().zip(&values.outputs).map(|(port, cells)| {
            let cell =
                |vs: &Vec<Value>| vs.iter().map(|v| (values.known[v.index()].1, allocation.at(*v))).collect();
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
            parts: None,
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
        self.slots[value.index()] = Some(slot);
        slot
    }

    fn at(&self, value: Value) -> Slot {
        self.slots[value.index()].expect("values are made before they are used")
    }

    fn used(&mut self, value: Value) {
        let left = &mut self.uses_left[value.index()];
        *left -= 1;
        if *left == 0 {
            match self.at(value) {
                Slot::Lanes(index) => self.free_lanes.push(index),
                Slot::Uniform(index) => self.free_uniform.push(index),
            }
        }
    }
}

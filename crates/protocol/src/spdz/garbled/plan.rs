//! A circuit as masks and labels go through it: sums of wires, then ANDs, step by step.

use polyclave_cipher::{Compiled, CompiledPort, Linear, Slot};
use polyclave_kernels::label_hash::Negated;

use crate::Result;
use crate::garbling::{Kind, refuse_unless_boolean};

/// A wire that has a value in each lane, or one that is the same in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Lanes(usize),
    Uniform(usize),
}

/// A sum of wires.
#[derive(Debug)]
pub(super) struct Sum {
    pub(super) to: Row,
    pub(super) terms: Vec<Row>,
    pub(super) plus_one: bool,
}

/// An AND of two wires, up to negations.
#[derive(Debug)]
pub(super) struct And {
    pub(super) from: [Row; 2],
    pub(super) to: Row,
    pub(super) negated: Negated,
}

/// Sums, which run first, and ANDs, which are independent of each other.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) sums: Vec<Sum>,
    uniform: Vec<And>,
    lanes: Vec<And>,
}

/// The wires of an input or output.
#[derive(Debug)]
pub(super) struct Port {
    is_uniform: bool,
    /// By bit: a wire that nobody uses is in no row.
    pub(super) rows: Vec<Vec<Row>>,
}

/// A Boolean circuit.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    /// Rows with a value in each lane, and the same in all.
    pub(super) rows: [usize; 2],
}

impl Step {
    /// All ANDs, those that are the same in all lanes first.
    pub(super) fn ands(&self) -> impl Iterator<Item = &And> {
        self.uniform.iter().chain(&self.lanes)
    }

    /// ANDs in so many lanes.
    pub(super) fn gates(&self, lanes: usize) -> usize {
        self.uniform.len() + lanes * self.lanes.len()
    }
}

impl Port {
    fn of(port: &CompiledPort) -> Port {
        let rows = |views: &Vec<(_, Slot)>| views.iter().map(|(_, slot)| row(*slot, 0)).collect();
        Port { is_uniform: port.uniform, rows: port.cells.iter().map(rows).collect() }
    }

    /// Lanes that have values of their own.
    pub(super) fn lanes(&self, lanes: usize) -> usize {
        if self.is_uniform { 1 } else { lanes }
    }

    /// Bits in so many lanes.
    pub(super) fn bits(&self, lanes: usize) -> usize {
        self.rows.len() * self.lanes(lanes)
    }
}

impl Plan {
    /// Of a circuit of single bits.
    pub(super) fn of(compiled: &Compiled) -> Result<Plan> {
        refuse_unless_boolean(compiled)?;
        let kinds: Vec<Kind> = compiled.tables().iter().map(|table| Kind::of(table)).collect();
        let step = |layer: &polyclave_cipher::Layer| {
            let mut step = Step {
                sums: layer.linear.iter().flat_map(sums).collect(),
                uniform: Vec::new(),
                lanes: Vec::new(),
            };
            for lookup in &layer.lookups {
                let from = [row(lookup.xs[0], 0), row(lookup.xs[0], 1)];
                for (_, to) in &lookup.views {
                    let to = row(*to, 0);
                    match kinds[lookup.table] {
                        Kind::And(negated) if lookup.is_uniform() => {
                            step.uniform.push(And { from, to, negated });
                        }
                        Kind::And(negated) => step.lanes.push(And { from, to, negated }),
                        // Nothing that an AND of this layer reads is written in it.
                        Kind::Sum(of, plus_one) => {
                            let terms = from.into_iter().zip(of).filter(|(_, is_term)| *is_term);
                            let terms = terms.map(|(row, _)| row).collect();
                            step.sums.push(Sum { to, terms, plus_one });
                        }
                    }
                }
            }
            step
        };
        Ok(Plan {
            steps: compiled.layers().iter().map(step).collect(),
            inputs: compiled.inputs().iter().map(Port::of).collect(),
            outputs: compiled.outputs().iter().map(Port::of).collect(),
            rows: [2 * compiled.lane_slots(), 2 * compiled.uniform_slots()],
        })
    }

    /// ANDs in so many lanes.
    pub(super) fn gates(&self, lanes: usize) -> usize {
        self.steps.iter().map(|step| step.gates(lanes)).sum()
    }

    /// Input bits in so many lanes.
    pub(super) fn input_bits(&self, lanes: usize) -> usize {
        self.inputs.iter().map(|port| port.bits(lanes)).sum()
    }

    /// Output bits in so many lanes.
    pub(super) fn output_bits(&self, lanes: usize) -> usize {
        self.outputs.iter().map(|port| port.bits(lanes)).sum()
    }
}

/// One of the two bits of a slot.
fn row(slot: Slot, bit: usize) -> Row {
    match slot {
        Slot::Lanes(slot) => Row::Lanes(2 * slot as usize + bit),
        Slot::Uniform(slot) => Row::Uniform(2 * slot as usize + bit),
    }
}

/// A sum for each bit of a local map.
fn sums(map: &Linear) -> Vec<Sum> {
    // A constant has no terms, and fills both bits.
    let outs = map.terms.first().map_or(2, |(_, matrix)| matrix.outs());
    let sum = |out: u8| {
        let terms = map.terms.iter().flat_map(|(slot, matrix)| {
            let columns = matrix.columns();
            let bits = (0..2).filter(move |bit| columns[*bit] >> out & 1 == 1);
            bits.map(|bit| row(*slot, bit))
        });
        Sum {
            to: row(map.dst, usize::from(out)),
            terms: terms.collect(),
            plus_one: map.constant >> out & 1 == 1,
        }
    };
    (0..outs).map(sum).collect()
}

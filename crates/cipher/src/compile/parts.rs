//! A circuit around others for which a protocol has another way ([`Maps::has_another_way`]): what is computed
//! before, between and behind them, each as a circuit of its own.
//!
//! The *depth* of a cell is how many such circuits are on the longest way to it. Part k computes the cells of
//! depth k that are outside of these circuits, and gives the inputs of all that come next: those that are at
//! depth k + 1. Cells that later parts need are carried to them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use super::{Compiled, CompiledPort, Maps, compile_with_views};
use crate::circuit::{Call, Op, Port};
use crate::{Builder, Circuit, Matrix, Wire};

/// The parts of a circuit. Values have numbers: first the inputs, in order, then what parts give and what
/// comes out of the circuits between them.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Of each value, whether it is the same in all lanes.
    pub uniform: Vec<bool>,
    /// The first to the last. The last one gives the outputs of the whole, in order.
    pub parts: Vec<Part>,
}

/// A part, and the circuits behind it.
#[derive(Clone, Debug)]
pub struct Part {
    /// What is computed in this part. Most often there is no lookup in it.
    pub circuit: Compiled,
    /// The values of its inputs.
    pub takes: Vec<usize>,
    /// The values of its outputs.
    pub gives: Vec<usize>,
    /// The circuits behind it. They do not wait for each other.
    pub inserted: Vec<Inserted>,
}

/// A circuit for which the protocol has another way.
#[derive(Clone, Debug)]
pub struct Inserted {
    /// Its digest.
    pub circuit: [u8; 32],
    /// The values of its inputs.
    pub takes: Vec<usize>,
    /// The value of its output. It is the same in all lanes if all inputs are.
    pub gives: usize,
    /// The output, with the views that later parts need. Alike for all of one digest in one whole.
    pub output: CompiledPort,
}

/// Cells that go from one part to another.
struct Value {
    cells: Vec<Wire>,
    bits: u8,
    uniform: bool,
    /// What later parts start from.
    views: Vec<Matrix>,
}

impl Value {
    /// A port of a circuit around it.
    fn of(port: &Port, uniform: &[bool]) -> Value {
        let is_uniform = port.cells.iter().all(|cell| uniform[cell.index()]);
        Value { cells: port.cells.clone(), bits: port.bits, uniform: is_uniform, views: Vec::new() }
    }

    fn need(&mut self, port: &CompiledPort) {
        let new = port.views().into_iter().filter(|view| !self.views.contains(view));
        self.views.extend(new.collect::<Vec<_>>());
    }
}

/// What a part computes before it is compiled.
struct Draft {
    circuit: Circuit,
    takes: Vec<usize>,
    gives: Vec<usize>,
    /// Of each circuit behind it: its digest, its inputs and its output.
    inserted: Vec<([u8; 32], Vec<usize>, usize)>,
}

impl Parts {
    /// `None` if there is no such circuit inside, and if a part needs views of an input that `inputs`, which
    /// are those of the whole, do not have.
    pub(super) fn of(
        circuit: &Circuit,
        maps: &dyn Maps,
        views: &dyn Fn(&Port) -> Vec<Matrix>,
        inputs: &[CompiledPort],
    ) -> Option<Parts> {
        let cut = Cut::of(circuit, maps)?;
        let (drafts, mut values) = cut.drafts();
        // From the last to the first, so that what is needed of a value is known before it is made.
        let mut circuits: Vec<Compiled> = Vec::with_capacity(drafts.len());
        for (number, draft) in drafts.iter().enumerate().rev() {
            let is_last = number + 1 == drafts.len();
            let made = compile_with_views(&draft.circuit, maps, |port| match is_last {
                true => views(port),
                false => values[value_of(port)].views.clone(),
            });
            draft.takes.iter().zip(made.inputs()).for_each(|(value, port)| values[*value].need(port));
            circuits.push(made);
        }
        if values.iter().zip(inputs).any(|(value, port)| !has_all(&port.views(), &value.views)) {
            return None;
        }
        let outputs = cut.outputs(&drafts, &values, maps);
        let parts = drafts.into_iter().zip(circuits.into_iter().rev()).map(|(draft, circuit)| Part {
            circuit,
            takes: draft.takes,
            gives: draft.gives,
            inserted: draft
                .inserted
                .into_iter()
                .map(|(circuit, takes, gives)| {
                    let output = outputs[&circuit].clone();
                    Inserted { circuit, takes, gives, output }
                })
                .collect(),
        });
        Some(Parts { parts: parts.collect(), uniform: values.iter().map(|value| value.uniform).collect() })
    }
}

fn has_all(views: &[Matrix], needed: &[Matrix]) -> bool {
    needed.iter().all(|view| views.contains(view))
}

/// Ports of parts are called by the number of their value.
fn value_of(port: &Port) -> usize {
    port.name.parse().expect("a number")
}

/// Where a circuit is cut.
struct Cut<'c> {
    circuit: &'c Circuit,
    /// The circuits for which there is another way. None of them is inside another one.
    calls: Vec<&'c Call>,
    /// By operation.
    depths: Vec<usize>,
    is_inside: Vec<bool>,
    uniform: Vec<bool>,
}

impl<'c> Cut<'c> {
    fn of(circuit: &'c Circuit, maps: &dyn Maps) -> Option<Cut<'c>> {
        let mut calls: Vec<&Call> = Vec::new();
        // Those that are inside another one come before it.
        for call in circuit.calls.iter().rev().filter(|call| maps.has_another_way(&call.circuit)) {
            let is_inside =
                |other: &&Call| other.ops.start <= call.ops.start && call.ops.end <= other.ops.end;
            if !calls.iter().any(is_inside) && call.outputs.len() == 1 {
                calls.push(call);
            }
        }
        calls.reverse();
        if calls.is_empty() {
            return None;
        }
        let mut cut = Cut {
            circuit,
            calls,
            depths: Vec::new(),
            is_inside: Vec::new(),
            uniform: super::values::uniform_wires(circuit),
        };
        cut.measure();
        Some(cut)
    }

    fn measure(&mut self) {
        let mut calls = self.calls.iter().peekable();
        let mut inside: Option<(&Call, usize)> = None;
        for (i, op) in self.circuit.ops.iter().enumerate() {
            inside = inside.filter(|(call, _)| call.ops.contains(&i));
            if let Some(call) = calls.next_if(|call| call.ops.start == i) {
                let before = call.inputs.iter().flatten().map(|wire| self.depths[wire.index()]).max();
                inside = Some((call, before.unwrap_or(0) + 1));
            }
            self.is_inside.push(inside.is_some());
            self.depths.push(match inside {
                Some((_, depth)) => depth,
                None => operands(op).map(|wire| self.depths[wire.index()]).max().unwrap_or(0),
            });
        }
    }

    /// The depth of what comes out of a circuit.
    fn depth(&self, call: &Call) -> usize {
        self.depths[call.ops.start]
    }

    fn drafts(&self) -> (Vec<Draft>, Vec<Value>) {
        let last = self.calls.iter().map(|call| self.depth(call)).max().unwrap_or(0);
        let mut values: Vec<Value> =
            self.circuit.inputs.iter().map(|port| Value::of(port, &self.uniform)).collect();
        let mut drafts = Vec::new();
        for depth in 0..=last {
            let draft = self.draft(depth, depth == last, &mut values);
            drafts.push(draft);
        }
        (drafts, values)
    }

    /// The part of a depth, with all values that come out of it and of the circuits behind it.
    fn draft(&self, depth: usize, is_last: bool, values: &mut Vec<Value>) -> Draft {
        let known = values.len();
        let mut inserted: Vec<([u8; 32], Vec<usize>, usize)> = Vec::new();
        let mut gives: Vec<usize> = Vec::new();
        let calls: Vec<&Call> =
            self.calls.iter().filter(|call| self.depth(call) == depth + 1).copied().collect();
        for call in &calls {
            let mut takes = Vec::new();
            for cells in &call.inputs {
                let there = values.iter().position(|value| value.cells == *cells);
                takes.push(there.unwrap_or_else(|| {
                    let uniform = cells.iter().all(|cell| self.uniform[cell.index()]);
                    let bits = self.bits(cells[0]);
                    values.push(Value { cells: cells.clone(), bits, uniform, views: Vec::new() });
                    gives.push(values.len() - 1);
                    values.len() - 1
                }));
            }
            inserted.push((call.circuit, takes, 0));
        }
        for ((bits, uniform), cells) in self.carried(depth) {
            values.push(Value { cells, bits, uniform, views: Vec::new() });
            gives.push(values.len() - 1);
        }
        let (circuit, takes) = self.part(depth, is_last, (&values[..known], &values[..], &gives));
        if is_last {
            gives = (0..self.circuit.outputs.len()).map(|at| values.len() + at).collect();
            values.extend(self.circuit.outputs.iter().map(|port| Value::of(port, &self.uniform)));
        }
        for ((_, _, gives), call) in inserted.iter_mut().zip(&calls) {
            *gives = values.len();
            values.push(Value::of(&call.outputs[0], &self.uniform));
        }
        Draft { circuit, takes, gives, inserted }
    }

    /// The cells of this depth that later parts compute with, or that are outputs, by their shape.
    fn carried(&self, depth: usize) -> BTreeMap<(u8, bool), Vec<Wire>> {
        let last = self.calls.iter().map(|call| self.depth(call)).max().unwrap_or(0);
        let mut needed = vec![false; self.circuit.ops.len()];
        for (i, op) in self.circuit.ops.iter().enumerate() {
            if self.depths[i] > depth && !self.is_inside[i] {
                operands(op).for_each(|wire| needed[wire.index()] = true);
            }
        }
        for call in self.calls.iter().filter(|call| self.depth(call) > depth + 1) {
            call.inputs.iter().flatten().for_each(|wire| needed[wire.index()] = true);
        }
        if depth < last {
            let outputs = self.circuit.outputs.iter().flat_map(|port| &port.cells);
            outputs.for_each(|wire| needed[wire.index()] = true);
        }
        let mut carried: BTreeMap<(u8, bool), Vec<Wire>> = BTreeMap::new();
        for i in (0..needed.len()).filter(|i| needed[*i] && self.is_of(depth, *i)) {
            let wire = Wire(i as u32);
            carried.entry((self.bits(wire), self.uniform[i])).or_default().push(wire);
        }
        carried
    }

    /// Whether an operation is computed in the part of a depth.
    fn is_of(&self, depth: usize, op: usize) -> bool {
        let is_input = matches!(self.circuit.ops[op], Op::Input { .. });
        self.depths[op] == depth && !self.is_inside[op] && !is_input
    }

    /// The circuit of a part, and the values that it takes.
    fn part(
        &self,
        depth: usize,
        is_last: bool,
        (known, values, gives): (&[Value], &[Value], &[usize]),
    ) -> (Circuit, Vec<usize>) {
        let wanted: Vec<Wire> = gives.iter().flat_map(|value| &values[*value].cells).copied().collect();
        let outputs = self.circuit.outputs.iter().flat_map(|port| &port.cells).filter(|_| is_last);
        let wanted: Vec<Wire> = wanted.into_iter().chain(outputs.copied()).collect();
        let computed = self.needed_for(depth, &wanted);

        let mut from: HashMap<Wire, usize> = HashMap::new();
        for (number, value) in known.iter().enumerate() {
            value.cells.iter().for_each(|wire| _ = from.entry(*wire).or_insert(number));
        }
        let of_ops = computed.iter().flat_map(|op| operands(&self.circuit.ops[*op]));
        let sources = of_ops.chain(wanted.iter().copied()).filter(|wire| !self.is_of(depth, wire.index()));
        let mut takes: Vec<usize> = sources.map(|wire| from[&wire]).collect();
        takes.sort_unstable();
        takes.dedup();

        let mut b = Builder::new(&format!("{}-part-{depth}", self.circuit.name));
        let mut here: HashMap<Wire, Wire> = HashMap::new();
        for number in &takes {
            let Value { cells, bits, uniform, .. } = &known[*number];
            let name = number.to_string();
            let inputs = match uniform {
                true => b.uniform_input(&name, cells.len(), *bits),
                false => b.input(&name, cells.len(), *bits),
            };
            cells.iter().zip(inputs).for_each(|(wire, input)| _ = here.entry(*wire).or_insert(input));
        }
        for op in computed {
            let wire = match &self.circuit.ops[op] {
                Op::Linear { terms, constant, .. } => {
                    b.linear(terms.iter().map(|(wire, m)| (here[wire], *m)).collect(), *constant)
                }
                Op::Lookup { table, x } => {
                    let table = b.table(&self.circuit.tables[table.index()]);
                    b.lookup(table, here[x])
                }
                Op::Input { .. } => unreachable!("no part computes an input"),
            };
            here.insert(Wire(op as u32), wire);
        }
        let mut output = |name: &str, cells: &[Wire]| {
            b.output(name, &cells.iter().map(|wire| here[wire]).collect::<Vec<_>>());
        };
        gives.iter().for_each(|value| output(&value.to_string(), &values[*value].cells));
        if is_last {
            self.circuit.outputs.iter().for_each(|port| output(&port.name, &port.cells));
        }
        (b.finish(), takes)
    }

    /// The operations of a depth on which some cells rest, in order.
    fn needed_for(&self, depth: usize, wanted: &[Wire]) -> Vec<usize> {
        let mut needed = vec![false; self.circuit.ops.len()];
        wanted.iter().for_each(|wire| needed[wire.index()] = true);
        for i in (0..needed.len()).rev().filter(|i| self.is_of(depth, *i)) {
            if needed[i] {
                operands(&self.circuit.ops[i]).for_each(|wire| needed[wire.index()] = true);
            }
        }
        (0..needed.len()).filter(|i| needed[*i] && self.is_of(depth, *i)).collect()
    }

    fn bits(&self, wire: Wire) -> u8 {
        match &self.circuit.ops[wire.index()] {
            Op::Input { bits, .. } | Op::Linear { bits, .. } => *bits,
            Op::Lookup { table, .. } => self.circuit.tables[table.index()].out_bits(),
        }
    }

    /// The output of each circuit by its digest, with the views that any part needs of one.
    fn outputs(
        &self,
        drafts: &[Draft],
        values: &[Value],
        maps: &dyn Maps,
    ) -> HashMap<[u8; 32], CompiledPort> {
        let mut views: HashMap<[u8; 32], Vec<Matrix>> = HashMap::new();
        for (circuit, _, gives) in drafts.iter().flat_map(|draft| &draft.inserted) {
            views.entry(*circuit).or_default().extend(&values[*gives].views);
        }
        let mut outputs = HashMap::new();
        for call in &self.calls {
            outputs.entry(call.circuit).or_insert_with(|| {
                let mut views = views.remove(&call.circuit).unwrap_or_default();
                views.sort_unstable();
                views.dedup();
                let port = &call.outputs[0];
                let mut b = Builder::new("output");
                let cells = b.input(&port.name, port.cells.len(), port.bits);
                b.output(&port.name, &cells);
                compile_with_views(&b.finish(), maps, |_| views.clone()).outputs()[0].clone()
            });
        }
        outputs
    }
}

fn operands(op: &Op) -> impl Iterator<Item = Wire> {
    let (terms, x) = match op {
        Op::Input { .. } => (&[][..], None),
        Op::Linear { terms, .. } => (&terms[..], None),
        Op::Lookup { x, .. } => (&[][..], Some(*x)),
    };
    terms.iter().map(|(wire, _)| *wire).chain(x)
}

//! Writes a circuit to a file.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::BitOrder;
use crate::boolean::and_table;
use crate::{Circuit, Matrix, Op, Port, Wire};

/// Why a circuit cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A port of wider cells.
    #[error(
        "port {port} has cells of {bits} bits; expand the circuit to single bits first (boolean::expand)"
    )]
    WideCells {
        /// Which port.
        port: String,
        /// Width of its cells.
        bits: u8,
    },
    /// A table that is not AND.
    #[error("table {0} is no gate of the format; expand the circuit to single bits first (boolean::expand)")]
    Table(String),
    /// No inputs, or no outputs.
    #[error("a circuit without inputs or without outputs cannot be written")]
    NoPorts,
}

/// Writes a circuit whose only table is AND and whose ports are cells of one bit, with the gates that its
/// outputs need.
pub fn write(circuit: &Circuit, order: BitOrder) -> Result<String, WriteError> {
    let ports = || circuit.inputs().iter().chain(circuit.outputs());
    if let Some(port) = ports().find(|port| port.bits != 1) {
        return Err(WriteError::WideCells { port: port.name.clone(), bits: port.bits });
    }
    let and = and_table();
    let is_and = |entries: &[u8]| entries == and.entries();
    if let Some(table) = circuit.tables().iter().find(|t| !is_and(t.entries())) {
        return Err(WriteError::Table(table.name().into()));
    }
    if circuit.inputs().is_empty() || circuit.outputs().is_empty() || ports().any(|p| p.cells.is_empty()) {
        return Err(WriteError::NoPorts);
    }
    let mut file = File::default();
    let signals = file.signals(circuit, order);
    let outputs = bits_of(circuit.outputs(), order).map(|wire| signals[wire.index()][0]);
    let outputs: Vec<usize> = outputs.collect::<Vec<Signal>>().into_iter().map(|s| file.output(s)).collect();
    Ok(file.text(circuit, &outputs))
}

/// The cells of ports in the order of wires.
fn bits_of(ports: &[Port], order: BitOrder) -> impl Iterator<Item = Wire> {
    ports.iter().flat_map(move |port| order.arranged(port.cells.clone()))
}

/// A bit: the result of a gate, or an input, perhaps negated; or a constant.
#[derive(Clone, Copy)]
struct Signal {
    node: Option<usize>,
    negated: bool,
}

const ZERO: Signal = Signal { node: None, negated: false };

#[derive(Clone, Copy)]
enum Gate {
    Input,
    Xor(usize, usize),
    And(usize, usize),
    Inv(usize),
    Copy(usize),
    Constant(bool),
}

impl Gate {
    fn operands(self) -> impl Iterator<Item = usize> {
        let (x, y) = match self {
            Gate::Input | Gate::Constant(_) => (None, None),
            Gate::Xor(x, y) | Gate::And(x, y) => (Some(x), Some(y)),
            Gate::Inv(x) | Gate::Copy(x) => (Some(x), None),
        };
        x.into_iter().chain(y)
    }
}

/// Inputs and gates, by the order in which they were made.
#[derive(Default)]
struct File {
    gates: Vec<Gate>,
    negations: HashMap<usize, usize>,
    /// Gates whose result is the wire of an output.
    taken: HashSet<usize>,
}

impl File {
    fn push(&mut self, gate: Gate) -> usize {
        self.gates.push(gate);
        self.gates.len() - 1
    }

    /// The bits of every wire of the circuit, bit 0 first.
    fn signals(&mut self, circuit: &Circuit, order: BitOrder) -> Vec<Vec<Signal>> {
        let mut signals: Vec<Vec<Signal>> = vec![Vec::new(); circuit.ops().len()];
        for wire in bits_of(circuit.inputs(), order) {
            let node = Some(self.push(Gate::Input));
            signals[wire.index()] = vec![Signal { node, negated: false }];
        }
        for (i, op) in circuit.ops().iter().enumerate() {
            match op {
                Op::Input { .. } => {}
                Op::Linear { terms, constant, bits } => {
                    signals[i] = (0..*bits).map(|row| self.sum(&signals, terms, *constant, row)).collect();
                }
                Op::Lookup { x, .. } => {
                    let product = self.and(signals[x.index()][0], signals[x.index()][1]);
                    signals[i] = vec![product];
                }
            }
        }
        signals
    }

    /// Bit `row` of a sum of maps of cells.
    fn sum(&mut self, signals: &[Vec<Signal>], terms: &[(Wire, Matrix)], constant: u8, row: u8) -> Signal {
        let mut sum = Signal { negated: constant >> row & 1 == 1, ..ZERO };
        for (wire, matrix) in terms {
            for (column, bit) in matrix.columns().into_iter().zip(&signals[wire.index()]) {
                if column >> row & 1 == 1 {
                    sum.negated ^= bit.negated;
                    sum.node = match (sum.node, bit.node) {
                        (Some(x), Some(y)) => Some(self.push(Gate::Xor(x, y))),
                        (x, y) => x.or(y),
                    };
                }
            }
        }
        sum
    }

    fn and(&mut self, x: Signal, y: Signal) -> Signal {
        let (Some(_), Some(_)) = (x.node, y.node) else {
            let (constant, other) = if x.node.is_none() { (x, y) } else { (y, x) };
            return if constant.negated { other } else { ZERO };
        };
        let (x, y) = (self.plain(x), self.plain(y));
        Signal { node: Some(self.push(Gate::And(x, y))), negated: false }
    }

    /// A gate or input with the value of a signal.
    fn plain(&mut self, signal: Signal) -> usize {
        match signal {
            Signal { node: None, negated } => self.push(Gate::Constant(negated)),
            Signal { node: Some(node), negated: false } => node,
            Signal { node: Some(node), negated: true } => match self.negations.get(&node) {
                Some(known) => *known,
                None => {
                    let negation = self.push(Gate::Inv(node));
                    self.negations.insert(node, negation);
                    negation
                }
            },
        }
    }

    /// The gate whose result is the wire of an output: a copy, if the value is an input or an output already.
    fn output(&mut self, signal: Signal) -> usize {
        let node = self.plain(signal);
        let is_input = matches!(self.gates[node], Gate::Input);
        let node = if is_input || self.taken.contains(&node) { self.push(Gate::Copy(node)) } else { node };
        self.taken.insert(node);
        node
    }

    /// The file, without the gates that no output needs. The outputs get the last wires.
    fn text(&self, circuit: &Circuit, outputs: &[usize]) -> String {
        let mut needed = vec![false; self.gates.len()];
        outputs.iter().for_each(|node| needed[*node] = true);
        for (i, gate) in self.gates.iter().enumerate().rev() {
            if needed[i] {
                gate.operands().for_each(|operand| needed[operand] = true);
            }
        }
        let written: Vec<usize> =
            (0..self.gates.len()).filter(|i| needed[*i] || matches!(self.gates[*i], Gate::Input)).collect();
        let mut numbers = vec![usize::MAX; self.gates.len()];
        let last = written.len() - outputs.len();
        outputs.iter().zip(last..).for_each(|(node, number)| numbers[*node] = number);
        let others = written.iter().filter(|node| !self.taken.contains(node));
        others.zip(0..).for_each(|(node, number)| numbers[*node] = number);

        let sizes = |ports: &[Port]| {
            let sizes: Vec<String> = ports.iter().map(|port| port.cells.len().to_string()).collect();
            format!("{} {}", ports.len(), sizes.join(" "))
        };
        let gates = written.iter().filter(|i| !matches!(self.gates[**i], Gate::Input));
        let (inputs, out) = (sizes(circuit.inputs()), sizes(circuit.outputs()));
        let mut text = format!("{} {}\n{inputs}\n{out}\n\n", gates.clone().count(), written.len());
        for i in gates {
            let to = numbers[*i];
            let line = match self.gates[*i] {
                Gate::Input => continue,
                Gate::Xor(x, y) => writeln!(text, "2 1 {} {} {to} XOR", numbers[x], numbers[y]),
                Gate::And(x, y) => writeln!(text, "2 1 {} {} {to} AND", numbers[x], numbers[y]),
                Gate::Inv(x) => writeln!(text, "1 1 {} {to} INV", numbers[x]),
                Gate::Copy(x) => writeln!(text, "1 1 {} {to} EQW", numbers[x]),
                Gate::Constant(value) => writeln!(text, "1 1 {} {to} EQ", u8::from(value)),
            };
            line.expect("text takes all that is written to it");
        }
        text
    }
}

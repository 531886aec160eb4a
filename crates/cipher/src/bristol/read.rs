//! From a file to a circuit. Files come from anywhere: nothing in them panics, and no count in them is believed before
//! what it counts is there.

use std::str::SplitAsciiWhitespace;

use super::{BristolError, Order, Problem};
use crate::Circuit;
use crate::boolean::{Bit, BooleanBuilder};

/// Gates of a file that are read. A million of them take about 300 MB while they become a circuit.
pub const MAX_GATES: usize = 20_000_000;
/// Bits of all inputs of a file together.
pub const MAX_INPUT_BITS: usize = 1 << 24;

/// Reads a circuit. Its inputs are `input 0`, `input 1` ... of cells of one bit, those in `uniform` the same for all lanes
/// and the others one per lane; its outputs `output 0`, `output 1` ...
pub fn read(name: &str, text: &str, order: Order, uniform: &[usize]) -> Result<Circuit, BristolError> {
    let mut lines = Lines { rest: text.lines().enumerate(), line: 0 };
    let header = Header::read(&mut lines, text)?;
    if let Some(input) = uniform.iter().find(|input| **input >= header.inputs.len()) {
        return Err(lines.problem(Problem::NoSuchInput { input: *input, inputs: header.inputs.len() }));
    }
    let mut gates = Gates { builder: BooleanBuilder::new(name), wires: vec![None; header.wires], set: 0 };
    for (i, bits) in header.inputs.iter().enumerate() {
        let cells = gates.builder.input(&format!("input {i}"), *bits, uniform.contains(&i));
        for bit in order.arranged(cells) {
            gates.wires[gates.set] = Some(bit);
            gates.set += 1;
        }
    }
    for _ in 0..header.gates {
        let line = match &header.first_gate {
            Some(line) if gates.set == header.input_bits() => *line,
            _ => lines.next("a gate")?,
        };
        gates.gate(line).map_err(|problem| lines.problem(problem))?;
    }
    if header.gates > 0 || header.first_gate.is_none() {
        if lines.next("nothing").is_ok() {
            return Err(lines.problem(Problem::Trailing(header.gates)));
        }
    }
    if gates.set != header.wires {
        let problem = Problem::Wires { announced: header.wires, made: gates.set };
        return Err(BristolError { line: 1, problem });
    }
    let mut first = header.wires - header.outputs.iter().sum::<usize>();
    for (i, bits) in header.outputs.iter().enumerate() {
        let set: Vec<Bit> = gates.wires[first..first + bits].iter().copied().flatten().collect();
        gates.builder.output(&format!("output {i}"), &order.arranged(set));
        first += bits;
    }
    Ok(gates.builder.finish())
}

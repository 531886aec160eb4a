//! Reads a circuit from a file. The file may come from anybody: nothing in it causes a panic, and the reader
//! does not believe a count before it has seen the items that are counted.

use std::iter::Peekable;

use super::{BitOrder, BristolError, Problem};
use crate::Circuit;
use crate::boolean::{Bit, BooleanBuilder};

/// Gates of a file that are read.
pub const MAX_GATES: usize = 20_000_000;
/// Bits of all inputs of a file together.
pub const MAX_INPUT_BITS: usize = 1 << 20;

/// Reads a circuit. Its inputs are `input 0`, `input 1` ... of cells of one bit, those in `uniform` the same
/// for all lanes and the others one per lane; its outputs `output 0`, `output 1` ... Gates that no output
/// needs are left out, and so are copies and repetitions.
pub fn read(name: &str, text: &str, order: BitOrder, uniform: &[usize]) -> Result<Circuit, BristolError> {
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    let mut lines = Lines { rest: filled.peekable(), line: 1 };
    let header = Header::read(&mut lines, text.len())?;
    if let Some(input) = uniform.iter().find(|input| **input >= header.inputs.len()) {
        return Err(lines.problem(Problem::NoSuchInput { input: *input, inputs: header.inputs.len() }));
    }
    let mut gates = Gates {
        builder: BooleanBuilder::new(name),
        wires: vec![None; header.wires],
        set: 0,
        numbers: Vec::new(),
    };
    for (i, bits) in header.inputs.iter().enumerate() {
        let cells = gates.builder.input(&format!("input {i}"), *bits, uniform.contains(&i));
        for bit in order.arranged(cells) {
            gates.wires[gates.set] = Some(bit);
            gates.set += 1;
        }
    }
    for _ in 0..header.gates {
        let line = lines.next("a gate")?;
        gates.gate(line).map_err(|problem| lines.problem(problem))?;
    }
    if lines.next("").is_ok() {
        return Err(lines.problem(Problem::Trailing(header.gates)));
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

/// The lines that are not empty, with the number of the current one.
struct Lines<'a, I: Iterator<Item = (usize, &'a str)>> {
    rest: Peekable<I>,
    line: usize,
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> Lines<'a, I> {
    fn next(&mut self, what: &'static str) -> Result<&'a str, BristolError> {
        let (index, line) = self.rest.next().ok_or_else(|| self.problem(Problem::Ends(what)))?;
        self.line = index + 1;
        Ok(line)
    }

    fn problem(&self, problem: Problem) -> BristolError {
        BristolError { line: self.line, problem }
    }

    /// The next line, all of numbers.
    fn numbers(&mut self, what: &'static str) -> Result<Vec<usize>, BristolError> {
        let line = self.next(what)?;
        let numbers = line.split_ascii_whitespace().map(number).collect::<Result<Vec<usize>, Problem>>();
        numbers.map_err(|problem| self.problem(problem))
    }

    /// The sizes of inputs and outputs: on a line each, behind their number. In the old format there is one
    /// line of two inputs and an output, and a gate follows.
    fn ports(&mut self) -> Result<(Vec<usize>, Vec<usize>), BristolError> {
        let first = self.numbers("the numbers of bits of the inputs")?;
        let next = self.rest.peek().map(|(_, line)| line.trim_ascii_end());
        if !next.is_some_and(|line| line.ends_with(|last: char| last.is_ascii_alphabetic())) {
            let inputs = self.sizes(&first)?;
            let second = self.numbers("the numbers of bits of the outputs")?;
            return Ok((inputs, self.sizes(&second)?));
        }
        let &[left, right, output] = &first[..] else {
            return Err(self.problem(Problem::Header { expected: 3, found: first.len() }));
        };
        Ok(([left, right].into_iter().filter(|bits| *bits > 0).collect(), vec![output]))
    }

    /// A number, and as many sizes.
    fn sizes(&self, numbers: &[usize]) -> Result<Vec<usize>, BristolError> {
        match numbers.split_first() {
            Some((count, sizes)) if *count == sizes.len() => Ok(sizes.to_vec()),
            other => {
                let expected = other.map_or(0, |(count, _)| *count).saturating_add(1);
                Err(self.problem(Problem::Header { expected, found: numbers.len() }))
            }
        }
    }

    fn within(&self, what: &'static str, found: usize, limit: usize) -> Result<(), BristolError> {
        match found <= limit {
            true => Ok(()),
            false => Err(self.problem(Problem::TooMany { what, found, limit })),
        }
    }
}

/// The first lines. All counts are within limits.
struct Header {
    gates: usize,
    wires: usize,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl Header {
    fn read<'a>(
        lines: &mut Lines<'a, impl Iterator<Item = (usize, &'a str)>>,
        text_bytes: usize,
    ) -> Result<Header, BristolError> {
        let totals = lines.numbers("the numbers of gates and wires")?;
        let &[gates, wires] = &totals[..] else {
            return Err(lines.problem(Problem::Header { expected: 2, found: totals.len() }));
        };
        lines.within("gates", gates, MAX_GATES)?;
        let (inputs, outputs) = lines.ports()?;
        let input_bits = inputs.iter().fold(0usize, |sum, bits| sum.saturating_add(*bits));
        lines.within("bits of inputs", input_bits, MAX_INPUT_BITS)?;
        // Every wire of a gate is written in the file.
        lines.within("wires", wires, input_bits.saturating_add(text_bytes.min(2 * MAX_GATES)))?;
        if wires < input_bits {
            return Err(lines.problem(Problem::Wires { announced: wires, made: input_bits }));
        }
        if outputs.iter().fold(0usize, |sum, bits| sum.saturating_add(*bits)) > wires {
            return Err(lines.problem(Problem::Outputs(wires)));
        }
        if inputs.is_empty() || outputs.is_empty() || inputs.contains(&0) || outputs.contains(&0) {
            return Err(lines.problem(Problem::Empty));
        }
        Ok(Header { gates, wires, inputs, outputs })
    }
}

fn number(token: &str) -> Result<usize, Problem> {
    let all_digits = token.bytes().all(|b| b.is_ascii_digit());
    let number: Option<u32> = token.parse().ok().filter(|_| all_digits);
    number.map(|n| n as usize).ok_or_else(|| Problem::Number(shortened(token)))
}

fn shortened(token: &str) -> String {
    token.chars().take(24).collect()
}

/// The gates so far.
struct Gates {
    builder: BooleanBuilder,
    wires: Vec<Option<Bit>>,
    /// How many wires have a value.
    set: usize,
    /// The numbers of the current line.
    numbers: Vec<usize>,
}

impl Gates {
    fn gate(&mut self, line: &str) -> Result<(), Problem> {
        let line = line.trim_ascii();
        let (numbers, name) = line.rsplit_once(|c: char| c.is_ascii_whitespace()).unwrap_or(("", line));
        let name = ["XOR", "AND", "INV", "EQ", "EQW", "MAND"]
            .into_iter()
            .find(|known| *known == name)
            .ok_or_else(|| Problem::Gate(shortened(name)))?;
        let mut all = std::mem::take(&mut self.numbers);
        all.clear();
        for token in numbers.split_ascii_whitespace() {
            all.push(number(token)?);
        }
        let result = self.named(name, &all);
        self.numbers = all;
        result
    }

    fn named(&mut self, name: &'static str, numbers: &[usize]) -> Result<(), Problem> {
        let [ins, outs, wires @ ..] = numbers else { return Err(Problem::Arity(name)) };
        match (name, ins, outs, wires) {
            ("XOR", 2, 1, &[x, y, z]) => {
                let bit = self.builder.xor(self.at(x)?, self.at(y)?);
                self.put(z, bit)
            }
            ("AND", 2, 1, &[x, y, z]) => {
                let bit = self.builder.and(self.at(x)?, self.at(y)?);
                self.put(z, bit)
            }
            ("INV", 1, 1, &[x, z]) => self.put(z, !self.at(x)?),
            ("EQW", 1, 1, &[x, z]) => self.put(z, self.at(x)?),
            ("EQ", 1, 1, &[constant @ (0 | 1), z]) => self.put(z, Bit::constant(constant == 1)),
            ("EQ", 1, 1, &[other, _]) => Err(Problem::Constant(other)),
            ("MAND", ins, outs, _) if *outs > 0 && *ins == 2 * outs && wires.len() == 3 * outs => {
                let products = (0..*outs).map(|i| {
                    let (x, y) = (self.at(wires[i])?, self.at(wires[outs + i])?);
                    Ok(self.builder.and(x, y))
                });
                let products = products.collect::<Result<Vec<Bit>, Problem>>()?;
                wires[2 * outs..].iter().zip(products).try_for_each(|(z, bit)| self.put(*z, bit))
            }
            _ => Err(Problem::Arity(name)),
        }
    }

    fn at(&self, wire: usize) -> Result<Bit, Problem> {
        let bit = self.wires.get(wire).ok_or(Problem::Unknown { wire, wires: self.wires.len() })?;
        bit.ok_or(Problem::Unset(wire))
    }

    fn put(&mut self, wire: usize, bit: Bit) -> Result<(), Problem> {
        let wires = self.wires.len();
        let place = self.wires.get_mut(wire).ok_or(Problem::Unknown { wire, wires })?;
        if place.replace(bit).is_some() {
            return Err(Problem::SetTwice(wire));
        }
        self.set += 1;
        Ok(())
    }
}

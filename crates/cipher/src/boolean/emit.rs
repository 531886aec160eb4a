//! Turns gates into the operations of a circuit.

use std::collections::HashMap;
use std::sync::Arc;

use super::Bit;
use super::builder::{BooleanBuilder, InputPort, Node};
use crate::{Builder, Circuit, Matrix, Table, TableId, Wire};

/// Turns the gates that are needed into operations.
pub(super) struct Emitter {
    builder: Builder,
    and: Option<TableId>,
    wires: Vec<Option<Wire>>,
    /// Gates that become terms of the one sum that uses them.
    inlined: Vec<bool>,
    /// Constants and negations that an output needs as wires.
    made: HashMap<Bit, Wire>,
}

impl Emitter {
    pub(super) fn new(source: &BooleanBuilder) -> Emitter {
        let uses = source.uses();
        let mut inlined = vec![false; uses.len()];
        for (i, node) in source.nodes.iter().enumerate() {
            let Node::Xor(a, b) = node else { continue };
            for operand in [a, b].map(|bit| bit.node()) {
                let is_sum = matches!(source.nodes[operand], Node::Xor(..));
                inlined[operand] |= is_sum && uses[operand] == 1 && uses[i] > 0;
            }
        }
        let mut builder = Builder::new(&source.name);
        let mut wires = vec![None; source.nodes.len()];
        for InputPort { name, nodes, uniform } in &source.inputs {
            let cells = match uniform {
                true => builder.uniform_input(name, nodes.len(), 1),
                false => builder.input(name, nodes.len(), 1),
            };
            nodes.clone().zip(cells).for_each(|(node, wire)| wires[node] = Some(wire));
        }
        // A gate without uses is as one that was inlined: nobody asks for its wire.
        inlined.iter_mut().zip(&uses).for_each(|(inlined, uses)| *inlined |= *uses == 0);
        Emitter { builder, and: None, wires, inlined, made: HashMap::new() }
    }

    pub(super) fn run(mut self, source: &BooleanBuilder) -> Circuit {
        for (i, node) in source.nodes.iter().enumerate() {
            if self.inlined[i] || !node.is_gate() {
                continue;
            }
            self.wires[i] = Some(match node {
                Node::And(a, b) => self.and(*a, *b),
                _ => self.sum(source, i),
            });
        }
        for (name, bits) in &source.outputs {
            let cells: Vec<Wire> = bits.iter().map(|bit| self.plain(source, *bit)).collect();
            self.builder.output(name, &cells);
        }
        self.builder.finish()
    }

    fn wire(&self, node: usize) -> Wire {
        self.wires[node].expect("gates only use gates before them")
    }

    fn and(&mut self, a: Bit, b: Bit) -> Wire {
        let terms = [a, b].map(|bit| self.wire(bit.node()));
        let constant = u8::from(a.is_negated()) | u8::from(b.is_negated()) << 1;
        let terms = vec![(terms[0], Matrix::place(2, 0)), (terms[1], Matrix::place(2, 1))];
        let x = self.builder.linear(terms, constant);
        let builder = &mut self.builder;
        let table = *self.and.get_or_insert_with(|| builder.table(&Arc::new(and_table())));
        self.builder.lookup(table, x)
    }

    fn sum(&mut self, source: &BooleanBuilder, node: usize) -> Wire {
        let (mut open, mut terms) = (vec![node], Vec::new());
        while let Some(next) = open.pop() {
            match &source.nodes[next] {
                Node::Xor(a, b) if next == node || self.inlined[next] => open.extend([b.node(), a.node()]),
                _ => terms.push(self.wire(next)),
            }
        }
        self.builder.xor(&terms)
    }

    /// The wire of an output bit. A constant is what the zero map makes of the first input.
    fn plain(&mut self, source: &BooleanBuilder, bit: Bit) -> Wire {
        if !bit.is_negated() && bit.node() != 0 {
            return self.wire(bit.node());
        }
        if let Some(wire) = self.made.get(&bit) {
            return *wire;
        }
        let term = if bit.node() == 0 {
            let any = source.inputs.iter().find(|port| !port.nodes.is_empty()).map(|port| port.nodes.start);
            (self.wire(any.expect("a circuit has an input")), Matrix::from_columns(&[0], 1))
        } else {
            (self.wire(bit.node()), Matrix::identity(1))
        };
        let wire = self.builder.linear(vec![term], u8::from(bit.is_negated()));
        self.made.insert(bit, wire);
        wire
    }
}

/// The one table of Boolean circuits: from a cell with the operands in bits 0 and 1 to their product.
pub fn and_table() -> Table {
    Table::new("AND", 2, 1, vec![0, 0, 0, 1])
}

//! Builds a [`Circuit`] operation by operation, and inserts circuits into circuits.

use std::sync::Arc;

use crate::circuit::{Call, Op, Port, TableId, Wire};
use crate::{Circuit, Matrix, Table};

/// So many inserted circuits are remembered. Of more, none is: such a circuit is evaluated as a whole.
const MOST_CALLS: usize = 64;

/// A circuit under construction. Misuse (a wire of another width) panics: ciphers are part of the program.
pub struct Builder {
    circuit: Circuit,
    bits: Vec<u8>,
    /// Whether a wire depends on uniform inputs only.
    uniform: Vec<bool>,
    has_few_calls: bool,
}

impl Builder {
    /// An empty circuit of this name.
    pub fn new(name: &str) -> Builder {
        let circuit = Circuit {
            name: name.into(),
            ops: Vec::new(),
            tables: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            calls: Vec::new(),
        };
        Builder { circuit, bits: Vec::new(), uniform: Vec::new(), has_few_calls: true }
    }

    /// `count` cells that differ from lane to lane.
    pub fn input(&mut self, name: &str, count: usize, bits: u8) -> Vec<Wire> {
        self.port(name, count, bits, false)
    }

    /// `count` cells that are the same in all lanes, such as a key.
    pub fn uniform_input(&mut self, name: &str, count: usize, bits: u8) -> Vec<Wire> {
        self.port(name, count, bits, true)
    }

    fn port(&mut self, name: &str, count: usize, bits: u8, uniform: bool) -> Vec<Wire> {
        let cells: Vec<Wire> = (0..count).map(|_| self.push(Op::Input { bits, uniform }, bits)).collect();
        self.circuit.inputs.push(Port { name: name.into(), cells: cells.clone(), bits, uniform });
        cells
    }

    /// Declares a table, once per circuit.
    pub fn table(&mut self, table: &Arc<Table>) -> TableId {
        let tables = &mut self.circuit.tables;
        let index = tables.iter().position(|t| t == table).unwrap_or_else(|| {
            tables.push(table.clone());
            tables.len() - 1
        });
        TableId(index as u32)
    }

    /// table\[x\].
    pub fn lookup(&mut self, table: TableId, x: Wire) -> Wire {
        let t = &self.circuit.tables[table.index()];
        assert_eq!(t.in_bits(), self.bits[x.index()], "table {} takes cells of another width", t.name());
        let bits = t.out_bits();
        self.push(Op::Lookup { table, x }, bits)
    }

    /// table\[x\] of each cell.
    pub fn lookup_each(&mut self, table: TableId, cells: &[Wire]) -> Vec<Wire> {
        cells.iter().map(|x| self.lookup(table, *x)).collect()
    }

    /// The sum of the terms and a constant.
    pub fn linear(&mut self, terms: Vec<(Wire, Matrix)>, constant: u8) -> Wire {
        let bits = terms.first().expect("a linear map has a term").1.outs();
        for (wire, matrix) in &terms {
            assert_eq!(self.bits[wire.index()], matrix.ins(), "a matrix takes a cell of another width");
            assert_eq!(matrix.outs(), bits, "the terms of a sum have one width");
        }
        self.push(Op::Linear { terms, constant, bits }, bits)
    }

    /// The XOR of cells of one width.
    pub fn xor(&mut self, cells: &[Wire]) -> Wire {
        self.xor_constant(cells, 0)
    }

    /// The XOR of cells of one width and a constant.
    pub fn xor_constant(&mut self, cells: &[Wire], constant: u8) -> Wire {
        let terms = cells.iter().map(|w| (*w, Matrix::identity(self.bits[w.index()]))).collect();
        self.linear(terms, constant)
    }

    /// The XOR of each cell and the one beside it, of one width.
    pub fn xor_each(&mut self, cells: &[Wire], others: &[Wire]) -> Vec<Wire> {
        cells.iter().zip(others).map(|(x, y)| self.xor(&[*x, *y])).collect()
    }

    /// Inserts a whole circuit. `arguments` are the cells of its inputs, port by port. Returns the cells of
    /// its outputs.
    pub fn call(&mut self, circuit: &Circuit, arguments: &[&[Wire]]) -> Vec<Vec<Wire>> {
        assert_eq!(arguments.len(), circuit.inputs.len(), "{} has other inputs", circuit.name);
        let mut here: Vec<Option<Wire>> = vec![None; circuit.ops.len()];
        for (port, cells) in circuit.inputs.iter().zip(arguments) {
            assert_eq!(port.cells.len(), cells.len(), "input {} has another number of cells", port.name);
            for (theirs, ours) in port.cells.iter().zip(*cells) {
                assert_eq!(
                    port.bits,
                    self.bits[ours.index()],
                    "input {} has cells of another width",
                    port.name
                );
                here[theirs.index()] = Some(*ours);
            }
        }
        let tables: Vec<TableId> = circuit.tables.iter().map(|t| self.table(t)).collect();
        // How many operations there were here before each of theirs, and behind the last one.
        let mut before = Vec::with_capacity(circuit.ops.len() + 1);
        for (i, op) in circuit.ops.iter().enumerate() {
            before.push(self.circuit.ops.len());
            let at = |w: &Wire| here[w.index()].expect("operations use wires before them");
            let wire = match op {
                Op::Input { .. } => continue,
                Op::Linear { terms, constant, .. } => {
                    let terms = terms.iter().map(|(w, m)| (at(w), *m)).collect();
                    self.linear(terms, *constant)
                }
                Op::Lookup { table, x } => {
                    let x = at(x);
                    self.lookup(tables[table.index()], x)
                }
            };
            here[i] = Some(wire);
        }
        before.push(self.circuit.ops.len());
        let wires = |theirs: &[Wire]| -> Vec<Wire> {
            theirs.iter().map(|w| here[w.index()].expect("it was made")).collect()
        };
        self.has_few_calls &= self.circuit.calls.len() + circuit.calls.len() < MOST_CALLS;
        if self.has_few_calls {
            let moved = |port: &Port| Port { cells: wires(&port.cells), ..port.clone() };
            self.circuit.calls.extend(circuit.calls.iter().map(|call| Call {
                circuit: call.circuit,
                ops: before[call.ops.start]..before[call.ops.end],
                inputs: call.inputs.iter().map(|cells| wires(cells)).collect(),
                outputs: call.outputs.iter().map(moved).collect(),
            }));
            self.circuit.calls.push(Call {
                circuit: circuit.digest(),
                ops: before[0]..self.circuit.ops.len(),
                inputs: arguments.iter().map(|cells| cells.to_vec()).collect(),
                outputs: circuit.outputs.iter().map(moved).collect(),
            });
        }
        circuit.outputs.iter().map(|port| wires(&port.cells)).collect()
    }

    /// Declares an output.
    pub fn output(&mut self, name: &str, cells: &[Wire]) {
        let bits = self.bits[cells[0].index()];
        assert!(cells.iter().all(|w| self.bits[w.index()] == bits), "the cells of a port have one width");
        let uniform = cells.iter().all(|w| self.uniform[w.index()]);
        self.circuit.outputs.push(Port { name: name.into(), cells: cells.to_vec(), bits, uniform });
    }

    /// The circuit.
    pub fn finish(mut self) -> Circuit {
        if !self.has_few_calls {
            self.circuit.calls.clear();
        }
        self.circuit
    }

    fn push(&mut self, op: Op, bits: u8) -> Wire {
        let uniform = match &op {
            Op::Input { uniform, .. } => *uniform,
            Op::Linear { terms, .. } => terms.iter().all(|(w, _)| self.uniform[w.index()]),
            Op::Lookup { x, .. } => self.uniform[x.index()],
        };
        self.circuit.ops.push(op);
        self.bits.push(bits);
        self.uniform.push(uniform);
        Wire(self.circuit.ops.len() as u32 - 1)
    }
}

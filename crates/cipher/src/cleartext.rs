//! Evaluates compiled circuits on plain values, all lanes at once: the reference with which every protocol is
//! compared.
//!
//! Not constant time (tables are indexed by the data): for known answers and comparison, not for secrets in
//! use.

use polyclave_kernels::affine::{Map, combine};

use crate::compile::{Compiled, CompiledPort, Linear, Slot};
use crate::{Cells, Matrix};

/// What is wrong with the inputs of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Not one value per input port.
    #[error("{circuit} takes {expected} inputs, {given} were given")]
    Count {
        /// The name of the circuit.
        circuit: String,
        /// How many it has.
        expected: usize,
        /// How many came.
        given: usize,
    },
    /// Cells of another number, width or number of lanes.
    #[error("input {port} takes {expected}, not {given}")]
    Shape {
        /// Which input.
        port: String,
        /// Its shape.
        expected: String,
        /// What came.
        given: String,
    },
}

/// Runs a circuit; `inputs` in the order of its ports, uniform ones with one lane. Returns the output ports.
pub fn run(compiled: &Compiled, lanes: usize, inputs: &[Cells]) -> Result<Vec<Cells>, InputError> {
    check_shapes(compiled, lanes, inputs)?;
    let mut registers = Registers {
        lanes: vec![vec![0; lanes]; compiled.lane_slots()],
        uniform: vec![vec![0]; compiled.uniform_slots()],
        width: lanes,
    };
    for (port, cells) in compiled.inputs().iter().zip(inputs) {
        for (i, views) in port.cells.iter().enumerate() {
            for (m, slot) in views {
                registers.put(*slot, cells.row(i).iter().map(|x| m.apply(*x)).collect());
            }
        }
    }
    for layer in compiled.layers() {
        layer.linear.iter().for_each(|l| registers.linear(l));
        for lookup in &layer.lookups {
            let table = &compiled.tables()[lookup.table];
            let x = registers.at(lookup.xs[0]).to_vec();
            for (m, slot) in &lookup.views {
                registers.put(*slot, x.iter().map(|x| m.apply(table.entries()[usize::from(*x)])).collect());
            }
        }
    }
    Ok(compiled.outputs().iter().map(|port| registers.output(port)).collect())
}

/// Whether `inputs` fit the ports of a circuit.
pub fn check_shapes(compiled: &Compiled, lanes: usize, inputs: &[Cells]) -> Result<(), InputError> {
    let ports = compiled.inputs();
    if ports.len() != inputs.len() {
        let circuit = compiled.name().into();
        return Err(InputError::Count { circuit, expected: ports.len(), given: inputs.len() });
    }
    let shape = |count, bits, lanes| format!("{count} cells of {bits} bits in {lanes} lanes");
    for (port, cells) in ports.iter().zip(inputs) {
        let expected = shape(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes });
        let given = shape(cells.count(), cells.bits(), cells.lanes());
        if expected != given {
            return Err(InputError::Shape { port: port.name.clone(), expected, given });
        }
    }
    Ok(())
}

struct Registers {
    lanes: Vec<Vec<u8>>,
    uniform: Vec<Vec<u8>>,
    width: usize,
}

impl Registers {
    fn at(&self, slot: Slot) -> &[u8] {
        match slot {
            Slot::Lanes(i) => &self.lanes[i as usize],
            Slot::Uniform(i) => &self.uniform[i as usize],
        }
    }

    fn put(&mut self, slot: Slot, row: Vec<u8>) {
        match slot {
            Slot::Lanes(i) => self.lanes[i as usize] = row,
            Slot::Uniform(i) => self.uniform[i as usize] = row,
        }
    }

    fn linear(&mut self, linear: &Linear) {
        let wide = matches!(linear.dst, Slot::Lanes(_));
        let mut constant = linear.constant;
        let mut terms = Vec::new();
        for (slot, m) in &linear.terms {
            match (slot, wide) {
                (Slot::Uniform(i), true) => constant ^= m.apply(self.uniform[*i as usize][0]),
                _ => terms.push((self.at(*slot), map(m))),
            }
        }
        let mut row = vec![0; if wide { self.width } else { 1 }];
        let terms: Vec<_> =
            terms.iter().map(|(src, map)| polyclave_kernels::affine::Term { src, map }).collect();
        combine(&mut row, &terms, constant);
        self.put(linear.dst, row);
    }

    fn output(&self, port: &CompiledPort) -> Cells {
        let lanes = if port.uniform { 1 } else { self.width };
        let mut cells = Cells::zero(port.cells.len(), port.bits, lanes);
        for (i, views) in port.cells.iter().enumerate() {
            match self.at(views[0].1) {
                // A uniform cell among others.
                [one] => cells.row_mut(i).fill(*one),
                row => cells.row_mut(i).copy_from_slice(row),
            }
        }
        cells
    }
}

/// The matrix as the kernels take it.
fn map(m: &Matrix) -> Map {
    Map::new(m.columns())
}

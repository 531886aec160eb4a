//! Turns linear maps into lookups, for protocols in which a view costs as much as a lookup
//! ([`Maps::pays_for_views`]).
//!
//! A map of a lookup's output stays a view of the lookup if the table's input is no wider than its output:
//! the view is one projection, and a lookup of the map would be one too. A map of an input also stays a view,
//! because the input's owner may get it more cheaply. A map of a sum would be a view of everything in the
//! sum. Instead it is looked up, once for each wire and map. Otherwise, in a cipher whose state is a sum of
//! more and more terms (a Feistel network, a shift register), the number of views would grow with the rounds.

use std::collections::HashMap;
use std::sync::Arc;

use super::Maps;
use crate::{Circuit, Matrix, Op, Table, TableId, Wire};

/// The same function, in which what is not local is a map of an input or of a narrow lookup, or a lookup.
pub(super) fn write(circuit: &Circuit, maps: &dyn Maps) -> Circuit {
    let mut writer = Writer {
        maps,
        ops: Vec::with_capacity(circuit.ops().len()),
        tables: circuit.tables().to_vec(),
        looked_up: HashMap::new(),
    };
    let mut here: Vec<Wire> = Vec::with_capacity(circuit.ops().len());
    for op in circuit.ops() {
        let op = match op {
            Op::Input { .. } => op.clone(),
            Op::Lookup { table, x } => Op::Lookup { table: *table, x: here[x.index()] },
            Op::Linear { terms, constant, bits } => {
                let mut constant = *constant;
                let term = |(wire, m): &(Wire, Matrix)| {
                    let (wire, m, also) = writer.term(here[wire.index()], *m);
                    constant ^= also;
                    (wire, m)
                };
                let terms = terms.iter().map(term).filter(|(_, m)| !m.is_zero()).collect();
                Op::Linear { terms, constant, bits: *bits }
            }
        };
        here.push(writer.push(op));
    }
    let moved = |ports: &[crate::Port]| -> Vec<crate::Port> {
        let cells = |port: &crate::Port| port.cells.iter().map(|wire| here[wire.index()]).collect();
        ports.iter().map(|port| crate::Port { cells: cells(port), ..port.clone() }).collect()
    };
    let (inputs, outputs) = (moved(circuit.inputs()), moved(circuit.outputs()));
    let name = circuit.name().into();
    Circuit { name, ops: writer.ops, tables: writer.tables, inputs, outputs, calls: Vec::new() }
}

struct Writer<'m> {
    maps: &'m dyn Maps,
    ops: Vec<Op>,
    tables: Vec<Arc<Table>>,
    looked_up: HashMap<(Wire, Matrix), Wire>,
}

impl Writer<'_> {
    fn push(&mut self, op: Op) -> Wire {
        self.ops.push(op);
        Wire(self.ops.len() as u32 - 1)
    }

    /// A term that equals a map of a wire except for a constant.
    fn term(&mut self, wire: Wire, m: Matrix) -> (Wire, Matrix, u8) {
        if self.maps.is_local(&m) || m.is_zero() {
            return (wire, m, 0);
        }
        match &self.ops[wire.index()] {
            Op::Input { .. } => (wire, m, 0),
            Op::Lookup { table, .. } => {
                let table = &self.tables[table.index()];
                match table.in_bits() <= table.out_bits() {
                    true => (wire, m, 0),
                    false => (self.look_up(wire, m), Matrix::identity(m.outs()), 0),
                }
            }
            // A sum of one term: both maps in one.
            Op::Linear { terms, constant, .. } if terms.len() == 1 => {
                let ((inner, first), constant) = (terms[0], m.apply(*constant));
                let (wire, m, also) = self.term(inner, m.after(&first));
                (wire, m, constant ^ also)
            }
            Op::Linear { terms, constant, .. } if terms.is_empty() => {
                (wire, Matrix::from_columns(&vec![0; m.ins().into()], m.outs()), m.apply(*constant))
            }
            Op::Linear { .. } => (self.look_up(wire, m), Matrix::identity(m.outs()), 0),
        }
    }

    fn look_up(&mut self, x: Wire, m: Matrix) -> Wire {
        if let Some(known) = self.looked_up.get(&(x, m)) {
            return *known;
        }
        let images = (0..1_u16 << m.ins()).map(|x| m.apply(x as u8)).collect();
        let table = Table::new("linear map", m.ins(), m.outs(), images);
        let at = self.tables.iter().position(|known| **known == table).unwrap_or_else(|| {
            self.tables.push(Arc::new(table));
            self.tables.len() - 1
        });
        let made = self.push(Op::Lookup { table: TableId(at as u32), x });
        self.looked_up.insert((x, m), made);
        made
    }
}

#[cfg(test)]
mod tests {
    use crate::{Builder, Cells, Matrix, catalog, cleartext, compile};

    use super::*;

    /// Only sums are free, and cells with zeros put above them.
    struct Sums;

    impl Maps for Sums {
        fn is_local(&self, m: &Matrix) -> bool {
            (0..m.ins()).all(|i| m.columns()[usize::from(i)] == 1 << i)
        }
        fn pays_for_views(&self) -> bool {
            true
        }
    }

    /// Views of all lookups.
    fn projections(circuit: &Circuit) -> usize {
        compile(circuit, &Sums).lookups().map(|lookup| lookup.views.len()).sum()
    }

    #[test]
    fn aes_takes_the_s_box_and_twice_the_s_box() {
        let aes = catalog::find("aes-128").expect("known");
        assert_eq!(projections(&aes.encrypt), 144 * 2 + 16);
    }

    #[test]
    fn a_map_of_a_growing_sum_is_one_lookup_a_round() {
        let mut b = Builder::new("register");
        let double = Matrix::of(4, 4, |x| ((x << 1) ^ ((x >> 3) * 0x13)) & 15);
        let table = b.table(&Arc::new(Table::new("s", 4, 4, (0..16).map(|x| x * 7 % 16).collect())));
        let mut state = b.input("x", 3, 4);
        for _ in 0..20 {
            let s = b.lookup(table, state[2]);
            let next = b.linear(
                vec![(state[0], double), (s, Matrix::identity(4)), (state[1], Matrix::identity(4))],
                3,
            );
            state = vec![state[1], state[2], next];
        }
        b.output("y", &state);
        let circuit = b.finish();
        // The first three states are inputs, of which maps are views.
        assert_eq!(projections(&circuit), 20 + 17);
        let folded = compile(&circuit, &Folding).lookups().map(|lookup| lookup.views.len()).sum::<usize>();
        assert!(folded > 60, "{folded}");
        let mut blocks = Cells::zero(3, 4, 9);
        blocks.rows_mut().iter_mut().enumerate().for_each(|(i, x)| *x = (i * i % 16) as u8);
        let run = |compiled| cleartext::run(&compiled, 9, std::slice::from_ref(&blocks)).expect("it fits");
        let (written, plain) = (run(compile(&circuit, &Sums)), run(compile(&circuit, &crate::AnyMap)));
        assert!(written == plain);
    }

    /// The same without such lookups.
    struct Folding;

    impl Maps for Folding {
        fn is_local(&self, m: &Matrix) -> bool {
            m.is_identity()
        }
    }

    #[test]
    fn the_written_circuits_compute_what_the_ciphers_do() {
        for cipher in catalog::all() {
            for circuit in [Some(&cipher.encrypt), cipher.decrypt.as_ref()].into_iter().flatten() {
                let inputs: Vec<Cells> = circuit
                    .inputs()
                    .iter()
                    .map(|port| {
                        let mut cells = Cells::zero(port.cells.len(), port.bits, 1);
                        let keep = 0xff >> (8 - port.bits);
                        let fill = |(i, x): (usize, &mut u8)| *x = (i * 37 + i / 7 + 5) as u8 & keep;
                        cells.rows_mut().iter_mut().enumerate().for_each(fill);
                        cells
                    })
                    .collect();
                let run = |compiled| cleartext::run(&compiled, 1, &inputs).expect("they fit");
                assert!(
                    run(compile(circuit, &Sums)) == run(compile(circuit, &crate::AnyMap)),
                    "{}",
                    cipher.name
                );
            }
        }
    }
}

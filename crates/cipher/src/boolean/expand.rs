//! Any circuit as a Boolean circuit: every cell in bits, tables as gates.

use super::decomposition::Decomposition;
use super::inversion::InversionGates;
use super::{Bit, BooleanBuilder};
use crate::{Circuit, Matrix, Op, Table, Wire};

/// The same function of single bits. A port of n cells of k bits becomes one of n k cells of one bit, the most significant
/// bit of each cell first, so that the bytes of a port stay what they are (of cells whose width divides 8).
///
/// A table built on inversion in GF(2^8) takes 34 ANDs, four deep; another one of 6 bits (DES) at most 24, three deep.
pub fn expand(circuit: &Circuit) -> Circuit {
    let mut b = BooleanBuilder::new(circuit.name());
    let gates: Vec<Gates> = circuit.tables().iter().map(|table| Gates::of(table)).collect();
    // The bits of each cell, bit 0 first.
    let mut cells: Vec<Vec<Bit>> = vec![Vec::new(); circuit.ops().len()];
    for port in circuit.inputs() {
        let width = usize::from(port.bits);
        let bits = b.input(&port.name, port.cells.len() * width, port.uniform);
        for (wire, cell) in port.cells.iter().zip(bits.chunks(width)) {
            cells[wire.index()] = cell.iter().rev().copied().collect();
        }
    }
    for (i, op) in circuit.ops().iter().enumerate() {
        match op {
            Op::Input { .. } => {}
            Op::Linear { terms, constant, bits } => {
                cells[i] = (0..*bits).map(|r| sum(&mut b, &cells, terms, *constant, r)).collect();
            }
            Op::Lookup { table, x } => cells[i] = gates[table.index()].write(&mut b, &cells[x.index()]),
        }
    }
    for port in circuit.outputs() {
        let bits = port.cells.iter().flat_map(|wire| cells[wire.index()].iter().rev().copied());
        b.output(&port.name, &bits.collect::<Vec<Bit>>());
    }
    b.finish()
}

/// Bit `row` of a sum of maps of cells.
fn sum(b: &mut BooleanBuilder, cells: &[Vec<Bit>], terms: &[(Wire, Matrix)], constant: u8, row: u8) -> Bit {
    let bits = terms.iter().flat_map(|(wire, matrix)| {
        let columns = matrix.columns().into_iter().zip(&cells[wire.index()]);
        columns.filter(|(column, _)| column >> row & 1 == 1).map(|(_, bit)| *bit)
    });
    let sum = b.xor_all(&bits.collect::<Vec<Bit>>());
    b.xor(sum, Bit::constant(constant >> row & 1 == 1))
}

/// What stands for a table.
enum Gates {
    Inversion(Box<InversionGates>),
    Decomposition(Decomposition),
}

impl Gates {
    fn of(table: &Table) -> Gates {
        match table.inversion() {
            Some(inversion) => Gates::Inversion(Box::new(InversionGates::of(inversion))),
            None => Gates::Decomposition(Decomposition::of(table)),
        }
    }

    fn write(&self, b: &mut BooleanBuilder, x: &[Bit]) -> Vec<Bit> {
        match self {
            Gates::Inversion(gates) => gates.write(b, x),
            Gates::Decomposition(gates) => gates.write(b, x),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{AnyMap, Builder, Cells, aes, cleartext, compile, des};

    /// A table as gates: its ANDs and their depth, after all its inputs were checked.
    fn checked(table: Table) -> (usize, usize) {
        let (ins, outs) = (table.in_bits(), table.out_bits());
        let mut b = Builder::new(table.name());
        let t = b.table(&Arc::new(table.clone()));
        let x = b.input("x", 1, ins)[0];
        let y = b.lookup(t, x);
        b.output("y", &[y]);
        let circuit = expand(&b.finish());

        let lanes = 1 << ins;
        let mut inputs = Cells::zero(ins.into(), 1, lanes);
        for i in 0..ins {
            let row = inputs.row_mut(usize::from(ins - 1 - i));
            row.iter_mut().enumerate().for_each(|(x, bit)| *bit = (x >> i & 1) as u8);
        }
        let y = cleartext::run(&compile(&circuit, &AnyMap), lanes, &[inputs]).expect("one input").remove(0);
        for (x, entry) in table.entries().iter().enumerate() {
            let found = (0..usize::from(outs)).fold(0, |y_x, i| y_x << 1 | y.row(i)[x]);
            assert_eq!(found, *entry, "{} at {x}", table.name());
        }
        (circuit.lookups(), circuit.layers())
    }

    #[test]
    fn s_boxes_of_aes_have_34_ands_four_deep() {
        assert_eq!(checked(aes::s_box()), (34, 4));
        assert_eq!(checked(aes::inverse_s_box()), (34, 4));
    }

    #[test]
    fn s_boxes_of_des_have_165_ands_together_three_deep() {
        let counts: Vec<(usize, usize)> = (0..8).map(|i| checked(des::s_box(i))).collect();
        assert_eq!(
            counts.iter().map(|(ands, _)| ands).collect::<Vec<_>>(),
            [&22, &21, &22, &14, &22, &22, &21, &21]
        );
        assert!(counts.iter().all(|(_, depth)| *depth == 3));
    }

    #[test]
    fn tables_of_any_width_are_decomposed() {
        for (ins, outs) in [(1, 1), (1, 8), (2, 1), (2, 3), (3, 5), (5, 2), (7, 7), (8, 8)] {
            let entries =
                (0..1u32 << ins).map(|x| ((x * x * 151 + x * 37 + 11) >> 2) as u8 & (0xff >> (8 - outs)));
            checked(Table::new("table", ins, outs, entries.collect()));
        }
    }
}

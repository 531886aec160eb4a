//! Turns any circuit into a Boolean circuit: cells become bits, and tables become gates.

use super::decomposition::Decomposition;
use super::inversion::InversionGates;
use super::{Bit, BooleanBuilder};
use crate::{Circuit, Form, Matrix, Op, Table, Wire};

/// The same function of single bits. A port of n cells of k bits becomes one of n k cells of one bit, the
/// most significant bit of each cell first, so that the bytes of a port stay what they are. Where k does not
/// divide 8, a cell has a byte of its own there and becomes 8 cells: the first ones are ignored in an input
/// and 0 in an output.
///
/// A table that carries gates takes the ANDs of these, one built on inversion in GF(2^8) 34, four deep, and
/// another one of 6 bits (DES) at most 24, three deep.
pub fn expand(circuit: &Circuit) -> Circuit {
    let mut b = BooleanBuilder::new(circuit.name());
    let gates: Vec<Gates> = circuit.tables().iter().map(|table| Gates::of(table)).collect();
    // The bits of each cell, bit 0 first.
    let mut cells: Vec<Vec<Bit>> = vec![Vec::new(); circuit.ops().len()];
    for port in circuit.inputs() {
        let width = usize::from(written_bits(port.bits));
        let bits = b.input(&port.name, port.cells.len() * width, port.uniform);
        for (wire, cell) in port.cells.iter().zip(bits.chunks(width)) {
            cells[wire.index()] = cell.iter().rev().take(port.bits.into()).copied().collect();
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
        let zeros = usize::from(written_bits(port.bits) - port.bits);
        let bits = port.cells.iter().flat_map(|wire| {
            std::iter::repeat_n(Bit::ZERO, zeros).chain(cells[wire.index()].iter().rev().copied())
        });
        b.output(&port.name, &bits.collect::<Vec<Bit>>());
    }
    b.finish()
}

/// The bits that a cell of this width takes in the bytes of a port ([`crate::Cells::place`]).
fn written_bits(bits: u8) -> u8 {
    if 8 % bits == 0 { bits } else { 8 }
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
    Given(crate::Gates),
    Inversion(Box<InversionGates>),
    Decomposition(Decomposition),
}

impl Gates {
    fn of(table: &Table) -> Gates {
        match (table.gates(), table.inversion()) {
            (Some(gates), _) => Gates::Given(gates.clone()),
            (None, Some(inversion)) => Gates::Inversion(Box::new(InversionGates::of(inversion))),
            (None, None) => Gates::Decomposition(Decomposition::of(table)),
        }
    }

    fn write(&self, b: &mut BooleanBuilder, x: &[Bit]) -> Vec<Bit> {
        match self {
            Gates::Given(gates) => given(gates, b, x),
            Gates::Inversion(gates) => gates.write(b, x),
            Gates::Decomposition(gates) => gates.write(b, x),
        }
    }
}

/// The gates that a table carries, on the bits of one cell, bit 0 first.
fn given(gates: &crate::Gates, b: &mut BooleanBuilder, x: &[Bit]) -> Vec<Bit> {
    let mut terms = x.to_vec();
    // All sums so far: a sum starts from the one that it has most in common with.
    let mut made: Vec<(u64, Bit)> = vec![(0, Bit::ZERO)];
    made.extend((0..).zip(x).map(|(i, bit)| (1 << i, *bit)));
    for [left, right] in gates.products() {
        let (left, right) = (form(b, *left, &terms, &mut made), form(b, *right, &terms, &mut made));
        let product = b.and(left, right);
        made.push((1 << terms.len(), product));
        terms.push(product);
    }
    gates.outputs().iter().map(|output| form(b, *output, &terms, &mut made)).collect()
}

fn form(b: &mut BooleanBuilder, form: Form, terms: &[Bit], made: &mut Vec<(u64, Bit)>) -> Bit {
    let difference = |(known, _): &&(u64, Bit)| (known ^ form.terms()).count_ones();
    let (known, mut bit) = *made.iter().min_by_key(difference).expect("the empty sum is there");
    for (_, term) in (0..).zip(terms).filter(|(i, _)| (known ^ form.terms()) >> i & 1 == 1) {
        bit = b.xor(bit, *term);
    }
    made.push((form.terms(), bit));
    b.xor(bit, Bit::constant(form.is_negated()))
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
        let mut inputs = Cells::zero(written_bits(ins).into(), 1, lanes);
        for i in 0..ins {
            let row = inputs.row_mut(usize::from(written_bits(ins) - 1 - i));
            row.iter_mut().enumerate().for_each(|(x, bit)| *bit = (x >> i & 1) as u8);
        }
        let y = cleartext::run(&compile(&circuit, &AnyMap), lanes, &[inputs]).expect("one input").remove(0);
        for (x, entry) in table.entries().iter().enumerate() {
            let found = (0..usize::from(written_bits(outs))).fold(0, |y_x, i| y_x << 1 | y.row(i)[x]);
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

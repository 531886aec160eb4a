//! Circuits of one lookup and of gates, and schemes of authenticated sharing to run them.

use std::sync::Arc;

use polyclave_cipher::{Builder, Circuit, Matrix, Table, catalog};
use polyclave_field::MacField;
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use polyclave_protocol_lab::dealers::InsecureDealing;

pub fn config<F: MacField>(parties: usize, way: LookupMethod) -> SpdzConfig<F> {
    let packing = Packing::of::<F>(F::BITS as usize).expect("the field has this packing");
    SpdzConfig::new(parties, way, Preprocessing::Dealt(&InsecureDealing), packing).expect("it is valid")
}

/// T(x + k) + k, with x from party 1 and k from party 2.
pub fn one_lookup(table: Table) -> Circuit {
    let mut b = Builder::new("one lookup");
    let (ins, outs) = (table.in_bits(), table.out_bits());
    let table = b.table(&Arc::new(table));
    let x = b.input("x", 1, ins)[0];
    let k = b.input("k", 1, ins)[0];
    let sum = b.xor(&[x, k]);
    let y = b.lookup(table, sum);
    let y = if ins == outs { b.xor(&[y, k]) } else { y };
    b.output("y", &[y]);
    b.finish()
}

pub fn narrow(in_bits: u8) -> Circuit {
    let entries = (0..1u32 << in_bits).map(|x| (x.wrapping_mul(0x9e37_79b9) >> 24) as u8 & 15).collect();
    one_lookup(Table::new("a table", in_bits, 4, entries))
}

/// A table of the cipher, as the catalogue describes it: with its inversion or its polynomials.
pub fn table_of(cipher: &str) -> Circuit {
    let circuit = catalog::find(cipher).expect("the catalog has it").encrypt;
    one_lookup((*circuit.tables()[0]).clone())
}

/// The table that undoes it.
pub fn inverse_table_of(cipher: &str) -> Circuit {
    let circuit = catalog::find(cipher).expect("the catalog has it").decrypt.expect("it has an inverse");
    one_lookup((*circuit.tables()[0]).clone())
}

/// A gate of every kind, NOTs, a gate of a wire with itself, gates of wires that are the same for all lanes,
/// alone and with others, and constants.
pub fn gates() -> Circuit {
    let place = |i| Matrix::place(2, i);
    let mut b = Builder::new("gates");
    let tables =
        (0..16_u8).map(|entries| Table::new("a table", 2, 1, (0..4).map(|x| entries >> x & 1).collect()));
    let tables: Vec<_> = tables.map(|table| b.table(&Arc::new(table))).collect();
    let x = b.input("x", 2, 1);
    let k = b.uniform_input("k", 2, 1);
    let pair = b.linear(vec![(x[0], place(0)), (x[1], place(1))], 0b10);
    let keys = b.linear(vec![(k[0], place(0)), (k[1], place(1))], 0b01);
    let mixed = b.linear(vec![(k[0], place(0)), (x[1], place(1))], 0);
    let twice = b.linear(vec![(x[0], Matrix::of(1, 2, |x| 3 * x))], 0);
    let mut outputs = Vec::new();
    for table in &tables {
        outputs.extend([pair, mixed, twice].map(|cell| b.lookup(*table, cell)));
    }
    let uniform: Vec<_> = tables.iter().map(|table| b.lookup(*table, keys)).collect();
    let again = b.linear(vec![(outputs[3], place(0)), (uniform[8], place(1)), (x[0], place(1))], 0b01);
    outputs.push(b.lookup(tables[7], again));
    let nothing = Matrix::of(1, 1, |_| 0);
    outputs.extend([0, 1].map(|one| b.linear(vec![(x[0], nothing)], one)));
    b.output("y", &outputs);
    b.output("k", &uniform);
    b.finish()
}

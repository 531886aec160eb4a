//! Circuits of one lookup, and schemes of authenticated sharing to run them.

use std::sync::Arc;

use polyclave_cipher::{Builder, Circuit, Table, catalog};
use polyclave_field::MacField;
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};

pub fn config<F: MacField>(parties: usize, way: LookupMethod) -> SpdzConfig<F> {
    let packing = Packing::of::<F>(F::BITS as usize).expect("the field has this packing");
    SpdzConfig::new(parties, way, Preprocessing::InsecureDealer, packing).expect("it is valid")
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

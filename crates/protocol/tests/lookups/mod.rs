//! Sessions of authenticated sharing on circuits of one lookup.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Port, Table, catalog, compile};
use polyclave_field::MacField;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, Scheme};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{Terms, hello};
use polyclave_protocol::spdz::{Packing, Preprocessing, SpdzScheme, Way};
use polyclave_protocol::{Party, Result};

pub fn scheme<F: MacField>(parties: usize, way: Way) -> SpdzScheme<F> {
    let packing = Packing::of::<F>(F::BITS as usize).expect("the field has this packing");
    SpdzScheme::new(parties, way, Preprocessing::InsecureDealer, packing).expect("it is valid")
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

/// Lanes of every session.
pub const LANES: usize = 4;

pub fn inputs(circuit: &Circuit) -> Vec<Cells> {
    let port = |(i, port): (usize, &Port)| {
        let mut cells = Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { LANES });
        let value =
            |at: usize| (at as u8).wrapping_mul(29).wrapping_add(7 * i as u8 + 3) & (0xff >> (8 - port.bits));
        cells.rows_mut().iter_mut().enumerate().for_each(|(at, cell)| *cell = value(at));
        cells
    };
    circuit.inputs().iter().enumerate().map(port).collect()
}

/// From hello to output; input port i is party i's.
pub fn session<F: MacField>(
    way: Way,
    circuit: &Circuit,
    to: Owner,
    net: &mut dyn Net,
) -> Result<Option<Vec<u8>>> {
    let scheme = scheme::<F>(net.parties(), way);
    let mut session = hello(&scheme.terms(Terms::new(net.parties())), net)?;
    let mut protocol = scheme.join(&scheme.set_up(net)?, session.stream(), net.members())?;
    let compiled = compile(circuit, &protocol);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let cells = inputs(circuit);
    let input = |(i, cells)| match Party(i as u8) {
        owner if owner == net.me() => Input::Mine(cells),
        owner => Input::From(owner),
    };
    let inputs: Vec<_> = cells.iter().enumerate().map(input).collect();
    let output = evaluate(&mut protocol, &compiled, LANES, &inputs, batch, net)?.remove(0);
    Ok(release(&mut protocol, &output, to, net)?.map(|released| released.accept().to_blocks()))
}

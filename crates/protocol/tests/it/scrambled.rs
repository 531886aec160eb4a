//! Circuits and sessions of scrambled tables.

use std::sync::Arc;

use polyclave_cipher::{AnyMap, Builder, Cells, Circuit, Matrix, Port, Table, catalog, cleartext, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Checked;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tinytable::{Macs, Preprocessing, TinyTableConfig, Worth};
use polyclave_protocol::{Party, Result};

/// Lanes of every session: of packed gates more than a byte.
pub const LANES: usize = 9;

/// All variants that verify.
pub const ACTIVE: [Macs; 3] = [Macs::Lookup32, Macs::Lookup64, Macs::Linear64];

/// One that verifies.
pub fn active(macs: Macs, from: Preprocessing) -> TinyTableConfig<Checked<Cells>> {
    TinyTableConfig::new(macs, from).expect("it verifies")
}

/// T(x + k) + z, with k the same for all lanes; twice the table where outputs are inputs again.
pub fn cells(table: Table) -> Circuit {
    let mut b = Builder::new("cells");
    let (ins, outs) = (table.in_bits(), table.out_bits());
    let table = b.table(&Arc::new(table));
    let x = b.input("x", 1, ins)[0];
    let k = b.uniform_input("k", 1, ins)[0];
    let z = b.input("z", 1, outs)[0];
    let sum = b.xor(&[x, k]);
    let mut y = b.lookup(table, sum);
    if ins == outs {
        let sum = b.xor(&[y, k]);
        y = b.lookup(table, sum);
    }
    let y = b.xor(&[y, z]);
    b.output("y", &[y]);
    b.finish()
}

/// A table of some bits, a cell of which takes less than a byte.
pub fn small(in_bits: u8, out_bits: u8) -> Table {
    let entry = |x: u32| (x.wrapping_mul(0x9e37_79b9) >> 24) as u8 & (0xff >> (8 - out_bits));
    Table::new("a table", in_bits, out_bits, (0..1 << in_bits).map(entry).collect())
}

/// The first table of a cipher.
pub fn table_of(cipher: &str) -> Table {
    (*catalog::find(cipher).expect("the catalog has it").encrypt.tables()[0]).clone()
}

/// Gates in two layers, of which one is the same for all lanes.
pub fn gates() -> Circuit {
    let place = |i| Matrix::place(2, i);
    let mut b = Builder::new("gates");
    let and = b.table(&Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1])));
    let x = b.input("x", 2, 1);
    let k = b.uniform_input("k", 2, 1);
    let z = b.input("z", 2, 1);
    let pair = b.linear(vec![(x[0], place(0)), (x[1], place(1))], 0b10);
    let first = b.lookup(and, pair);
    let keys = b.linear(vec![(k[0], place(0)), (k[1], place(1))], 0);
    let uniform = b.lookup(and, keys);
    let pair = b.linear(vec![(first, place(0)), (uniform, place(1))], 0b01);
    let second = b.lookup(and, pair);
    let y = [b.xor(&[second, z[0]]), b.xor(&[first, z[1], x[0]])];
    b.output("y", &y);
    b.finish()
}

/// Cells for every input of a circuit.
pub fn inputs(circuit: &Circuit) -> Vec<Cells> {
    let port = |(i, port): (usize, &Port)| {
        let mut cells = Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { LANES });
        let value = |at: usize| (at * 29 + 7 * i + 3) as u8 & (0xff >> (8 - port.bits));
        cells.rows_mut().iter_mut().enumerate().for_each(|(at, cell)| *cell = value(at));
        cells
    };
    circuit.inputs().iter().enumerate().map(port).collect()
}

/// Two evaluations, from hello to outputs. In the first z is public, in the second it is the first one's
/// output, and x and k come from the other party. The second output is for all, then the first for one.
pub fn session<R: Worth>(
    config: &TinyTableConfig<R>,
    circuit: &Circuit,
    one: Party,
    net: &mut dyn Net,
) -> Result<[Option<Vec<u8>>; 2]> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(circuit, &protocol);
    let cells = inputs(circuit);
    let me = net.me();
    let given =
        |by: u8, i: usize| if me == Party(by) { Input::Mine(&cells[i]) } else { Input::From(Party(by)) };
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let sources = [given(0, 0), given(1, 1), Input::Public(&cells[2])];
    let first = evaluate(&mut protocol, &compiled, LANES, &sources, batch, net)?.remove(0);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let sources = [given(1, 0), given(0, 1), Input::Shared(&first)];
    let second = evaluate(&mut protocol, &compiled, LANES, &sources, batch, net)?.remove(0);
    let mut revealed = |shared, to| -> Result<_> {
        Ok(release(&mut protocol, shared, to, net)?.map(|released| released.accept().to_blocks()))
    };
    Ok([revealed(&second, Owner::All)?, revealed(&first, Owner::Party(one))?])
}

/// What every party should end with.
pub fn right(circuit: &Circuit, one: Party) -> [[Option<Vec<u8>>; 2]; 2] {
    let compiled = compile(circuit, &AnyMap);
    let mut cells = inputs(circuit);
    let first = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    cells[2] = first.clone();
    let second = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    [0, 1].map(|p| [Some(second.to_blocks()), (one == Party(p)).then(|| first.to_blocks())])
}

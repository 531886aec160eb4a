//! Parties with tables to which they are committed, and circuits for them.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Matrix, Table, aes, boolean, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::{Checked, Released};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tinytable::{Macs, Preprocessing, TinyTable, TinyTableConfig};
use polyclave_protocol::{Error, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;

pub type Committed = TinyTableConfig<Checked<Cells>>;

pub fn config() -> Committed {
    TinyTableConfig::new(Macs::Minimac, Preprocessing::Dealt(&InsecureDealing)).expect("there is a dealer")
}

/// Gates in two layers, one of them the same for all lanes.
pub fn gates() -> Circuit {
    let and = Arc::new(boolean::and_table());
    let mut b = Builder::new("gates");
    let (x, k) = (b.input("x", 2, 1), b.uniform_input("k", 2, 1));
    let and = b.table(&and);
    let place = |i| Matrix::place(2, i);
    let pair = b.linear(vec![(x[0], place(0)), (x[1], place(1))], 0b10);
    let first = b.lookup(and, pair);
    let keys = b.linear(vec![(k[0], place(0)), (k[1], place(1))], 0);
    let uniform = b.lookup(and, keys);
    let pair = b.linear(vec![(first, place(0)), (uniform, place(1))], 0b01);
    let second = b.lookup(and, pair);
    let not = b.linear(vec![(second, Matrix::identity(1)), (x[0], Matrix::identity(1))], 1);
    b.output("y", &[second, not, first]);
    b.finish()
}

/// Layers of tables on all of some cells.
pub fn layers(table: Table, cells: usize, layers: usize) -> Circuit {
    let (bits, table) = (table.in_bits(), Arc::new(table));
    let mut b = Builder::new("layers");
    let mut x = b.input("x", cells, bits);
    let table = b.table(&table);
    for _ in 0..layers {
        x = x.iter().map(|x| b.lookup(table, *x)).collect();
    }
    b.output("y", &x);
    b.finish()
}

pub fn two_layers_of_aes() -> Circuit {
    layers(aes::s_box(), 4, 2)
}

pub fn join(net: &mut dyn Net) -> Result<TinyTable<Checked<Cells>>> {
    let config = config();
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    config.join(&config.setup(net)?, session.stream(), net.members())
}

pub fn zeros(circuit: &Circuit, lanes: usize) -> Vec<Cells> {
    let of = |uniform: bool| if uniform { 1 } else { lanes };
    circuit.inputs().iter().map(|p| Cells::zero(p.cells.len(), p.bits, of(p.uniform))).collect()
}

/// Evaluates a circuit on public zeros, so many times, and releases all.
pub fn evaluations(
    times: usize,
    circuit: &Circuit,
    lanes: usize,
    net: &mut dyn Net,
) -> Result<(Vec<Cells>, u64)> {
    let mut protocol = join(net)?;
    let compiled = compile(circuit, &protocol);
    let cells = zeros(circuit, lanes);
    let inputs: Vec<_> = cells.iter().map(Input::Public).collect();
    let mut shared = Vec::new();
    for _ in 0..times {
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        shared.extend(evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?);
    }
    let mut released = Vec::new();
    for shared in &shared {
        let cells = release(&mut protocol, shared, Owner::All, net)?;
        released.push(cells.ok_or_else(|| Error::misuse("it is for all"))?.accept());
    }
    Ok((released, protocol.tally().online.rounds))
}

//! One party of garbled circuits cheats in one message: the other ends with the right output or with an
//! error, never with a wrong one, and nothing hangs or panics. More than a passive protocol promises: labels
//! are authentic.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Matrix, Port, Table, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::garbled::{GarbledConfig, Gates};
use polyclave_protocol_lab::testkit::faults::{Promise, Sweep};
use polyclave_protocol_lab::testkit::tamper::Fault;

fn config(gates: Gates) -> GarbledConfig {
    GarbledConfig { gates, expansion: 8 }
}

const LANES: usize = 9;

/// Gates in two layers, of which one is the same for all lanes.
fn gates() -> Circuit {
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
fn inputs(circuit: &Circuit) -> Vec<Cells> {
    let port = |(i, port): (usize, &Port)| {
        let mut cells = Cells::zero(port.cells.len(), 1, if port.uniform { 1 } else { LANES });
        let value = |at: usize| (at * 29 + 7 * i + 3) as u8 >> 2 & 1;
        cells.rows_mut().iter_mut().enumerate().for_each(|(at, cell)| *cell = value(at));
        cells
    };
    circuit.inputs().iter().enumerate().map(port).collect()
}

/// Two evaluations, from hello to outputs: one input of each party and a public one, then a shared one.
fn session(config: GarbledConfig, net: &mut dyn Net) -> Result<[Option<Vec<u8>>; 3]> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let circuit = gates();
    let compiled = compile(&circuit, &protocol);
    let cells = inputs(&circuit);
    let me = net.me();
    let given =
        |by: u8, i: usize| if me == Party(by) { Input::Mine(&cells[i]) } else { Input::From(Party(by)) };
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let sources = [given(1, 0), given(0, 1), Input::Public(&cells[2])];
    let first = evaluate(&mut protocol, &compiled, LANES, &sources, batch, net)?.remove(0);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let sources = [given(0, 0), given(1, 1), Input::Shared(&first)];
    let second = evaluate(&mut protocol, &compiled, LANES, &sources, batch, net)?.remove(0);
    let mut revealed = |shared, to| -> Result<_> {
        Ok(release(&mut protocol, shared, to, net)?.map(|cells| cells.trust_all_parties().to_blocks()))
    };
    let both = revealed(&second, Owner::All)?;
    Ok([both, revealed(&first, Owner::Party(Party(0)))?, revealed(&first, Owner::Party(Party(1)))?])
}

fn sweep(cheater: Party) {
    Gates::ALL.into_iter().for_each(|gates| sweep_of(gates, cheater));
}

fn sweep_of(gates: Gates, cheater: Party) {
    let mut sweep = Sweep { drop_every: 3, ..Sweep::new(2, cheater, Promise::RightOrAborted) };
    let flips = [(3, 1), (40, 7), (200, 2), (usize::MAX, 6)];
    sweep.faults.extend(flips.map(|(byte, bit)| Fault::FlipBit { byte, bit }));
    let swept = sweep.run(move |net| session(config(gates), net));
    println!("{cheater} cheats under {gates:?}: {swept:?}");
    // Flips in the ciphertexts that the evaluator's colours do not choose change nothing.
    assert!(swept.faults > 6 * swept.messages && swept.survived * 2 < swept.faults, "{swept:?}");
}

#[test]
fn no_fault_of_the_garbler_makes_a_wrong_output() {
    sweep(Party(0));
}

#[test]
fn no_fault_of_the_evaluator_makes_a_wrong_output() {
    sweep(Party(1));
}

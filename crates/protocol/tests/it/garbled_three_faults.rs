//! One of three parties of garbled circuits cheats in one message: the others end with the right output or
//! with an error, never with a wrong one, and nothing hangs or panics. Every message from hello to output, in
//! every way: keys of the setup, tables, digests, labels ahead and online, outputs and their shares.
//!
//! A cheater here goes on with the honest program, which stops when it finds its own fault. Cheaters that do
//! not are in `replicated/garbled/cheaters.rs`.

use polyclave_cipher::{AnyMap, Cells, Circuit, cleartext, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::replicated::GarbledThreeConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep, Swept, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;

use crate::scrambled::{LANES, gates, inputs};

/// Two evaluations, from hello to outputs. In the first each party gives an input. In the second x is public,
/// z is the first one's output, and so is k, one lane of it, whose labels are given ahead. Then the second
/// output is for all, and the first for party 2.
fn session(config: GarbledThreeConfig, net: &mut dyn Net) -> Result<[Option<Vec<u8>>; 2]> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(&gates(), &protocol);
    let cells = inputs(&gates());
    let me = net.me();
    let given =
        |by: u8, i: usize| if me == Party(by) { Input::Mine(&cells[i]) } else { Input::From(Party(by)) };
    let circuit = prepare(&mut protocol, &compiled, LANES, net)?;
    let ahead = prepare(&mut protocol, &compiled, LANES, net)?;
    let sources = [given(0, 0), given(1, 1), given(2, 2)];
    let first = evaluate(&mut protocol, &compiled, LANES, &sources, circuit, net)?.remove(0);
    let lane = polyclave_protocol::protocol::Session::select_lanes(&protocol, &first, &[4]);
    let circuit = protocol.give(&compiled, ahead, "k", &lane, net)?;
    let sources = [Input::Public(&cells[0]), Input::Shared(&lane), Input::Shared(&first)];
    let second = evaluate(&mut protocol, &compiled, LANES, &sources, circuit, net)?.remove(0);
    let mut revealed = |shared, to| -> Result<_> {
        Ok(release(&mut protocol, shared, to, net)?.map(|released| released.accept().to_blocks()))
    };
    Ok([revealed(&second, Owner::All)?, revealed(&first, Owner::Party(Party(1)))?])
}

/// What every party should end with.
fn right(circuit: &Circuit) -> Vec<Result<[Option<Vec<u8>>; 2]>> {
    let compiled = compile(circuit, &AnyMap);
    let mut cells: Vec<Cells> = inputs(circuit);
    let first = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    let mut lane = Cells::zero(first.count(), 1, 1);
    (0..first.count()).for_each(|cell| lane.row_mut(cell)[0] = first.row(cell)[4]);
    (cells[1], cells[2]) = (lane, first.clone());
    let second = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    let outputs = |p| [Some(second.to_blocks()), (p == Party(1)).then(|| first.to_blocks())];
    Party::all(3).map(|p| Ok(outputs(p))).collect()
}

fn sweep(config: GarbledThreeConfig, cheater: Party) -> Swept {
    let honest = run_over(mesh_with_timeout(3, LATE), move |net| session(config, net));
    assert_eq!(honest, right(&gates()));
    let mut sweep = Sweep::new(3, cheater, Promise::of(&config));
    let flips = [(3, 1), (17, 7), (40, 2), (usize::MAX, 6)];
    sweep.faults.extend(flips.map(|(byte, bit)| Fault::FlipBit { byte, bit }));
    let swept = sweep.run(move |net| session(config, net));
    println!("{cheater} cheats: {swept:?}");
    assert!(swept.messages >= 15 && swept.faults > 6 * swept.messages, "{swept:?}");
    swept
}

#[test]
fn no_fault_of_the_first_garbler_makes_a_wrong_output() {
    sweep(GarbledThreeConfig::default(), Party(0));
}

#[test]
fn no_fault_of_the_second_garbler_makes_a_wrong_output() {
    sweep(GarbledThreeConfig::default(), Party(1));
}

#[test]
fn no_fault_of_the_evaluator_makes_a_wrong_output() {
    sweep(GarbledThreeConfig::default(), Party(2));
}

#[test]
fn no_fault_makes_a_wrong_output_if_another_party_evaluates() {
    let config = GarbledThreeConfig::with_evaluator(Party(0)).expect("there is one");
    sweep(config, Party(1));
}

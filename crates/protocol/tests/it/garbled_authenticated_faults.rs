//! One of two parties of authenticated garbling cheats in one message: the other one ends with the right
//! output or with an error, never with a wrong one, and nothing hangs or panics. Every message from hello to
//! output, in every way: of the setup and the material, openings, gates, labels ahead and online, outputs and
//! their shares.
//!
//! A cheater here goes on with the honest program, which stops when it finds its own fault. Cheaters that do
//! not are in `spdz/garbled/cheaters.rs`.

use polyclave_cipher::{AnyMap, Cells, Circuit, cleartext, compile};
use polyclave_protocol::evaluate::{evaluate, release};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::GarbledAuthenticatedConfig;
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep, Swept, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;

use crate::scrambled::{LANES, gates, inputs};

/// Two evaluations, from hello to outputs. In the first both parties give inputs. In the second x is public,
/// z is the first one's output, and so is k, one lane of it, whose labels are given ahead. Then the second
/// output is for all, and the first for party 2.
fn session(config: &GarbledAuthenticatedConfig, net: &mut dyn Net) -> Result<[Option<Vec<u8>>; 2]> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(&gates(), &protocol);
    let cells = inputs(&gates());
    let me = net.me();
    let given =
        |by: u8, i: usize| if me == Party(by) { Input::Mine(&cells[i]) } else { Input::From(Party(by)) };
    let mut made = protocol.make(&compiled, LANES, 2, net)?;
    let (ahead, circuit) = (made.remove(0), made.remove(0));
    let sources = [given(0, 0), given(1, 1), given(0, 2)];
    let first = evaluate(&mut protocol, &compiled, LANES, &sources, circuit, net)?.remove(0);
    let lane = protocol.select_lanes(&first, &[4]);
    let circuit = protocol.give(&compiled, ahead, "k", &lane, net)?;
    let sources = [Input::Public(&cells[0]), Input::Shared(&lane), Input::Shared(&first)];
    let second = evaluate(&mut protocol, &compiled, LANES, &sources, circuit, net)?.remove(0);
    let mut revealed = |shared, to| -> Result<_> {
        Ok(release(&mut protocol, shared, to, net)?.map(|released| released.accept().to_blocks()))
    };
    Ok([revealed(&second, Owner::All)?, revealed(&first, Owner::Party(Party(1)))?])
}

/// What both parties should end with.
fn right(circuit: &Circuit) -> Vec<Result<[Option<Vec<u8>>; 2]>> {
    let compiled = compile(circuit, &AnyMap);
    let mut cells: Vec<Cells> = inputs(circuit);
    let first = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    let mut lane = Cells::zero(first.count(), 1, 1);
    (0..first.count()).for_each(|cell| lane.row_mut(cell)[0] = first.row(cell)[4]);
    (cells[1], cells[2]) = (lane, first.clone());
    let second = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    let outputs = |p| [Some(second.to_blocks()), (p == Party(1)).then(|| first.to_blocks())];
    Party::all(2).map(|p| Ok(outputs(p))).collect()
}

fn sweep(cheater: Party) -> Swept {
    let config = || GarbledAuthenticatedConfig::with_evaluator(Party(1)).expect("there are two");
    let of_honest = config();
    let honest = run_over(mesh_with_timeout(2, LATE), move |net| session(&of_honest, net));
    assert_eq!(honest, right(&gates()));
    let config = config();
    let mut sweep = Sweep::new(2, cheater, Promise::of(&config));
    let flips = [(17, 7), (40, 2), (usize::MAX, 6)];
    sweep.faults.extend(flips.map(|(byte, bit)| Fault::FlipBit { byte, bit }));
    let swept = sweep.run(move |net| session(&config, net));
    println!("{cheater} cheats: {swept:?}");
    assert!(swept.messages >= 30 && swept.faults > 6 * swept.messages, "{swept:?}");
    swept
}

#[test]
fn no_fault_of_the_garbler_makes_a_wrong_output() {
    sweep(Party(0));
}

#[test]
fn no_fault_of_the_evaluator_makes_a_wrong_output() {
    sweep(Party(1));
}

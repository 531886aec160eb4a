//! One of two parties of authenticated garbling cheats in one message: the other one ends with the right
//! output or with an error, never with a wrong one, and nothing hangs or panics. Every message behind the
//! material of the circuits, in every way: openings, tags, gates, labels ahead and online, outputs and their
//! shares, with the checks of MACs. Faults in the setup and in the making of material are in
//! `mascot_faults.rs` and `tinyot_faults.rs`.
//!
//! A cheater here goes on with the honest program, which stops when it finds its own fault. Cheaters that do
//! not are in `spdz/garbled/cheaters.rs`.

use polyclave_cipher::{AnyMap, Cells, Circuit, Compiled, cleartext, compile};
use polyclave_protocol::evaluate::{evaluate, release};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::{GarbledAuthenticated, GarbledAuthenticatedConfig, GarbledCircuit};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep, Swept, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;

use crate::scrambled::{LANES, gates, inputs};

/// A session with two circuits.
fn begun(
    config: &GarbledAuthenticatedConfig,
    net: &mut dyn Net,
) -> Result<(GarbledAuthenticated, Compiled, Vec<GarbledCircuit>)> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(&gates(), &protocol);
    let made = protocol.make(&compiled, LANES, 2, net)?;
    Ok((protocol, compiled, made))
}

/// Two evaluations. In the first both parties give inputs. In the second x is public, z is the first one's
/// output, and so is k, one lane of it, whose labels are given ahead. The second output is for all.
fn session(config: &GarbledAuthenticatedConfig, net: &mut dyn Net) -> Result<Vec<u8>> {
    let (mut protocol, compiled, mut made) = begun(config, net)?;
    let (ahead, circuit) = (made.remove(0), made.remove(0));
    let cells = inputs(&gates());
    let me = net.me();
    let given =
        |by: u8, i: usize| if me == Party(by) { Input::Mine(&cells[i]) } else { Input::From(Party(by)) };
    let sources = [given(0, 0), given(1, 1), given(0, 2)];
    let first = evaluate(&mut protocol, &compiled, LANES, &sources, circuit, net)?.remove(0);
    let lane = protocol.select_lanes(&first, &[4]);
    let circuit = protocol.give(&compiled, ahead, "k", &lane, net)?;
    let sources = [Input::Public(&cells[0]), Input::Shared(&lane), Input::Shared(&first)];
    let second = evaluate(&mut protocol, &compiled, LANES, &sources, circuit, net)?.remove(0);
    let released = release(&mut protocol, &second, Owner::All, net)?.expect("it is for all");
    Ok(released.accept().to_blocks())
}

/// What both parties should end with.
fn right(circuit: &Circuit) -> Result<Vec<u8>> {
    let compiled = compile(circuit, &AnyMap);
    let mut cells: Vec<Cells> = inputs(circuit);
    let first = cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0);
    let mut lane = Cells::zero(first.count(), 1, 1);
    (0..first.count()).for_each(|cell| lane.row_mut(cell)[0] = first.row(cell)[4]);
    (cells[1], cells[2]) = (lane, first);
    Ok(cleartext::run(&compiled, LANES, &cells).expect("the inputs fit").remove(0).to_blocks())
}

/// Messages of each party before its own openings of d and e: behind them come f, the hash of tags, and from
/// the garbler two circuits.
fn messages_before() -> [u64; 2] {
    let ends: Vec<_> = mesh_with_timeout(2, LATE).into_iter().map(Metered::new).collect();
    let meters: Vec<_> = ends.iter().map(Metered::meter).collect();
    let config = GarbledAuthenticatedConfig::with_evaluator(Party(1)).expect("there are two");
    let outcomes = run_over(ends, move |net| begun(&config, net).map(|_| ()));
    assert_eq!(outcomes, [Ok(()), Ok(())]);
    [0, 1].map(|party: usize| meters[party].snapshot().messages_sent - [5, 3][party])
}

fn sweep(cheater: Party) -> Swept {
    let config = || GarbledAuthenticatedConfig::with_evaluator(Party(1)).expect("there are two");
    let of_honest = config();
    let honest = run_over(mesh_with_timeout(2, LATE), move |net| session(&of_honest, net));
    assert_eq!(honest, [right(&gates()), right(&gates())]);
    let config = config();
    let first = messages_before()[cheater.index()];
    let mut sweep = Sweep { first, ..Sweep::new(2, cheater, Promise::of(&config)) };
    sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
    let swept = sweep.run(move |net| session(&config, net));
    println!("{cheater} cheats from message {first} on: {swept:?}");
    // Two evaluations, the labels of a key, and an output, each but the last with messages of its own.
    assert!(swept.messages >= first + 25, "{swept:?}");
    assert!(swept.faults > 5 * (swept.messages - first), "{swept:?}");
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

//! Replicated sharing against the cleartext evaluator, and what it sends.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Direction, aes, boolean, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{mesh, run_parties};
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::replicated::Passive;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, PartySet, Result};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};

type ReplicatedConfig = polyclave_protocol::replicated::ReplicatedConfig<Passive>;

fn config() -> ReplicatedConfig {
    ReplicatedConfig::default()
}

fn check(circuit: &Circuit, lanes: usize) -> Run {
    let run = check_circuit(&config(), circuit, lanes, lanes as u8);
    let operations = run.cost.operations_per_lane * lanes as f64 + run.cost.operations_uniform;
    for tally in &run.tallies {
        let online = (tally.online.rounds as f64, tally.online.operations() as f64);
        assert_eq!(online, (run.cost.rounds, operations), "{}: counted, predicted", circuit.name());
    }
    run
}

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    cipher.circuit_with_key_schedule(direction).expect("it runs both ways")
}

#[test]
fn every_cipher_runs_in_both_directions_with_as_many_products_as_predicted() {
    for cipher in catalog::all() {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            if let Some(circuit) = cipher.circuit_with_key_schedule(direction) {
                check(&circuit, 3);
            }
        }
    }
}

#[test]
fn every_number_of_lanes_is_right() {
    for lanes in [1, 7, 8, 9, 64, 65, 511, 512, 513, 5000] {
        check(&with_key_schedule("aes-128", Direction::Encrypt), lanes);
    }
    for lanes in [1, 8, 100] {
        check(&with_key_schedule("des", Direction::Decrypt), lanes);
    }
}

#[test]
fn circuits_of_bits_run_with_gates_of_every_kind() {
    for lanes in [1, 2, 8, 63, 65, 1025] {
        check(&super::lookups::gates(), lanes);
    }
    for name in ["adder-64", "comparator-64", "sha-256"] {
        check(&boolean::find(name).expect("it is shipped"), 9);
    }
}

/// Cells that are the same for all lanes come out of a port beside others.
#[test]
fn ports_of_cells_for_all_lanes_and_for_each_are_right() {
    let mut b = Builder::new("both");
    let x = b.input("x", 1, 8)[0];
    let k = b.uniform_input("k", 1, 8)[0];
    let id = b.table(&Arc::new(aes::s_box()));
    let looked_up = b.lookup(id, k);
    b.output("y", &[x, k, looked_up]);
    let circuit = b.finish();
    for lanes in [1, 2, 7, 8, 9, 64] {
        check(&circuit, lanes);
    }
}

/// All 256 bytes through the S-box and its inverse.
#[test]
fn the_tower_inverts_every_byte() {
    for table in [aes::s_box(), aes::inverse_s_box()] {
        let mut b = Builder::new("one lookup");
        let id = b.table(&Arc::new(table.clone()));
        let x = b.input("x", 1, 8)[0];
        let y = b.lookup(id, x);
        b.output("y", &[y]);
        let circuit = b.finish();
        let mut bytes = Cells::zero(1, 8, 256);
        bytes.rows_mut().iter_mut().zip(0..=255).for_each(|(cell, x)| *cell = x);
        let run = polyclave_protocol_lab::testkit::conformance::run(&config(), &circuit, 256, &[bytes]);
        assert_eq!(run.expect("honest parties finish").outputs[0].row(0), table.entries());
    }
}

/// What each party sends from the first layer to the end of an evaluation.
pub fn sent(config: &impl ProtocolConfig, name: &str, lanes: usize) -> Vec<Traffic> {
    let cipher = catalog::find(name).expect("the catalog has it");
    let party = |net: &mut Metered<_>| -> Result<Traffic> {
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(&cipher.encrypt, &protocol);
        let inputs: Vec<Cells> = compiled
            .inputs()
            .iter()
            .map(|port| Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes }))
            .collect();
        // Public ones send nothing.
        let inputs: Vec<_> = inputs.iter().map(Input::Public).collect();
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        let before = net.meter().snapshot();
        evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?;
        Ok(net.meter().snapshot() - before)
    };
    let (party, ends) = (&party, mesh(config.parties()).into_iter().map(Metered::new));
    std::thread::scope(|scope| {
        let threads: Vec<_> = ends
            .map(|mut net| scope.spawn(move || party(&mut net).expect("honest parties finish")))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn a_block_of_aes_sends_360_bytes_to_one_neighbour_in_40_rounds() {
    for traffic in sent(&config(), "aes-128", 64) {
        assert_eq!((traffic.payload_sent, traffic.messages_sent, traffic.exchanges), (360 * 64, 40, 40));
    }
}

/// The S-boxes of DES with their gates: a bit an AND, the eight tables of a round side by side.
#[test]
fn a_block_of_des_sends_a_bit_an_and() {
    for traffic in sent(&config(), "des", 64) {
        let gates = boolean::cipher("des").expect("it has a Boolean circuit").encrypt.lookups();
        assert_eq!(traffic.payload_sent, gates as u64 * 64 / 8);
        assert!(traffic.exchanges <= 16 * 4, "{} rounds", traffic.exchanges);
    }
}

/// Any two parties have the value together, each pair by another share; outputs for one party go to nobody
/// else.
#[test]
fn outputs_go_to_their_owner_alone() {
    let x = Cells::from_blocks(2, 8, b"ab").expect("a block");
    let circuit = {
        let mut b = Builder::new("nothing");
        let x = b.input("x", 2, 8);
        b.output("y", &x);
        b.finish()
    };
    for owner in Party::all(3) {
        for giver in Party::all(3) {
            let outcomes = run_parties(3, |net| {
                let mut session = hello(&config().handshake(HandshakeParameters::new(3)), net)?;
                let setup = config().setup(net)?;
                let mut protocol = config().join(&setup, session.stream(), net.members())?;
                let compiled = compile(&circuit, &protocol);
                let input = if net.me() == giver { Input::Mine(&x) } else { Input::From(giver) };
                let batch = prepare(&mut protocol, &compiled, 1, net)?;
                let shared = evaluate(&mut protocol, &compiled, 1, &[input], batch, net)?.remove(0);
                let released = release(&mut protocol, &shared, Owner::Party(owner), net)?;
                Ok((net.me(), released.map(Released::accept)))
            });
            for outcome in outcomes {
                let (party, learned) = outcome.expect("honest parties finish");
                assert_eq!(learned, (party == owner).then(|| x.clone()));
            }
        }
    }
}

#[test]
fn two_of_the_parties_cannot_serve() {
    let outcomes = run_parties(3, |net| {
        let mut session = hello(&config().handshake(HandshakeParameters::new(3)), net)?;
        let setup = config().setup(net)?;
        let two = PartySet::all(2);
        Ok(config().join(&setup, session.stream(), two).map(|_| ()))
    });
    for outcome in outcomes {
        let refused = outcome.expect("all are there").expect_err("a share is missing").to_string();
        assert!(refused.contains("takes all three parties"), "{refused}");
    }
}

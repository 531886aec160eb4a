//! Replicated sharing among four: right answers, with four parties and with three.

use polyclave_cipher::{Cells, Circuit, Direction, boolean, catalog, compile};
use polyclave_protocol::Result;
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig};
use polyclave_protocol::replicated::ReplicatedFourConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};

fn check(circuit: &Circuit, lanes: usize) -> Run {
    check_circuit(&ReplicatedFourConfig, circuit, lanes, lanes as u8)
}

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    cipher.circuit_with_key_schedule(direction).expect("it runs both ways")
}

#[test]
fn ciphers_are_right_in_both_directions_for_every_number_of_lanes() {
    for lanes in [1, 8, 9, 100] {
        for name in ["aes-128", "des", "present-80", "skinny-128-128"] {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                check(&with_key_schedule(name, direction), lanes);
            }
        }
    }
}

#[test]
fn circuits_of_bits_are_right() {
    check(&super::lookups::gates(), 9);
    check(&boolean::find("sha-256").expect("it is shipped"), 2);
}

/// One bit alone, and nothing to multiply.
#[test]
fn the_smallest_evaluations_are_right() {
    check(&boolean::find("comparator-64").expect("it is shipped"), 1);
    let mut b = polyclave_cipher::Builder::new("nothing");
    let x = b.input("x", 1, 8);
    b.output("y", &x);
    check(&b.finish(), 3);
}

/// What each party sends from the first layer to the verdict.
fn sent(lanes: usize) -> Vec<Traffic> {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    let config = ReplicatedFourConfig;
    let party = |net: &mut Metered<_>| -> Result<Traffic> {
        let mut session = hello(&config.handshake(HandshakeParameters::new(4)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(&cipher.encrypt, &protocol);
        let zero = |port: &polyclave_cipher::CompiledPort| {
            Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes })
        };
        let inputs: Vec<Cells> = compiled.inputs().iter().map(zero).collect();
        // Public ones send nothing.
        let inputs: Vec<_> = inputs.iter().map(Input::Public).collect();
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        let before = net.meter().snapshot();
        evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?;
        Ok(net.meter().snapshot() - before)
    };
    let (party, ends) = (&party, mesh(4).into_iter().map(Metered::new));
    std::thread::scope(|scope| {
        let threads: Vec<_> = ends
            .map(|mut net| scope.spawn(move || party(&mut net).expect("honest parties finish")))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// What a further block adds, and the rounds: those of the levels, and three for the verdict.
#[test]
fn a_block_of_aes_sends_540_bytes_a_party_in_40_rounds() {
    for (few, many) in sent(64).into_iter().zip(sent(128)) {
        assert_eq!(many.payload_sent - few.payload_sent, 540 * 64);
        assert_eq!((few.exchanges, many.exchanges), (40 + 3, 40 + 3));
    }
}

//! Replicated sharing against a party that cheats: right answers, and what a proof takes.

use polyclave_cipher::{Cells, Circuit, Direction, boolean, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::replicated::ReplicatedActiveConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};

fn check(circuit: &Circuit, lanes: usize) -> Run {
    check_circuit(&ReplicatedActiveConfig::default(), circuit, lanes, lanes as u8)
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

/// More products than are remembered before they are proven. One proof of all of them would take 16 rounds.
#[test]
fn long_evaluations_are_proven_in_pieces() {
    let run = check(&with_key_schedule("aes-128", Direction::Encrypt), 9000);
    let rounds = run.tallies[0].online.rounds;
    assert!(rounds as f64 > run.cost.rounds + 40.0, "{rounds} rounds: at least two proofs are under way");
}

/// No single product, and one: padding is proven, too.
#[test]
fn the_smallest_evaluations_are_proven() {
    check(&boolean::find("comparator-64").expect("it is shipped"), 1);
    let mut b = polyclave_cipher::Builder::new("nothing");
    let x = b.input("x", 1, 8);
    b.output("y", &x);
    check(&b.finish(), 3);
}

/// A value of one stream that was not proven there is refused by another, and nothing is released before a
/// proof.
#[test]
fn values_that_were_not_proven_are_neither_released_nor_used_elsewhere() {
    let circuit = with_key_schedule("aes-128", Direction::Encrypt);
    let config = ReplicatedActiveConfig::default();
    let outcomes = run_parties(3, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let setup = config.setup(net)?;
        let mut streams = [
            config.join(&setup, session.stream(), net.members())?,
            config.join(&setup, session.stream(), net.members())?,
        ];
        let compiled = compile(&circuit, &streams[0]);
        let zero = Cells::zero(16, 8, 1);
        let [first, second] = &mut streams;
        let batch = prepare(first, &compiled, 1, net)?;
        let block = evaluate(first, &compiled, 1, &[Input::Public(&zero), Input::Public(&zero)], batch, net)?;
        let early = first.release(&block[0], Owner::All, net).err();
        let batch = prepare(second, &compiled, 1, net)?;
        let inputs = [Input::Shared(&block[0]), Input::Public(&zero)];
        let elsewhere = evaluate(second, &compiled, 1, &inputs, batch, net).err();
        release(first, &block[0], Owner::All, net)?;
        let batch = prepare(second, &compiled, 1, net)?;
        evaluate(second, &compiled, 1, &inputs, batch, net)?;
        Ok([early, elsewhere].map(|error| error.map(|error| error.to_string()).unwrap_or_default()))
    });
    for outcome in outcomes {
        let [early, elsewhere] = outcome.expect("a proven value is an input anywhere");
        assert!(early.contains("before it was verified"), "{early}");
        assert!(elsewhere.contains("has not checked it"), "{elsewhere}");
    }
}

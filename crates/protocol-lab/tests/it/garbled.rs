//! Garbled circuits against the cleartext evaluator, and their counts against Zahur, Rosulek and Evans 2015,
//! table 1, and what is told of Rosulek and Roy 2021.

use polyclave_cipher::{Cells, Circuit, Direction, boolean, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{mesh, run_parties};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tally::Tally;
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::garbled::{GarbledConfig, Gates};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};

use super::lookups::gates;

fn config(gates: Gates) -> GarbledConfig {
    GarbledConfig { gates, expansion: 4 }
}

/// By every way to garble.
fn run(circuit: &Circuit, lanes: usize, seed: u8) -> [Run; 2] {
    Gates::ALL.map(|gates| check_circuit(&config(gates), circuit, lanes, seed))
}

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    boolean::expand(&cipher.circuit_with_key_schedule(direction).expect("it runs both ways"))
}

#[test]
fn ciphers_are_right() {
    for (name, lanes) in [("aes-128", 1), ("aes-256", 3), ("des", 5), ("3des-ede3", 2)] {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            run(&with_key_schedule(name, direction), lanes, 7);
        }
    }
}

#[test]
fn shipped_circuits_are_right_for_every_number_of_lanes() {
    for name in ["adder-64", "comparator-64", "sha-256"] {
        let circuit = boolean::find(name).expect("it is shipped");
        for lanes in [1, 2, 7, 33] {
            run(&circuit, lanes, lanes as u8);
        }
    }
}

#[test]
fn gates_of_every_kind_are_right_for_every_number_of_lanes() {
    for lanes in [1, 2, 3, 4, 5, 8, 63, 64, 65, 1023, 1024, 1025, 2500] {
        run(&gates(), lanes, lanes as u8);
    }
}

#[test]
fn circuits_of_cells_are_refused_and_told_of_the_other_form() {
    Gates::ALL.into_iter().for_each(circuits_of_cells_are_refused);
}

fn circuits_of_cells_are_refused(gates: Gates) {
    let config = config(gates);
    let outcomes = run_parties(2, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(&catalog::find("aes-128").expect("it is there").encrypt, &protocol);
        prepare(&mut protocol, &compiled, 1, net).map(|_| ())
    });
    for outcome in outcomes {
        assert!(
            matches!(&outcome, Err(Error::Misuse(what)) if what.contains("--circuit boolean")),
            "{outcome:?}"
        );
    }
}

/// What an AND costs is what the paper says, and nothing else is sent but what inputs and outputs take.
#[test]
fn counts_are_those_of_the_schemes() {
    Gates::ALL.into_iter().for_each(counts_are_right);
}

fn counts_are_right(gates: Gates) {
    let config = config(gates);
    const LANES: usize = 9;
    let cipher = boolean::cipher("aes-128").expect("it has a Boolean circuit");
    let party = |net: &mut dyn Net| -> Result<(Tally, f64)> {
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(&cipher.encrypt, &protocol);
        let zero = |port: usize, lanes| Cells::zero(compiled.inputs()[port].cells.len(), 1, lanes);
        let (block, keys) = (zero(0, LANES), zero(1, 1));
        let batch = prepare(&mut protocol, &compiled, LANES, net)?;
        let inputs = match net.me() {
            Party(0) => [Input::From(Party(1)), Input::Mine(&keys)],
            _ => [Input::Mine(&block), Input::From(Party(0))],
        };
        let shared = evaluate(&mut protocol, &compiled, LANES, &inputs, batch, net)?.remove(0);
        release(&mut protocol, &shared, Owner::All, net)?;
        Ok((protocol.tally(), protocol.cost(&compiled).operations_per_lane))
    };
    let ends: Vec<_> = mesh(2).into_iter().map(Metered::new).collect();
    let meters: Vec<_> = ends.iter().map(|end| end.meter()).collect();
    let party = &party;
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            ends.into_iter().map(|mut net| scope.spawn(move || party(&mut net).expect("honest"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    const ANDS: u64 = 5440 * LANES as u64;
    let (calls, ciphertexts, bytes) = match gates {
        Gates::Half => ([4, 2], 2, 32),
        // Three of 8 bytes, and five bits in a byte.
        Gates::ThreeHalves => ([6, 3], 3, 25),
    };
    for (((tally, operations), calls), of_output) in outcomes.into_iter().zip(calls).zip([2, 1]) {
        assert_eq!(tally.online.hash_calls, calls * ANDS);
        assert_eq!(tally.online.ciphertexts, ciphertexts * ANDS);
        assert_eq!((tally.online.rounds, tally.online.multiplications), (1, ANDS));
        assert_eq!((tally.input.rounds, tally.output.rounds), (4, 1));
        // Of both labels at the garbler, of one at the evaluator.
        assert_eq!(tally.output.hash_calls, of_output * 128 * LANES as u64);
        assert_eq!(operations, 5440.0);
    }
    let [garbler, evaluator] = [0, 1].map(|p: usize| meters[p].snapshot().payload_sent);
    // What both send alike, but for ciphertexts: transfers, coins, 16 bytes for an output bit.
    assert_eq!(garbler - evaluator, bytes * ANDS);
}

/// Neither an input of the garbler nor a public one nor a shared one sends anything, whatever stream it comes
/// of.
#[test]
fn values_go_from_circuit_to_circuit_and_from_stream_to_stream() {
    Gates::ALL.into_iter().for_each(values_go_on);
}

fn values_go_on(gates: Gates) {
    let config = config(gates);
    let adder = boolean::find("adder-64").expect("it is shipped");
    let bytes = |numbers: [u64; 2]| -> Cells {
        let blocks: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        Cells::from_blocks(64, 1, &blocks).expect("two blocks")
    };
    let (a, b) = ([u64::MAX, 1 << 40], [5, 77]);
    let outcomes = run_parties(2, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let setup = config.setup(net)?;
        let mut streams = [
            config.join(&setup, session.stream(), net.members())?,
            config.join(&setup, session.stream(), net.members())?,
        ];
        let compiled = compile(&adder, &streams[0]);
        let (a, b) = (bytes(a), bytes(b));
        let given = match net.me() {
            Party(0) => [Input::Mine(&a), Input::From(Party(1))],
            _ => [Input::From(Party(0)), Input::Mine(&b)],
        };
        let batch = prepare(&mut streams[0], &compiled, 2, net)?;
        let first = evaluate(&mut streams[0], &compiled, 2, &given, batch, net)?.remove(0);
        let mut sums = Vec::new();
        for stream in &mut streams {
            let batch = prepare(stream, &compiled, 2, net)?;
            let inputs = [Input::Shared(&first), Input::Public(&a)];
            let second = evaluate(stream, &compiled, 2, &inputs, batch, net)?.remove(0);
            let batch = prepare(stream, &compiled, 2, net)?;
            let inputs = [Input::Shared(&second), Input::Shared(&second)];
            let third = evaluate(stream, &compiled, 2, &inputs, batch, net)?.remove(0);
            for to in [Owner::All, Owner::Party(Party(0)), Owner::Party(Party(1))] {
                let sum = release(stream, &third, to, net)?;
                sums.push((to, sum.map(|sum| sum.trust_all_parties().to_blocks())));
            }
        }
        Ok(sums)
    });
    let right: Vec<u8> = a
        .iter()
        .zip(b)
        .flat_map(|(a, b)| a.wrapping_add(b).wrapping_add(*a).wrapping_mul(2).to_be_bytes())
        .collect();
    for (p, outcome) in outcomes.into_iter().enumerate() {
        for (to, sum) in outcome.expect("honest parties finish") {
            let learns = to == Owner::All || to == Owner::Party(Party(p as u8));
            assert_eq!(sum, learns.then(|| right.clone()), "{to:?} at party {p}");
        }
    }
}

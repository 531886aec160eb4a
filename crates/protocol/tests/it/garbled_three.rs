//! Garbled circuits among three parties: right answers, the messages they take, and values that are shared
//! with `replicated-active`.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Compiled, Direction, boolean, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::metered::{Meter, Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::replicated::{
    GarbledCircuit, GarbledThree, GarbledThreeConfig, ReplicatedActiveConfig,
};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};
use polyclave_protocol_lab::testkit::faults::{LATE, run_over};

fn configs() -> [GarbledThreeConfig; 3] {
    [0, 1, 2].map(|party| GarbledThreeConfig::with_evaluator(Party(party)).expect("there are three"))
}

/// Besides, one round ahead, and one for the outputs, however deep the circuit is.
fn check(config: &GarbledThreeConfig, circuit: &Circuit, lanes: usize) -> Run {
    let run = check_circuit(config, circuit, lanes, lanes as u8);
    for tally in &run.tallies {
        assert_eq!(tally.online.rounds as f64, run.cost.rounds);
        assert_eq!(tally.preprocessing.rounds as f64, run.cost.preprocessing_rounds);
        let ands = run.cost.operations_per_lane * lanes as f64 + run.cost.operations_uniform;
        assert_eq!(tally.online.multiplications as f64, ands);
        assert_eq!(tally.preprocessing.ciphertexts as f64, 2.0 * ands);
    }
    run
}

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    boolean::expand(&cipher.circuit_with_key_schedule(direction).expect("it runs both ways"))
}

#[test]
fn ciphers_are_right_in_both_directions_for_every_number_of_lanes_and_whoever_evaluates() {
    for (lanes, config) in [1, 9, 40].into_iter().zip(configs()) {
        for name in ["aes-128", "aes-192", "aes-256", "des", "present-80"] {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                check(&config, &with_key_schedule(name, direction), lanes);
            }
        }
    }
}

#[test]
fn gates_of_every_kind_are_right_whoever_evaluates() {
    for config in configs() {
        for lanes in [1, 9, 33] {
            check(&config, &super::lookups::gates(), lanes);
            check(&config, &super::scrambled::gates(), lanes);
        }
        check(&config, &boolean::find("sha-256").expect("it is shipped"), 2);
        check(&config, &boolean::find("comparator-64").expect("it is shipped"), 1);
    }
}

/// No AND at all, inputs that nobody uses, and outputs that are inputs.
#[test]
fn the_smallest_circuits_are_right() {
    let mut b = Builder::new("nothing");
    let (x, _) = (b.input("x", 3, 1), b.input("unused", 2, 1));
    let k = b.uniform_input("k", 2, 1);
    b.output("y", &[x[1], x[0]]);
    b.output("k", &k);
    let circuit = b.finish();
    configs().iter().for_each(|config| _ = check(config, &circuit, 3));
}

#[test]
fn circuits_that_are_not_of_bits_are_refused() {
    let circuit = catalog::find("aes-128").expect("the catalog has it").encrypt;
    let outcomes = run_parties(3, |net| {
        let config = GarbledThreeConfig::default();
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(&circuit, &protocol);
        prepare(&mut protocol, &compiled, 1, net).map(|_| ())
    });
    assert!(
        outcomes.iter().all(|outcome| outcome.as_ref().is_err_and(|e| e.to_string().contains("Boolean")))
    );
}

/// AES-128 on round keys that are stored in cells of bytes (FIPS 197, appendix B).
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const BLOCK: &str = "3243f6a8885a308d313198a2e0370734";
const ANSWER: &str = "3925841d02dc09fbdc118597196a0b32";

fn cells(text: &str) -> Cells {
    Cells::from_blocks(16, 8, &hex::decode(text).expect("hexadecimal")).expect("a block")
}

fn bits(text: &str) -> Cells {
    Cells::from_blocks(128, 1, &hex::decode(text).expect("hexadecimal")).expect("a block")
}

type Stored = <GarbledThree as Session>::Shared;

/// Round keys, computed and verified by `replicated-active`.
fn round_keys(
    setup: &<ReplicatedActiveConfig as ProtocolConfig>::Setup,
    session: &mut polyclave_protocol::session::AgreedSession,
    net: &mut dyn Net,
) -> Result<Stored> {
    let schedule = catalog::find("aes-128").expect("the catalog has it").key_schedule;
    let mut active = ReplicatedActiveConfig::default().join(setup, session.stream(), net.members())?;
    let compiled = compile(&schedule, &active);
    let batch = prepare(&mut active, &compiled, 1, net)?;
    let key = cells(KEY);
    let keys = evaluate(&mut active, &compiled, 1, &[Input::Public(&key)], batch, net)?.remove(0);
    active.check(net)?;
    Ok(keys)
}

fn aes(protocol: &GarbledThree, direction: Direction) -> Compiled {
    let cipher = boolean::cipher("aes-128").expect("it has a Boolean circuit");
    let circuit: Arc<Circuit> = match direction {
        Direction::Encrypt => cipher.encrypt,
        Direction::Decrypt => cipher.decrypt.expect("it runs both ways"),
    };
    compile(&circuit, protocol)
}

/// The names of the ports of a block cipher: the block, and the key.
fn ports(compiled: &Compiled) -> [usize; 2] {
    let uniform = compiled.inputs().iter().position(|port| port.uniform).expect("the key");
    [1 - uniform, uniform]
}

fn sources<'a>(
    compiled: &Compiled,
    block: Input<'a, Stored>,
    key: Input<'a, Stored>,
) -> Vec<Input<'a, Stored>> {
    match ports(compiled) {
        [0, _] => vec![block, key],
        _ => vec![key, block],
    }
}

/// A lot of three lanes gets the labels of a stored key, is cut, stored and restored in another session;
/// each piece is used once, and results go on under `replicated-active` and under garbled circuits.
#[test]
fn stored_circuits_serve_keys_of_replicated_active_and_results_go_on_there() {
    for config in configs() {
        let outcomes = run_parties(3, |net| {
            let setup = config.setup(net)?;
            let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
            let keys = round_keys(&setup, &mut session, net)?;
            let mut ahead = config.join(&setup, session.stream(), net.members())?;
            let encrypt = aes(&ahead, Direction::Encrypt);
            let decrypt = aes(&ahead, Direction::Decrypt);
            let key = &encrypt.inputs()[ports(&encrypt)[1]].name;
            let lot = prepare(&mut ahead, &encrypt, 3, net)?;
            let mut lot = ahead.give(&encrypt, lot, key, &keys, net)?;
            let mut stock = Vec::new();
            for lanes in [1, 1, 1] {
                let taken = ahead.take(&encrypt, &mut lot, lanes)?;
                stock.push(ahead.save(taken)?);
            }
            assert_eq!(lot.lanes(), 0);
            let backwards = prepare(&mut ahead, &decrypt, 1, net)?;
            let backwards = ahead.save(backwards)?;
            drop(ahead);

            let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
            let mut online = config.join(&setup, session.stream(), net.members())?;
            let block = bits(BLOCK);
            let mut answers = Vec::new();
            for stored in &stock {
                let item = online.restore(stored)?;
                let inputs = sources(&encrypt, Input::Public(&block), Input::Shared(&keys));
                let answer = evaluate(&mut online, &encrypt, 1, &inputs, item, net)?.remove(0);
                let opened = release(&mut online, &answer, Owner::All, net)?.expect("it is for all");
                assert_eq!(hex::encode(opened.accept().to_blocks()), ANSWER);
                answers.push(answer);
            }
            // Back to the block, under garbled circuits with a key that is given at the use.
            let item = online.restore(&backwards)?;
            let inputs = sources(&decrypt, Input::Shared(&answers[0]), Input::Shared(&keys));
            let back = evaluate(&mut online, &decrypt, 1, &inputs, item, net)?.remove(0);
            let opened = release(&mut online, &back, Owner::Party(Party(1)), net)?;
            let opened = opened.map(|opened| hex::encode(opened.accept().to_blocks()));
            assert_eq!(opened, (net.me() == Party(1)).then(|| BLOCK.to_owned()));
            // And under `replicated-active`, in bytes.
            let mut active =
                ReplicatedActiveConfig::default().join(&setup, session.stream(), net.members())?;
            let tables = catalog::find("aes-128").expect("the catalog has it");
            let tables = compile(&tables.decrypt.expect("it runs both ways"), &active);
            let answer = online.in_cells(&answers[1], 8)?;
            let batch = prepare(&mut active, &tables, 1, net)?;
            let inputs = sources(&tables, Input::Shared(&answer), Input::Shared(&keys));
            let back = evaluate(&mut active, &tables, 1, &inputs, batch, net)?.remove(0);
            let opened = release(&mut active, &back, Owner::All, net)?.expect("it is for all");
            assert_eq!(hex::encode(opened.accept().to_blocks()), BLOCK);
            Ok(())
        });
        assert_eq!(outcomes, [Ok(()), Ok(()), Ok(())]);
    }
}

/// What a circuit that belongs to a key refuses: another key, a second one, and to be cut without one.
#[test]
fn a_circuit_serves_the_key_that_it_was_given_and_once() {
    let config = GarbledThreeConfig::default();
    let outcomes = run_parties(3, |net| {
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let keys = round_keys(&setup, &mut session, net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let compiled = aes(&protocol, Direction::Encrypt);
        let block = bits(BLOCK);
        let mut refused = Vec::new();
        let [of_block, of_key] = ports(&compiled).map(|port| compiled.inputs()[port].name.clone());

        // What `replicated-active` has not proven yet may be wrong.
        let mut active = ReplicatedActiveConfig::default().join(&setup, session.stream(), net.members())?;
        let tables = catalog::find("aes-128").expect("the catalog has it");
        let tables = compile(&tables.key_schedule, &active);
        let batch = prepare(&mut active, &tables, 1, net)?;
        let unproven = evaluate(&mut active, &tables, 1, &[Input::Public(&cells(KEY))], batch, net)?;
        let fresh = prepare(&mut protocol, &compiled, 1, net)?;
        refused.push(protocol.give(&compiled, fresh, &of_key, &unproven[0], net).err());

        let mut bare = prepare(&mut protocol, &compiled, 2, net)?;
        refused.push(protocol.take(&compiled, &mut bare, 1).err());
        let mut given = protocol.give(&compiled, bare, &of_key, &keys, net)?;
        refused.push(protocol.take(&compiled, &mut given, 0).err());
        refused.push(protocol.take(&compiled, &mut given, 3).err());
        let one = protocol.take(&compiled, &mut given, 1)?;
        let public = Cells::zero(1408, 1, 1);
        let inputs = sources(&compiled, Input::Public(&block), Input::Public(&public));
        refused.push(evaluate(&mut protocol, &compiled, 1, &inputs, one, net).err());
        let last = protocol.take(&compiled, &mut given, 1)?;
        refused.push(protocol.take(&compiled, &mut given, 1).err());
        refused.push(protocol.give(&compiled, last, &of_key, &keys, net).err());
        let fresh = prepare(&mut protocol, &compiled, 1, net)?;
        refused.push(protocol.give(&compiled, fresh, &of_block, &keys, net).err());
        let fresh = prepare(&mut protocol, &compiled, 1, net)?;
        refused.push(protocol.give(&compiled, fresh, "nothing", &keys, net).err());
        let fresh = prepare(&mut protocol, &compiled, 2, net)?;
        let inputs = sources(&compiled, Input::Public(&block), Input::Shared(&keys));
        refused.push(evaluate(&mut protocol, &compiled, 1, &inputs, fresh, net).err());
        let decrypt = aes(&protocol, Direction::Decrypt);
        let other = prepare(&mut protocol, &decrypt, 1, net)?;
        refused.push(evaluate(&mut protocol, &compiled, 1, &inputs, other, net).err());
        let fresh = prepare(&mut protocol, &compiled, 1, net)?;
        let fresh = protocol.save(fresh)?;
        let turned = GarbledThreeConfig::with_evaluator(Party(0))?;
        let turned = turned.join(&setup, session.stream(), net.members())?;
        refused.push(turned.restore(&fresh).err());

        // None of this was the others' fault: the session goes on.
        let item = protocol.restore(&fresh)?;
        let answer = evaluate(&mut protocol, &compiled, 1, &inputs, item, net)?.remove(0);
        let opened = release(&mut protocol, &answer, Owner::All, net)?.expect("it is for all");
        assert_eq!(hex::encode(opened.accept().to_blocks()), ANSWER);
        Ok(refused.iter().map(|error| matches!(error, Some(polyclave_protocol::Error::Misuse(_)))).collect())
    });
    for outcome in outcomes {
        assert_eq!(outcome, Ok(vec![true; 12]));
    }
}

/// What each party sends between two moments.
struct Counted {
    ahead: Traffic,
    of_key: Traffic,
    online: Traffic,
}

fn counted(config: GarbledThreeConfig, shares_block: bool) -> Vec<Counted> {
    let ends: Vec<_> = mesh_with_timeout(3, LATE).into_iter().map(Metered::new).collect();
    let meters: Vec<Arc<Meter>> = ends.iter().map(Metered::meter).collect();
    let outcomes = run_over(ends, move |net| {
        let meter = &meters[net.me().index()];
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let keys = round_keys(&setup, &mut session, net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let compiled = aes(&protocol, Direction::Encrypt);
        let first = prepare(&mut protocol, &compiled, 1, net)?;
        let public = bits(BLOCK);
        let inputs = sources(&compiled, Input::Public(&public), Input::Shared(&keys));
        let shared = evaluate(&mut protocol, &compiled, 1, &inputs, first, net)?.remove(0);

        let start = meter.snapshot();
        let item = prepare(&mut protocol, &compiled, 1, net)?;
        let garbled = meter.snapshot();
        let key = &compiled.inputs()[ports(&compiled)[1]].name;
        let item: GarbledCircuit = protocol.give(&compiled, item, key, &keys, net)?;
        let given = meter.snapshot();
        let block = if shares_block { Input::Shared(&shared) } else { Input::Public(&public) };
        let inputs = sources(&compiled, block, Input::Shared(&keys));
        evaluate(&mut protocol, &compiled, 1, &inputs, item, net)?;
        let online = meter.snapshot();
        Ok([garbled - start, given - garbled, online - given])
    });
    let counted = outcomes.into_iter().map(|outcome| outcome.expect("all are honest"));
    counted.map(|[ahead, of_key, online]| Counted { ahead, of_key, online }).collect()
}

/// The evaluator cannot answer before it has both messages, so these are two one-way messages, one after the
/// other.
#[test]
fn a_block_takes_one_message_of_each_garbler_and_one_of_the_evaluator() {
    for shares_block in [false, true] {
        for (config, evaluator) in configs().into_iter().zip(0..) {
            let counted = counted(config, shares_block);
            let [first, second, evaluator] = [1, 2, 0].map(|behind| &counted[(evaluator + behind) % 3]);
            let online = |party: &Counted| (party.online.messages_sent, party.online.payload_sent);
            match shares_block {
                false => {
                    assert_eq!(online(first), (1, 128 * 16 + 32));
                    assert_eq!(online(second), (1, 32));
                }
                true => {
                    assert_eq!(online(first), (1, 128 * 48 + 32));
                    assert_eq!(online(second), (1, 128 * 32 + 32));
                }
            }
            assert_eq!(online(evaluator), (1, 16 + 32));
            assert_eq!(evaluator.online.payload_received, online(first).1 + online(second).1);
            assert_eq!(second.online.payload_received, 0, "the second garbler hears nothing");

            let ahead = |party: &Counted| (party.ahead.payload_sent, party.of_key.payload_sent);
            // 160 S-boxes of 34 ANDs, 128 outputs, 1,408 bits of round keys.
            assert_eq!(ahead(first), (160 * 34 * 32 + 128 + 32, 1408 * 48 + 32));
            assert_eq!(ahead(second), (32 + 128 * 32, 1408 * 32 + 32));
            assert_eq!(ahead(evaluator), (0, 0));
        }
    }
}

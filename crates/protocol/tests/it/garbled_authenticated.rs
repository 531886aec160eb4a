//! Garbled circuits between two parties: right answers, the messages they take, and values that are shared
//! with `spdz-tower`.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Compiled, Direction, boolean, catalog, compile};
use polyclave_field::Gf2_64;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::metered::{Meter, Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::spdz::{
    GarbledAuthenticated, GarbledAuthenticatedConfig, LookupMethod, Packing, Preprocessing, Setup, Spdz,
    SpdzConfig,
};
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};
use polyclave_protocol_lab::testkit::faults::{LATE, run_over};

fn configs() -> [GarbledAuthenticatedConfig; 2] {
    [1, 0].map(|party| GarbledAuthenticatedConfig::with_evaluator(Party(party)).expect("there are two"))
}

/// What the protocol predicts is what it does.
fn check(config: &GarbledAuthenticatedConfig, circuit: &Circuit, lanes: usize) -> Run {
    let run = check_circuit(config, circuit, lanes, lanes as u8);
    let all = |lane: f64, uniform: f64| lane * lanes as f64 + uniform;
    let cost = run.cost;
    for tally in &run.tallies {
        assert_eq!(tally.online.rounds as f64, cost.rounds);
        assert_eq!(tally.preprocessing.rounds as f64, cost.preprocessing_rounds);
        let ands = all(cost.operations_per_lane, cost.operations_uniform);
        assert_eq!(tally.online.multiplications as f64, ands);
        assert_eq!(tally.preprocessing.triples as f64, all(cost.triples_per_lane, cost.triples_uniform));
        assert_eq!(tally.preprocessing.bits as f64, all(cost.bits_per_lane, cost.bits_uniform));
        assert_eq!(tally.preprocessing.ciphertexts as f64, (3.5 * ands).floor());
    }
    run
}

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    boolean::expand(&cipher.circuit_with_key_schedule(direction).expect("it runs both ways"))
}

#[test]
fn ciphers_are_right_in_both_directions_for_every_number_of_lanes_and_whoever_evaluates() {
    for (lanes, config) in [1, 5].into_iter().zip(configs()) {
        for name in ["aes-128", "aes-256", "des", "present-80"] {
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
    let outcomes = run_parties(2, |net| {
        let [config, _] = configs();
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
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

type Stored = <GarbledAuthenticated as Session>::Shared;

/// A session of `spdz-tower` under the same setup.
fn tower(setup: &Setup<Gf2_64>, session: &mut AgreedSession, net: &dyn Net) -> Result<Spdz<Gf2_64>> {
    tower_config()?.join(setup, session.stream(), net.members())
}

fn tower_config() -> Result<SpdzConfig<Gf2_64>> {
    SpdzConfig::new(2, LookupMethod::Tower, Preprocessing::Mascot { expansion: 4 }, Packing::Rotation)
}

/// Round keys, computed and verified by `spdz-tower`.
fn round_keys(setup: &Setup<Gf2_64>, session: &mut AgreedSession, net: &mut dyn Net) -> Result<Stored> {
    let schedule = catalog::find("aes-128").expect("the catalog has it").key_schedule;
    let mut tower = tower(setup, session, net)?;
    let compiled = compile(&schedule, &tower);
    let batch = prepare(&mut tower, &compiled, 1, net)?;
    let key = cells(KEY);
    let keys = evaluate(&mut tower, &compiled, 1, &[Input::Public(&key)], batch, net)?.remove(0);
    tower.check(net)?;
    Ok(keys)
}

fn aes(protocol: &GarbledAuthenticated, direction: Direction) -> Compiled {
    let cipher = boolean::cipher("aes-128").expect("it has a Boolean circuit");
    let circuit: Arc<Circuit> = match direction {
        Direction::Encrypt => cipher.encrypt,
        Direction::Decrypt => cipher.decrypt.expect("it runs both ways"),
    };
    compile(&circuit, protocol)
}

/// The ports of a block cipher: the block, and the key.
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

/// Circuits get the labels of a key of `spdz-tower` ahead, and are stored. Results go on under garbled
/// circuits and there.
#[test]
fn circuits_serve_keys_of_spdz_tower_and_results_go_on_there() {
    for config in configs() {
        let outcomes = run_parties(2, |net| {
            let setup = config.setup(net)?;
            let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            let keys = round_keys(&setup, &mut session, net)?;
            let mut protocol = config.join(&setup, session.stream(), net.members())?;
            let encrypt = aes(&protocol, Direction::Encrypt);
            let decrypt = aes(&protocol, Direction::Decrypt);
            let key = &encrypt.inputs()[ports(&encrypt)[1]].name;
            let block = bits(BLOCK);
            let mut answers = Vec::new();
            let mut stock = Vec::new();
            for circuit in protocol.make(&encrypt, 1, 2, net)? {
                let circuit = protocol.give(&encrypt, circuit, key, &keys, net)?;
                stock.push(protocol.save(circuit)?);
            }
            // Under the same key, with another Delta.
            let setup = tower_config()?.renew(&setup, net)?;
            let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            let mut protocol = config.join(&setup, session.stream(), net.members())?;
            for stored in &stock {
                let circuit = protocol.restore(stored)?;
                let inputs = sources(&encrypt, Input::Public(&block), Input::Shared(&keys));
                let answer = evaluate(&mut protocol, &encrypt, 1, &inputs, circuit, net)?.remove(0);
                let opened = release(&mut protocol, &answer, Owner::All, net)?.expect("it is for all");
                assert_eq!(hex::encode(opened.accept().to_blocks()), ANSWER);
                answers.push(answer);
            }
            // Back to the block, under garbled circuits with a key that is given at the use.
            let circuit = prepare(&mut protocol, &decrypt, 1, net)?;
            let inputs = sources(&decrypt, Input::Shared(&answers[0]), Input::Shared(&keys));
            let back = evaluate(&mut protocol, &decrypt, 1, &inputs, circuit, net)?.remove(0);
            let opened = release(&mut protocol, &back, Owner::Party(Party(1)), net)?;
            let opened = opened.map(|opened| hex::encode(opened.accept().to_blocks()));
            assert_eq!(opened, (net.me() == Party(1)).then(|| BLOCK.to_owned()));
            // And under `spdz-tower`, in bytes, once more to the answer.
            let mut tower = tower(&setup, &mut session, net)?;
            let tables = compile(&catalog::find("aes-128").expect("the catalog has it").encrypt, &tower);
            let back = protocol.in_cells(&back, &tables.inputs()[ports(&tables)[0]])?;
            let batch = prepare(&mut tower, &tables, 1, net)?;
            let inputs = sources(&tables, Input::Shared(&back), Input::Shared(&keys));
            let answer = evaluate(&mut tower, &tables, 1, &inputs, batch, net)?.remove(0);
            let opened = release(&mut tower, &answer, Owner::All, net)?.expect("it is for all");
            assert_eq!(hex::encode(opened.accept().to_blocks()), ANSWER);
            Ok(())
        });
        assert_eq!(outcomes, [Ok(()), Ok(())]);
    }
}

/// What a circuit that belongs to a key refuses: another key, a second one; and what no circuit takes.
#[test]
fn a_circuit_serves_the_key_that_it_was_given_and_once() {
    let [config, _] = configs();
    let outcomes = run_parties(2, |net| {
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let keys = round_keys(&setup, &mut session, net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let compiled = aes(&protocol, Direction::Encrypt);
        let block = bits(BLOCK);
        let mut refused = Vec::new();
        let [of_block, of_key] = ports(&compiled).map(|port| compiled.inputs()[port].name.clone());
        let mut made = protocol.make(&compiled, 1, 10, net)?.into_iter();
        let mut next = || made.next().expect("there are some");

        // What `spdz-tower` has not checked yet may be wrong.
        let mut unfinished = tower(&setup, &mut session, net)?;
        let tables = catalog::find("aes-128").expect("the catalog has it");
        let tables = compile(&tables.key_schedule, &unfinished);
        let batch = prepare(&mut unfinished, &tables, 1, net)?;
        let unchecked = evaluate(&mut unfinished, &tables, 1, &[Input::Public(&cells(KEY))], batch, net)?;
        refused.push(protocol.give(&compiled, next(), &of_key, &unchecked[0], net).err());
        let inputs = sources(&compiled, Input::Public(&block), Input::Shared(&unchecked[0]));
        refused.push(evaluate(&mut protocol, &compiled, 1, &inputs, next(), net).err());
        refused.push(protocol.give(&compiled, next(), &of_block, &keys, net).err());
        refused.push(protocol.give(&compiled, next(), "nothing", &keys, net).err());
        let given = protocol.give(&compiled, next(), &of_key, &keys, net)?;
        refused.push(protocol.give(&compiled, given, &of_key, &keys, net).err());
        let given = protocol.give(&compiled, next(), &of_key, &keys, net)?;
        let public = Cells::zero(1408, 1, 1);
        let inputs = sources(&compiled, Input::Public(&block), Input::Public(&public));
        refused.push(evaluate(&mut protocol, &compiled, 1, &inputs, given, net).err());
        let inputs = sources(&compiled, Input::Public(&block), Input::Shared(&keys));
        refused.push(evaluate(&mut protocol, &compiled, 2, &inputs, next(), net).err());
        let decrypt = aes(&protocol, Direction::Decrypt);
        refused.push(evaluate(&mut protocol, &decrypt, 1, &inputs, next(), net).err());
        let stored = protocol.save(next())?;
        let [_, turned] = configs();
        let turned = turned.join(&setup, session.stream(), net.members())?;
        refused.push(turned.restore(&stored).err());
        // The setup's material has another kappa.
        let other = GarbledAuthenticatedConfig::new(Party(1), Kappa::Bits40, 4)?;
        assert!(other.promise().contains("2^-40;"), "{}", other.promise());
        refused.push(other.join(&setup, session.stream(), net.members()).err());
        // The garbler sees from its Delta that the MAC key is another one.
        let foreign = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let foreign = foreign.restore(&stored).err();
        refused.extend((net.me() == Party(0)).then_some(foreign));
        // An evaluation takes its circuit with it.
        let mut last = next();
        let mut registers = protocol.registers(&compiled, 1, &mut last)?;
        assert_eq!(last.lanes(), 0);
        refused.push(protocol.registers(&compiled, 1, &mut last).err());
        protocol.inputs(compiled.inputs(), &inputs, &mut registers, net)?;
        protocol.settle(&compiled, &mut registers, net)?;
        refused.push(protocol.inputs(compiled.inputs(), &inputs, &mut registers, net).err());
        refused.push(protocol.settle(&compiled, &mut registers, net).err());

        // None of this was the other's fault: the session goes on.
        let answer = protocol.output(&compiled.outputs()[0], &mut registers);
        let opened = release(&mut protocol, &answer, Owner::All, net)?.expect("it is for all");
        assert_eq!(hex::encode(opened.accept().to_blocks()), ANSWER);
        Ok(refused.iter().map(|error| matches!(error, Some(Error::Misuse(_)))).collect())
    });
    for (outcome, count) in outcomes.into_iter().zip([14, 13]) {
        assert_eq!(outcome, Ok(vec![true; count]));
    }
}

/// What was opened for a shared input may be wrong until the check of this session. No other session takes
/// the output before that, neither as bits nor in cells.
#[test]
fn an_output_serves_other_sessions_only_after_a_check_in_its_own() {
    let [config, _] = configs();
    let outcomes = run_parties(2, |net| {
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let keys = round_keys(&setup, &mut session, net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let mut tower = tower(&setup, &mut session, net)?;
        let compiled = aes(&protocol, Direction::Encrypt);
        let tables = compile(&catalog::find("aes-128").expect("the catalog has it").encrypt, &tower);
        let circuit = prepare(&mut protocol, &compiled, 1, net)?;
        let block = bits(BLOCK);
        let inputs = sources(&compiled, Input::Public(&block), Input::Shared(&keys));
        let in_bits = evaluate(&mut protocol, &compiled, 1, &inputs, circuit, net)?.remove(0);
        let in_cells = protocol.in_cells(&in_bits, &tables.inputs()[ports(&tables)[0]])?;
        for output in [&in_bits, &in_cells] {
            let refused = tower.release(output, Owner::All, net).err();
            assert!(matches!(refused, Some(Error::Misuse(_))), "{refused:?}");
        }
        protocol.check(net)?;
        for output in [&in_bits, &in_cells] {
            let opened = release(&mut tower, output, Owner::All, net)?.expect("it is for all");
            assert_eq!(hex::encode(opened.accept().to_blocks()), ANSWER);
        }
        Ok(())
    });
    assert_eq!(outcomes, [Ok(()), Ok(())]);
}

/// What each party sends between two moments.
struct Counted {
    ahead: Traffic,
    of_key: Traffic,
    online: Traffic,
}

fn counted(config: GarbledAuthenticatedConfig, shares_block: bool) -> Vec<Counted> {
    let ends: Vec<_> = mesh_with_timeout(2, LATE).into_iter().map(Metered::new).collect();
    let meters: Vec<Arc<Meter>> = ends.iter().map(Metered::meter).collect();
    let outcomes = run_over(ends, move |net| {
        let meter = &meters[net.me().index()];
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let keys = round_keys(&setup, &mut session, net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let compiled = aes(&protocol, Direction::Encrypt);
        let first = prepare(&mut protocol, &compiled, 1, net)?;
        let public = bits(BLOCK);
        let inputs = sources(&compiled, Input::Public(&public), Input::Shared(&keys));
        let shared = evaluate(&mut protocol, &compiled, 1, &inputs, first, net)?.remove(0);
        protocol.check(net)?;

        let start = meter.snapshot();
        let circuit = prepare(&mut protocol, &compiled, 1, net)?;
        let garbled = meter.snapshot();
        let key = &compiled.inputs()[ports(&compiled)[1]].name;
        let circuit = protocol.give(&compiled, circuit, key, &keys, net)?;
        let given = meter.snapshot();
        let block = if shares_block { Input::Shared(&shared) } else { Input::Public(&public) };
        let inputs = sources(&compiled, block, Input::Shared(&keys));
        evaluate(&mut protocol, &compiled, 1, &inputs, circuit, net)?;
        let online = meter.snapshot();
        Ok([garbled - start, given - garbled, online - given])
    });
    let counted = outcomes.into_iter().map(|outcome| outcome.expect("all are honest"));
    counted.map(|[ahead, of_key, online]| Counted { ahead, of_key, online }).collect()
}

/// Bytes of the name of a circuit.
const NAME: u64 = 32;

/// The evaluator cannot answer before it has the garbler's message, so these are two one-way messages, one
/// after the other. A shared block takes one exchange before.
#[test]
fn a_block_takes_one_message_of_each_party() {
    for shares_block in [false, true] {
        for (config, evaluator) in configs().into_iter().zip([1, 0]) {
            let counted = counted(config, shares_block);
            let [garbler, evaluator] = [&counted[1 - evaluator], &counted[evaluator]];
            let online = |party: &Counted| {
                (party.online.messages_sent, party.online.exchanges, party.online.payload_sent)
            };
            match shares_block {
                false => {
                    assert_eq!(online(garbler), (1, 0, 128 * 16 + 16 + 32 + NAME));
                    assert_eq!(online(evaluator), (1, 0, 16 + 32));
                }
                true => {
                    // 128 cells of a bit, a byte each.
                    assert_eq!(online(garbler), (2, 1, 128 + 128 * 16 + NAME));
                    assert_eq!(online(evaluator), (2, 1, 128 + 16 + 32));
                }
            }
            // 160 S-boxes of 34 ANDs take 56 bytes each from the garbler, and no more than that from it
            // alone.
            let more = garbler.ahead.payload_sent - evaluator.ahead.payload_sent;
            assert_eq!(more, 160 * 34 * 56);
            // 176 bytes of round keys, and labels of their bits.
            let more = garbler.of_key.payload_sent - evaluator.of_key.payload_sent;
            assert_eq!(more, 1408 * 16 + NAME);
            println!(
                "ahead: {} bytes from the garbler in {} messages, {} from the evaluator; of a key {} and {}",
                garbler.ahead.payload_sent,
                garbler.ahead.messages_sent,
                evaluator.ahead.payload_sent,
                garbler.of_key.payload_sent,
                evaluator.of_key.payload_sent
            );
        }
    }
}

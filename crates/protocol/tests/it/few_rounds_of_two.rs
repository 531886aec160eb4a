//! `spdz-tower` as two nodes serve with it: blocks go through garbled circuits from a stock, or through
//! rounds where there are none, and clients learn the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use polyclave_cipher::hmac::{self, Additions};
use polyclave_cipher::{Cells, catalog as ciphers, compile, modes};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::stock::Purpose;
use polyclave_protocol::{Error, Party, Result, catalog};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep, run_over};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper};

use crate::clear::in_the_clear;
use crate::clients::{client_learns, noise};
use crate::depth::{Deep, UnderWay};
use crate::few_rounds::{
    Claims, HASHES, behind_a_known_block, circuits, computed, expected, given, joined, secrets_of,
    sent_with_a_block, session, shelf, states_behind_known_blocks,
};

fn config() -> AnyServiceConfig {
    catalog::service("spdz-tower", 2, 1).expect("two nodes serve with it")
}

/// Where a stored setup says whether its key was given up.
const RETIRED: usize = 5;

/// Of what is opened, of labels, and of outputs.
const ROUNDS: u64 = 3;

#[test]
fn blocks_of_every_cipher_take_three_rounds_with_circuits_and_more_without_and_are_the_same() {
    let outcomes = run_parties(2, |net| {
        let config = config();
        let setup = config.setup(net)?;
        let mut all = Vec::new();
        for (number, (name, circuit)) in circuits().into_iter().enumerate() {
            let lanes = [1, 3][number % 2];
            let mut protocol = joined(&config, &setup, &[(name, lanes + 1)], net)?;
            let with = computed(&config, &mut protocol, &circuit, lanes, net)?;
            // One is left: too few for two lanes.
            let without = computed(&config, &mut protocol, &circuit, 2, net)?;
            all.push((circuit, lanes, with, without));
        }
        Ok(all)
    });
    for outcome in outcomes {
        for (circuit, lanes, (with, rounds), (without, more)) in outcome.expect("honest nodes finish") {
            assert_eq!(with, expected(&circuit, lanes), "{}", circuit.name());
            // Each lane counts its own outputs, which are on the way together.
            assert_eq!(rounds, ROUNDS - 1 + lanes as u64, "{}", circuit.name());
            assert!(without == expected(&circuit, 2) && more >= 30, "{}: {more}", circuit.name());
        }
    }
}

/// In rounds it would take more triples than a test should make.
#[test]
fn a_compression_of_a_hash_takes_three_rounds_also_of_a_block_that_everybody_knows() {
    let (name, hash) = HASHES[0];
    let circuit = hmac::block(hash, Additions::FewAnds);
    let right = expected(&circuit, 1);
    let outcomes = run_parties(2, |net| {
        let config = config();
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[(name, 1)], net)?;
        let block = computed(&config, &mut protocol, &circuit, 1, net)?;
        Ok((block, behind_a_known_block(&config, HASHES[0], Additions::FewAnds, net)?))
    });
    for outcome in outcomes {
        let (block, known) = outcome.expect("honest nodes finish");
        assert_eq!(block, (right.clone(), ROUNDS));
        assert_eq!(known, (states_behind_known_blocks(hash), ROUNDS + 1));
    }
}

#[test]
fn a_public_block_is_not_opened() {
    let aes = ciphers::find("aes-128").expect("listed");
    let (block, key) = (noise("block", 2 * 16), secrets_of(&aes.encrypt, 1).remove(1));
    let right = in_the_clear(&aes.encrypt, &[&block, &key]);
    let outcomes = run_parties(2, |net| {
        let config = config();
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[("garbled circuits of AES-128", 2)], net)?;
        let compiled = compile(&aes.encrypt, &protocol);
        let keys = given(&config, &mut protocol, &key, &compiled.inputs()[1], net)?;
        let cells = Cells::from_blocks(16, 8, &block).expect("two blocks");
        let batch = prepare(&mut protocol, &compiled, 2, net)?;
        let inputs = [Input::Public(&cells), Input::Shared(&keys)];
        let output = evaluate(&mut protocol, &compiled, 2, &inputs, batch, net)?.remove(0);
        let message = protocol.reveal_to_client(&output, net)?;
        client_learns(&config, &message, net)
    });
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(right.clone())));
}

/// Cells of the key under masks, labels of the block and the key, and the check of the one; cells, the check
/// and outputs of the other. docs/operate/cities.md has the first sums.
#[test]
fn with_a_block_go_the_labels_of_the_independent_bits_of_its_round_keys() {
    let sent = |circuit| sent_with_a_block(config, 2, circuit);
    const CHECK: u64 = 40 + 16;
    let aes = [56 + 9296 + CHECK, 56 + CHECK + 48];
    assert_eq!(sent(("garbled circuits of AES-128", "aes-128")), aes);
    let des = [168 + 3784 + CHECK, 168 + CHECK + 40];
    assert_eq!(sent(("garbled circuits of Triple DES", "3des-ede3")), des);
}

/// A client that knows the factor of a proof could have a node prove something else to another client.
#[test]
fn an_answer_takes_no_round_and_a_second_one_or_a_part_of_it_has_a_proof_of_its_own() {
    let aes = ciphers::find("aes-128").expect("listed");
    let secrets = secrets_of(&aes.encrypt, 2);
    let right = in_the_clear(&aes.encrypt, &[&secrets[0], &secrets[1]]);
    let outcomes = run_parties(2, |net| {
        let config = config();
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[("garbled circuits of AES-128", 3)], net)?;
        let compiled = compile(&aes.encrypt, &protocol);
        let block = given(&config, &mut protocol, &secrets[0], &compiled.inputs()[0], net)?;
        let keys = given(&config, &mut protocol, &secrets[1], &compiled.inputs()[1], net)?;
        let mut outputs = Vec::new();
        for lanes in [vec![0, 1], vec![0]] {
            let batch = prepare(&mut protocol, &compiled, lanes.len(), net)?;
            let block = protocol.select_lanes(&block, &lanes);
            let inputs = [Input::Shared(&block), Input::Shared(&keys)];
            outputs.push(evaluate(&mut protocol, &compiled, lanes.len(), &inputs, batch, net)?.remove(0));
        }
        let before = protocol.tally().output.rounds;
        let first = protocol.reveal_to_client(&outputs[0], net)?;
        let at_once = protocol.tally().output.rounds - before;
        let second = protocol.reveal_to_client(&outputs[0], net)?;
        let part = protocol.reveal_bytes_to_client(&outputs[1], 5, net)?;
        let in_rounds = protocol.tally().output.rounds - before - at_once;
        let learnt = [first, second, part].map(|message| client_learns(&config, &message, net));
        Ok((at_once, in_rounds, learnt))
    });
    for outcome in outcomes {
        let (at_once, in_rounds, learnt) = outcome.expect("both are honest");
        assert_eq!(at_once, 0);
        // Of each, one for products and two for the check.
        assert_eq!(in_rounds, 2 * 3);
        assert_eq!(learnt, [right.clone(), right.clone(), right[..5].to_vec()].map(Ok));
    }
}

/// As for the ciphertext of `gcm`: the bits of what comes out of circuits are there, in each lane.
#[test]
fn the_sum_of_an_output_and_a_text_takes_one_opening_and_its_check() {
    let aes = ciphers::find("aes-128").expect("listed");
    let secrets = secrets_of(&aes.encrypt, 3);
    let text = noise("text", 3 * 16);
    let blocks = in_the_clear(&aes.encrypt, &[&secrets[0], &secrets[1]]);
    let right: Vec<u8> = blocks.iter().zip(&text).map(|(a, b)| a ^ b).collect();
    let outcomes = run_parties(2, |net| {
        let config = config();
        let setup = config.setup(net)?;
        let mut protocol = joined(&config, &setup, &[("garbled circuits of AES-128", 3)], net)?;
        let compiled = compile(&aes.encrypt, &protocol);
        let block = given(&config, &mut protocol, &secrets[0], &compiled.inputs()[0], net)?;
        let keys = given(&config, &mut protocol, &secrets[1], &compiled.inputs()[1], net)?;
        let (mask, message) = protocol.mask_input(text.len(), net)?;
        let r = client_learns(&config, &message, net)?;
        let masked: Vec<u8> = text.iter().zip(&r).map(|(x, r)| x ^ r).collect();
        let batch = prepare(&mut protocol, &compiled, 3, net)?;
        let inputs = [Input::Shared(&block), Input::Shared(&keys)];
        let output = evaluate(&mut protocol, &compiled, 3, &inputs, batch, net)?.remove(0);
        let parts = [0..1, 1..3].map(|lanes| protocol.lanes(&output, lanes));
        let output = protocol.join_lanes(&[&parts[0], &parts[1]]);
        let before = protocol.tally().online.rounds;
        let sum = protocol.open_sum(&output, (&mask, &masked), net)?;
        Ok((sum, protocol.tally().online.rounds - before))
    });
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok((right.clone(), 1 + 2))));
}

/// What rounds give goes into a circuit before anything of it was checked. One check is behind both.
#[test]
fn the_output_of_rounds_goes_into_a_circuit_and_an_opening_that_was_wrong_goes_to_no_client() {
    let aes = ciphers::find("aes-128").expect("listed");
    let secrets = secrets_of(&aes.encrypt, 1);
    let once = in_the_clear(&aes.encrypt, &[&secrets[0], &secrets[1]]);
    let right = in_the_clear(&aes.encrypt, &[&once, &secrets[1]]);
    for cheats in [false, true] {
        let outcomes = run_parties(2, |net| {
            let config = config();
            let setup = config.setup(net)?;
            let mut protocol = joined(&config, &setup, &[("garbled circuits of AES-128", 1)], net)?;
            let compiled = compile(&aes.encrypt, &protocol);
            let block = given(&config, &mut protocol, &secrets[0], &compiled.inputs()[0], net)?;
            let keys = given(&config, &mut protocol, &secrets[1], &compiled.inputs()[1], net)?;
            let circuit = prepare(&mut protocol, &compiled, 1, net)?;
            let rounds = prepare(&mut protocol, &compiled, 1, net)?;
            let inputs = [Input::Shared(&block), Input::Shared(&keys)];
            // Of the fourth opening of rounds.
            let wrong = if cheats && net.me() == Party(1) { 3 } else { u64::MAX };
            let mut changed = Tamper::new(&mut *net, wrong, Fault::FlipBit { byte: 0, bit: 0 });
            let unchecked = evaluate(&mut protocol, &compiled, 1, &inputs, rounds, &mut changed)?.remove(0);
            let inputs = [Input::Shared(&unchecked), Input::Shared(&keys)];
            let output = evaluate(&mut protocol, &compiled, 1, &inputs, circuit, net)?.remove(0);
            let message = protocol.reveal_to_client(&output, net)?;
            client_learns(&config, &message, net)
        });
        match cheats {
            false => assert!(outcomes.iter().all(|outcome| *outcome == Ok(right.clone()))),
            true => assert!(matches!(outcomes[0], Err(Error::CheckFailed { .. })), "{outcomes:?}"),
        }
    }
}

/// A block of `ecb` from a client that is near: how many one-way messages wait for each other, from the
/// request to the answer. docs/operate/cities.md has the table.
#[test]
fn a_block_of_a_near_client_takes_six_messages_one_after_the_other() {
    const NAME: &str = "garbled circuits of AES-128";
    let under_way = UnderWay::default();
    let clients = Arc::new((std::sync::Barrier::new(2), [AtomicU64::new(0), AtomicU64::new(0)]));
    let outcomes = run_parties(2, |net| {
        let aes = ciphers::find("aes-128").expect("listed");
        let (config, me) = (config(), net.me().index());
        let setup = config.setup(net)?;
        let stock = Claims(shelf(&config, &setup, &[(NAME, 1)], false, net)?);
        let stream = session(&config, net)?.stream();
        let mut protocol = config.join_stocked(&setup, stream, net.members(), Arc::new(stock))?;
        let compiled = compile(&aes.encrypt, &protocol);
        let secrets = secrets_of(&aes.encrypt, 1);
        let (stored, message) = protocol.mask_input(secrets[1].len(), net)?;
        let r = client_learns(&config, &message, net)?;
        let masked: Vec<u8> = secrets[1].iter().zip(&r).map(|(x, r)| x ^ r).collect();
        let keys = protocol.unmask(&stored, 0, &masked, &compiled.inputs()[1])?;

        // What the client has, once both nodes have told it.
        let at_client = |depth: u64| {
            let (both, depths) = &*clients;
            depths[me].store(depth, SeqCst);
            both.wait();
            let latest = depths.iter().map(|depth| depth.load(SeqCst)).max();
            both.wait();
            latest.unwrap_or_default()
        };
        // The first node picks a connection, and the nodes agree.
        let mut deep = Deep::new(net, &under_way, [2, 1][me]);
        let mut steps = vec![at_client(deep.depth)];
        let (mask, message) = protocol.mask_input(16, &mut deep)?;
        deep.depth = at_client(deep.depth);
        steps.push(deep.depth);
        let r = client_learns(&config, &message, net)?;
        let masked: Vec<u8> = secrets[0].iter().zip(&r).map(|(x, r)| x ^ r).collect();
        let block = protocol.unmask(&mask, 0, &masked, &compiled.inputs()[0])?;
        let mut deep = Deep::new(net, &under_way, steps[1]);
        let batch = prepare(&mut protocol, &compiled, 1, &mut deep)?;
        let inputs = [Input::Shared(&block), Input::Shared(&keys)];
        let output = evaluate(&mut protocol, &compiled, 1, &inputs, batch, &mut deep)?.remove(0);
        steps.push(at_client(deep.depth));
        let message = protocol.reveal_to_client(&output, &mut deep)?;
        steps.push(at_client(deep.depth));
        Ok((client_learns(&config, &message, net)?, steps))
    });
    let aes = ciphers::find("aes-128").expect("listed");
    for outcome in outcomes {
        let (answer, steps) = outcome.expect("both are honest");
        assert_eq!(answer, expected(&aes.encrypt, 1));
        // The hello, the mask, and the block with the check. The answer takes none.
        assert_eq!(steps, [2, 3, 6, 6]);
    }
}

/// One party takes another circuit out of its stock: the evaluator sees it before any check fails, so the key
/// is not lost.
#[test]
fn parties_that_take_different_circuits_end_the_session_and_keep_the_key() {
    const NAME: &str = "garbled circuits of AES-128";
    for public in [false, true] {
        let outcomes = run_over(mesh_with_timeout(2, LATE), move |net| {
            let aes = ciphers::find("aes-128").expect("listed");
            let config = config();
            let setup = config.setup(net)?;
            let shelf = shelf(&config, &setup, &[(NAME, 2)], false, net)?;
            if net.me() == Party(1) {
                shelf.reorder(NAME);
            }
            let stream = session(&config, net)?.stream();
            let mut protocol = config.join_stocked(&setup, stream, net.members(), Arc::new(shelf))?;
            let compiled = compile(&aes.encrypt, &protocol);
            let secrets = secrets_of(&aes.encrypt, 1);
            let block = given(&config, &mut protocol, &secrets[0], &compiled.inputs()[0], net)?;
            let keys = given(&config, &mut protocol, &secrets[1], &compiled.inputs()[1], net)?;
            let cells = Cells::from_blocks(16, 8, &secrets[0]).expect("a block");
            let batch = prepare(&mut protocol, &compiled, 1, net)?;
            let block = if public { Input::Public(&cells) } else { Input::Shared(&block) };
            let ended = evaluate(&mut protocol, &compiled, 1, &[block, Input::Shared(&keys)], batch, net);
            assert!(protocol.reveal_to_client(&keys, net).is_err(), "it is over");
            assert_eq!(config.save_setup(&setup)[RETIRED], 0);
            ended.map(|_| ())
        });
        assert!(matches!(outcomes[0], Err(Error::Closed { .. } | Error::Timeout { .. })), "{outcomes:?}");
        assert!(matches!(outcomes[1], Err(Error::OutOfStep { .. })), "{outcomes:?}");
    }
}

/// One evaluation in circuits, of a block and a key of a client, and the answer.
fn request(net: &mut dyn Net) -> Result<Vec<u8>> {
    let aes = ciphers::find("aes-128").expect("listed");
    let config = config();
    let setup = config.setup(net)?;
    let shelf = Arc::new(shelf(&config, &setup, &[("garbled circuits of AES-128", 2)], false, net)?);
    let stream = session(&config, net)?.stream();
    let mut protocol = config.join_stocked(&setup, stream, net.members(), shelf)?;
    Ok(computed(&config, &mut protocol, &modes::chain(&aes), 2, net)?.0)
}

/// Messages of each party before the request. What was made ahead has sweeps of its own.
fn messages_before() -> [u64; 2] {
    let ends: Vec<_> = mesh_with_timeout(2, LATE).into_iter().map(Metered::new).collect();
    let meters: Vec<_> = ends.iter().map(Metered::meter).collect();
    let outcomes = run_over(ends, |net| {
        let setup = config().setup(net)?;
        shelf(&config(), &setup, &[("garbled circuits of AES-128", 2)], false, net).map(|_| ())
    });
    assert_eq!(outcomes, [Ok(()), Ok(())]);
    [0, 1].map(|party: usize| meters[party].snapshot().messages_sent)
}

#[test]
fn no_fault_in_any_message_makes_a_wrong_block_at_a_client() {
    let aes = ciphers::find("aes-128").expect("listed");
    let right = expected(&modes::chain(&aes), 2);
    let honest = run_over(mesh_with_timeout(2, LATE), request);
    assert!(honest.into_iter().all(|outcome| outcome == Ok(right.clone())));
    for (cheater, first) in Party::all(2).zip(messages_before()) {
        let mut sweep = Sweep { first, drop_every: 4, ..Sweep::new(2, cheater, Promise::RightOrAborted) };
        sweep.faults.push(Fault::FlipBit { byte: usize::MAX, bit: 6 });
        let swept = sweep.run(request);
        println!("{cheater} cheats from message {first} on: {swept:?}");
        assert!(swept.messages >= first + 12 && swept.faults > 48, "{swept:?}");
    }
}

#[test]
fn every_kind_that_is_of_circuits_has_one_name_at_both_nodes() {
    let [garbler, evaluator] = [0, 1].map(|party| config().kinds(Party(party)));
    let names = |kinds: &[polyclave_protocol::stock::Kind]| -> Vec<_> {
        kinds.iter().map(|kind| (kind.name, kind.purpose, kind.per_block)).collect()
    };
    assert_eq!(names(&garbler), names(&evaluator));
    for (a, b) in garbler.iter().zip(&evaluator) {
        match a.purpose {
            Purpose::Circuits => {
                println!("{}: {}, {} bytes", a.name, a.item_bytes, b.item_bytes);
                assert!(b.item_bytes > a.item_bytes && a.per_block == 1, "gates are at the evaluator");
            }
            _ => assert_eq!(a, b),
        }
    }
    assert!(config().keeps_stock(), "requests need other material");
    let three = catalog::service("spdz-tower", 3, 2).expect("three nodes serve with it").kinds(Party(0));
    assert!(three.iter().all(|kind| kind.purpose != Purpose::Circuits), "circuits are of two");
}

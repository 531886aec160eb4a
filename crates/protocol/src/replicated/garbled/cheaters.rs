//! A party that departs from the protocol in one place, and otherwise accepts what follows from it: a
//! cheating first garbler verifies no outputs, and a cheating evaluator believes what it tells. Each of these
//! is found by one check alone. Without this check an honest party would take a wrong output.

use polyclave_cipher::compile;
use zeroize::Zeroizing;

use super::claim;
use super::item::Part;
use super::output::by_port;
use super::plan::Section;
use super::shape::unpack;
use super::tests::{X, Y, circuit, key, shared};
use super::*;
use crate::Party;
use crate::evaluate::prepare;
use crate::interface::protocol::ProtocolConfig;
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;
use crate::testkit::tamper::{Fault, Tamper};

const FIRST: Party = Party(0);
const SECOND: Party = Party(1);
const EVALUATOR: Party = Party(2);
const LANES: usize = 3;

/// What a party does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cheat {
    /// It follows the protocol.
    Nothing,
    /// It has another seed.
    Seed,
    /// The second garbler opens labels of other masks than the evaluator draws.
    Masks,
    /// It changes this byte of this message ahead.
    Ahead { message: u64, byte: usize },
    /// It changes this byte of its message with labels of x.
    Labels { byte: usize },
    /// It means another bit of this share of x.
    Share(usize),
    /// It means another public value.
    Public,
    /// The evaluator tells the opposite of an output.
    Told,
    /// Of a sum that is opened: it changes this byte of its message with labels, or of what decodes the sum.
    Opening { message: u64, byte: usize },
    /// It means another bit of this share of what is added.
    Addend(usize),
    /// The evaluator tells this garbler the opposite of a sum.
    ToldSum(Party),
}

/// When the labels of x are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Ahead,
    Online,
}

/// Ends with the output, or with an error. After one that shows a cheater no session goes on.
fn party(cheat: Cheat, when: When, net: &mut dyn Net) -> Result<Vec<u8>> {
    let config = GarbledThreeConfig::default();
    let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
    let setup = config.setup(net)?;
    let outcome = evaluated((cheat, when), config.join(&setup, session.stream(), net.members())?, net);
    if matches!(outcome, Err(Error::OneOfTwo { .. } | Error::Peer { .. })) {
        let later = config.join(&setup, session.stream(), net.members());
        assert!(matches!(later.err(), Some(Error::CheckFailed { .. })), "{cheat:?} {when:?}");
    }
    outcome
}

fn evaluated((cheat, when): (Cheat, When), mut protocol: GarbledThree, net: &mut dyn Net) -> Result<Vec<u8>> {
    let compiled = compile(&circuit(), &protocol);
    match (cheat, &mut protocol.keys) {
        (Cheat::Seed, Keys::First { garbling } | Keys::Second { garbling, .. }) => garbling[5] ^= 1,
        (Cheat::Masks, Keys::Second { masking, .. }) => masking[5] ^= 1,
        _ => {}
    }
    let (mut x, mut k) = (shared(X, LANES, net.me()), key());
    let half = x.rows.len() / 2;
    let (mut ahead, mut labels) = (None, None);
    match cheat {
        Cheat::Share(which) => x.rows[which * half] ^= 1,
        Cheat::Public => k.rows_mut()[0] ^= 1,
        Cheat::Ahead { message, byte } => ahead = Some((message, byte)),
        Cheat::Labels { byte } => labels = Some((0, byte)),
        _ => {}
    }
    let mut item = prepare(&mut protocol, &compiled, LANES, &mut flipping(net, ahead))?;
    if when == When::Ahead {
        item = protocol.give(&compiled, item, "x", &x, &mut flipping(net, labels.take()))?;
    }
    let inputs = [Input::Shared(&x), Input::Public(&k)];
    let mut registers = protocol.registers(&compiled, LANES, &mut item)?;
    protocol.inputs(compiled.inputs(), &inputs, &mut registers, &mut flipping(net, labels))?;
    for layer in compiled.layers() {
        protocol.linear(&layer.linear, &mut registers);
        protocol.lookup(&compiled, &layer.lookups, &mut registers, &mut item, net)?;
    }
    match (cheat, net.me()) {
        (Cheat::Nothing, _) | (_, SECOND) => _ = protocol.settle(&compiled, &mut registers, net)?,
        (_, FIRST) => believe(&compiled, &mut registers, net)?,
        _ => {
            let told = (cheat == Cheat::Told).then_some((0, 0));
            protocol.settle(&compiled, &mut registers, &mut flipping(net, told))?;
            if told.is_some() {
                // The first output of the first lane; e is its second share.
                let (_, y) = &mut registers.settled[0];
                let half = y.rows.len() / 2;
                y.rows[half] ^= 1;
            }
        }
    }
    let y = protocol.output(&compiled.outputs()[0], &mut registers);
    let opened = protocol.release(&y, Owner::All, net)?.expect("it is for all");
    Ok(opened.value().rows().to_vec())
}

/// A network that flips the lowest bit of a byte of a message.
fn flipping(net: &mut dyn Net, fault: Option<(u64, usize)>) -> Tamper<&mut dyn Net> {
    let (message, byte) = fault.unwrap_or((u64::MAX, 0));
    Tamper::new(net, message, Fault::FlipBit { byte, bit: 0 })
}

/// A first garbler takes every output that it is told.
fn believe(compiled: &Compiled, registers: &mut GarbledRegisters, net: &mut dyn Net) -> Result<()> {
    let (item, plan) = (registers.item.take().expect("it is new"), &registers.plan);
    let Part::First { seed, outputs } = &item.part else { panic!("it is the first garbler") };
    let count = outputs.len() / 16;
    let mut message = vec![0; count.div_ceil(8) + claim::BYTES];
    net.recv(EVALUATOR, &mut message)?;
    let own = Section::all(item.name.lanes.clone())
        .flat_map(|section| seed.wires(section, plan.extent(section)).own_masks().collect::<Vec<_>>());
    let shares = [unpack(&message, count), Zeroizing::new(own.collect())];
    registers.settled = by_port(compiled, plan, &item, &shares);
    Ok(())
}

fn run(cheater: Party, cheat: Cheat, when: When) -> Vec<Result<Vec<u8>>> {
    run_parties(3, |net| party(if net.me() == cheater { cheat } else { Cheat::Nothing }, when, net))
}

/// The honest parties end with the right output or with an error, and `finder` with one that says `what`.
fn is_found(cheater: Party, cheat: Cheat, when: When, finder: Party, what: &str) {
    let outcomes = run(cheater, cheat, when);
    for (party, outcome) in Party::all(3).zip(&outcomes).filter(|(party, _)| *party != cheater) {
        if let Ok(output) = outcome {
            assert_eq!(**output, *Y.map(|bit| [bit; LANES]).as_flattened(), "{cheat:?} {when:?}, {party}");
        }
    }
    let found = &outcomes[finder.index()];
    let found_it = found.as_ref().is_err_and(|error| error.to_string().contains(what));
    assert!(found_it, "{cheater} does {cheat:?} {when:?}: {found:?}");
}

#[test]
fn parties_that_follow_the_protocol_have_the_output() {
    for when in [When::Ahead, When::Online] {
        for outcome in run(FIRST, Cheat::Nothing, when) {
            assert_eq!(outcome, Ok(Y.map(|bit| [bit; LANES]).concat()));
        }
    }
}

#[test]
fn a_circuit_of_another_seed_is_found() {
    for cheater in [FIRST, SECOND] {
        is_found(cheater, Cheat::Seed, When::Ahead, EVALUATOR, "a garbled circuit");
    }
}

/// Six ANDs of 32 bytes; then, in a message of its own, what decodes six outputs.
#[test]
fn a_changed_table_or_decoding_is_found() {
    for (message, bytes) in [(0, 6 * 32), (1, 6)] {
        for byte in 0..bytes {
            let cheat = Cheat::Ahead { message, byte };
            is_found(FIRST, cheat, When::Ahead, EVALUATOR, "a garbled circuit");
        }
    }
}

#[test]
fn a_changed_digest_of_the_circuit_is_found() {
    for byte in [0, 31] {
        let cheat = Cheat::Ahead { message: 0, byte };
        is_found(SECOND, cheat, When::Ahead, EVALUATOR, "a garbled circuit");
    }
}

/// Labels and commitments of masks, and the digest of them.
#[test]
fn a_label_of_another_mask_is_found() {
    is_found(SECOND, Cheat::Masks, When::Ahead, EVALUATOR, "labels of masks");
    for byte in 32..32 + 6 * 32 {
        let cheat = Cheat::Ahead { message: 0, byte };
        is_found(SECOND, cheat, When::Ahead, EVALUATOR, "labels of masks");
    }
    let digest = Cheat::Ahead { message: 1, byte: 6 };
    is_found(FIRST, digest, When::Ahead, EVALUATOR, "labels of masks");
}

#[test]
fn labels_of_another_component_are_found_ahead_and_online() {
    for when in [When::Ahead, When::Online] {
        for (cheater, share, what) in [
            (FIRST, 0, "labels that the first"),
            // The component that the evaluator lacks.
            (FIRST, 1, "labels that the first"),
            (SECOND, 0, "labels that the first"),
            (SECOND, 1, "labels that the second"),
        ] {
            is_found(cheater, Cheat::Share(share), when, EVALUATOR, what);
        }
    }
}

/// Of x in three lanes: 48 bytes a bit and a digest from the first garbler, 32 and a digest from the second.
#[test]
fn a_changed_byte_of_labels_of_inputs_is_found() {
    let (first, second) = (LANES * 2 * 48, LANES * 2 * 32);
    for (cheater, bytes, what) in [
        (FIRST, 0..first, "labels that the first"),
        (FIRST, first..first + 1, "labels that the second"),
        (SECOND, 0..second, "labels that the second"),
        (SECOND, second..second + 1, "labels that the first"),
    ] {
        for byte in bytes {
            is_found(cheater, Cheat::Labels { byte }, When::Ahead, EVALUATOR, what);
        }
    }
}

/// Also if it is the evaluator that means another one: then nobody cheats, and the caller is careless.
#[test]
fn another_public_value_is_found() {
    for cheater in [FIRST, SECOND, EVALUATOR] {
        is_found(cheater, Cheat::Public, When::Ahead, EVALUATOR, "labels that the first");
    }
}

#[test]
fn an_output_that_was_not_evaluated_is_found() {
    is_found(EVALUATOR, Cheat::Told, When::Ahead, FIRST, "it has not evaluated");
}

/// Ends with the sum of the output and x. A cheating first garbler does not verify it.
fn sum(cheat: Cheat, net: &mut dyn Net) -> Result<Vec<u8>> {
    let config = GarbledThreeConfig::default();
    let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
    let setup = config.setup(net)?;
    let mut protocol = config.join(&setup, session.stream(), net.members())?;
    let compiled = compile(&circuit(), &protocol);
    let (x, k) = (shared(X, LANES, net.me()), key());
    let (mut addend, half) = (x.clone(), x.rows.len() / 2);
    if let Cheat::Addend(which) = cheat {
        addend.rows[which * half] ^= 1;
    }
    let mut item = prepare(&mut protocol, &compiled, LANES, net)?;
    let mut registers = protocol.registers(&compiled, LANES, &mut item)?;
    let inputs = [Input::Shared(&x), Input::Public(&k)];
    let fault = if let Cheat::Opening { message, byte } = cheat { Some((message, byte)) } else { None };
    let labels = &mut flipping(net, fault);
    let given = protocol.put_in_with_addend(&compiled, &inputs, &addend, &mut registers, labels);
    protocol.or_give_up(given)?;
    protocol.evaluate_layers(&compiled, &mut registers)?;
    let told = if let Cheat::ToldSum(to) = cheat { Some((u64::from(to == SECOND), 0)) } else { None };
    let sum = protocol.open_sum(&compiled, &mut registers, &mut flipping(net, told));
    protocol.or_give_up(sum)
}

/// x = (1, 1) added to y = (1, 1), lane by lane.
const SUM: [u8; 2 * LANES] = [0; 2 * LANES];

#[test]
fn sums_are_opened_to_parties_that_follow_the_protocol() {
    assert!(run_parties(3, |net| sum(Cheat::Nothing, net)).iter().all(|sum| *sum == Ok(SUM.to_vec())));
}

/// The honest parties end with the right sum or with an error, and `finder` with one that says `what`.
fn is_found_in_opening(cheater: Party, cheat: Cheat, finder: Party, what: &str) {
    let outcomes = run_parties(3, |net| sum(if net.me() == cheater { cheat } else { Cheat::Nothing }, net));
    for (party, outcome) in Party::all(3).zip(&outcomes).filter(|(party, _)| *party != cheater) {
        assert!(outcome.as_ref().is_ok_and(|sum| **sum == SUM) || outcome.is_err(), "{cheat:?}, {party}");
    }
    let found = &outcomes[finder.index()];
    let found_it = found.as_ref().is_err_and(|error| error.to_string().contains(what));
    assert!(found_it, "{cheater} does {cheat:?}: {found:?}");
}

#[test]
fn another_value_that_is_added_to_an_output_is_found() {
    for (cheater, share, what) in [
        (FIRST, 0, "labels that the first"),
        // The component that the evaluator lacks.
        (FIRST, 1, "labels that the first"),
        (SECOND, 0, "labels that the first"),
        (SECOND, 1, "labels that the second"),
    ] {
        is_found_in_opening(cheater, Cheat::Addend(share), EVALUATOR, what);
    }
}

/// The message with labels, and behind it the colours of six sums, or their digest.
#[test]
fn a_changed_label_or_decoding_of_a_sum_is_found() {
    let decodes = "what decodes an output";
    for byte in (0..2 * LANES).map(|wire| LANES * 2 * 48 + wire * 32) {
        is_found_in_opening(FIRST, Cheat::Opening { message: 0, byte }, EVALUATOR, "labels that the first");
    }
    is_found_in_opening(FIRST, Cheat::Opening { message: 1, byte: 0 }, EVALUATOR, decodes);
    for byte in [0, 31] {
        is_found_in_opening(SECOND, Cheat::Opening { message: 1, byte }, EVALUATOR, decodes);
    }
}

#[test]
fn a_sum_that_was_not_evaluated_is_found_by_each_garbler() {
    for garbler in [FIRST, SECOND] {
        is_found_in_opening(EVALUATOR, Cheat::ToldSum(garbler), garbler, "it has not evaluated the sums");
    }
}

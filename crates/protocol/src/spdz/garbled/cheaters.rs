//! A party that departs from the protocol in one place. Each of these is found by one check alone: without it
//! the honest party would take a wrong output, or compute with a wrong value.

use polyclave_cipher::compile;

use super::gates::GATE;
use super::input::unpack;
use super::output::DIGEST;
use super::tests::{K, X, Y, circuit, in_lanes, shared};
use super::*;
use crate::evaluate::prepare;
use crate::interface::protocol::ProtocolConfig;
use crate::interface::release::Released;
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;
use crate::testkit::tamper::{Fault, Tamper};

const GARBLER: Party = Party(0);
const EVALUATOR: Party = Party(1);
const LANES: usize = 3;

const OPENED: &str = "the tags of what was opened";
const GATES: &str = "the tags of the gates of a garbled circuit";
const LABELS: &str = "the labels of the outputs of a garbled circuit";
const PUBLIC: &str = "the tags of masks of public inputs";
const MACS: &str = "the MACs of opened values";

/// What a party does otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cheat {
    Nothing,
    /// It flips the lowest bit of this byte of one of its messages: of those of a part, the number from the
    /// first, or ahead from the last.
    Message(When, u64, usize),
    /// It flips the lowest bit of this byte of its gates, and goes on with whatever the evaluator tells.
    Gates(usize),
    /// It means another public value.
    Public,
    /// It has another share of x.
    Share,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Ahead,
    Given,
    Inputs,
    Settling,
}

/// Messages that each party sends ahead.
fn messages_ahead() -> [u64; 2] {
    let counted = run_parties(2, |net| {
        let (_, mut protocol) = begun(net)?;
        let compiled = compile(&circuit(), &protocol);
        let mut net = Tamper::new(net, u64::MAX, Fault::Drop);
        prepare(&mut protocol, &compiled, LANES, &mut net)?;
        Ok(net.tampering().messages())
    });
    [0, 1].map(|party: usize| counted[party].clone().expect("both are honest"))
}

fn begun(net: &mut dyn Net) -> Result<(impl Fn() -> bool + use<>, GarbledAuthenticated)> {
    let config = GarbledAuthenticatedConfig::with_evaluator(EVALUATOR)?;
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let setup = config.setup(net)?;
    let protocol = config.join(&setup, session.stream(), net.members())?;
    Ok((move || setup.key().refuse_retired().is_err(), protocol))
}

/// Ends with the output, or with an error. After one the session computes and releases nothing more, and
/// after a failed check no session does.
fn party(cheat: Cheat, is_given: bool, ahead: [u64; 2], net: &mut dyn Net) -> Result<Vec<u8>> {
    let (is_retired, mut protocol) = begun(net)?;
    let outcome = evaluated(cheat, is_given, ahead[net.me().index()], &mut protocol, net);
    if matches!(outcome, Err(Error::CheckFailed { .. })) {
        assert!(is_retired(), "{cheat:?}");
    }
    if outcome.is_err() {
        assert!(protocol.failed, "{cheat:?}");
        let compiled = compile(&circuit(), &protocol);
        assert!(matches!(protocol.prepare(&compiled, 1, net).err(), Some(Error::Misuse(_))));
        assert!(matches!(protocol.check(net).err(), Some(Error::Misuse(_))));
    }
    outcome
}

fn evaluated(
    cheat: Cheat,
    is_given: bool,
    ahead: u64,
    protocol: &mut GarbledAuthenticated,
    net: &mut dyn Net,
) -> Result<Vec<u8>> {
    let compiled = compile(&circuit(), protocol);
    let mut x = shared(protocol, &compiled.inputs()[0], &in_lanes(X, LANES), net)?;
    x.cells[0] ^= u8::from(cheat == Cheat::Share);
    let fault = |when: When| match cheat {
        Cheat::Gates(byte) if when == When::Ahead => (ahead - 1, byte),
        Cheat::Message(When::Ahead, from_last, byte) if when == When::Ahead => (ahead - 1 - from_last, byte),
        Cheat::Message(of, number, byte) if when == of => (number, byte),
        _ => (u64::MAX, 0),
    };
    let mut circuit = prepare(protocol, &compiled, LANES, &mut flipping(net, fault(When::Ahead)))?;
    if is_given {
        circuit = protocol.give(&compiled, circuit, "x", &x, &mut flipping(net, fault(When::Given)))?;
    }
    let mut k = in_lanes(K, 1);
    k.rows_mut()[1] ^= u8::from(cheat == Cheat::Public);
    let inputs = [Input::Shared(&x), Input::Public(&k)];
    let mut registers = protocol.registers(&compiled, LANES, &mut circuit)?;
    protocol.inputs(compiled.inputs(), &inputs, &mut registers, &mut flipping(net, fault(When::Inputs)))?;
    match cheat {
        Cheat::Gates(_) => settle_without_verifying(protocol, &compiled, &mut registers, net)?,
        _ => _ = protocol.settle(&compiled, &mut registers, &mut flipping(net, fault(When::Settling)))?,
    }
    let y = protocol.output(&compiled.outputs()[0], &mut registers);
    protocol.check(net)?;
    let opened = protocol.release(&y, Owner::All, net)?.expect("it is for all");
    Ok(opened.accept().rows().to_vec())
}

/// As a garbler that takes any hash of labels.
fn settle_without_verifying(
    protocol: &mut GarbledAuthenticated,
    compiled: &Compiled,
    registers: &mut GarbledRegisters,
    net: &mut dyn Net,
) -> Result<()> {
    let Item { lanes, outputs: masks, .. } = registers.item.take().ok_or_else(spent)?;
    let plan = registers.plan.clone();
    registers.settled = protocol.guarded(|session| {
        let count = masks.values.len();
        let mut message = vec![0; count.div_ceil(8) + DIGEST];
        net.recv(session.peer, &mut message)?;
        Ok(session.unmasked((compiled, &plan), lanes, masks, &unpack(&message, count)))
    })?;
    Ok(())
}

/// A network that flips the lowest bit of a byte of a message.
fn flipping(net: &mut dyn Net, (message, byte): (u64, usize)) -> Tamper<&mut dyn Net> {
    Tamper::new(net, message, Fault::FlipBit { byte, bit: 0 })
}

/// What the honest party ends with if the other one cheats.
fn honest(cheater: Party, cheat: Cheat, is_given: bool, ahead: [u64; 2]) -> Result<Vec<u8>> {
    let outcomes = run_parties(2, |net| {
        let cheat = if net.me() == cheater { cheat } else { Cheat::Nothing };
        party(cheat, is_given, ahead, net)
    });
    outcomes[1 - cheater.index()].clone()
}

#[test]
fn each_check_finds_the_cheater_that_only_it_finds() {
    let ahead = messages_ahead();
    let right = Y.map(|bit| [bit; LANES]).as_flattened().to_vec();
    for is_given in [false, true] {
        assert_eq!(honest(GARBLER, Cheat::Nothing, is_given, ahead), Ok(right.clone()));
    }
    use Cheat::{Message, Public, Share};
    use When::{Ahead, Given, Inputs, Settling};
    let third_tag = GATE - 8;
    for (cheater, cheat, is_given, found_by) in [
        // Of d and e, of f, and of the hash of tags. The garbler sends its gates behind.
        (GARBLER, Message(Ahead, 3, 0), false, OPENED),
        (GARBLER, Message(Ahead, 2, 0), false, OPENED),
        (GARBLER, Message(Ahead, 1, 0), false, OPENED),
        (EVALUATOR, Message(Ahead, 2, 0), false, OPENED),
        (EVALUATOR, Message(Ahead, 1, 0), false, OPENED),
        (EVALUATOR, Message(Ahead, 0, 0), false, OPENED),
        // Of the first and the last gate, what is added for all masked values.
        (GARBLER, Message(Ahead, 0, third_tag), false, GATES),
        (GARBLER, Message(Ahead, 0, 6 * GATE - 1), false, GATES),
        // Of x + lambda: six bits, each in a byte of its own. Online the garbler then sends a label of
        // another masked value than it told.
        (GARBLER, Message(Given, 0, 0), true, MACS),
        (EVALUATOR, Message(Given, 0, 0), true, MACS),
        (GARBLER, Message(Inputs, 0, 5), false, GATES),
        (GARBLER, Share, true, MACS),
        (EVALUATOR, Share, true, MACS),
        (GARBLER, Share, false, MACS),
        (EVALUATOR, Share, false, MACS),
        // Labels of x, labels of k, two r in a byte, and the hash of their tags.
        (GARBLER, Message(Inputs, 1, 0), false, GATES),
        (GARBLER, Message(Inputs, 1, 7 * 16), false, GATES),
        (GARBLER, Message(Inputs, 1, 8 * 16), false, PUBLIC),
        (GARBLER, Message(Inputs, 1, 8 * 16 + 1), false, PUBLIC),
        (GARBLER, Public, false, GATES),
        // Masked values, and the hash of their labels.
        (EVALUATOR, Message(Settling, 0, 0), false, LABELS),
        (EVALUATOR, Message(Settling, 0, 1), false, LABELS),
    ] {
        let outcome = honest(cheater, cheat, is_given, ahead);
        assert_eq!(outcome, Err(Error::CheckFailed { what: found_by }), "{cheater} {cheat:?}");
    }
}

/// Gates that are wrong lead to an error or to nothing, and never to another output: masked values come from
/// tags. The garbler verifies nothing here, so what the evaluator computes is what is opened.
#[test]
fn wrong_gates_never_change_an_output() {
    let ahead = messages_ahead();
    let right = Ok(Y.map(|bit| [bit; LANES]).as_flattened().to_vec());
    let wrong = Err(Error::CheckFailed { what: GATES });
    for gate in 0..2 * LANES {
        let cheat = |byte: usize| honest(GARBLER, Cheat::Gates(gate * GATE + byte), false, ahead);
        // The results of gates go to outputs, whose labels are of no use but for the hash.
        for of_row in [0, 16] {
            assert_eq!(cheat(of_row), right, "gate {gate}, byte {of_row}");
        }
        // The first and the second tag are added for a masked value of one.
        for of_tag in [32, 40] {
            let outcome = cheat(of_tag);
            assert!(outcome == right || outcome == wrong, "gate {gate}, byte {of_tag}: {outcome:?}");
        }
        // The third one is always added.
        assert_eq!(cheat(48), wrong, "gate {gate}");
    }
}

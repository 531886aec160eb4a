//! What one node sees of a payment command: all messages that it gets, and its shares of everything that
//! comes out. For two PINs, and for two keys of a card, message by message, the bytes have one distribution.
//!
//! What is public differs between the two: the encrypted block and the value that it is compared with, or the
//! cryptogram. It is in no message, so whatever differs in the messages would come from the secret.

use std::sync::Arc;

use parking_lot::Mutex;

use polyclave_cipher::{Cells, Cipher, CompiledPort, Matrix, catalog, compile, compile_with_views};
use polyclave_payments::commands::{VerifyArqc, VerifyPin};
use polyclave_payments::{
    CardKeyMethod, Command, CryptogramInput, EmvCard, EncryptedPin, KeyFacts, KeySource, MessagePadding,
    PinFormat, PinReference, Purpose, SessionKey,
};
use polyclave_protocol::any::{AnyServiceConfig, AnyShared};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig};
use polyclave_protocol::service::ServiceSession;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, run_over};
use polyclave_protocol_lab::testkit::record::{Direction, Record, Transcript};

const SESSIONS: usize = 6;
const LANES: usize = 64;
/// Whose view it is.
const VIEWER: Party = Party(1);

const PIN_KEY: &str = "00112233445566778899aabbccddeeff";
const PVV_KEY: &str = "0123456789abcdeffedcba9876543210";
const PAN: &str = "1122334455667788";
/// Two PINs of one card: their blocks in format 0 under the PIN key, and their values under the other.
const PINS: [(&str, &str); 2] = [("2d2399c6fc0fb12b", "4021"), ("8965f51af329d82f", "7197")];

/// Two master keys of an issuer, and what the card's key from each makes of the same data.
const MASTERS: [(&str, &str); 2] = [
    ("0123456789abcdeffedcba9876543210", "4a44d23e8ac6ce07"),
    ("2315208c9110ad402315208c9110ad40", "35eb025ac8888edc"),
];

/// A command that holds, with its keys.
struct Case {
    command: Command,
    keys: Vec<(Purpose, &'static str)>,
}

/// A PIN is verified.
fn of_pin(which: usize) -> Case {
    let (block, value) = PINS[which];
    let block = hex::decode(block).expect("hexadecimal");
    let pin = EncryptedPin { format: PinFormat::Iso0, block, key: KeySource::Direct };
    let reference = PinReference::Visa { index: 3, value: value.parse().expect("digits") };
    let command = VerifyPin { pin, pan: PAN.parse().expect("a card"), reference };
    let keys = vec![(Purpose::PinEncryption, PIN_KEY), (Purpose::PinVerificationVisa, PVV_KEY)];
    Case { command: Command::VerifyPin(command), keys }
}

/// A card's key is derived, and its cryptogram verified.
fn of_card_key(which: usize) -> Case {
    let (master, cryptogram) = MASTERS[which];
    let card = EmvCard {
        pan: "5413330089020011".parse().expect("a card"),
        sequence: "00".parse().expect("digits"),
        method: CardKeyMethod::OptionA,
    };
    let input = CryptogramInput {
        card,
        session_key: SessionKey::CardKey,
        data: (1..=16).collect(),
        padding: MessagePadding::BitAndZeros,
    };
    let cryptogram = hex::decode(cryptogram).expect("hexadecimal").try_into().expect("8 bytes");
    let command = VerifyArqc { input, cryptogram, response: None };
    Case { command: Command::VerifyArqc(command), keys: vec![(Purpose::EmvCryptograms, master)] }
}

fn config(protocol: &str) -> AnyServiceConfig {
    let descriptor = polyclave_protocol::catalog::find(protocol).expect("it is there");
    (descriptor.serving.as_ref().expect("nodes serve with it").config)(3, 1).expect("a configuration")
}

/// One session; returns this party's shares of what comes out, and says whether the command holds.
fn one_session(
    protocol: &str,
    Case { command, keys: secrets }: &Case,
    begins: impl FnOnce(),
    net: &mut dyn Net,
) -> Result<(Vec<u8>, Vec<bool>)> {
    let config = config(protocol);
    let mut session = hello(&config.handshake(HandshakeParameters::new(net.parties())), net)?;
    let setup = config.setup(net)?;
    let mut protocol = config.join(&setup, session.stream(), net.members())?;
    let cipher: Cipher = protocol.form(catalog::find("3des-ede2").expect("it is there"));
    let fact = |(purpose, _): &(Purpose, &str)| KeyFacts { purpose: *purpose, cipher: &cipher };
    let facts: Vec<KeyFacts<'_>> = secrets.iter().map(fact).collect();
    let command = command.payment();
    let compiled = compile(&command.circuit(&facts, 8), &protocol);

    let mut keys: Vec<AnyShared> = Vec::new();
    for (i, (_, key)) in secrets.iter().enumerate() {
        let views: Vec<Matrix> = compiled.inputs()[i].views();
        let schedule = compile_with_views(&cipher.key_schedule, &protocol, |_| views.clone());
        let port: &CompiledPort = &schedule.inputs()[0];
        let key = hex::decode(key).expect("hexadecimal");
        let cells = Cells::from_blocks(port.cells.len(), port.bits, &key).expect("a key");
        let own = if net.me() == Party(0) { Input::Mine(&cells) } else { Input::From(Party(0)) };
        let batch = prepare(&mut protocol, &schedule, 1, net)?;
        keys.push(evaluate(&mut protocol, &schedule, 1, &[own], batch, net)?.remove(0));
    }
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    begins();
    let port = &compiled.inputs()[keys.len()];
    let public = command.public(&facts).repeat(LANES);
    let public = Cells::from_blocks(port.cells.len(), port.bits, &public).expect("they fit");
    let inputs: Vec<Input<'_, _>> = keys.iter().map(Input::Shared).chain([Input::Public(&public)]).collect();
    let outputs = evaluate(&mut protocol, &compiled, LANES, &inputs, batch, net)?;
    let held = outputs.iter().flat_map(|output| protocol.save(output).to_vec()).collect();
    let check = protocol.elements(&outputs[0], net)?;
    Ok((held, protocol.arithmetic().are_zero(&check, net)?))
}

/// By session all messages that the viewer got, one after another, and what it holds at the end.
fn views(protocol: &'static str, case: fn(usize) -> Case, which: usize) -> Vec<Vec<Vec<u8>>> {
    let session = |_| {
        let case = Arc::new(case(which));
        let ends: Vec<_> = mesh_with_timeout(3, LATE).into_iter().map(Record::new).collect();
        let transcript: Transcript = ends[VIEWER.index()].transcript();
        let (begun, seen) = (Arc::new(Mutex::new(0)), transcript.clone());
        let mark = begun.clone();
        let outcomes = run_over(ends, move |net| {
            let is_viewer = net.me() == VIEWER;
            let begins = || {
                if is_viewer {
                    *mark.lock() = seen.messages().len();
                }
            };
            one_session(protocol, &case, begins, net)
        });
        let outcomes: Vec<_> = outcomes.into_iter().map(|outcome| outcome.expect("no party fails")).collect();
        assert!(outcomes.iter().all(|(_, holds)| *holds == [true; LANES]), "both hold");
        let heard = transcript.messages().split_off(*begun.lock()).into_iter();
        let heard = heard.filter(|message| message.direction == Direction::Received);
        let held = outcomes[VIEWER.index()].0.clone();
        heard.map(|message| message.bytes).chain([held]).collect()
    };
    (0..SESSIONS).map(session).collect()
}

/// How far two samples of bytes are apart: chi-squared of their counts, in standard deviations above its
/// mean.
fn apart(one: &[u8], other: &[u8]) -> f64 {
    let count = |bytes: &[u8]| {
        let mut counts = [0f64; 256];
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1.0);
        counts
    };
    let (ones, others) = (count(one), count(other));
    let (a, b) = (one.len() as f64, other.len() as f64);
    let seen = (0..256).filter(|i| ones[*i] + others[*i] > 0.0);
    let (mut chi_squared, mut freedom) = (0.0, -1.0);
    for i in seen {
        let difference = ones[i] * (b / a).sqrt() - others[i] * (a / b).sqrt();
        chi_squared += difference.powi(2) / (ones[i] + others[i]);
        freedom += 1.0;
    }
    if freedom < 1.0 { 0.0 } else { (chi_squared - freedom) / (2.0 * freedom).sqrt() }
}

const BOUND: f64 = 9.0;

fn check_views(protocol: &'static str, case: fn(usize) -> Case) {
    let [first, second] = [0, 1].map(|which| views(protocol, case, which));
    let messages = first[0].len();
    assert!(messages > 50, "{messages}");
    assert!(first.iter().chain(&second).all(|session| session.len() == messages), "{protocol}");
    for i in 0..messages {
        let of = |sessions: &[Vec<Vec<u8>>]| -> Vec<u8> {
            sessions.iter().flat_map(|session| session[i].clone()).collect()
        };
        let apart = apart(&of(&first), &of(&second));
        assert!(apart < BOUND, "{protocol}, message {i} of {messages}: {apart}");
    }
}

#[test]
fn a_node_sees_nothing_of_a_pin_under_shamir() {
    check_views("shamir", of_pin);
}

#[test]
fn a_node_sees_nothing_of_a_pin_under_replicated() {
    check_views("replicated", of_pin);
}

#[test]
fn a_node_sees_nothing_of_a_pin_under_replicated_active() {
    check_views("replicated-active", of_pin);
}

#[test]
fn a_node_sees_nothing_of_a_derived_key_under_shamir() {
    check_views("shamir", of_card_key);
}

#[test]
fn a_node_sees_nothing_of_a_derived_key_under_replicated() {
    check_views("replicated", of_card_key);
}

#[test]
fn a_node_sees_nothing_of_a_derived_key_under_replicated_active() {
    check_views("replicated-active", of_card_key);
}

/// If one message had one digit of the PIN in it, the statistic would show it.
#[test]
fn a_digit_in_a_message_would_be_seen() {
    let message = |digit: u8| {
        let bytes: Vec<u8> = (0..SESSIONS * LANES).map(|i| (i as u8).wrapping_mul(151) & 0xf0).collect();
        bytes.iter().map(|byte| byte | digit).collect::<Vec<u8>>()
    };
    assert!(apart(&message(4), &message(7)) > BOUND);
    assert!(apart(&message(4), &message(4)) < BOUND);
}

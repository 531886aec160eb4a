//! Conditions of the commands for chip cards and for devices of LoRaWAN.

use polyclave_payments::commands::{
    AcceptJoin, Arpc, ChangePin, ChangePinVisa, GenerateArqc, GenerateScriptMac, JoinVersion, VerifyArqc,
    VerifyJoinRequest,
};
use polyclave_payments::{Branches, Command, CryptogramInput, EncryptedPin, SessionKey};

use crate::runner::{FORMS, Runner, TestKey, with_facts};
use crate::vectors::read;

fn refusal(command: &Command, keys: &[TestKey]) -> Option<String> {
    with_facts(keys, 8, |facts| command.payment().check(facts).err())
}

/// The first known answer of which `part` is something, that, and its keys.
fn first<T>(file: &str, part: impl Fn(Command) -> Option<T>) -> (T, Vec<TestKey>) {
    let vectors = read(file).into_iter();
    let found = vectors.filter_map(|vector| Some((part(vector.command())?, vector.keys()))).next();
    found.expect("there is one")
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut other = bytes.to_vec();
    other[bit / 8] ^= 1 << (bit % 8);
    other
}

/// Only the first of these passes, in both forms.
fn only_the_first_passes(commands: &[Command], keys: &[TestKey]) {
    for element_bits in FORMS {
        let outcomes = Runner::new(element_bits).run_lanes(commands, keys, &[]);
        for (i, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.passes, i == 0, "{:?}", commands[i]);
        }
    }
}

#[test]
fn each_bit_of_a_rejoin_request_counts() {
    let (right, keys) = first("lorawan", |command| match command {
        Command::VerifyJoinRequest(request) if request.message.len() == 20 => Some(request),
        _ => None,
    });
    let whole = [&right.message[..], &right.code].concat();
    let with = |whole: Vec<u8>| {
        let code = whole[20..].try_into().expect("four bytes");
        Command::VerifyJoinRequest(VerifyJoinRequest { message: whole[..20].into(), code })
    };
    // The type is no secret: other types are refused at once.
    let bits = (0..8 * whole.len()).filter(|bit| bit / 8 != 1).map(|bit| with(flipped(&whole, bit)));
    let commands: Vec<Command> = [with(whole.clone())].into_iter().chain(bits).collect();
    only_the_first_passes(&commands, &keys);
}

#[test]
fn each_bit_of_an_arqc_counts_if_the_answer_is_under_the_cards_key() {
    let (right, keys) = first("emv-cryptograms", |command| match command {
        Command::VerifyArqc(verify @ VerifyArqc { response: Some(Arpc::Method1ByCardKey { .. }), .. }) => {
            Some(verify)
        }
        _ => None,
    });
    let with = |cryptogram: Vec<u8>| {
        let cryptogram = cryptogram.try_into().expect("eight bytes");
        Command::VerifyArqc(VerifyArqc { cryptogram, ..right.clone() })
    };
    let bits = (0..64).map(|bit| with(flipped(&right.cryptogram, bit)));
    let commands: Vec<Command> = [with(right.cryptogram.to_vec())].into_iter().chain(bits).collect();
    only_the_first_passes(&commands, &keys);
}

/// A block that is none gives no script, whichever of the two it is.
#[test]
fn new_and_current_pins_are_checked() {
    let (right, keys) = first("emv-scripts", |command| match command {
        Command::ChangePinVisa(change) if change.current.is_some() => Some(change),
        _ => None,
    });
    let other = |pin: &EncryptedPin| EncryptedPin { block: flipped(&pin.block, 3), ..pin.clone() };
    let current = right.current.as_ref().map(other);
    let commands = [
        right.clone(),
        ChangePinVisa { pin: other(&right.pin), ..right.clone() },
        ChangePinVisa { current, ..right.clone() },
    ];
    only_the_first_passes(&commands.map(Command::ChangePinVisa), &keys);

    let (right, keys) = first("emv-scripts", |command| match command {
        Command::ChangePin(change) => Some(change),
        _ => None,
    });
    let commands = [right.clone(), ChangePin { pin: other(&right.pin), ..right }];
    only_the_first_passes(&commands.map(Command::ChangePin), &keys);
}

/// Under the card's key itself, a MAC over one block would be half a session key.
#[test]
fn nothing_encrypts_a_chosen_block_under_a_cards_key() {
    let (made, keys) = first("emv-cryptograms", |command| match command {
        Command::GenerateArqc(made) if made.input.session_key == SessionKey::CardKey => Some(made),
        _ => None,
    });
    let of = |bytes: usize, session_key| {
        let input = CryptogramInput { data: vec![0; bytes], session_key, ..made.input.clone() };
        refusal(&Command::GenerateArqc(GenerateArqc { input }), &keys)
    };
    assert_eq!(of(9, SessionKey::CardKey), None);
    assert!(of(8, SessionKey::CardKey).is_some());
    assert!(of(4097, SessionKey::CardKey).is_some());

    let (script, keys) = first("emv-scripts", |command| match command {
        Command::GenerateScriptMac(script) => Some(script),
        _ => None,
    });
    let of = |session_key| {
        let script = GenerateScriptMac { session_key, ..script.clone() };
        refusal(&Command::GenerateScriptMac(script), &keys)
    };
    assert_eq!(of(SessionKey::Tree { counter: [0, 1], branches: Branches::Two }), None);
    assert!(of(SessionKey::CardKey).is_some(), "{} bytes", script.message.len());

    let (change, keys) = first("emv-scripts", |command| match command {
        Command::ChangePin(change) => Some(change),
        _ => None,
    });
    let change = ChangePin { session_key: SessionKey::CardKey, ..change };
    assert!(refusal(&Command::ChangePin(change), &keys).is_some());
}

#[test]
fn messages_of_devices_have_the_lengths_and_types_of_the_standard() {
    let (request, keys) = first("lorawan", |command| match command {
        Command::VerifyJoinRequest(request) if request.message.len() == 20 => Some(request),
        _ => None,
    });
    let of = |message: Vec<u8>| {
        refusal(&Command::VerifyJoinRequest(VerifyJoinRequest { message, ..request.clone() }), &keys)
    };
    assert_eq!(of(request.message.clone()), None);
    assert!(of(flipped(&request.message, 9)).is_some(), "type 3");
    assert!(of(request.message[..18].into()).is_some());

    let accept = |length: usize, request_type| {
        let version =
            JoinVersion::V1_1 { request_type, join_eui: [1; 8], dev_eui: [2; 8], dev_nonce: [3; 2] };
        refusal(&Command::AcceptJoin(AcceptJoin { message: vec![0; length], version }), &keys)
    };
    assert_eq!(accept(13, 0xff), None);
    assert_eq!(accept(29, 2), None);
    assert!(accept(13, 3).is_some());
    assert!(accept(12, 0xff).is_some());
}

#[test]
fn keys_serve_only_what_they_are_for() {
    for (file, count) in [("emv-cryptograms", 1), ("emv-scripts", 4), ("lorawan", 1), ("milenage", 2)] {
        let vectors = read(file);
        let vector = vectors.iter().find(|vector| vector.keys().len() == count).expect("there is one");
        for i in 0..count {
            let mut keys = vector.keys();
            keys[i].purpose = "data-encryption".parse().expect("a purpose");
            assert!(refusal(&vector.command(), &keys).is_some(), "{file}: key {i}");
        }
        assert!(refusal(&vector.command(), &vector.keys()[1..]).is_some(), "{file}: too few keys");
    }
}

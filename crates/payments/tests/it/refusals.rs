//! What is public is checked before anything is computed.

use polyclave_payments::commands::{
    AcceptJoin, Arpc, ChangePin, EncryptData, GenerateCardValue, GenerateMac, GeneratePin, GenerateScriptMac,
    IssueCardKey, JoinVersion, PinMethod, TranslatePin, VerifyArqc, VerifyCardValue, VerifyJoinRequest,
    VerifyMac, VerifyPin,
};
use polyclave_payments::{
    CardData, Command, DataMode, Dukpt, DukptUsage, EmvCard, EncryptedPin, KeySource, MessagePadding,
    OutgoingPin, PinFormat, PinReference, Purpose, SessionKey, WorkingKey,
};

use crate::runner::{TestKey, bytes, key, pan, purposes, with_facts};
use crate::vectors::{FILES, read};

const TDES: &str = "0123456789abcdeffedcba9876543210";
const AES: &str = "00112233445566778899aabbccddeeff";

fn refusal(command: &Command, keys: &[TestKey]) -> Option<String> {
    with_facts(keys, 8, |facts| command.payment().check(facts).err())
}

fn refused(command: Command, keys: &[TestKey], why: &str) {
    let refusal = refusal(&command, keys).unwrap_or_else(|| panic!("{command:?} is not refused: {why}"));
    assert!(refusal.contains(why), "{refusal}, not {why}");
}

fn pin_key() -> TestKey {
    key("pin-encryption", "3des-ede2", TDES)
}

fn aes_pin_key() -> TestKey {
    key("pin-encryption", "aes-128", AES)
}

fn incoming(format: PinFormat, block: usize) -> EncryptedPin {
    EncryptedPin { format, block: vec![0; block], key: KeySource::Direct }
}

fn outgoing(format: PinFormat) -> OutgoingPin {
    OutgoingPin { format, key: KeySource::Direct }
}

/// The first command of the known answers that fits, and its keys.
fn first<T>(file: &str, of: impl Fn(Command) -> Option<T>) -> (T, Vec<TestKey>) {
    let found = read(file).into_iter().find_map(|vector| Some((of(vector.command())?, vector.keys())));
    found.expect("there is one")
}

#[test]
fn a_key_serves_its_purpose_and_nothing_else() {
    for vector in FILES.iter().flat_map(|name| read(name)) {
        let (command, keys) = (vector.command(), vector.keys());
        assert_eq!(refusal(&command, &keys), None);
        let roles = command.payment().roles();
        for (i, role) in roles.iter().enumerate() {
            let takes = |purpose: &Purpose| (role.takes)(purpose);
            let most = if role.name == "master key of an issuer" { 5 } else { 1 };
            assert_eq!(purposes().filter(takes).count(), most, "{}", role.name);
            let mut others = keys.clone();
            others[i].purpose = purposes().find(|purpose| !takes(purpose)).expect("there are others");
            assert!(refusal(&command, &others).is_some());
        }
        assert!(refusal(&command, &keys[1..]).is_some());
    }
}

#[test]
fn a_purpose_has_its_ciphers() {
    for (purpose, cipher, fits) in [
        ("pin-verification-visa", "3des-ede2", true),
        ("pin-verification-visa", "3des-ede3", false),
        ("pin-verification-visa", "des", false),
        ("card-verification", "aes-128", false),
        ("mac-retail", "3des-ede3", false),
        ("mac-cmac", "aes-256", true),
        ("mac-cbc", "3des-ede3", true),
        ("mac-cbc", "des", false),
        ("dukpt-base", "3des-ede3", false),
        ("dukpt-base", "aes-192", true),
        ("pin-encryption", "des", false),
        ("pin-encryption", "present-128", false),
        ("milenage-subscriber", "aes-256", false),
        ("lorawan-network", "aes-128", true),
    ] {
        let key = key(purpose, cipher, "");
        let found =
            with_facts(std::slice::from_ref(&key), 8, |facts| facts[0].purpose.check(facts[0].cipher));
        assert_eq!(found.is_ok(), fits, "{purpose} {cipher}");
    }
}

/// The translations with which PINs were found (Clulow 2003; Berkman and Ostrovsky 2007).
#[test]
fn bound_pins_do_not_become_unbound() {
    for format in [PinFormat::Iso0, PinFormat::Iso3, PinFormat::Iso4] {
        let (block, from) = if format == PinFormat::Iso4 { (16, aes_pin_key()) } else { (8, pin_key()) };
        let command = TranslatePin {
            incoming: incoming(format, block),
            pan: Some(pan("5413330089020011")),
            outgoing: outgoing(PinFormat::Iso1),
        };
        refused(Command::TranslatePin(command), &[from, pin_key()], "are not translated to iso-1");
    }
    let command = TranslatePin {
        incoming: incoming(PinFormat::Iso1, 8),
        pan: None,
        outgoing: outgoing(PinFormat::Iso0),
    };
    refused(Command::TranslatePin(command), &[pin_key(), pin_key()], "need the card number");
}

#[test]
fn formats_and_lengths_of_pin_blocks_fit_their_keys() {
    let with = |format, block| {
        let reference = PinReference::Visa { index: 1, value: "1234".parse().expect("digits") };
        Command::VerifyPin(VerifyPin {
            pin: incoming(format, block),
            pan: pan("5413330089020011"),
            reference,
        })
    };
    let visa = key("pin-verification-visa", "3des-ede2", TDES);
    refused(with(PinFormat::Iso0, 8), &[aes_pin_key(), visa.clone()], "not encrypted with aes-128");
    refused(with(PinFormat::Iso4, 16), &[pin_key(), visa.clone()], "not encrypted with 3des-ede2");
    refused(with(PinFormat::Iso0, 7), &[pin_key(), visa.clone()], "has 8 bytes");
    refused(with(PinFormat::Iso4, 8), &[aes_pin_key(), visa], "has 16 bytes");
}

#[test]
fn references_have_their_lengths() {
    let (right, keys) = first("verify-pin", |c| match c {
        Command::VerifyPin(c) if matches!(c.reference, PinReference::Visa { .. }) => Some(c),
        _ => None,
    });
    for (index, value, why) in
        [(10, "1234", "is a digit"), (1, "123", "has 4 digits"), (1, "12345", "has 4 digits")]
    {
        let reference = PinReference::Visa { index, value: value.parse().expect("digits") };
        refused(Command::VerifyPin(VerifyPin { reference, ..right.clone() }), &keys, why);
    }
    let (right, keys) = first("verify-pin", |c| match c {
        Command::VerifyPin(c) if matches!(c.reference, PinReference::Ibm3624 { .. }) => Some(c),
        _ => None,
    });
    for offset in ["123", "1234567890123"] {
        let reference =
            PinReference::Ibm3624 { validation_data: [0; 8], offset: offset.parse().expect("digits") };
        refused(Command::VerifyPin(VerifyPin { reference, ..right.clone() }), &keys, "has 4 to 12 digits");
    }
}

#[test]
fn key_serial_numbers_are_checked() {
    let with = |ksn: &str, working| {
        let source = KeySource::Dukpt(Dukpt { ksn: bytes(ksn), working });
        let pin = EncryptedPin { format: PinFormat::Iso0, block: vec![0; 8], key: source };
        let reference = PinReference::Visa { index: 1, value: "1234".parse().expect("digits") };
        Command::VerifyPin(VerifyPin { pin, pan: pan("5413330089020011"), reference })
    };
    let visa = key("pin-verification-visa", "3des-ede2", TDES);
    let tdes = [key("dukpt-base", "3des-ede2", TDES), visa.clone()];
    let aes = [key("dukpt-base", "aes-128", AES), visa];
    use WorkingKey::{Aes192, Tdes2, Tdes3};
    refused(with("ffff9876543210e000", Tdes2), &tdes, "has 10 bytes");
    refused(with("123456789012345600000001", Tdes2), &tdes, "has 10 bytes");
    refused(with("ffff9876543210e00001", Tdes2), &aes, "has 12 bytes");
    refused(with("ffff9876543210e00000", Tdes2), &tdes, "1 to 10 bits set");
    refused(with("ffff9876543210ffffff", Tdes2), &tdes, "1 to 10 bits set");
    refused(with("ffff9876543210e00001", Tdes3), &tdes, "with two keys");
    refused(with("123456789012345600000000", Tdes2), &aes, "1 to 16 bits set");
    refused(with("12345678901234560001ffff", Tdes2), &aes, "1 to 16 bits set");
    refused(with("123456789012345600000001", Aes192), &aes, "not longer than");
}

#[test]
fn card_values_and_dates_have_their_lengths() {
    let (right, keys) = first("card-values", |c| match c {
        Command::VerifyCardValue(c) => Some(c),
        _ => None,
    });
    for value in ["1", "12", "123456"] {
        let wrong = VerifyCardValue { value: value.parse().expect("digits"), ..right.clone() };
        refused(Command::VerifyCardValue(wrong), &keys, "has 3 to 5 digits");
    }
    let of = |digits: [&str; 2]| {
        let [expiry, service_code] = digits.map(|digits| digits.parse().expect("digits"));
        let card = CardData::Cvv { pan: pan("4123456789012345"), expiry, service_code };
        Command::VerifyCardValue(VerifyCardValue { card, ..right.clone() })
    };
    refused(of(["128", "101"]), &keys, "has 4 digits");
    refused(of(["1280", "01"]), &keys, "has 3 digits");
    for length in [0, 6] {
        let command = GenerateCardValue { card: right.card.clone(), length };
        refused(Command::GenerateCardValue(command), &keys, "has 1 to 5 digits");
    }
}

#[test]
fn tracks_have_their_lengths() {
    let (right, keys) = first("card-values", |c| match c {
        Command::GenerateCardValue(GenerateCardValue { card: CardData::Cvc3 { card, .. }, .. }) => Some(card),
        _ => None,
    });
    for (track, sequence, why) in [
        (vec![], "00", "1 to 80 bytes"),
        (vec![0; 81], "00", "1 to 80 bytes"),
        (vec![0], "0", "has 2 digits"),
    ] {
        let card = EmvCard { sequence: sequence.parse().expect("digits"), ..right.clone() };
        let card = CardData::Cvc3 { card, track, unpredictable: [0; 4], counter: [0; 2] };
        refused(Command::GenerateCardValue(GenerateCardValue { card, length: 3 }), &keys, why);
    }
}

#[test]
fn messages_and_macs_have_their_lengths() {
    let (right, keys) = first("macs", |c| match c {
        Command::GenerateMac(c) => Some(c),
        _ => None,
    });
    for length in [3, 9] {
        refused(Command::GenerateMac(GenerateMac { length, ..right.clone() }), &keys, "4 to 8 bytes");
        let command = VerifyMac { input: right.input.clone(), mac: vec![0; length.into()] };
        refused(Command::VerifyMac(command), &keys, "4 to 8 bytes");
    }
    let of = |message: Vec<u8>| {
        let mut other = right.clone();
        other.input.message = message;
        Command::GenerateMac(other)
    };
    for message in [vec![], vec![0; 4097]] {
        refused(of(message), &keys, "1 to 4096 bytes");
    }
    // The check value of the key is the beginning of this MAC.
    for message in [vec![0], vec![0; 8]] {
        refused(of(message), &keys, "check value");
    }
    assert_eq!(refusal(&of(vec![0; 9]), &keys), None);
    let mut wrong = right.clone();
    wrong.input.usage = DukptUsage::Pin;
    refused(Command::GenerateMac(wrong), &keys, "has to be for MACs");
    let mut wrong = right;
    wrong.input.key =
        KeySource::Dukpt(Dukpt { ksn: bytes("123456789012345600000001"), working: WorkingKey::Aes128 });
    refused(Command::GenerateMac(wrong), &[key("dukpt-base", "aes-128", AES)], "takes a key of Triple DES");
}

#[test]
fn made_pins_are_bound_and_have_4_to_12_digits() {
    let (right, keys) = first("generate-pin", |c| match c {
        Command::GeneratePin(c) if matches!(c.method, PinMethod::Natural { .. }) => Some(c),
        _ => None,
    });
    let wrong = GeneratePin { outgoing: outgoing(PinFormat::Iso1), ..right.clone() };
    refused(Command::GeneratePin(wrong), &keys, "bound to its card");
    for length in [3, 13] {
        refused(Command::GeneratePin(GeneratePin { length, ..right.clone() }), &keys, "4 to 12 digits");
    }
    let offset = "12345".parse().expect("digits");
    let method = PinMethod::FromOffset { validation_data: [0; 8], offset };
    refused(Command::GeneratePin(GeneratePin { method, length: 4, ..right }), &keys, "has 4 digits");
}

#[test]
fn data_has_whole_blocks() {
    let (right, keys) = first("data", |c| match c {
        Command::EncryptData(c) if matches!(c.key.mode, DataMode::Cbc { .. }) => Some(c),
        _ => None,
    });
    for data in [vec![], vec![0; 9], vec![0; 4104]] {
        refused(Command::EncryptData(EncryptData { data, ..right.clone() }), &keys, "whole blocks");
    }
    let mut wrong = right.clone();
    wrong.key.mode = DataMode::Cbc { iv: vec![0; 16] };
    refused(Command::EncryptData(wrong), &keys, "vector has 8 bytes");
    let mut wrong = right;
    wrong.key.usage = DukptUsage::MacBoth;
    refused(Command::EncryptData(wrong), &keys, "has to be for data");
}

#[test]
fn what_cards_sign_has_its_lengths() {
    let (right, keys) = first("emv", |c| match c {
        Command::VerifyArqc(c) => Some(c),
        _ => None,
    });
    let mut wrong = right.clone();
    wrong.input.data.clear();
    refused(Command::VerifyArqc(wrong), &keys, "1 to 4096 bytes");
    let response = Some(Arpc::Method2 { status: [0; 4], proprietary: vec![0; 9] });
    refused(Command::VerifyArqc(VerifyArqc { response, ..right }), &keys, "at most 8 bytes");
    let (right, keys) = first("emv", |c| match c {
        Command::GenerateScriptMac(c) => Some(c),
        _ => None,
    });
    for length in [3, 9] {
        let wrong = GenerateScriptMac { length, ..right.clone() };
        refused(Command::GenerateScriptMac(wrong), &keys, "4 to 8 bytes");
    }
    refused(
        Command::GenerateScriptMac(GenerateScriptMac { message: Vec::new(), ..right }),
        &keys,
        "1 to 4096 bytes",
    );
    let (right, keys) = first("emv", |c| match c {
        Command::ChangePin(c) => Some(c),
        _ => None,
    });
    refused(Command::ChangePin(ChangePin { message: Vec::new(), ..right }), &keys, "1 to 4096 bytes");
    let (right, keys) = first("emv", |c| match c {
        Command::IssueCardKey(c) => Some(c),
        _ => None,
    });
    let mut wrong: IssueCardKey = right;
    wrong.card.sequence = "1".parse().expect("digits");
    refused(Command::IssueCardKey(wrong), &keys, "has 2 digits");
}

#[test]
fn messages_of_lorawan_have_their_lengths() {
    let keys = [key("lorawan-network", "aes-128", AES)];
    let command = VerifyJoinRequest { message: vec![0; 18], code: [0; 4] };
    refused(Command::VerifyJoinRequest(command), &keys, "has 19 bytes");
    let command = AcceptJoin { message: vec![0; 14], version: JoinVersion::V1_0 };
    refused(Command::AcceptJoin(command), &keys, "13 or 29 bytes");
    let version = JoinVersion::V1_1 { request_type: 3, join_eui: [0; 8], dev_eui: [0; 8], dev_nonce: [0; 2] };
    refused(Command::AcceptJoin(AcceptJoin { message: vec![0; 13], version }), &keys, "type 0, 1, 2 or 255");
}

/// The MAC of one block under a card's own key is a block of its choice, encrypted: half a session key.
#[test]
fn no_single_block_is_authenticated_under_a_card_key() {
    let (right, keys) = first("emv", |c| match c {
        Command::GenerateArqc(c) if c.input.session_key == SessionKey::CardKey => Some(c),
        _ => None,
    });
    for (bytes, is_refused) in [(8, true), (9, false)] {
        let mut command = right.clone();
        (command.input.data, command.input.padding) = (vec![0; bytes], MessagePadding::Zeros);
        assert_eq!(refusal(&Command::GenerateArqc(command), &keys).is_some(), is_refused);
    }
    let (right, keys) = first("emv", |c| match c {
        Command::GenerateScriptMac(c) if c.session_key == SessionKey::CardKey => Some(c),
        _ => None,
    });
    for (bytes, is_refused) in [(7, true), (8, false)] {
        let command = GenerateScriptMac { message: vec![0; bytes], ..right.clone() };
        assert_eq!(refusal(&Command::GenerateScriptMac(command), &keys).is_some(), is_refused);
    }
}

/// Logs show commands: no whole card number, and no digits with which somebody is verified.
#[test]
fn what_is_shown_of_a_command_is_shortened() {
    fn digits(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| match value.as_str() {
                    Some(text) if ["pan", "value", "offset"].contains(&name.as_str()) => {
                        found.push(text.into())
                    }
                    _ => digits(value, found),
                })
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| digits(item, found)),
            _ => {}
        }
    }
    let mut checked = 0;
    for vector in FILES.iter().flat_map(|name| read(name)) {
        let command = vector.command();
        let mut found = Vec::new();
        digits(&serde_json::to_value(&command).expect("it can be written"), &mut found);
        let shown = format!("{command:?}");
        for text in found.iter().filter(|text| text.len() > 2) {
            assert!(!shown.contains(text), "{shown}");
            checked += 1;
        }
        assert!(!shown.contains("validation_data"), "{shown}");
    }
    assert!(checked > 150, "{checked}");
}

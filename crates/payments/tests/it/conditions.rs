//! Every condition of a command: if one of them is not met, the check is not zero.

use polyclave_payments::commands::{
    GeneratePinReference, ReferenceMethod, ResynchronizeSim, TranslatePin, VerifyArqc, VerifyCardValue,
    VerifyJoinRequest, VerifyMac, VerifyPin,
};
use polyclave_payments::{Command, EncryptedPin, KeySource, OutgoingPin, PinFormat, PinReference};

use crate::runner::{FORMS, Runner, TestKey, bytes, encrypted, key, pan};
use crate::vectors::read;

const PAN: &str = "5413330089020011";
const FORMATS: [PinFormat; 4] = [PinFormat::Iso0, PinFormat::Iso1, PinFormat::Iso3, PinFormat::Iso4];

fn pin_key(format: PinFormat) -> TestKey {
    match format {
        PinFormat::Iso4 => key("pin-encryption", "aes-128", "00112233445566778899aabbccddeeff"),
        _ => key("pin-encryption", "3des-ede2", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"),
    }
}

fn nibbles(text: &str) -> Vec<u8> {
    text.chars().map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8).collect()
}

/// A PIN field of 16 nibbles, right in its format.
fn field(format: PinFormat, pin: &str) -> Vec<u8> {
    let (control, fill) = match format {
        PinFormat::Iso0 => ("0", "FFFFFFFFFF"),
        PinFormat::Iso1 => ("1", "09AF5C3812"),
        PinFormat::Iso3 => ("3", "ABCDEFACEB"),
        PinFormat::Iso4 => ("4", "AAAAAAAAAA"),
    };
    nibbles(&format!("{control}{:X}{pin}{}", pin.len(), &fill[..14 - pin.len()]))
}

/// What ISO 9564-1 says of a field.
fn is_right(format: PinFormat, field: &[u8]) -> bool {
    let (control, fill): (u8, fn(u8) -> bool) = match format {
        PinFormat::Iso0 => (0, |x| x == 15),
        PinFormat::Iso1 => (1, |_| true),
        PinFormat::Iso3 => (3, |x| x > 9),
        PinFormat::Iso4 => (4, |x| x == 10),
    };
    let length = usize::from(field[1]);
    field[0] == control
        && (4..=12).contains(&length)
        && field[2..2 + length].iter().all(|x| *x < 10)
        && field[2 + length..].iter().all(|x| fill(*x))
}

/// A block of a card with 16 digits, encrypted.
fn sealed(format: PinFormat, field: &[u8], pan: &str) -> Vec<u8> {
    let key = pin_key(format);
    let bytes: Vec<u8> = field.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    let xor = |x: &[u8], y: &[u8]| x.iter().zip(y).map(|(x, y)| x ^ y).collect::<Vec<u8>>();
    let packed = |text: &str| nibbles(text).chunks(2).map(|p| p[0] << 4 | p[1]).collect::<Vec<u8>>();
    match format {
        PinFormat::Iso4 => {
            let whole = [&bytes[..], &[0x5a; 8]].concat();
            let once = encrypted(&key.cipher, &key.bytes, &whole);
            let sum = xor(&once, &packed(&format!("{:0<32}", format!("4{pan}"))));
            encrypted(&key.cipher, &key.bytes, &sum)
        }
        PinFormat::Iso1 => encrypted(&key.cipher, &key.bytes, &bytes),
        _ => encrypted(&key.cipher, &key.bytes, &xor(&bytes, &packed(&format!("0000{}", &pan[3..15])))),
    }
}

fn incoming(format: PinFormat, field: &[u8]) -> EncryptedPin {
    EncryptedPin { format, block: sealed(format, field, PAN), key: KeySource::Direct }
}

/// Fields that differ in one nibble from a right one, and right ones of every length.
fn fields(format: PinFormat, lengths: &[usize]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for length in lengths {
        let right = field(format, &"901728364550"[..*length]);
        for place in 0..16 {
            all.extend((0..16).map(|x| [&right[..place], &[x], &right[place + 1..]].concat()));
        }
    }
    all
}

#[test]
fn each_nibble_of_a_pin_block_is_checked() {
    for format in FORMATS {
        let fields = fields(format, &[4, 5, 8, 11, 12]);
        let outgoing = OutgoingPin { format: PinFormat::Iso0, key: KeySource::Direct };
        let command = |field: &Vec<u8>| {
            let incoming = incoming(format, field);
            Command::TranslatePin(TranslatePin { incoming, pan: Some(pan(PAN)), outgoing: outgoing.clone() })
        };
        let commands: Vec<Command> = fields.iter().map(command).collect();
        let keys = [pin_key(format), pin_key(PinFormat::Iso0)];
        for element_bits in FORMS {
            let outcomes = Runner::new(element_bits).run_lanes(&commands, &keys, &[]);
            let mut right = 0;
            for (field, outcome) in fields.iter().zip(outcomes) {
                assert_eq!(outcome.passes, is_right(format, field), "{format} {field:x?}");
                right += usize::from(outcome.passes);
            }
            assert!((80..fields.len() - 80).contains(&right), "{format}: {right}");
        }
    }
}

#[test]
fn each_nibble_of_a_pin_block_of_known_length_is_checked() {
    for format in FORMATS {
        for length in [4u8, 7, 12] {
            let fields = fields(format, &[length.into(), 6]);
            let command = |field: &Vec<u8>| {
                let method = ReferenceMethod::Offset { validation_data: of_card(PAN), length };
                let pin = incoming(format, field);
                Command::GeneratePinReference(GeneratePinReference { pin, pan: pan(PAN), method })
            };
            let commands: Vec<Command> = fields.iter().map(command).collect();
            let keys = [pin_key(format), ibm3624_key()];
            let outcomes = Runner::new(8).run_lanes(&commands, &keys, &[]);
            for (field, outcome) in fields.iter().zip(outcomes) {
                let right = is_right(format, field) && field[1] == length;
                assert_eq!(outcome.passes, right, "{format} {field:x?}");
            }
        }
    }
}

/// Validation data of a card.
fn of_card(digits: &str) -> [u8; 8] {
    bytes(digits).try_into().expect("16 digits")
}

/// With another card number a block has another PIN, or none: never the offset that the same PIN has there.
#[test]
fn blocks_are_bound_to_the_card() {
    for format in [PinFormat::Iso0, PinFormat::Iso3, PinFormat::Iso4] {
        let field = field(format, "901728364550");
        // A block that was made for one card, used with the number of another.
        let with = |[made_for, used]: [&String; 2]| {
            let method = ReferenceMethod::Offset { validation_data: of_card(used), length: 12 };
            let pin = EncryptedPin { block: sealed(format, &field, made_for), ..incoming(format, &field) };
            Command::GeneratePinReference(GeneratePinReference { pin, pan: pan(used), method })
        };
        // In formats 0 and 3 twelve digits are bound. Two of them lie under the fill here, and a letter that
        // is changed can be another letter.
        let bound = match format {
            PinFormat::Iso4 => 0..16,
            PinFormat::Iso3 => 3..13,
            _ => 3..15,
        };
        let changed = |place: usize| {
            let mut digits = PAN.as_bytes().to_vec();
            digits[place] = b'0' + (digits[place] - b'0' + 5) % 10;
            String::from_utf8(digits).expect("digits")
        };
        let (own, others): (String, Vec<String>) = (PAN.into(), bound.map(changed).collect());
        let pairs = others.iter().flat_map(|other| [[&own, other], [other, other]]);
        let commands: Vec<Command> = pairs.map(with).collect();
        let outcomes = Runner::new(8).run_lanes(&commands, &[pin_key(format), ibm3624_key()], &[]);
        for pair in outcomes.chunks(2) {
            assert!(pair[1].passes, "{format}: the same PIN for the other card");
            assert!(!pair[0].passes || pair[0].answer != pair[1].answer, "{format}");
        }
    }
}

fn ibm3624_key() -> TestKey {
    key("pin-verification-ibm3624:0123456789012345", "3des-ede2", "0123456789abcdeffedcba9876543210")
}

/// The first vector of a command of a kind, and its keys.
fn first(file: &str, wanted: impl Fn(&Command) -> bool) -> (Command, Vec<TestKey>) {
    let mut vectors = read(file).into_iter();
    let vector = vectors.find(|vector| wanted(&vector.command())).expect("there is one");
    (vector.command(), vector.keys())
}

/// All of these pass in one lane of a run in which nothing else does.
fn only_the_first_passes(commands: &[Command], keys: &[TestKey]) {
    for element_bits in FORMS {
        let outcomes = Runner::new(element_bits).run_lanes(commands, keys, &[]);
        for (i, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.passes, i == 0, "{:?}", commands[i]);
        }
    }
}

/// A text of digits, and all that differ from it in one.
fn digits_around(text: &str) -> Vec<String> {
    let mut all = vec![text.to_owned()];
    for place in 0..text.len() {
        for digit in '0'..='9' {
            let other = format!("{}{digit}{}", &text[..place], &text[place + 1..]);
            if other != text {
                all.push(other);
            }
        }
    }
    all
}

/// Bytes, and all that differ from them in one bit.
fn bits_around<const N: usize>(bytes: &[u8]) -> Vec<[u8; N]> {
    let right: [u8; N] = bytes.try_into().expect("so many bytes");
    let flipped = |bit: usize| {
        let mut other = right;
        other[bit / 8] ^= 1 << (bit % 8);
        other
    };
    [right].into_iter().chain((0..8 * N).map(flipped)).collect()
}

#[test]
fn each_digit_of_a_pvv_is_compared() {
    for format in ["Iso0", "Iso4"] {
        let (command, keys) = first("verify-pin", |c| {
            matches!(c, Command::VerifyPin(VerifyPin { pin, reference: PinReference::Visa { .. }, .. })
                if format!("{:?}", pin.format) == format)
        });
        let Command::VerifyPin(right) = command else { unreachable!() };
        let PinReference::Visa { index, value } = right.reference.clone() else { unreachable!() };
        let with = |value: String| {
            let reference = PinReference::Visa { index, value: value.parse().expect("digits") };
            Command::VerifyPin(VerifyPin { reference, ..right.clone() })
        };
        let commands: Vec<Command> = digits_around(value.as_str()).into_iter().map(with).collect();
        only_the_first_passes(&commands, &keys);
    }
}

#[test]
fn each_digit_of_an_offset_counts() {
    for length in [4, 5, 12] {
        let (command, keys) = first("verify-pin", |c| {
            matches!(c, Command::VerifyPin(VerifyPin { reference: PinReference::Ibm3624 { offset, .. }, .. })
                if offset.len() == length)
        });
        let Command::VerifyPin(right) = command else { unreachable!() };
        let PinReference::Ibm3624 { validation_data, offset } = right.reference.clone() else {
            unreachable!()
        };
        let with = |offset: String| {
            let offset = offset.parse().expect("digits");
            let reference = PinReference::Ibm3624 { validation_data, offset };
            Command::VerifyPin(VerifyPin { reference, ..right.clone() })
        };
        let commands: Vec<Command> = digits_around(offset.as_str()).into_iter().map(with).collect();
        only_the_first_passes(&commands, &keys);
    }
}

/// A PIN that begins with the right digits and is longer, or shorter.
#[test]
fn the_length_of_a_pin_is_compared_with_that_of_the_offset() {
    let (command, keys) = first("verify-pin", |c| {
        matches!(c, Command::VerifyPin(VerifyPin { reference: PinReference::Ibm3624 { offset, .. }, .. })
            if offset.len() == 5)
    });
    let Command::VerifyPin(right) = command else { unreachable!() };
    let PinReference::Ibm3624 { validation_data, offset } = right.reference.clone() else { unreachable!() };
    for offset in [&offset.as_str()[..4], &format!("{}0", offset.as_str())] {
        let reference = PinReference::Ibm3624 { validation_data, offset: offset.parse().expect("digits") };
        let command = Command::VerifyPin(VerifyPin { reference, ..right.clone() });
        assert!(!Runner::new(8).run(&command, &keys, &[]).passes);
    }
}

#[test]
fn each_digit_of_a_card_value_is_compared() {
    for length in [3, 4, 5] {
        let (command, keys) =
            first("card-values", |c| matches!(c, Command::VerifyCardValue(c) if c.value.len() == length));
        let Command::VerifyCardValue(right) = command else { unreachable!() };
        let with = |value: String| {
            let value = value.parse().expect("digits");
            Command::VerifyCardValue(VerifyCardValue { value, ..right.clone() })
        };
        let commands: Vec<Command> = digits_around(right.value.as_str()).into_iter().map(with).collect();
        only_the_first_passes(&commands, &keys);
    }
}

#[test]
fn each_bit_of_a_mac_is_compared() {
    for (file, retail) in [("macs", false), ("dukpt", true)] {
        let is_retail = |c: &VerifyMac| format!("{:?}", c.input.method).starts_with("Retail");
        let (command, keys) = first(file, |c| matches!(c, Command::VerifyMac(c) if is_retail(c) == retail));
        let Command::VerifyMac(right) = command else { unreachable!() };
        let with = |mac: Vec<u8>| Command::VerifyMac(VerifyMac { mac, ..right.clone() });
        let macs: Vec<Vec<u8>> = match right.mac.len() {
            4 => bits_around::<4>(&right.mac).map_to_vecs(),
            _ => bits_around::<8>(&right.mac).map_to_vecs(),
        };
        only_the_first_passes(&macs.into_iter().map(with).collect::<Vec<_>>(), &keys);
    }
}

trait MapToVecs {
    fn map_to_vecs(self) -> Vec<Vec<u8>>;
}

impl<const N: usize> MapToVecs for Vec<[u8; N]> {
    fn map_to_vecs(self) -> Vec<Vec<u8>> {
        self.into_iter().map(Vec::from).collect()
    }
}

/// AES, whose MACs are bytes in the circuit.
#[test]
fn each_bit_of_an_aes_mac_is_compared() {
    let (command, keys) = first("macs", |c| matches!(c, Command::GenerateMac(c) if c.length == 16));
    let Command::GenerateMac(made) = &command else { unreachable!() };
    let mac = Runner::new(8).run(&command, &keys, &[]).answer.expect("a MAC");
    let with = |mac: [u8; 16]| Command::VerifyMac(VerifyMac { input: made.input.clone(), mac: mac.into() });
    let macs = bits_around::<16>(&hex::decode(mac).expect("hexadecimal"));
    only_the_first_passes(&macs.into_iter().map(with).collect::<Vec<_>>(), &keys);
}

#[test]
fn each_bit_of_an_arqc_is_compared() {
    for with_response in [false, true] {
        let (command, keys) =
            first("emv", |c| matches!(c, Command::VerifyArqc(c) if c.response.is_some() == with_response));
        let Command::VerifyArqc(right) = command else { unreachable!() };
        let with = |cryptogram| Command::VerifyArqc(VerifyArqc { cryptogram, ..right.clone() });
        let commands: Vec<Command> = bits_around(&right.cryptogram).into_iter().map(with).collect();
        only_the_first_passes(&commands, &keys);
    }
}

#[test]
fn each_bit_of_what_a_sim_card_sends_counts() {
    let (command, keys) = first("milenage", |c| matches!(c, Command::ResynchronizeSim(_)));
    let Command::ResynchronizeSim(right) = command else { unreachable!() };
    let with = |token| Command::ResynchronizeSim(ResynchronizeSim { token, ..right.clone() });
    let commands: Vec<Command> = bits_around(&right.token).into_iter().map(with).collect();
    only_the_first_passes(&commands, &keys);
}

#[test]
fn each_bit_of_a_join_request_counts() {
    let (command, keys) = first("lorawan", |c| matches!(c, Command::VerifyJoinRequest(_)));
    let Command::VerifyJoinRequest(right) = command else { unreachable!() };
    let whole = [&right.message[..], &right.code].concat();
    let with = |whole: [u8; 23]| {
        let code = whole[19..].try_into().expect("four bytes");
        Command::VerifyJoinRequest(VerifyJoinRequest { message: whole[..19].into(), code })
    };
    only_the_first_passes(&bits_around(&whole).into_iter().map(with).collect::<Vec<_>>(), &keys);
}

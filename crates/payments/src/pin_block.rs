//! PIN blocks of ISO 9564-1: formats 0, 1 and 3 for ciphers with blocks of 8 bytes, format 4 for AES.
//!
//! In all of them a nibble for the format is followed by the length of the PIN, its digits, and a fill:
//!
//! | format | 1st | fill of the places 5 to 14 | then |
//! |---|---|---|---|
//! | 0 | 0 | F | |
//! | 1 | 1 | anything | |
//! | 3 | 3 | A to F, random | |
//! | 4 | 4 | A | 8 random bytes |
//!
//! In formats 0 and 3 digits of the card number are added to the block before it is encrypted. In format 4
//! they are added between two encryptions.
//!
//! A block is read with conditions for everything that the format says, so that a wrong block is refused, and
//! as every other failure: the format, the length, each digit, each place of the fill.

use std::fmt;
use std::sync::Arc;

use polyclave_cipher::{Table, Wire};
use serde::{Deserialize, Serialize};

use crate::card::Pan;
use crate::dukpt::DukptUsage;
use crate::key_source::KeySource;
use crate::payment::{KeyFacts, Role};
use crate::purpose::Purpose;
use crate::tables::{is_no_digit, kept_if, table};
use crate::wiring::{Key, Value, Wiring};

/// Digits of a PIN.
pub(crate) const PIN_DIGITS: std::ops::RangeInclusive<usize> = 4..=12;

/// Places for digits and fill after the two nibbles of the format and the length.
const PLACES: usize = 14;
/// The fewest digits: places before this one always hold a digit.
const LEAST: usize = 4;
/// The most digits: places from this one on always hold fill.
const MOST: usize = 12;

/// A format of PIN blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PinFormat {
    /// ISO format 0 (ANSI X9.8): bound to the card number.
    Iso0,
    /// ISO format 1: bound to no card.
    Iso1,
    /// ISO format 3: bound to the card number, with random fill.
    Iso3,
    /// ISO format 4: bound to the whole card number, for AES.
    Iso4,
}

impl PinFormat {
    /// The first nibble.
    fn control(self) -> u8 {
        match self {
            PinFormat::Iso0 => 0,
            PinFormat::Iso1 => 1,
            PinFormat::Iso3 => 3,
            PinFormat::Iso4 => 4,
        }
    }

    fn fill(self) -> Fill {
        match self {
            PinFormat::Iso0 => Fill::Nibble(0xf),
            PinFormat::Iso1 => Fill::Anything,
            PinFormat::Iso3 => Fill::Letters,
            PinFormat::Iso4 => Fill::Nibble(0xa),
        }
    }

    /// Bytes of an encrypted block.
    pub fn block_bytes(self) -> usize {
        if self == PinFormat::Iso4 { 16 } else { 8 }
    }

    /// Whether the card number is part of the block.
    pub fn binds_pan(self) -> bool {
        self != PinFormat::Iso1
    }

    /// Encryptions or decryptions of a block.
    pub(crate) fn blocks(self) -> u64 {
        if self == PinFormat::Iso4 { 2 } else { 1 }
    }

    /// The bytes of the card number that are added.
    pub(crate) fn pan_field(self, pan: Option<&Pan>) -> Vec<u8> {
        match (self, pan) {
            (PinFormat::Iso0 | PinFormat::Iso3, Some(pan)) => pan.field().into(),
            (PinFormat::Iso4, Some(pan)) => pan.long_field().into(),
            _ => Vec::new(),
        }
    }

    /// Bytes of randomness of a block that is made.
    pub(crate) fn random_bytes(self) -> usize {
        match self {
            PinFormat::Iso0 => 0,
            PinFormat::Iso1 => 0,
            PinFormat::Iso3 => (BITS_FOR_A_LETTER * (PLACES - LEAST)).div_ceil(8),
            PinFormat::Iso4 => 8,
        }
    }
}

impl fmt::Display for PinFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iso-{}", self.control())
    }
}

/// What follows the digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Nibble(u8),
    Letters,
    Anything,
}

impl Fill {
    fn takes(self, nibble: u8) -> bool {
        match self {
            Fill::Nibble(fill) => nibble == fill,
            Fill::Letters => nibble > 9,
            Fill::Anything => true,
        }
    }
}

/// A PIN block as it came.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EncryptedPin {
    /// How the PIN is written in it.
    pub format: PinFormat,
    /// The encrypted block.
    #[serde(with = "crate::hexadecimal")]
    pub block: Vec<u8>,
    /// Under what it is encrypted.
    pub key: KeySource,
}

impl fmt::Debug for EncryptedPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedPin({}, {:?})", self.format, self.key)
    }
}

impl EncryptedPin {
    /// The role of the key under which it came.
    pub(crate) fn role(&self) -> Role {
        self.key_role("incoming PIN key")
    }

    /// The same under another name.
    pub(crate) fn key_role(&self, name: &'static str) -> Role {
        pin_key_role(&self.key, name)
    }

    pub(crate) fn check(&self, key: &KeyFacts<'_>) -> Result<(), String> {
        check_format(self.format, &self.key, key)?;
        match self.block.len() == self.format.block_bytes() {
            true => Ok(()),
            false => Err(format!("a PIN block of {} has {} bytes", self.format, self.format.block_bytes())),
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.format, self.key.name())
    }

    pub(crate) fn public(&self, key: &KeyFacts<'_>, pan: Option<&Pan>) -> Vec<u8> {
        [self.key.public(key, DukptUsage::Pin), self.block.clone(), self.format.pan_field(pan)].concat()
    }

    /// The PIN of a block, with conditions for all that its format demands. If `length` is given, it also
    /// demands a PIN of so many digits.
    pub(crate) fn read(&self, w: &mut Wiring, key: &Key, length: Option<usize>) -> Pin {
        let key = self.key.derive(w, key, DukptUsage::Pin);
        let block = w.public(self.format.block_bytes());
        let mut field = w.decrypt(&key, &block);
        if self.format.binds_pan() {
            let pan = w.public(self.format.block_bytes());
            field = w.xor(&field, &pan);
        }
        if self.format == PinFormat::Iso4 {
            field = w.decrypt(&key, &field);
        }
        // The random half of format 4 is not needed as bits.
        let bits = w.bits(&field.part(0..8));
        match length {
            Some(length) => read_of_length(w, self.format, &bits, length),
            None => read_of_any_length(w, self.format, &bits),
        }
    }

    pub(crate) fn blocks(&self, key: &KeyFacts<'_>) -> u64 {
        self.key.blocks(key, DukptUsage::Pin) + self.format.blocks()
    }
}

/// The role of a key that encrypts PINs.
pub(crate) fn pin_key_role(key: &KeySource, name: &'static str) -> Role {
    key.role(name, |purpose| *purpose == Purpose::PinEncryption)
}

/// Whether a format fits the cipher, and the KSN the key.
pub(crate) fn check_format(format: PinFormat, source: &KeySource, key: &KeyFacts<'_>) -> Result<(), String> {
    source.check(key)?;
    match source.block_bytes(key) == format.block_bytes() {
        true => Ok(()),
        false => Err(format!("PIN blocks of {format} are not encrypted with {}", source.cipher(key))),
    }
}

/// A PIN in the clear, in the circuit.
pub(crate) struct Pin {
    format: PinFormat,
    /// Four bits.
    length: Vec<Wire>,
    /// The places after the length, four bits each: digits, then fill.
    places: Vec<Vec<Wire>>,
    /// For the places 4 to 11, whether a digit is there.
    is_digit: Vec<Wire>,
}

impl Pin {
    /// The digits of the first places, which hold digits in every PIN of so many.
    pub(crate) fn digits(&self, count: usize) -> &[Vec<Wire>] {
        &self.places[..count]
    }

    /// A PIN that was made of digits, in a format without fill of its own.
    pub(crate) fn of_digits(w: &mut Wiring, digits: Vec<Vec<Wire>>) -> Pin {
        let count = digits.len();
        let length = w.nibble(count as u8);
        let (fill, zero) = (w.nibble(0xf), w.zero());
        let one = w.not(zero);
        let is_digit = (LEAST..MOST).map(|place| if place < count { one } else { zero }).collect();
        let mut places = digits;
        places.resize(PLACES, fill);
        Pin { format: PinFormat::Iso0, length, places, is_digit }
    }
}

/// The conditions of a block whose PIN has so many digits: one layer.
fn read_of_length(w: &mut Wiring, format: PinFormat, bits: &[Wire], length: usize) -> Pin {
    let mut pin = read_frame(w, format, bits);
    let is_length = w.xor_number(&pin.length, length as u8);
    w.require_zero(&is_length);
    for place in 0..pin.places.len() {
        if place < length {
            require_digit(w, &pin.places[place]);
        } else {
            require_fill(w, format, &pin.places[place]);
        }
    }
    let zero = w.zero();
    let one = w.not(zero);
    pin.is_digit = (LEAST..MOST).map(|place| if place < length { one } else { zero }).collect();
    pin
}

/// The conditions of a block whose PIN has 4 to 12 digits: two layers.
fn read_of_any_length(w: &mut Wiring, format: PinFormat, bits: &[Wire]) -> Pin {
    let mut pin = read_frame(w, format, bits);
    let wrong = table("length of no PIN", 4, 1, |x| u8::from(!PIN_DIGITS.contains(&usize::from(x))));
    let wrong = w.lookup(&wrong, &pin.length);
    w.require_zero(&wrong);
    for first in [LEAST, LEAST + 4] {
        let first = first as u8;
        let longer = table(&format!("longer than {first}"), 4, 4, |x| {
            (0..4).fold(0, |set, i| set << 1 | u8::from(x > first + i))
        });
        pin.is_digit.extend(w.lookup(&longer, &pin.length));
    }
    for place in 0..pin.places.len() {
        match place {
            0..LEAST => require_digit(w, &pin.places[place]),
            LEAST..MOST => {
                let is_digit = &pin.is_digit[place - LEAST..][..1];
                let wrong = w.lookup(&wrong_in_place(format), &[is_digit, &pin.places[place]].concat());
                w.require_zero(&wrong);
            }
            _ => require_fill(w, format, &pin.places[place]),
        }
    }
    pin
}

/// The nibbles of a block, and the condition for the first.
fn read_frame(w: &mut Wiring, format: PinFormat, bits: &[Wire]) -> Pin {
    let nibbles: Vec<Vec<Wire>> = bits.chunks(4).map(<[Wire]>::to_vec).collect();
    let control = w.xor_number(&nibbles[0], format.control());
    w.require_zero(&control);
    let (length, places) = (nibbles[1].clone(), nibbles[2..].to_vec());
    Pin { format, length, places, is_digit: Vec::new() }
}

fn require_digit(w: &mut Wiring, nibble: &[Wire]) {
    let wrong = w.lookup(&is_no_digit(), nibble);
    w.require_zero(&wrong);
}

fn require_fill(w: &mut Wiring, format: PinFormat, nibble: &[Wire]) {
    match format.fill() {
        Fill::Nibble(fill) => {
            let difference = w.xor_number(nibble, fill);
            w.require_zero(&difference);
        }
        Fill::Letters => {
            let is_letter = w.lookup(&is_no_digit(), nibble)[0];
            let wrong = w.not(is_letter);
            w.require_zero(&[wrong]);
        }
        Fill::Anything => {}
    }
}

/// Whether a place has to hold a digit, and its nibble: 1 if it holds something else.
fn wrong_in_place(format: PinFormat) -> Arc<Table> {
    let fill = format.fill();
    table(&format!("wrong in {format}"), 5, 1, |x| {
        let nibble = x & 15;
        u8::from(if x >> 4 == 1 { nibble > 9 } else { !fill.takes(nibble) })
    })
}

/// Random bits for a letter from A to F: two of the six come with probability 10/64, the others with 11/64.
/// The fill is no secret by itself; it makes equal PINs look different.
const BITS_FOR_A_LETTER: usize = 6;

fn random_letter(w: &mut Wiring) -> Vec<Wire> {
    let bits = w.random(BITS_FOR_A_LETTER);
    w.lookup(&table("letter", BITS_FOR_A_LETTER as u8, 4, |x| 10 + (u16::from(x) * 6 / 64) as u8), &bits)
}

/// How a PIN is encrypted that a command puts out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutgoingPin {
    /// How the PIN is written.
    pub format: PinFormat,
    /// Under what it is encrypted.
    pub key: KeySource,
}

impl OutgoingPin {
    pub(crate) fn role(&self) -> Role {
        pin_key_role(&self.key, "outgoing PIN key")
    }

    pub(crate) fn check(&self, key: &KeyFacts<'_>) -> Result<(), String> {
        check_format(self.format, &self.key, key)
    }

    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.format, self.key.name())
    }

    pub(crate) fn public(&self, key: &KeyFacts<'_>, pan: Option<&Pan>) -> Vec<u8> {
        [self.key.public(key, DukptUsage::Pin), self.format.pan_field(pan)].concat()
    }

    /// The PIN in a block, encrypted.
    pub(crate) fn write(&self, w: &mut Wiring, key: &Key, pin: &Pin) -> Value {
        let key = self.key.derive(w, key, DukptUsage::Pin);
        let mut block = write_field(w, self.format, pin);
        if self.format == PinFormat::Iso4 {
            block = w.encrypt(&key, &block);
        }
        if self.format.binds_pan() {
            let pan = w.public(self.format.block_bytes());
            block = w.xor(&block, &pan);
        }
        w.encrypt(&key, &block)
    }

    pub(crate) fn blocks(&self, key: &KeyFacts<'_>) -> u64 {
        self.key.blocks(key, DukptUsage::Pin) + self.format.blocks()
    }
}

/// A PIN as cards take it from their issuer: format 2, as format 0 but for the first nibble, not encrypted.
pub(crate) fn for_card(w: &mut Wiring, pin: &Pin) -> Value {
    let mut bits = w.nibble(2);
    bits.extend(&pin.length);
    bits.extend(filled(w, PinFormat::Iso0, pin));
    Value::of_bits(bits)
}

/// The digits of a PIN from the first place of a block on, then zeros.
pub(crate) fn digits_and_zeros(w: &mut Wiring, pin: &Pin) -> Value {
    let mut bits = pin.places[..LEAST].concat();
    for (nibble, is_digit) in pin.places[LEAST..MOST].iter().zip(&pin.is_digit) {
        bits.extend(w.lookup(&kept_if(), &[&[*is_digit], &nibble[..]].concat()));
    }
    bits.resize(64, w.zero());
    Value::of_bits(bits)
}

fn write_field(w: &mut Wiring, format: PinFormat, pin: &Pin) -> Value {
    let mut bits = w.nibble(format.control());
    bits.extend(&pin.length);
    bits.extend(filled(w, format, pin));
    if format == PinFormat::Iso4 {
        bits.extend(w.random(64));
    }
    Value::of_bits(bits)
}

/// The digits of a PIN and the fill of a format.
fn filled(w: &mut Wiring, format: PinFormat, pin: &Pin) -> Vec<Wire> {
    let mut bits = Vec::new();
    // Random bits are taken in whole bytes.
    let mut letters: Vec<Vec<Wire>> = Vec::new();
    if format == PinFormat::Iso3 {
        letters = (LEAST..PLACES).map(|_| random_letter(w)).collect();
        w.random(8 * format.random_bytes() - BITS_FOR_A_LETTER * letters.len());
    }
    for (place, nibble) in pin.places.iter().enumerate() {
        let is_digit = (LEAST..MOST).contains(&place).then(|| pin.is_digit[place - LEAST]);
        let written = match (place, format.fill()) {
            (0..LEAST, _) => nibble.clone(),
            // The fill stays as it is.
            (_, fill @ (Fill::Nibble(_) | Fill::Anything)) if pin.format.fill() == fill => nibble.clone(),
            (_, Fill::Nibble(fill)) => match is_digit {
                Some(is_digit) => w.lookup(&digit_or(fill), &[&[is_digit], &nibble[..]].concat()),
                None => w.nibble(fill),
            },
            (_, Fill::Letters) => {
                let letter = letters[place - LEAST].clone();
                match is_digit {
                    Some(is_digit) => {
                        let is_fill = w.not(is_digit);
                        let digit = w.lookup(&kept_if(), &[&[is_digit], &nibble[..]].concat());
                        let letter = w.lookup(&kept_if(), &[&[is_fill], &letter[..]].concat());
                        w.xor_bits(&[&digit, &letter])
                    }
                    None => letter,
                }
            }
            (_, Fill::Anything) => unreachable!("blocks of other formats do not become format 1"),
        };
        bits.extend(written);
    }
    bits
}

/// One bit and a nibble: the nibble if the bit is set, else the fill.
fn digit_or(fill: u8) -> Arc<Table> {
    table(&format!("digit or {fill:x}"), 5, 4, |x| if x >> 4 == 1 { x & 15 } else { fill })
}

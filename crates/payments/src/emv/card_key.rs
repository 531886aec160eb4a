//! The keys of a card from those of its issuer (EMV Book 2, annex A1.4).

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use crate::card::{Digits, Pan, pack};
use crate::pin_reference::check_length;
use crate::wiring::{Key, Value, Wiring};

/// How a card's number becomes the block that is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CardKeyMethod {
    /// The last 16 digits of the number and the sequence number.
    OptionA,
    /// For numbers of more than 16 digits, 16 digits of a hash (SHA-1) of them; else as option A.
    OptionB,
}

/// A card, as keys are made for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EmvCard {
    /// Its number.
    pub pan: Pan,
    /// The sequence number of cards with this number: two digits.
    pub sequence: Digits,
    /// How its keys are made.
    pub method: CardKeyMethod,
}

/// Blocks of a derivation.
pub(crate) const BLOCKS: u64 = 2;

impl EmvCard {
    pub(crate) fn check(&self) -> Result<(), String> {
        check_length(&self.sequence, "a card's sequence number", 2..=2)
    }

    /// What is encrypted: public.
    pub(crate) fn public(&self) -> Vec<u8> {
        let digits = format!("{}{}", self.pan.digits().as_str(), self.sequence.as_str());
        match self.method {
            CardKeyMethod::OptionB if self.pan.digits().len() > 16 => hashed(&digits),
            _ => pack(&format!("{:0>16}", &digits[digits.len().saturating_sub(16)..])),
        }
    }

    /// The card's key of the kind of the issuer's key. Its parity bits count: the tree of EMV 2000 and the
    /// PIN block of Visa use the key as data, too.
    pub(crate) fn key(w: &mut Wiring, issuer: &Key) -> Value {
        let left = w.public(8);
        let complement = w.constant(&[0xff; 8]);
        let right = w.xor(&left, &complement);
        let halves = [w.encrypt(issuer, &left), w.encrypt(issuer, &right)];
        let key = w.concat(&[&halves[0], &halves[1]]);
        with_odd_parity(w, &key)
    }
}

/// The last bit of each byte makes the number of ones odd (annex A1.4, last step).
fn with_odd_parity(w: &mut Wiring, key: &Value) -> Value {
    let mut bits = w.bits(key);
    for byte in bits.chunks_mut(8) {
        let others: Vec<&[_]> = byte[..7].chunks(1).collect();
        let sum = w.xor_bits(&others)[0];
        byte[7] = w.not(sum);
    }
    Value::of_bits(bits)
}

/// The first 16 decimal digits of a hash, then its letters, less ten each.
fn hashed(digits: &str) -> Vec<u8> {
    let even = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let hash = Sha1::digest(pack(&even));
    let nibbles: Vec<u8> = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let decimal = nibbles.iter().filter(|x| **x < 10).copied();
    let letters = nibbles.iter().filter(|x| **x > 9).map(|x| x - 10);
    let chosen: Vec<u8> = decimal.chain(letters).take(16).collect();
    chosen.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

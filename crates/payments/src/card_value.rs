//! Card verification values.
//!
//! CVV, CVV2, iCVV, and CVC of Mastercard by the same method: the card number, the date and the service code
//! are encrypted, and the first digits of the result are taken (IBM z/OS ICSF, "Visa CVV-generation method").
//!
//! Two values that a chip makes anew for each transaction, in place of these. Their schemes publish no
//! specification. Both are here as public programs compute them, and agree with their published examples.

use polyclave_cipher::Wire;
use serde::{Deserialize, Serialize};

use crate::card::{Digits, Pan, pack};
use crate::decimal::decimal;
use crate::decimalize::{MOST, decimalized};
use crate::emv::{EmvCard, card_key};
use crate::mac::{self, MessagePadding};
use crate::payment::Role;
use crate::pin_reference::check_length;
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

/// Bytes of the two blocks of a CVV.
const BYTES: usize = 16;
/// Bytes of a block.
const BLOCK: usize = 8;
/// Most bytes of the data of a track.
const MOST_OF_TRACK: usize = 80;

/// How many digits a value can have.
pub(crate) const LENGTHS: std::ops::RangeInclusive<usize> = 1..=MOST;
/// How many digits of a value are verified: with fewer a client would find a value digit by digit.
pub(crate) const VERIFIED: std::ops::RangeInclusive<usize> = 3..=MOST;

/// What a card verification value is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CardData {
    /// CVV, CVV2, iCVV, CVC.
    Cvv {
        /// The number.
        pan: Pan,
        /// The date of expiry, four digits, in the order that the issuer uses (mostly YYMM).
        expiry: Digits,
        /// Three digits: those of the magnetic stripe for CVV, 000 for CVV2, 999 for iCVV.
        service_code: Digits,
    },
    /// dCVV of Visa: a CVV under the card's key, of a number that begins with the transaction's.
    Dcvv {
        /// The card.
        card: EmvCard,
        /// The date of expiry, four digits.
        expiry: Digits,
        /// Three digits.
        service_code: Digits,
        /// The transaction counter, as it replaces the first four digits of the number.
        #[serde(with = "crate::hexadecimal")]
        counter: [u8; 2],
    },
    /// CVC3 of Mastercard: the last two bytes of an encrypted block, as a number. The block has the last two
    /// bytes of a MAC of the track's data, and what is new in the transaction.
    Cvc3 {
        /// The card.
        card: EmvCard,
        /// The track's data without the value: 1 to 80 bytes.
        #[serde(with = "crate::hexadecimal")]
        track: Vec<u8>,
        /// The terminal's unpredictable number.
        #[serde(with = "crate::hexadecimal")]
        unpredictable: [u8; 4],
        /// The transaction counter (ATC).
        #[serde(with = "crate::hexadecimal")]
        counter: [u8; 2],
    },
}

impl CardData {
    pub(crate) fn role(&self) -> Role {
        let takes = match self {
            CardData::Cvv { .. } => |purpose: &Purpose| *purpose == Purpose::CardVerification,
            CardData::Dcvv { .. } => |purpose: &Purpose| *purpose == Purpose::EmvDcvv,
            CardData::Cvc3 { .. } => |purpose: &Purpose| *purpose == Purpose::EmvCvc3,
        };
        Role { name: "key for card verification values", takes }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if let CardData::Dcvv { card, .. } | CardData::Cvc3 { card, .. } = self {
            card.check()?;
        }
        match self {
            CardData::Cvv { expiry, service_code, .. } | CardData::Dcvv { expiry, service_code, .. } => {
                check_length(expiry, "a date of expiry", 4..=4)?;
                check_length(service_code, "a service code", 3..=3)
            }
            CardData::Cvc3 { track, .. } if !(1..=MOST_OF_TRACK).contains(&track.len()) => {
                Err(format!("the data of a track has 1 to {MOST_OF_TRACK} bytes"))
            }
            CardData::Cvc3 { .. } => Ok(()),
        }
    }

    /// A part of the name of a circuit.
    pub(crate) fn name(&self) -> String {
        match self {
            CardData::Cvv { .. } => "cvv".into(),
            CardData::Dcvv { .. } => "dcvv".into(),
            CardData::Cvc3 { track, .. } => format!("cvc3-{}", padded(track).len() / BLOCK),
        }
    }

    pub(crate) fn public(&self) -> Vec<u8> {
        match self {
            CardData::Cvv { pan, expiry, service_code } => blocks_of(pan, expiry, service_code),
            CardData::Dcvv { card, expiry, service_code, counter } => {
                let mut blocks = blocks_of(&card.pan, expiry, service_code);
                blocks[..2].copy_from_slice(counter);
                [card.public(), blocks].concat()
            }
            CardData::Cvc3 { card, track, unpredictable, counter } => {
                [&card.public()[..], &padded(track), unpredictable, counter].concat()
            }
        }
    }

    /// The first digits; of CVC3 the last.
    pub(crate) fn value(&self, w: &mut Wiring, key: &Key, count: usize) -> Vec<Vec<Wire>> {
        let card_key = |w: &mut Wiring| {
            let card_key = EmvCard::key(w, key);
            let cipher = w.cipher("3des-ede2");
            w.expand(&cipher, &card_key)
        };
        match self {
            CardData::Cvv { .. } => cvv(w, key, count),
            CardData::Dcvv { .. } => {
                let card_key = card_key(w);
                cvv(w, &card_key, count)
            }
            CardData::Cvc3 { track, .. } => {
                let card_key = card_key(w);
                cvc3(w, &card_key, padded(track).len(), count)
            }
        }
    }

    pub(crate) fn blocks(&self) -> u64 {
        // One of DES, one of Triple DES.
        const CVV: u64 = 2;
        match self {
            CardData::Cvv { .. } => CVV,
            CardData::Dcvv { .. } => card_key::BLOCKS + CVV,
            // The last block of the MAC takes three of DES.
            CardData::Cvc3 { track, .. } => card_key::BLOCKS + (padded(track).len() / BLOCK) as u64 + 2 + 1,
        }
    }
}

fn blocks_of(pan: &Pan, expiry: &Digits, service_code: &Digits) -> Vec<u8> {
    let digits = [pan.digits(), expiry, service_code].map(Digits::as_str).concat();
    pack(&format!("{digits:0<32}"))
}

fn padded(track: &[u8]) -> Vec<u8> {
    MessagePadding::BitAndZeros.padded(track, BLOCK)
}

/// A retail MAC of two blocks, made to digits.
fn cvv(w: &mut Wiring, key: &Key, count: usize) -> Vec<Vec<Wire>> {
    let data = w.public(BYTES);
    let mac = mac::retail(w, key, &data);
    let bits = w.bits(&mac);
    decimalized(w, &bits, count)
}

fn cvc3(w: &mut Wiring, key: &Key, track_bytes: usize, count: usize) -> Vec<Vec<Wire>> {
    let last_two = |value: &Value| value.part(BLOCK - 2..BLOCK);
    let track = w.public(track_bytes);
    let mac = mac::retail(w, key, &track);
    let of_transaction = w.public(BLOCK - 2);
    let block = w.concat(&[&last_two(&mac), &of_transaction]);
    let block = w.encrypt(key, &block);
    let bits = w.bits(&last_two(&block));
    let mut digits = decimal(w, &bits);
    digits.split_off(digits.len() - count)
}

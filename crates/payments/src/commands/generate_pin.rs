//! Makes the PIN of a card, encrypted, and what its issuer keeps to verify it.

use polyclave_cipher::{Circuit, Wire};
use serde::{Deserialize, Serialize};

use crate::card::{Digits, Pan};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::pin_block::{OutgoingPin, PIN_DIGITS, Pin, PinFormat};
use crate::pin_reference::{check_length, ibm3624, visa};
use crate::purpose::Purpose;
use crate::random_digits::{RANDOM_BYTES, random_digits};
use crate::tables::from_residues;
use crate::wiring::Wiring;

/// Makes a PIN. Keys: the PIN key, the verification key. Answers the block, then digits (one a byte) if the
/// method has some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratePin {
    /// The card.
    pub pan: Pan,
    /// How the PIN goes to who prints it. Not in format 1.
    pub outgoing: OutgoingPin,
    /// How many digits it has.
    pub length: u8,
    /// Where it comes from.
    pub method: PinMethod,
}

/// Where a PIN comes from.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PinMethod {
    /// Random; the answer ends with its PVV.
    RandomWithPvv {
        /// The index of the verification key.
        index: u8,
    },
    /// Random; the answer ends with its offset by the method of IBM 3624.
    RandomWithOffset {
        /// What is encrypted.
        #[serde(with = "crate::hexadecimal")]
        validation_data: [u8; 8],
    },
    /// The natural PIN of IBM 3624.
    Natural {
        /// What is encrypted.
        #[serde(with = "crate::hexadecimal")]
        validation_data: [u8; 8],
    },
    /// The natural PIN plus an offset.
    FromOffset {
        /// What is encrypted.
        #[serde(with = "crate::hexadecimal")]
        validation_data: [u8; 8],
        /// As many digits as the PIN.
        offset: Digits,
    },
}

/// Validation data has digits of the card number.
impl std::fmt::Debug for PinMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl PinMethod {
    fn name(&self) -> &'static str {
        match self {
            PinMethod::RandomWithPvv { .. } => "random-with-pvv",
            PinMethod::RandomWithOffset { .. } => "random-with-offset",
            PinMethod::Natural { .. } => "natural",
            PinMethod::FromOffset { .. } => "from-offset",
        }
    }

    fn is_random(&self) -> bool {
        matches!(self, PinMethod::RandomWithPvv { .. } | PinMethod::RandomWithOffset { .. })
    }
}

impl Payment for GeneratePin {
    fn kind(&self) -> &'static str {
        "generate-pin"
    }

    fn roles(&self) -> Vec<Role> {
        let verification = match self.method {
            PinMethod::RandomWithPvv { .. } => visa::role(),
            _ => ibm3624::role(),
        };
        vec![self.outgoing.role(), verification]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.outgoing.check(&keys[0])?;
        let length = usize::from(self.length);
        if self.outgoing.format == PinFormat::Iso1 {
            return Err("a PIN that is made goes out bound to its card".into());
        }
        if !PIN_DIGITS.contains(&length) {
            return Err("a PIN has 4 to 12 digits".into());
        }
        match &self.method {
            PinMethod::RandomWithPvv { index } => visa::check_index(*index),
            PinMethod::FromOffset { validation_data, offset } => {
                check_length(offset, "the offset", length..=length)?;
                ibm3624::check_data(validation_data, &self.pan, self.outgoing.format)
            }
            PinMethod::RandomWithOffset { validation_data } | PinMethod::Natural { validation_data } => {
                ibm3624::check_data(validation_data, &self.pan, self.outgoing.format)
            }
        }
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("generate-pin-{}-{}-{}", self.method.name(), self.length, self.outgoing.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let (count, key) = (usize::from(self.length), &expanded[1]);
        let natural = |w: &mut Wiring, sign| match keys[1].purpose {
            Purpose::PinVerificationIbm3624 { table } => ibm3624::natural(w, key, &table, count, sign),
            _ => unreachable!("the purposes of keys were checked"),
        };
        let to_digits = |w: &mut Wiring, residues: &[Vec<Wire>]| -> Vec<Vec<Wire>> {
            let table = from_residues();
            residues.iter().map(|digit| w.lookup(&table, digit)).collect()
        };
        let (pin, reference) = match &self.method {
            PinMethod::RandomWithPvv { .. } => {
                let random = random_digits(&mut w, count);
                let pin = to_digits(&mut w, &random);
                let value = visa::value(&mut w, key, &pin[..visa::DIGITS]);
                (pin, value)
            }
            PinMethod::RandomWithOffset { .. } => {
                let random = random_digits(&mut w, count);
                let minus = natural(&mut w, ibm3624::Sign::Minus);
                let offset = ibm3624::sums(&mut w, &random, &minus);
                (to_digits(&mut w, &random), to_digits(&mut w, &offset))
            }
            PinMethod::Natural { .. } => {
                let natural = natural(&mut w, ibm3624::Sign::Plus);
                (to_digits(&mut w, &natural), Vec::new())
            }
            PinMethod::FromOffset { .. } => {
                let natural = natural(&mut w, ibm3624::Sign::Plus);
                let offset = ibm3624::public_residues(&mut w, count);
                let sum = ibm3624::sums(&mut w, &natural, &offset);
                (to_digits(&mut w, &sum), Vec::new())
            }
        };
        let pin = Pin::of_digits(&mut w, pin);
        let block = self.outgoing.write(&mut w, &expanded[0], &pin);
        w.answer(&block);
        w.answer_digits(&reference);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        let mut public = match &self.method {
            PinMethod::RandomWithPvv { index } => visa::public(&self.pan, *index),
            PinMethod::RandomWithOffset { validation_data } | PinMethod::Natural { validation_data } => {
                validation_data.to_vec()
            }
            PinMethod::FromOffset { validation_data, offset } => {
                [validation_data.to_vec(), ibm3624::public_digits(offset)].concat()
            }
        };
        public.extend(self.outgoing.public(&keys[0], Some(&self.pan)));
        public
    }

    fn random_bytes(&self) -> usize {
        let digits = if self.method.is_random() { RANDOM_BYTES * usize::from(self.length) } else { 0 };
        digits + self.outgoing.format.random_bytes()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.outgoing.blocks(&keys[0]), 1]
    }
}

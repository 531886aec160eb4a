//! Makes what an issuer keeps to verify a PIN that its holder has chosen.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::card::Pan;
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::pin_block::{EncryptedPin, PIN_DIGITS};
use crate::pin_reference::{ibm3624, visa};
use crate::purpose::Purpose;
use crate::tables::from_residues;
use crate::wiring::Wiring;

/// Makes a PVV or an offset of an encrypted PIN. Keys: the PIN key, the verification key. Answers the digits,
/// one a byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratePinReference {
    /// The PIN.
    pub pin: EncryptedPin,
    /// The card.
    pub pan: Pan,
    /// What is made.
    pub method: ReferenceMethod,
}

/// What is made of a PIN.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReferenceMethod {
    /// The PVV of Visa.
    Pvv {
        /// The index of the verification key.
        index: u8,
    },
    /// The offset of IBM 3624.
    Offset {
        /// What is encrypted.
        #[serde(with = "crate::hexadecimal")]
        validation_data: [u8; 8],
        /// How many digits the PIN has. Another PIN is refused.
        length: u8,
    },
}

/// Validation data has digits of the card number.
impl std::fmt::Debug for ReferenceMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl ReferenceMethod {
    fn name(&self) -> String {
        match self {
            ReferenceMethod::Pvv { .. } => "pvv".into(),
            ReferenceMethod::Offset { length, .. } => format!("offset-{length}"),
        }
    }
}

impl Payment for GeneratePinReference {
    fn kind(&self) -> &'static str {
        "generate-pin-reference"
    }

    fn roles(&self) -> Vec<Role> {
        let verification = match self.method {
            ReferenceMethod::Pvv { .. } => visa::role(),
            ReferenceMethod::Offset { .. } => ibm3624::role(),
        };
        vec![self.pin.role(), verification]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.pin.check(&keys[0])?;
        match &self.method {
            ReferenceMethod::Pvv { index } => visa::check_index(*index),
            ReferenceMethod::Offset { length, .. } if !PIN_DIGITS.contains(&usize::from(*length)) => {
                Err("a PIN has 4 to 12 digits".into())
            }
            ReferenceMethod::Offset { validation_data, .. } => {
                ibm3624::check_data(validation_data, &self.pan, self.pin.format)
            }
        }
    }

    fn counted(&self) -> Vec<usize> {
        vec![0, 1]
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("generate-pin-reference-{}-{}", self.method.name(), self.pin.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let digits = match (&self.method, keys[1].purpose) {
            (ReferenceMethod::Offset { length, .. }, Purpose::PinVerificationIbm3624 { table }) => {
                let length = usize::from(*length);
                let pin = self.pin.read(&mut w, &expanded[0], Some(length));
                let pin = ibm3624::residues_of(&mut w, pin.digits(length));
                let minus = ibm3624::natural(&mut w, &expanded[1], &table, length, ibm3624::Sign::Minus);
                let offset = ibm3624::sums(&mut w, &pin, &minus);
                let table = from_residues();
                offset.iter().map(|digit| w.lookup(&table, digit)).collect()
            }
            _ => {
                let pin = self.pin.read(&mut w, &expanded[0], None);
                visa::value(&mut w, &expanded[1], pin.digits(visa::DIGITS))
            }
        };
        w.answer_digits(&digits);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        let mut public = self.pin.public(&keys[0], Some(&self.pan));
        public.extend(match self.method {
            ReferenceMethod::Pvv { index } => visa::public(&self.pan, index),
            ReferenceMethod::Offset { validation_data, .. } => validation_data.to_vec(),
        });
        public
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.pin.blocks(&keys[0]), 1]
    }
}

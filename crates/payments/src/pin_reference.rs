//! What an issuer keeps to verify PINs: a PVV, or an offset.

pub(crate) mod ibm3624;
pub(crate) mod visa;

use serde::{Deserialize, Serialize};

use crate::card::{Digits, Pan};
use crate::payment::Role;
use crate::pin_block::{PIN_DIGITS, PinFormat};
use crate::purpose::Purpose;

/// With what a PIN is compared. All of it is public to the nodes.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PinReference {
    /// By the method of Visa.
    Visa {
        /// The index of the verification key (PVKI), a digit.
        index: u8,
        /// The PIN verification value: four digits.
        value: Digits,
    },
    /// By the method of IBM 3624. The decimalization table belongs to the key.
    Ibm3624 {
        /// What is encrypted: 16 hexadecimal digits, made of the card number.
        #[serde(with = "crate::hexadecimal")]
        validation_data: [u8; 8],
        /// What is added to the natural PIN: as many digits as the PIN has.
        offset: Digits,
    },
}

/// Validation data has digits of the card number.
impl std::fmt::Debug for PinReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl PinReference {
    pub(crate) fn role(&self) -> Role {
        match self {
            PinReference::Visa { .. } => visa::role(),
            PinReference::Ibm3624 { .. } => ibm3624::role(),
        }
    }

    pub(crate) fn check(&self, pan: &Pan, format: PinFormat) -> Result<(), String> {
        match self {
            PinReference::Visa { index, value } => {
                visa::check_index(*index)?;
                check_length(value, "a PVV", visa::DIGITS..=visa::DIGITS)
            }
            PinReference::Ibm3624 { validation_data, offset } => {
                check_length(offset, "an offset", PIN_DIGITS)?;
                ibm3624::check_data(validation_data, pan, format)
            }
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            PinReference::Visa { .. } => "visa".into(),
            PinReference::Ibm3624 { offset, .. } => format!("ibm3624-{}", offset.len()),
        }
    }

    /// How many digits the PIN must have; `None` if 4 to 12.
    pub(crate) fn pin_length(&self) -> Option<usize> {
        match self {
            PinReference::Visa { .. } => None,
            PinReference::Ibm3624 { offset, .. } => Some(offset.len()),
        }
    }

    pub(crate) fn public(&self, pan: &Pan) -> Vec<u8> {
        match self {
            PinReference::Visa { index, value } => {
                [visa::public(pan, *index), visa::public_value(value)].concat()
            }
            PinReference::Ibm3624 { validation_data, offset } => {
                [validation_data.to_vec(), ibm3624::public_digits(offset)].concat()
            }
        }
    }
}

/// Whether there are as many digits as there should be.
pub(crate) fn check_length(
    digits: &Digits,
    what: &str,
    lengths: std::ops::RangeInclusive<usize>,
) -> Result<(), String> {
    let (least, most) = (*lengths.start(), *lengths.end());
    match (lengths.contains(&digits.len()), least == most) {
        (true, _) => Ok(()),
        (false, true) => Err(format!("{what} has {least} digits")),
        (false, false) => Err(format!("{what} has {least} to {most} digits")),
    }
}

/// Whether a key is for PVVs.
pub(crate) fn is_for_visa(purpose: &Purpose) -> bool {
    *purpose == Purpose::PinVerificationVisa
}

/// Whether a key is for the method of IBM 3624.
pub(crate) fn is_for_ibm3624(purpose: &Purpose) -> bool {
    matches!(purpose, Purpose::PinVerificationIbm3624 { .. })
}

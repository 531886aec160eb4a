//! Whether the PIN of a block is that of a card, by the PVV of Visa or by the method of IBM 3624.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::card::Pan;
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::pin_block::EncryptedPin;
use crate::pin_reference::{PinReference, ibm3624, visa};
use crate::purpose::Purpose;
use crate::wiring::Wiring;

/// Verifies a PIN. Keys: the PIN key, the verification key. Answers yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyPin {
    /// The PIN that was entered.
    pub pin: EncryptedPin,
    /// The card.
    pub pan: Pan,
    /// With what it is compared.
    pub reference: PinReference,
}

impl Payment for VerifyPin {
    fn kind(&self) -> &'static str {
        "verify-pin"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.pin.role(), self.reference.role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.pin.check(&keys[0])?;
        self.reference.check(&self.pan, self.pin.format)
    }

    fn counted(&self) -> Vec<usize> {
        vec![0, 1]
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("verify-pin-{}-{}", self.pin.name(), self.reference.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let [pin_key, verification_key] = &expanded[..] else { unreachable!("keys were checked") };
        let pin = self.pin.read(&mut w, pin_key, self.reference.pin_length());
        match (&self.reference, keys[1].purpose) {
            (PinReference::Ibm3624 { offset, .. }, Purpose::PinVerificationIbm3624 { table }) => {
                ibm3624::require_pin(&mut w, verification_key, &table, pin.digits(offset.len()));
            }
            _ => {
                let value = visa::value(&mut w, verification_key, pin.digits(visa::DIGITS));
                visa::require(&mut w, &value);
            }
        }
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        let mut public = self.pin.public(&keys[0], Some(&self.pan));
        public.extend(self.reference.public(&self.pan));
        public
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.pin.blocks(&keys[0]), 1]
    }
}

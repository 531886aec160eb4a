//! A new PIN for a chip card: encrypted for the card and authenticated (EMV Book 2, section 9).
//!
//! The PIN is written in format 2 and encrypted under a key of the transaction. The MAC is over the command
//! and the encrypted PIN.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

pub use crate::emv::ScriptPadding;
use crate::emv::script::{PinScript, confidentiality_role};
use crate::emv::{EmvCard, SessionKey, integrity_role};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::pin_block::{self, EncryptedPin};
use crate::wiring::Wiring;

/// Makes a PIN change script. Keys: the PIN key, the master keys for integrity and for confidentiality.
/// Answers the encrypted PIN for the card, then the MAC of 8 bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePin {
    /// The new PIN.
    pub pin: EncryptedPin,
    /// The card.
    pub card: EmvCard,
    /// How its keys become those of the transaction.
    pub session_key: SessionKey,
    /// How the PIN is filled up.
    pub padding: ScriptPadding,
    /// The command, up to the encrypted PIN.
    #[serde(with = "crate::hexadecimal")]
    pub message: Vec<u8>,
}

impl std::fmt::Debug for ChangePin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChangePin({:?}, {:?}, {:?})", self.pin, self.card, self.session_key)
    }
}

impl ChangePin {
    fn script(&self) -> PinScript<'_> {
        let ChangePin { card, session_key, padding, message, .. } = self;
        PinScript { card, session_key, padding: *padding, message }
    }
}

impl Payment for ChangePin {
    fn kind(&self) -> &'static str {
        "change-pin"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.pin.role(), integrity_role(), confidentiality_role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.pin.check(&keys[0])?;
        self.script().check()
    }

    fn counted(&self) -> Vec<usize> {
        vec![0]
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("change-pin-{}-{}", self.pin.name(), self.script().name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let script = self.script();
        let pin = self.pin.read(&mut w, &expanded[0], None);
        let pin = pin_block::for_card(&mut w, &pin);
        let [integrity, confidentiality] = [1, 2].map(|key| script.session(&mut w, &expanded[key]));
        script.answer(&mut w, &integrity, &confidentiality, &pin);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        let (script, pin) = (self.script(), self.pin.public(&keys[0], Some(&self.card.pan)));
        [pin, script.derivation(), script.derivation(), script.authenticated()].concat()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        let [integrity, confidentiality] = self.script().blocks();
        vec![self.pin.blocks(&keys[0]), integrity, confidentiality]
    }
}

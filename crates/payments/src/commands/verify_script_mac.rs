//! Verifies the MAC of a command of the issuer to a card (EMV Book 2, section 9.2).

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::emv::script::MacScript;
use crate::emv::{EmvCard, SessionKey, integrity_role};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Verifies the MAC of a script command. Key: the master key for integrity. Answers yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyScriptMac {
    /// The card.
    pub card: EmvCard,
    /// How its key becomes that of the transaction.
    pub session_key: SessionKey,
    /// The command. It is filled up with a bit and zeros.
    #[serde(with = "crate::hexadecimal")]
    pub message: Vec<u8>,
    /// The MAC that was given: 4 to 8 bytes.
    #[serde(with = "crate::hexadecimal")]
    pub mac: Vec<u8>,
}

impl VerifyScriptMac {
    fn script(&self) -> MacScript<'_> {
        MacScript { card: &self.card, session_key: &self.session_key, message: &self.message }
    }
}

impl Payment for VerifyScriptMac {
    fn kind(&self) -> &'static str {
        "verify-script-mac"
    }

    fn roles(&self) -> Vec<Role> {
        vec![integrity_role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.script().check(self.mac.len())
    }

    fn counted(&self) -> Vec<usize> {
        vec![0]
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("verify-script-mac-{}-{}", self.mac.len(), self.script().name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let mac = self.script().mac(&mut w, &expanded[0]);
        let given = w.public(self.mac.len());
        let difference = w.xor(&mac.part(0..self.mac.len()), &given);
        w.require_zero_value(&difference);
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        [self.script().public(), self.mac.clone()].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.script().blocks()]
    }
}

//! Authenticates a command of the issuer to a card (EMV Book 2, section 9.2).

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::emv::script::MacScript;
use crate::emv::{EmvCard, SessionKey, integrity_role};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Makes the MAC of a script command. Key: the master key for integrity. Answers the MAC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerateScriptMac {
    /// The card.
    pub card: EmvCard,
    /// How its key becomes that of the transaction.
    pub session_key: SessionKey,
    /// The command. It is filled up with a bit and zeros.
    #[serde(with = "crate::hexadecimal")]
    pub message: Vec<u8>,
    /// Bytes of the MAC: 4 to 8.
    pub length: u8,
}

impl GenerateScriptMac {
    fn script(&self) -> MacScript<'_> {
        MacScript { card: &self.card, session_key: &self.session_key, message: &self.message }
    }
}

impl Payment for GenerateScriptMac {
    fn kind(&self) -> &'static str {
        "generate-script-mac"
    }

    fn roles(&self) -> Vec<Role> {
        vec![integrity_role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.script().check(self.length.into())
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("generate-script-mac-{}-{}", self.length, self.script().name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let mac = self.script().mac(&mut w, &expanded[0]);
        w.answer(&mac.part(0..self.length.into()));
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        self.script().public()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.script().blocks()]
    }
}

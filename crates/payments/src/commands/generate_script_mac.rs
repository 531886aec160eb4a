//! Authenticates a command of the issuer to a card (EMV Book 2, section 9.2).

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::emv::{EmvCard, SessionKey, card_key, integrity_role};
use crate::mac::{self, MOST_BYTES, MessagePadding};
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
    fn padded(&self) -> Vec<u8> {
        MessagePadding::BitAndZeros.padded(&self.message, 8)
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
        self.card.check()?;
        if !(4..=8).contains(&self.length) {
            return Err("the MAC of a script has 4 to 8 bytes".into());
        }
        match (1..=MOST_BYTES).contains(&self.message.len()) {
            true => self.session_key.check_message(self.padded().len()),
            false => Err(format!("a script command has 1 to {MOST_BYTES} bytes")),
        }
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        let blocks = self.padded().len() / 8;
        format!("generate-script-mac-{}-{}-{blocks}", self.length, self.session_key.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let card_key = EmvCard::key(&mut w, &expanded[0]);
        let key = self.session_key.derive(&mut w, &card_key);
        let cipher = w.cipher("3des-ede2");
        let key = w.expand(&cipher, &key);
        let message = w.public(self.padded().len());
        let mac = mac::retail(&mut w, &key, &message);
        w.answer(&mac.part(0..self.length.into()));
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        [self.card.public(), self.session_key.public(), self.padded()].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![card_key::BLOCKS + self.session_key.blocks() + (self.padded().len() / 8) as u64 + 2]
    }
}

//! A new PIN for a chip card of Visa, which takes another PIN block (as in "PIN Change/Unblock" of the IBM
//! z/OS ICSF guide, rules VISAPCU1 and VISAPCU2).
//!
//! The block has a zero nibble, the length, the digits and a fill of F. A part of the card's key for
//! cryptograms is added to it, and perhaps the PIN that the card has now.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::emv::script::{PinScript, confidentiality_role};
use crate::emv::{CryptogramInput, EmvCard, ScriptPadding, SessionKey, card_key, integrity_role};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::pin_block::{self, EncryptedPin};
use crate::wiring::Wiring;

/// Makes a PIN change script of Visa. Keys: the PIN key, the master keys for integrity, for confidentiality
/// and for application cryptograms; if the current PIN is given, the PIN key for it. Answers the encrypted
/// PIN for the card (16 bytes), then the MAC of 8 bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePinVisa {
    /// The new PIN.
    pub pin: EncryptedPin,
    /// The PIN that the card has, if the card wants to know that the issuer knows it.
    pub current: Option<EncryptedPin>,
    /// The card.
    pub card: EmvCard,
    /// How its keys become those of the transaction.
    pub session_key: SessionKey,
    /// The command, up to the encrypted PIN.
    #[serde(with = "crate::hexadecimal")]
    pub message: Vec<u8>,
}

impl std::fmt::Debug for ChangePinVisa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChangePinVisa({:?}, {:?}, {:?})", self.pin, self.card, self.session_key)
    }
}

impl ChangePinVisa {
    fn script(&self) -> PinScript<'_> {
        let ChangePinVisa { card, session_key, message, .. } = self;
        PinScript { card, session_key, padding: ScriptPadding::LengthFirst, message }
    }
}

impl Payment for ChangePinVisa {
    fn kind(&self) -> &'static str {
        "change-pin-visa"
    }

    fn roles(&self) -> Vec<Role> {
        let current = self.current.as_ref().map(|pin| pin.key_role("current PIN key"));
        let roles = [self.pin.role(), integrity_role(), confidentiality_role(), CryptogramInput::role()];
        roles.into_iter().chain(current).collect()
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.pin.check(&keys[0])?;
        if let Some(current) = &self.current {
            current.check(&keys[4])?;
        }
        self.script().check()
    }

    fn counted(&self) -> Vec<usize> {
        // The blocks of the new PIN and of the current one.
        [0].into_iter().chain(self.current.as_ref().map(|_| 4)).collect()
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        let current = self.current.as_ref().map_or("none".into(), EncryptedPin::name);
        format!("change-pin-visa-{}-{current}-{}", self.pin.name(), self.script().name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let script = self.script();
        let pin = self.pin.read(&mut w, &expanded[0], None);
        let [integrity, confidentiality] = [1, 2].map(|key| script.session(&mut w, &expanded[key]));
        let secret = EmvCard::key(&mut w, &expanded[3]);
        // Format 2 with another first nibble.
        let (block, format) = (pin_block::for_card(&mut w, &pin), w.constant(&[0x20, 0, 0, 0]));
        let right = w.xor(&block.part(4..8), &secret.part(4..8));
        let left = w.xor(&block.part(0..4), &format);
        let mut block = w.concat(&[&left, &right]);
        if let Some(current) = &self.current {
            let current = current.read(&mut w, &expanded[4], None);
            let digits = pin_block::digits_and_zeros(&mut w, &current);
            block = w.xor(&block, &digits);
        }
        script.answer(&mut w, &integrity, &confidentiality, &block);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        let (script, pan) = (self.script(), Some(&self.card.pan));
        let current = self.current.as_ref().map_or(Vec::new(), |pin| pin.public(&keys[4], pan));
        let derivation = script.derivation();
        [
            self.pin.public(&keys[0], pan),
            derivation.clone(),
            derivation,
            self.card.public(),
            current,
            script.authenticated(),
        ]
        .concat()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        let [integrity, confidentiality] = self.script().blocks();
        let mut blocks = vec![self.pin.blocks(&keys[0]), integrity, confidentiality, card_key::BLOCKS];
        blocks.extend(self.current.as_ref().map(|pin| pin.blocks(&keys[4])));
        blocks
    }
}

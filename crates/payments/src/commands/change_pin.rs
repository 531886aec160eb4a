//! A new PIN for a chip card: encrypted for the card and authenticated (EMV Book 2, section 9).
//!
//! The PIN is written in format 2 and encrypted in CBC under a key of the transaction. The MAC is over the
//! command and the encrypted PIN.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::card::Pan;
use crate::emv::{EmvCard, SessionKey, card_key, integrity_role};
use crate::mac::{self, MOST_BYTES, MessagePadding};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::pin_block::{self, EncryptedPin};
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

/// How the PIN block is filled up before it is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ScriptPadding {
    /// By a block that begins with a bit: common core definitions of EMV.
    Block,
    /// Not at all, since it is a whole block: M/Chip.
    None,
}

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
    pub message: Vec<u8>,
}

impl std::fmt::Debug for ChangePin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChangePin({:?}, {:?}, {:?})", self.pin, self.card, self.session_key)
    }
}

impl ChangePin {
    fn pan(&self) -> &Pan {
        &self.card.pan
    }

    /// Bytes of the encrypted PIN for the card.
    fn encrypted_bytes(&self) -> usize {
        if self.padding == ScriptPadding::Block { 16 } else { 8 }
    }

    /// What is authenticated before the encrypted PIN, and what fills up after it.
    fn around(&self) -> (Vec<u8>, Vec<u8>) {
        let whole = [&self.message[..], &vec![0; self.encrypted_bytes()]].concat();
        let padded = MessagePadding::BitAndZeros.padded(&whole, 8);
        (self.message.clone(), padded[whole.len()..].to_vec())
    }

    fn session(&self, w: &mut Wiring, master: &Key) -> Key {
        let card_key = EmvCard::key(w, master);
        let key = self.session_key.derive(w, &card_key);
        let cipher = w.cipher("3des-ede2");
        w.expand(&cipher, &key)
    }
}

impl Payment for ChangePin {
    fn kind(&self) -> &'static str {
        "change-pin"
    }

    fn roles(&self) -> Vec<Role> {
        let confidentiality = |purpose: &Purpose| *purpose == Purpose::EmvConfidentiality;
        let confidentiality = Role { name: "master key for script confidentiality", takes: confidentiality };
        vec![self.pin.role(), integrity_role(), confidentiality]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.pin.check(&keys[0])?;
        self.card.check()?;
        match (1..=MOST_BYTES).contains(&self.message.len()) {
            true => Ok(()),
            false => Err(format!("a script command has 1 to {MOST_BYTES} bytes")),
        }
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        let session = self.session_key.name();
        format!("change-pin-{}-{session}-{}-{:?}", self.pin.name(), self.message.len(), self.padding)
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let pin = self.pin.read(&mut w, &expanded[0], None);
        let pin = pin_block::for_card(&mut w, &pin);
        let integrity = self.session(&mut w, &expanded[1]);
        let confidentiality = self.session(&mut w, &expanded[2]);
        let mut encrypted: Value = w.encrypt(&confidentiality, &pin);
        if self.padding == ScriptPadding::Block {
            let fill = w.constant(&[0x80, 0, 0, 0, 0, 0, 0, 0]);
            let block = w.xor(&encrypted, &fill);
            let second = w.encrypt(&confidentiality, &block);
            encrypted = w.concat(&[&encrypted, &second]);
        }
        let (before, after) = self.around();
        let (before, after) = (w.public(before.len()), w.public(after.len()));
        let message = w.concat(&[&before, &encrypted, &after]);
        let mac = mac::retail(&mut w, &integrity, &message);
        w.answer(&encrypted);
        w.answer(&mac);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        let session = [self.card.public(), self.session_key.public()].concat();
        let (before, after) = self.around();
        let pin = self.pin.public(&keys[0], Some(self.pan()));
        [pin, session.clone(), session, before, after].concat()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        let derivation = card_key::BLOCKS + self.session_key.blocks();
        let (before, after) = self.around();
        let message = (before.len() + self.encrypted_bytes() + after.len()) as u64 / 8;
        let encrypted = self.encrypted_bytes() as u64 / 8;
        vec![self.pin.blocks(&keys[0]), derivation + message + 2, derivation + encrypted]
    }
}

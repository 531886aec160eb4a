//! Commands of an issuer to a card: their session keys, and PINs in them (EMV Book 2, section 9).

use serde::{Deserialize, Serialize};

use crate::emv::{EmvCard, SessionKey, card_key};
use crate::mac::{self, MOST_BYTES, MessagePadding};
use crate::payment::Role;
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

/// Bytes of a block.
const BLOCK: usize = 8;

/// The role of the key for the integrity of scripts.
pub(crate) fn integrity_role() -> Role {
    let takes = |purpose: &Purpose| *purpose == Purpose::EmvIntegrity;
    Role { name: "master key for script integrity", takes }
}

/// The role of the key for the confidentiality of scripts.
pub(crate) fn confidentiality_role() -> Role {
    let takes = |purpose: &Purpose| *purpose == Purpose::EmvConfidentiality;
    Role { name: "master key for script confidentiality", takes }
}

/// How the PIN block is filled up and encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptPadding {
    /// By a block that begins with a bit, in CBC: common core definitions of EMV.
    Block,
    /// Not at all, since it is a whole block: M/Chip.
    None,
    /// The length as a byte before it, a bit and zeros after it, in ECB: Visa.
    LengthFirst,
}

impl ScriptPadding {
    /// Bytes of the encrypted PIN.
    pub(crate) fn encrypted_bytes(self) -> usize {
        if self == ScriptPadding::None { BLOCK } else { 2 * BLOCK }
    }

    pub(crate) fn encrypt(self, w: &mut Wiring, key: &Key, pin: &Value) -> Value {
        match self {
            ScriptPadding::None => w.encrypt(key, pin),
            ScriptPadding::Block => {
                let first = w.encrypt(key, pin);
                let fill = w.constant(&[0x80, 0, 0, 0, 0, 0, 0, 0]);
                let second = w.xor(&first, &fill);
                let second = w.encrypt(key, &second);
                w.concat(&[&first, &second])
            }
            ScriptPadding::LengthFirst => {
                let length = w.constant(&[BLOCK as u8]);
                let fill = w.constant(&[0x80, 0, 0, 0, 0, 0, 0]);
                let first = w.concat(&[&length, &pin.part(0..BLOCK - 1)]);
                let second = w.concat(&[&pin.part(BLOCK - 1..BLOCK), &fill]);
                let halves = [w.encrypt(key, &first), w.encrypt(key, &second)];
                w.concat(&[&halves[0], &halves[1]])
            }
        }
    }
}

/// A command to a card that is authenticated and brings no PIN.
pub(crate) struct MacScript<'a> {
    pub(crate) card: &'a EmvCard,
    pub(crate) session_key: &'a SessionKey,
    pub(crate) message: &'a [u8],
}

impl MacScript<'_> {
    /// With a MAC of so many bytes.
    pub(crate) fn check(&self, mac_bytes: usize) -> Result<(), String> {
        self.card.check()?;
        if !(4..=BLOCK).contains(&mac_bytes) {
            return Err("the MAC of a script has 4 to 8 bytes".into());
        }
        match (1..=MOST_BYTES).contains(&self.message.len()) {
            true => self.session_key.check_message(self.padded().len()),
            false => Err(format!("a script command has 1 to {MOST_BYTES} bytes")),
        }
    }

    fn padded(&self) -> Vec<u8> {
        MessagePadding::BitAndZeros.padded(self.message, BLOCK)
    }

    /// A part of the name of a circuit.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.session_key.name(), self.padded().len() / BLOCK)
    }

    /// The MAC, a whole block.
    pub(crate) fn mac(&self, w: &mut Wiring, master: &Key) -> Value {
        let key = session_key(w, self.session_key, master);
        let message = w.public(self.padded().len());
        mac::retail(w, &key, &message)
    }

    pub(crate) fn public(&self) -> Vec<u8> {
        [self.card.public(), self.session_key.public(), self.padded()].concat()
    }

    pub(crate) fn blocks(&self) -> u64 {
        card_key::BLOCKS + self.session_key.blocks() + (self.padded().len() / BLOCK) as u64 + 2
    }
}

/// A master key's for the transaction.
fn session_key(w: &mut Wiring, derivation: &SessionKey, master: &Key) -> Key {
    let card_key = EmvCard::key(w, master);
    let key = derivation.derive(w, &card_key);
    let cipher = w.cipher("3des-ede2");
    w.expand(&cipher, &key)
}

/// A command that brings a PIN: to which card, how, and what comes before the PIN.
pub(crate) struct PinScript<'a> {
    pub(crate) card: &'a EmvCard,
    pub(crate) session_key: &'a SessionKey,
    pub(crate) padding: ScriptPadding,
    pub(crate) message: &'a [u8],
}

impl PinScript<'_> {
    /// The card's own key encrypts no PIN: who chooses the PINs would get the halves of a session key.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.card.check()?;
        if *self.session_key == SessionKey::CardKey {
            return Err("a PIN is encrypted under a session key".into());
        }
        match (1..=MOST_BYTES).contains(&self.message.len()) {
            true => Ok(()),
            false => Err(format!("a script command has 1 to {MOST_BYTES} bytes")),
        }
    }

    /// A part of the name of a circuit.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}-{:?}", self.session_key.name(), self.message.len(), self.padding)
    }

    /// What comes after the encrypted PIN, so that there are whole blocks.
    fn after(&self) -> Vec<u8> {
        let whole = vec![0; self.message.len() + self.padding.encrypted_bytes()];
        MessagePadding::BitAndZeros.padded(&whole, BLOCK).split_off(whole.len())
    }

    /// What one card's key becomes that of the transaction with.
    pub(crate) fn derivation(&self) -> Vec<u8> {
        [self.card.public(), self.session_key.public()].concat()
    }

    /// What is authenticated besides the encrypted PIN.
    pub(crate) fn authenticated(&self) -> Vec<u8> {
        [self.message, &self.after()].concat()
    }

    /// A master key's for the transaction.
    pub(crate) fn session(&self, w: &mut Wiring, master: &Key) -> Key {
        session_key(w, self.session_key, master)
    }

    /// Answers the encrypted PIN and the MAC.
    pub(crate) fn answer(&self, w: &mut Wiring, integrity: &Key, confidentiality: &Key, pin: &Value) {
        let encrypted = self.padding.encrypt(w, confidentiality, pin);
        let (before, after) = (w.public(self.message.len()), w.public(self.after().len()));
        let message = w.concat(&[&before, &encrypted, &after]);
        let mac = mac::retail(w, integrity, &message);
        w.answer(&encrypted);
        w.answer(&mac);
    }

    /// Blocks that the key for integrity and that for confidentiality pay.
    pub(crate) fn blocks(&self) -> [u64; 2] {
        let derivation = card_key::BLOCKS + self.session_key.blocks();
        let encrypted = self.padding.encrypted_bytes() / BLOCK;
        let message = self.authenticated().len() / BLOCK + encrypted;
        [derivation + message as u64 + 2, derivation + encrypted as u64]
    }
}

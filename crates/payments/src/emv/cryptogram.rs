//! Application cryptograms (EMV Book 2, section 8.1).

use serde::{Deserialize, Serialize};

use crate::mac::{self, MOST_BYTES, MessagePadding};
use crate::payment::Role;
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

use super::card_key::{self, EmvCard};
use super::session_keys::SessionKey;

/// Bytes of a cryptogram.
const BYTES: usize = 8;

/// What a cryptogram is over, and under what.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CryptogramInput {
    /// The card.
    pub card: EmvCard,
    /// How its key becomes that of the transaction.
    pub session_key: SessionKey,
    /// The data of the transaction.
    #[serde(with = "crate::hexadecimal")]
    pub data: Vec<u8>,
    /// How the data is filled up: zeros for Visa's version 10, else a bit and zeros.
    pub padding: MessagePadding,
}

impl std::fmt::Debug for CryptogramInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CryptogramInput({:?}, {} bytes)", self.card.pan, self.data.len())
    }
}

impl CryptogramInput {
    pub(crate) fn role() -> Role {
        let takes = |purpose: &Purpose| *purpose == Purpose::EmvCryptograms;
        Role { name: "master key for application cryptograms", takes }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.card.check()?;
        match (1..=MOST_BYTES).contains(&self.data.len()) {
            true => self.session_key.check_message(self.padded().len()),
            false => Err(format!("the data of a transaction has 1 to {MOST_BYTES} bytes")),
        }
    }

    fn padded(&self) -> Vec<u8> {
        self.padding.padded(&self.data, BYTES)
    }

    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.session_key.name(), self.padded().len() / BYTES)
    }

    pub(crate) fn public(&self) -> Vec<u8> {
        [self.card.public(), self.session_key.public(), self.padded()].concat()
    }

    /// The card's key, that of the transaction, and the cryptogram.
    pub(crate) fn cryptogram(&self, w: &mut Wiring, issuer: &Key) -> ([Key; 2], Value) {
        let card_key = EmvCard::key(w, issuer);
        let session_key = self.session_key.derive(w, &card_key);
        let cipher = w.cipher("3des-ede2");
        let keys = [&card_key, &session_key].map(|key| w.expand(&cipher, key));
        let data = w.public(self.padded().len());
        let cryptogram = mac::retail(w, &keys[1], &data);
        (keys, cryptogram)
    }

    pub(crate) fn blocks(&self) -> u64 {
        card_key::BLOCKS + self.session_key.blocks() + (self.padded().len() / BYTES) as u64 + 2
    }
}

//! Verifies the cryptogram with which a card asks for an authorization (ARQC), and makes the issuer's answer
//! to it (ARPC). EMV Book 2, section 8.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::emv::{EmvCard, SessionKey, card_key};
use crate::mac::{self, MOST_BYTES, MessagePadding};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

/// Bytes of a cryptogram.
const BYTES: usize = 8;

/// Data has more than a block. A cryptogram over one block is an encryption of it: under the card's key it
/// would be half a session key.
const LEAST_BYTES: usize = 9;

/// What a cryptogram is over, and under what.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CryptogramInput {
    /// The card.
    pub card: EmvCard,
    /// How its key becomes that of the transaction.
    pub session_key: SessionKey,
    /// The data of the transaction.
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
        self.session_key.check_for_cryptogram()?;
        match (LEAST_BYTES..=MOST_BYTES).contains(&self.data.len()) {
            true => Ok(()),
            false => Err(format!("the data of a transaction has {LEAST_BYTES} to {MOST_BYTES} bytes")),
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

/// The issuer's answer to a card.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Arpc {
    /// Method 1 (section 8.2.1): 8 bytes.
    Method1 {
        /// The authorization response code.
        code: [u8; 2],
    },
    /// Method 2 (section 8.2.2): 4 bytes.
    Method2 {
        /// The card status update.
        status: [u8; 4],
        /// Proprietary authentication data: at most 8 bytes.
        proprietary: Vec<u8>,
    },
    /// Method 1 under the card's key, whatever the ARQC was made with: M/Chip 2 and 4 (cryptogram versions 16
    /// and 17).
    Method1ByCardKey {
        /// The authorization response code.
        code: [u8; 2],
    },
}

impl Arpc {
    /// A part of the name of a circuit.
    fn name(&self, blocks: usize) -> String {
        match self {
            Arpc::Method1 { .. } => "arpc-1".into(),
            Arpc::Method2 { .. } => format!("arpc-2-{blocks}"),
            Arpc::Method1ByCardKey { .. } => "arpc-1-card-key".into(),
        }
    }
}

/// Verifies an ARQC. Key: the master key for application cryptograms. Answers yes or no; or the ARPC, if one
/// is asked for and the ARQC is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyArqc {
    /// What the card signed.
    pub input: CryptogramInput,
    /// The cryptogram that came.
    pub cryptogram: [u8; BYTES],
    /// The answer to the card, if one is wanted.
    pub response: Option<Arpc>,
}

impl VerifyArqc {
    /// What the response adds to the ARQC, or authenticates with it.
    fn response_data(&self) -> Vec<u8> {
        match &self.response {
            None => Vec::new(),
            Some(Arpc::Method1 { code } | Arpc::Method1ByCardKey { code }) => code.to_vec(),
            Some(Arpc::Method2 { status, proprietary }) => {
                let message = [&self.cryptogram[..], status, proprietary].concat();
                MessagePadding::BitAndZeros.padded(&message, BYTES)
            }
        }
    }
}

impl Payment for VerifyArqc {
    fn kind(&self) -> &'static str {
        "verify-arqc"
    }

    fn roles(&self) -> Vec<Role> {
        vec![CryptogramInput::role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.input.check()?;
        match &self.response {
            Some(Arpc::Method2 { proprietary, .. }) if proprietary.len() > 8 => {
                Err("proprietary authentication data has at most 8 bytes".into())
            }
            _ => Ok(()),
        }
    }

    fn verifies(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        let blocks = self.response_data().len() / BYTES;
        let response = self.response.as_ref().map_or("no-arpc".into(), |arpc| arpc.name(blocks));
        format!("verify-arqc-{}-{response}", self.input.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let ([card_key, session_key], cryptogram) = self.input.cryptogram(&mut w, &expanded[0]);
        let given = w.public(BYTES);
        let difference = w.xor(&cryptogram, &given);
        w.require_zero_value(&difference);
        match &self.response {
            None => {}
            Some(arpc @ (Arpc::Method1 { .. } | Arpc::Method1ByCardKey { .. })) => {
                let key = if matches!(arpc, Arpc::Method1 { .. }) { &session_key } else { &card_key };
                let (code, zeros) = (w.public(2), w.constant(&[0; 6]));
                let code = w.concat(&[&code, &zeros]);
                let block = w.xor(&given, &code);
                let arpc = w.encrypt(key, &block);
                w.answer(&arpc);
            }
            Some(Arpc::Method2 { .. }) => {
                let message = w.public(self.response_data().len());
                let arpc = mac::retail(&mut w, &session_key, &message);
                w.answer(&arpc.part(0..4));
            }
        }
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        [self.input.public(), self.cryptogram.to_vec(), self.response_data()].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        let response = match &self.response {
            None => 0,
            Some(Arpc::Method1 { .. } | Arpc::Method1ByCardKey { .. }) => 1,
            Some(Arpc::Method2 { .. }) => (self.response_data().len() / BYTES) as u64 + 2,
        };
        vec![self.input.blocks() + response]
    }
}

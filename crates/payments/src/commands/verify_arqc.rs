//! Verifies the cryptogram with which a card asks for an authorization (ARQC), and makes the issuer's answer
//! to it (ARPC). EMV Book 2, section 8.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::emv::CryptogramInput;
use crate::mac::{self, MessagePadding};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Bytes of a cryptogram.
const BYTES: usize = 8;

/// The issuer's answer to a card.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arpc {
    /// Method 1 (section 8.2.1): 8 bytes.
    Method1 {
        /// The authorization response code.
        #[serde(with = "crate::hexadecimal")]
        code: [u8; 2],
    },
    /// Method 2 (section 8.2.2): 4 bytes.
    Method2 {
        /// The card status update.
        #[serde(with = "crate::hexadecimal")]
        status: [u8; 4],
        /// Proprietary authentication data: at most 8 bytes.
        #[serde(with = "crate::hexadecimal")]
        proprietary: Vec<u8>,
    },
    /// Method 1 under the card's key, whatever the ARQC was made with: M/Chip 2 and 4 (cryptogram versions 16
    /// and 17).
    Method1ByCardKey {
        /// The authorization response code.
        #[serde(with = "crate::hexadecimal")]
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
    #[serde(with = "crate::hexadecimal")]
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

    fn counted(&self) -> Vec<usize> {
        vec![0]
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

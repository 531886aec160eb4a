//! The answer to a device that joins, authenticated and encrypted (LoRaWAN 1.0.3 and 1.1, section 6.2).
//!
//! It is encrypted by decrypting, because devices only encrypt.

use polyclave_cipher::{Circuit, Direction};
use serde::{Deserialize, Serialize};

use crate::lorawan::{MIC_BYTES, block, derived, network_role};
use crate::mac::{self, MessagePadding};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Makes a join-accept message. Key: NwkKey, which is AppKey in LoRaWAN 1.0. Answers the encrypted message
/// and code, without MHDR, and then the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptJoin {
    /// MHDR, JoinNonce, NetID (Home_NetID), DevAddr, DLSettings, RxDelay and perhaps CFList: 13 or 29 bytes.
    #[serde(with = "crate::hexadecimal")]
    pub message: Vec<u8>,
    /// Which keys are used.
    pub version: JoinVersion,
}

/// Which keys are used for a join-accept message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JoinVersion {
    /// LoRaWAN 1.0: the device's key for both.
    V1_0,
    /// LoRaWAN 1.1: a key derived for the code.
    V1_1 {
        /// Which request is answered: 0xff for a join request, else the type of the rejoin request. Answers
        /// to those are encrypted under a derived key, too.
        request_type: u8,
        /// The JoinEUI of the request.
        #[serde(with = "crate::hexadecimal")]
        join_eui: [u8; 8],
        /// The DevEUI of the request.
        #[serde(with = "crate::hexadecimal")]
        dev_eui: [u8; 8],
        /// The DevNonce of the request, or the rejoin counter.
        #[serde(with = "crate::hexadecimal")]
        dev_nonce: [u8; 2],
    },
}

/// The type of a join request.
const JOIN_REQUEST: u8 = 0xff;

impl AcceptJoin {
    /// What is authenticated.
    fn authenticated(&self) -> Vec<u8> {
        match &self.version {
            JoinVersion::V1_0 => self.message.clone(),
            JoinVersion::V1_1 { request_type, join_eui, dev_nonce, .. } => {
                [&[*request_type][..], join_eui, dev_nonce, &self.message].concat()
            }
        }
    }

    fn is_rejoin(&self) -> bool {
        matches!(self.version, JoinVersion::V1_1 { request_type, .. } if request_type != JOIN_REQUEST)
    }

    /// What the keys for the code and for encryption are made of, if they are derived.
    fn derivations(&self) -> Vec<u8> {
        match &self.version {
            JoinVersion::V1_0 => Vec::new(),
            JoinVersion::V1_1 { dev_eui, .. } => {
                let mut blocks = block(&[&[6], dev_eui]);
                if self.is_rejoin() {
                    blocks.extend(block(&[&[5], dev_eui]));
                }
                blocks
            }
        }
    }
}

impl Payment for AcceptJoin {
    fn kind(&self) -> &'static str {
        "accept-join"
    }

    fn roles(&self) -> Vec<Role> {
        vec![network_role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        if let JoinVersion::V1_1 { request_type, .. } = &self.version
            && ![0, 1, 2, JOIN_REQUEST].contains(request_type)
        {
            return Err("a request to join has type 0, 1, 2 or 255".into());
        }
        match self.message.len() {
            13 | 29 => Ok(()),
            _ => Err("a join-accept message has 13 or 29 bytes before its code".into()),
        }
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        let version = match &self.version {
            JoinVersion::V1_0 => "1.0",
            JoinVersion::V1_1 { .. } if self.is_rejoin() => "1.1-rejoin",
            JoinVersion::V1_1 { .. } => "1.1",
        };
        format!("accept-join-{version}-{}", self.message.len())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let (mut integrity, mut encryption) = (expanded[0].clone(), expanded[0].clone());
        if self.version != JoinVersion::V1_0 {
            integrity = derived(&mut w, &expanded[0]);
        }
        if self.is_rejoin() {
            encryption = derived(&mut w, &expanded[0]);
        }
        let padded = w.public(self.authenticated().len().next_multiple_of(16));
        // 13, 29, 24 and 40 bytes: never whole blocks.
        let mac = mac::cmac(&mut w, &integrity, &padded, true);
        let before = self.authenticated().len() - self.message.len();
        let message = padded.part(before + 1..before + self.message.len());
        let whole = w.concat(&[&message, &mac.part(0..MIC_BYTES)]);
        for i in 0..whole.bytes() / 16 {
            let encrypted = w.crypt(&encryption, Direction::Decrypt, &whole.part(16 * i..16 * (i + 1)));
            w.answer(&encrypted);
        }
        w.answer(&mac.part(0..MIC_BYTES));
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        let authenticated = MessagePadding::BitAndZeros.padded(&self.authenticated(), 16);
        [self.derivations(), authenticated].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        let derivations = self.derivations().len() / 16;
        let authenticated = self.authenticated().len().div_ceil(16) + 1;
        vec![(derivations + authenticated + self.message.len().div_ceil(16)) as u64]
    }
}

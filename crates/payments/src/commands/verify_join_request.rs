//! Whether a device that wants to join, or to join again, has the key that it should (LoRaWAN 1.0.3 and 1.1,
//! section 6.2).

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::lorawan::{MIC_BYTES, block, derived, network_role};
use crate::mac::{self, MessagePadding};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Bytes of a join request before its code.
const JOIN: usize = 19;
/// Bytes of a rejoin request of type 1 before its code. (Those of types 0 and 2 are the network's: their key
/// is a session key.)
const REJOIN: usize = 20;
/// Where the type of a rejoin request is.
const TYPE: usize = 1;
/// Where its DevEUI is.
const DEV_EUI: std::ops::Range<usize> = 10..18;

/// Verifies a join request, or a rejoin request of type 1. Key: NwkKey, which is AppKey in LoRaWAN 1.0.
/// Answers yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyJoinRequest {
    /// MHDR, JoinEUI, DevEUI, DevNonce: 19 bytes. Or MHDR, the type 1, JoinEUI, DevEUI, RJcount1: 20 bytes.
    #[serde(with = "crate::hexadecimal")]
    pub message: Vec<u8>,
    /// The message integrity code.
    #[serde(with = "crate::hexadecimal")]
    pub code: [u8; MIC_BYTES],
}

impl VerifyJoinRequest {
    fn is_rejoin(&self) -> bool {
        self.message.len() == REJOIN
    }

    /// What the key of rejoin requests (JSIntKey) is made of.
    fn derivation(&self) -> Vec<u8> {
        block(&[&[6], &self.message[DEV_EUI]])
    }
}

impl Payment for VerifyJoinRequest {
    fn kind(&self) -> &'static str {
        "verify-join-request"
    }

    fn roles(&self) -> Vec<Role> {
        vec![network_role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        match self.message.len() {
            JOIN => Ok(()),
            REJOIN if self.message[TYPE] == 1 => Ok(()),
            REJOIN => Err("a rejoin request is of type 1".into()),
            _ => Err(format!("a join request has {JOIN} bytes before its code, a rejoin request {REJOIN}")),
        }
    }

    fn counted(&self) -> Vec<usize> {
        vec![0]
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("verify-join-request-{}", self.message.len())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let mut key = expanded[0].clone();
        if self.is_rejoin() {
            key = derived(&mut w, &key);
        }
        let message = w.public(self.message.len().next_multiple_of(16));
        let mac = mac::cmac(&mut w, &key, &message, true);
        let given = w.public(MIC_BYTES);
        let difference = w.xor(&mac.part(0..MIC_BYTES), &given);
        w.require_zero_value(&difference);
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        let derivation = if self.is_rejoin() { self.derivation() } else { Vec::new() };
        let message = MessagePadding::BitAndZeros.padded(&self.message, 16);
        [derivation, message, self.code.to_vec()].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![if self.is_rejoin() { 4 } else { 3 }]
    }
}

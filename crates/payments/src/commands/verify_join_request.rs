//! Whether a device that wants to join has the key that it should (LoRaWAN 1.0.3 and 1.1, section 6.2).

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::lorawan::{MIC_BYTES, network_role};
use crate::mac::{self, MessagePadding};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Bytes of a join request before its code.
const BYTES: usize = 19;

/// Verifies a join request. Key: NwkKey, which is AppKey in LoRaWAN 1.0. Answers yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyJoinRequest {
    /// MHDR, JoinEUI, DevEUI, DevNonce: 19 bytes.
    pub message: Vec<u8>,
    /// The message integrity code.
    pub code: [u8; MIC_BYTES],
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
        match self.message.len() == BYTES {
            true => Ok(()),
            false => Err(format!("a join request has {BYTES} bytes before its code")),
        }
    }

    fn verifies(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        "verify-join-request".into()
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let message = w.public(BYTES.next_multiple_of(16));
        let mac = mac::cmac(&mut w, &expanded[0], &message, true);
        let given = w.public(MIC_BYTES);
        let difference = w.xor(&mac.part(0..MIC_BYTES), &given);
        w.require_zero_value(&difference);
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        [MessagePadding::BitAndZeros.padded(&self.message, 16), self.code.to_vec()].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![3]
    }
}

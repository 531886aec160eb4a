//! Verifies a message authentication code.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::mac::MacInput;
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Verifies a MAC. Key: the MAC key. Answers yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyMac {
    /// Of what.
    pub input: MacInput,
    /// The MAC that was given, at least 4 bytes.
    #[serde(with = "crate::hexadecimal")]
    pub mac: Vec<u8>,
}

impl Payment for VerifyMac {
    fn kind(&self) -> &'static str {
        "verify-mac"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.input.role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.input.check(&keys[0])?;
        self.input.check_length(&keys[0], self.mac.len())
    }

    fn counted(&self) -> Vec<usize> {
        vec![0]
    }

    fn circuit_name(&self, keys: &[KeyFacts<'_>]) -> String {
        format!("verify-mac-{}-{}", self.mac.len(), self.input.name(&keys[0]))
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let mac = self.input.mac(&mut w, &keys[0], &expanded[0]);
        let given = w.public(self.mac.len());
        let difference = w.xor(&mac.part(0..self.mac.len()), &given);
        w.require_zero_value(&difference);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        [self.input.public(&keys[0]), self.mac.clone()].concat()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.input.blocks(&keys[0])]
    }
}

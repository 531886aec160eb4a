//! Encrypts a client's data.

use polyclave_cipher::{Circuit, Direction};
use serde::{Deserialize, Serialize};

use crate::data::DataKey;
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Encrypts data in whole blocks. Key: the data key. Answers the ciphertext.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncryptData {
    /// Under what.
    pub key: DataKey,
    /// The data.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for EncryptData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncryptData({:?}, {} bytes)", self.key, self.data.len())
    }
}

impl Payment for EncryptData {
    fn kind(&self) -> &'static str {
        "encrypt-data"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.key.role("data key")]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.key.check(&keys[0], self.data.len())
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("encrypt-data-{}-{}", self.data.len(), self.key.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let data = w.public(self.data.len());
        let out = self.key.crypt(&mut w, &expanded[0], Direction::Encrypt, &data);
        w.answer(&out);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        [self.data.clone(), self.key.public(&keys[0])].concat()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.key.blocks(&keys[0], self.data.len())]
    }
}

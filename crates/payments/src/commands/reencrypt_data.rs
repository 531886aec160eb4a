//! Ciphertext under one key becomes ciphertext under another. Nobody sees the data.

use polyclave_cipher::{Circuit, Direction};
use serde::{Deserialize, Serialize};

use crate::data::DataKey;
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Encrypts data anew. Keys: the incoming data key, the outgoing one. Answers the ciphertext.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReencryptData {
    /// Under what the data came.
    pub incoming: DataKey,
    /// Under what it goes.
    pub outgoing: DataKey,
    /// The ciphertext.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for ReencryptData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReencryptData({:?}, {:?}, {} bytes)", self.incoming, self.outgoing, self.data.len())
    }
}

impl Payment for ReencryptData {
    fn kind(&self) -> &'static str {
        "reencrypt-data"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.incoming.role("incoming data key"), self.outgoing.role("outgoing data key")]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.incoming.check(&keys[0], self.data.len())?;
        self.outgoing.check(&keys[1], self.data.len())
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("reencrypt-data-{}-{}-to-{}", self.data.len(), self.incoming.name(), self.outgoing.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let data = w.public(self.data.len());
        let plain = self.incoming.crypt(&mut w, &expanded[0], Direction::Decrypt, &data);
        let out = self.outgoing.crypt(&mut w, &expanded[1], Direction::Encrypt, &plain);
        w.answer(&out);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        [self.data.clone(), self.incoming.public(&keys[0]), self.outgoing.public(&keys[1])].concat()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        let bytes = self.data.len();
        vec![self.incoming.blocks(&keys[0], bytes), self.outgoing.blocks(&keys[1], bytes)]
    }
}

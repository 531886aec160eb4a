//! Makes a message authentication code.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::mac::MacInput;
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Makes a MAC. Key: the MAC key. Answers the MAC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerateMac {
    /// Of what.
    pub input: MacInput,
    /// How many bytes, the first of the block: at least 4.
    pub length: u8,
}

impl Payment for GenerateMac {
    fn kind(&self) -> &'static str {
        "generate-mac"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.input.role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.input.check(&keys[0])?;
        self.input.check_length(&keys[0], self.length.into())
    }

    fn circuit_name(&self, keys: &[KeyFacts<'_>]) -> String {
        format!("generate-mac-{}-{}", self.length, self.input.name(&keys[0]))
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let mac = self.input.mac(&mut w, &keys[0], &expanded[0]);
        w.answer(&mac.part(0..self.length.into()));
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        self.input.public(&keys[0])
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.input.blocks(&keys[0])]
    }
}

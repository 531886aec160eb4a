//! Makes the cryptogram that a card would make: for tests of an issuer's systems.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::emv::CryptogramInput;
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Makes an ARQC. Key: the master key for application cryptograms. Answers the cryptogram.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerateArqc {
    /// What the card signs.
    pub input: CryptogramInput,
}

impl Payment for GenerateArqc {
    fn kind(&self) -> &'static str {
        "generate-arqc"
    }

    fn roles(&self) -> Vec<Role> {
        vec![CryptogramInput::role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.input.check()
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("generate-arqc-{}", self.input.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let (_, cryptogram) = self.input.cryptogram(&mut w, &expanded[0]);
        w.answer(&cryptogram);
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        self.input.public()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.input.blocks()]
    }
}

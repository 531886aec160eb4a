//! Makes a card verification value.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::card_value::{CardData, LENGTHS};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Makes a card verification value. Key: the one for such values. Answers the digits, one a byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerateCardValue {
    /// Of what.
    pub card: CardData,
    /// How many digits: 1 to 5.
    pub length: u8,
}

impl Payment for GenerateCardValue {
    fn kind(&self) -> &'static str {
        "generate-card-value"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.card.role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        if !LENGTHS.contains(&usize::from(self.length)) {
            return Err("a card verification value has 1 to 5 digits".into());
        }
        self.card.check()
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("generate-card-value-{}-{}", self.card.name(), self.length)
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let value = self.card.value(&mut w, &expanded[0], self.length.into());
        w.answer_digits(&value);
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        self.card.public()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.card.blocks()]
    }
}

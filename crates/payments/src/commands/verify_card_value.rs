//! Verifies a card verification value.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::card::{Digits, pack};
use crate::card_value::{CardData, VERIFIED};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::pin_reference::check_length;
use crate::wiring::{Value, Wiring};

/// Verifies a card verification value. Key: the one for such values. Answers yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyCardValue {
    /// Of what.
    pub card: CardData,
    /// The value that was given: 3 to 5 digits.
    pub value: Digits,
}

impl Payment for VerifyCardValue {
    fn kind(&self) -> &'static str {
        "verify-card-value"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.card.role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        check_length(&self.value, "a card verification value", VERIFIED)?;
        self.card.check()
    }

    fn counted(&self) -> Vec<usize> {
        vec![0]
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("verify-card-value-{}-{}", self.card.name(), self.value.len())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let mut value = self.card.value(&mut w, &expanded[0], self.value.len());
        if value.len() % 2 == 1 {
            value.push(w.nibble(0));
        }
        let given = w.public(value.len() / 2);
        let difference = w.xor(&Value::of_bits(value.concat()), &given);
        w.require_zero_value(&difference);
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        let mut digits = self.value.as_str().to_owned();
        if digits.len() % 2 == 1 {
            digits.push('0');
        }
        [self.card.public(), pack(&digits)].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.card.blocks()]
    }
}

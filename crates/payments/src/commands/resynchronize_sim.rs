//! The sequence number of a SIM card that refused an older one (3GPP TS 33.102, section 6.3.5).

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::milenage::{self, Milenage, OperatorValue};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Verifies what a card sent to be synchronized. Keys: the card's key K, its OPc or the operator's OP.
/// Answers the card's sequence number (6 bytes), if what it sent is authentic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResynchronizeSim {
    /// The challenge RAND that the card refused.
    #[serde(with = "crate::hexadecimal")]
    pub challenge: [u8; 16],
    /// What the card sent: the hidden sequence number (6 bytes) and MAC-S (8).
    #[serde(with = "crate::hexadecimal")]
    pub token: [u8; 14],
    /// What the second key is.
    pub operator: OperatorValue,
}

impl Payment for ResynchronizeSim {
    fn kind(&self) -> &'static str {
        "resynchronize-sim"
    }

    fn roles(&self) -> Vec<Role> {
        milenage::roles()
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)
    }

    fn counted(&self) -> Vec<usize> {
        vec![0]
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("resynchronize-sim-{}", self.operator.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let milenage = Milenage::new(&mut w, &expanded, self.operator);
        let (hidden, given) = (w.public(6), w.public(8));
        let out5 = milenage.out(&mut w, 5);
        let sequence = w.xor(&hidden, &out5.part(0..6));
        // AMF is zero here (section 6.3.3).
        let management = w.constant(&[0; 2]);
        let out1 = milenage.out1(&mut w, &sequence, &management);
        let difference = w.xor(&out1.part(8..16), &given);
        w.require_zero_value(&difference);
        w.answer(&sequence);
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        [&self.challenge[..], &self.token].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.operator.blocks() + 2, 0]
    }
}

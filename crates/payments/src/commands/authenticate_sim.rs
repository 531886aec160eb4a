//! What a home network asks of a SIM card, and what it expects: an authentication vector (3GPP TS 33.102,
//! section 6.3.2).

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::milenage::{self, Milenage, OperatorValue};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Makes an authentication vector. Keys: the card's key K, its OPc or the operator's OP. Answers AUTN (16
/// bytes: the hidden sequence number, AMF, MAC-A), RES (8), CK (16) and IK (16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthenticateSim {
    /// The random challenge RAND.
    pub challenge: [u8; 16],
    /// The sequence number SQN.
    pub sequence: [u8; 6],
    /// The authentication management field AMF.
    pub management: [u8; 2],
    /// What the second key is.
    pub operator: OperatorValue,
}

impl Payment for AuthenticateSim {
    fn kind(&self) -> &'static str {
        "authenticate-sim"
    }

    fn roles(&self) -> Vec<Role> {
        milenage::roles()
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("authenticate-sim-{}", self.operator.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let milenage = Milenage::new(&mut w, &expanded, self.operator);
        let (sequence, management) = (w.public(6), w.public(2));
        let out1 = milenage.out1(&mut w, &sequence, &management);
        let [out2, out3, out4] = [2, 3, 4].map(|which| milenage.out(&mut w, which));
        let hidden = w.xor(&sequence, &out2.part(0..6));
        for part in [&hidden, &management, &out1.part(0..8), &out2.part(8..16), &out3, &out4] {
            w.answer(part);
        }
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        [&self.challenge[..], &self.sequence, &self.management].concat()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.operator.blocks() + 4, 0]
    }
}

//! Milenage, the authentication functions of SIM cards (3GPP TS 35.206, section 4.1).
//!
//! OPc is a second secret of a card. It is kept as a key of AES, whose first round key is the key itself.

use serde::{Deserialize, Serialize};

use crate::payment::Role;
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

/// What the second key of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperatorValue {
    /// The card's own value OPc.
    Opc,
    /// The operator's value OP, of which OPc is computed each time.
    Op,
}

/// The keys of a card.
pub(crate) struct Milenage {
    key: Key,
    opc: Value,
    /// E(RAND + OPc).
    temp: Value,
}

pub(crate) fn roles() -> Vec<Role> {
    let subscriber = |purpose: &Purpose| *purpose == Purpose::MilenageSubscriber;
    let operator = |purpose: &Purpose| *purpose == Purpose::MilenageOperator;
    vec![
        Role { name: "key of a SIM card", takes: subscriber },
        Role { name: "operator's value", takes: operator },
    ]
}

impl OperatorValue {
    pub(crate) fn name(self) -> &'static str {
        match self {
            OperatorValue::Opc => "opc",
            OperatorValue::Op => "op",
        }
    }

    /// Blocks for OPc and TEMP.
    pub(crate) fn blocks(self) -> u64 {
        if self == OperatorValue::Op { 2 } else { 1 }
    }
}

impl Milenage {
    /// For a random challenge, which is public.
    pub(crate) fn new(w: &mut Wiring, keys: &[Key], operator: OperatorValue) -> Milenage {
        let key = keys[0].clone();
        let mut opc = w.first_bytes(&keys[1]);
        if operator == OperatorValue::Op {
            let encrypted = w.encrypt(&key, &opc);
            opc = w.xor(&encrypted, &opc);
        }
        let challenge = w.public(16);
        let block = w.xor(&challenge, &opc);
        let temp = w.encrypt(&key, &block);
        Milenage { key, opc, temp }
    }

    /// OUT1 for a sequence number and a management field: f1, then f1*.
    pub(crate) fn out1(&self, w: &mut Wiring, sequence: &Value, management: &Value) -> Value {
        let input = w.concat(&[sequence, management, sequence, management]);
        let sum = w.xor(&input, &self.opc);
        let rotated = rotated(w, &sum, 8);
        let block = w.xor(&self.temp, &rotated);
        self.last(w, &block)
    }

    /// OUT2 to OUT5: f5 and f2, f3, f4, f5*.
    pub(crate) fn out(&self, w: &mut Wiring, which: u8) -> Value {
        let (rotation, constant) = match which {
            2 => (0, 1),
            3 => (4, 2),
            4 => (8, 4),
            _ => (12, 8),
        };
        let sum = w.xor(&self.temp, &self.opc);
        let rotated = rotated(w, &sum, rotation);
        let mut bytes = [0; 16];
        bytes[15] = constant;
        let constant = w.constant(&bytes);
        let block = w.xor(&rotated, &constant);
        self.last(w, &block)
    }

    fn last(&self, w: &mut Wiring, block: &Value) -> Value {
        let encrypted = w.encrypt(&self.key, block);
        w.xor(&encrypted, &self.opc)
    }
}

/// A block moved to the left by whole bytes, cyclically.
fn rotated(w: &mut Wiring, block: &Value, bytes: usize) -> Value {
    match bytes {
        0 => block.clone(),
        _ => w.concat(&[&block.part(bytes..16), &block.part(0..bytes)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe;

    /// All functions, also those whose values no command answers.
    #[test]
    fn functions_of_the_test_sets() {
        let sets: Vec<Vec<&str>> = include_str!("milenage/test_sets.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split(' ').collect())
            .collect();
        assert_eq!(sets.len(), 20);
        for set in sets {
            let bytes = |at: usize| hex::decode(set[at]).expect("hexadecimal");
            let keys = [("aes-128", bytes(0)), ("aes-128", bytes(4))];
            let public = [bytes(1), bytes(2), bytes(3)].concat();
            let found = probe::answer(&keys, public, |w, keys| {
                let milenage = Milenage::new(w, keys, OperatorValue::Op);
                let (sequence, management) = (w.public(6), w.public(2));
                let out1 = milenage.out1(w, &sequence, &management);
                let [out2, out3, out4, out5] = [2, 3, 4, 5].map(|which| milenage.out(w, which));
                let (f2, f5, again) = (out2.part(8..16), out2.part(0..6), out5.part(0..6));
                for value in [&milenage.opc, &out1, &f2, &f5, &out3, &out4, &again] {
                    w.answer(value);
                }
            });
            assert_eq!(found, set[5..].concat());
        }
    }
}

//! The keys of one transaction from those of a card.
//!
//! What is public is used: the common session key (EMV Book 2, annex A1.3), the session key of M/Chip, the
//! tree of EMV 2000 (EMV 4.1 Book 2, annex A1.3), the key of Visa's scripts, and the card's key itself (Visa
//! cryptogram version 10, American Express).

use serde::{Deserialize, Serialize};

use crate::wiring::{Value, Wiring};

/// Branches at each node of the tree of EMV 2000. It is so high that there is a key for every counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Branches {
    /// Two, and 16 levels.
    Two,
    /// Four, and 8 levels: what the standard recommends.
    Four,
}

impl Branches {
    fn number(self) -> u16 {
        if self == Branches::Two { 2 } else { 4 }
    }

    fn levels(self) -> u32 {
        if self == Branches::Two { 16 } else { 8 }
    }
}

/// How a card's key becomes that of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionKey {
    /// Not at all: cryptogram version 10 of Visa, and American Express. Never for PINs.
    CardKey,
    /// The common session key for application cryptograms.
    Common {
        /// The application transaction counter (ATC).
        #[serde(with = "crate::hexadecimal")]
        counter: [u8; 2],
    },
    /// The session key of M/Chip 2 for application cryptograms (Mastercard SKD).
    Mastercard {
        /// The application transaction counter (ATC).
        #[serde(with = "crate::hexadecimal")]
        counter: [u8; 2],
        /// The terminal's unpredictable number.
        #[serde(with = "crate::hexadecimal")]
        unpredictable: [u8; 4],
    },
    /// The common session key for scripts, from an application cryptogram. M/Chip uses it, too.
    Cryptogram {
        /// The cryptogram of the transaction, or what counts scripts up from it.
        #[serde(with = "crate::hexadecimal")]
        cryptogram: [u8; 8],
    },
    /// The key of Visa's scripts.
    VisaScript {
        /// The application transaction counter (ATC).
        #[serde(with = "crate::hexadecimal")]
        counter: [u8; 2],
    },
    /// The tree of EMV 2000.
    Tree {
        /// The application transaction counter (ATC).
        #[serde(with = "crate::hexadecimal")]
        counter: [u8; 2],
        /// Its shape.
        branches: Branches,
    },
}

impl SessionKey {
    /// A part of the name of a circuit.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            SessionKey::CardKey => "card-key",
            SessionKey::VisaScript { .. } => "visa-script",
            SessionKey::Tree { branches: Branches::Two, .. } => "tree-2",
            SessionKey::Tree { branches: Branches::Four, .. } => "tree-4",
            _ => "common",
        }
    }

    /// Whether a message of so many bytes, filled up, may be authenticated.
    ///
    /// The MAC of a single block is its encryption. Under the card's own key, somebody who chooses the block
    /// would get the halves of a session key in this way. So there it takes two blocks.
    pub(crate) fn check_message(&self, padded_bytes: usize) -> Result<(), String> {
        match self {
            SessionKey::CardKey if padded_bytes <= 8 => {
                Err("under the card's own key a message has more than one block".into())
            }
            _ => Ok(()),
        }
    }

    /// The block whose third byte differs for the two halves of the common key.
    fn diversification(&self) -> Option<[u8; 8]> {
        match self {
            SessionKey::Common { counter: [a, b] } => Some([*a, *b, 0, 0, 0, 0, 0, 0]),
            SessionKey::Mastercard { counter: [a, b], unpredictable: [c, d, e, f] } => {
                Some([*a, *b, 0, 0, *c, *d, *e, *f])
            }
            SessionKey::Cryptogram { cryptogram } => Some(*cryptogram),
            _ => None,
        }
    }

    pub(crate) fn public(&self) -> Vec<u8> {
        if let Some(block) = self.diversification() {
            return [0xf0, 0x0f]
                .map(|third| [block[0], block[1], third, block[3], block[4], block[5], block[6], block[7]])
                .concat();
        }
        match self {
            SessionKey::VisaScript { counter: [a, b] } => {
                let mut mask = [0; 16];
                (mask[6], mask[7], mask[14], mask[15]) = (*a, *b, !a, !b);
                mask.into()
            }
            SessionKey::Tree { counter, branches } => path(u16::from_be_bytes(*counter), *branches),
            _ => Vec::new(),
        }
    }

    /// The key of the transaction.
    pub(crate) fn derive(&self, w: &mut Wiring, card_key: &Value) -> Value {
        match self {
            SessionKey::CardKey => card_key.clone(),
            SessionKey::VisaScript { .. } => {
                let mask = w.public(16);
                w.xor(card_key, &mask)
            }
            SessionKey::Tree { branches, .. } => {
                let blocks: Vec<Value> = (0..branches.levels()).map(|_| w.public(1)).collect();
                tree(w, card_key, &blocks)
            }
            _ => {
                let blocks = w.public(16);
                crypt_halves(w, card_key, &blocks)
            }
        }
    }

    /// Blocks of the derivation.
    pub(crate) fn blocks(&self) -> u64 {
        match self {
            SessionKey::CardKey | SessionKey::VisaScript { .. } => 0,
            SessionKey::Tree { branches, .. } => 2 * u64::from(branches.levels()),
            _ => 2,
        }
    }
}

/// Two blocks, encrypted under a key.
fn crypt_halves(w: &mut Wiring, key: &Value, blocks: &Value) -> Value {
    let cipher = w.cipher("3des-ede2");
    let key = w.expand(&cipher, key);
    let halves = [w.encrypt(&key, &blocks.part(0..8)), w.encrypt(&key, &blocks.part(8..16))];
    w.concat(&[&halves[0], &halves[1]])
}

/// The branch at each level, from the root.
fn path(counter: u16, branches: Branches) -> Vec<u8> {
    let number = branches.number();
    let branch = |below: u32| (u32::from(counter) / u32::from(number).pow(below) % u32::from(number)) as u8;
    (0..branches.levels()).rev().map(branch).collect()
}

/// A node's key is the encryption of its grandparent's under its parent's, the branch added. The root is the
/// card's key, and its parent zero. The grandparent of the last is added to it.
fn tree(w: &mut Wiring, card_key: &Value, branches: &[Value]) -> Value {
    let (mut parent, mut grandparent) = (card_key.clone(), w.constant(&[0; 16]));
    for (level, branch) in branches.iter().enumerate() {
        let (zeros, right) = (w.constant(&[0; 7]), w.constant(&[0, 0, 0, 0, 0, 0, 0, 0xf0]));
        let left = w.concat(&[&zeros, branch]);
        let right = w.xor(&left, &right);
        let both = w.concat(&[&left, &right]);
        let blocks = w.xor(&grandparent, &both);
        let key = crypt_halves(w, &parent, &blocks);
        if level + 1 == branches.len() {
            return w.xor(&key, &grandparent);
        }
        (grandparent, parent) = (parent, key);
    }
    parent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe;

    /// The tests of `pyemv` 1.5. They set the parity of the key, which counts for nothing.
    #[test]
    fn keys_of_the_tree() {
        let card_key = hex::decode("0123456789abcdef0123456789abcdef").expect("hexadecimal");
        for (counter, branches, key) in [
            ([0, 0], Branches::Four, "80bf3145aecb948a5201dab9ef469875"),
            ([0, 0], Branches::Two, "86ad9732d5a192a749adce31919dae8a"),
            ([0, 0xff], Branches::Four, "981f9d208ae6132cbc8a7c97f42a5445"),
            ([0, 0xff], Branches::Two, "1f54f492ef104580b0f4b0f8910d0438"),
            ([0xff, 0xff], Branches::Four, "d93d7a6b70f867615d4aab79bf235b62"),
            ([0xff, 0xff], Branches::Two, "f83e499ef786c20bc41310a176e3f84f"),
        ] {
            let session_key = SessionKey::Tree { counter, branches };
            let public = [card_key.clone(), session_key.public()].concat();
            let found = probe::answer(&[], public, |w, _| {
                let card_key = w.public(16);
                let key = session_key.derive(w, &card_key);
                w.answer(&key);
            });
            let found = hex::decode(found).expect("hexadecimal");
            let key = hex::decode(key).expect("hexadecimal");
            assert!(found.iter().zip(&key).all(|(x, y)| x >> 1 == y >> 1), "{counter:?} {branches:?}");
        }
    }
}

//! A card's key for who personalizes the card: derived, and encrypted under a key of theirs.

use polyclave_cipher::{Circuit, key_wrap};
use serde::{Deserialize, Serialize};

use crate::emv::{EmvCard, card_key};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::purpose::Purpose;
use crate::wiring::Wiring;

/// Bytes of a card's key.
const KEY_BYTES: usize = 16;
/// Bytes of a check value.
const CHECK_VALUE: usize = 3;

/// Derives a card's key. Keys: an issuer's master key, the personalization key. Answers the key, of odd
/// parity, encrypted in ECB under Triple DES or wrapped (RFC 3394) under AES, and then the first three bytes
/// of what the key makes of a block of zeros.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueCardKey {
    /// The card.
    pub card: EmvCard,
}

impl Payment for IssueCardKey {
    fn kind(&self) -> &'static str {
        "issue-card-key"
    }

    fn roles(&self) -> Vec<Role> {
        let master = |purpose: &Purpose| {
            let of_cards = [Purpose::EmvCryptograms, Purpose::EmvConfidentiality, Purpose::EmvIntegrity];
            let of_values = [Purpose::EmvDcvv, Purpose::EmvCvc3];
            of_cards.contains(purpose) || of_values.contains(purpose)
        };
        let personalization = |purpose: &Purpose| *purpose == Purpose::Personalization;
        vec![
            Role { name: "master key of an issuer", takes: master },
            Role { name: "personalization key", takes: personalization },
        ]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        self.card.check()
    }

    fn issues(&self) -> bool {
        true
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        "issue-card-key".into()
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let kek = &expanded[1];
        let key = EmvCard::key(&mut w, &expanded[0]);
        let wrapped = match kek.cipher.block_bytes {
            16 => w.wrap(kek, &key),
            _ => {
                let halves = [w.encrypt(kek, &key.part(0..8)), w.encrypt(kek, &key.part(8..16))];
                w.concat(&[&halves[0], &halves[1]])
            }
        };
        let cipher = w.cipher("3des-ede2");
        let (card, zeros) = (w.expand(&cipher, &key), w.constant(&[0; 8]));
        let check_value = w.encrypt(&card, &zeros);
        w.answer(&wrapped);
        w.answer(&check_value.part(0..CHECK_VALUE));
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        self.card.public()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        let wrapping = match keys[1].cipher.block_bytes {
            16 => key_wrap::blocks(key_wrap::Padding::None, KEY_BYTES),
            _ => 2,
        };
        vec![card_key::BLOCKS + 1, wrapping]
    }
}

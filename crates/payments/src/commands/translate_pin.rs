//! A PIN block under one key becomes a block under another, perhaps in another format.
//!
//! Only some pairs of formats are allowed (PCI PIN, requirement 3; ISO 9564-1, table 2). A block that is
//! bound to a card number stays bound to the same one: who could change the number, or drop it, could find
//! PINs (Clulow 2003; Berkman and Ostrovsky 2007).

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::card::Pan;
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::pin_block::{EncryptedPin, OutgoingPin, PinFormat};
use crate::wiring::Wiring;

/// Translates a PIN. Keys: the incoming PIN key, the outgoing one. Answers the block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslatePin {
    /// The block as it came.
    pub incoming: EncryptedPin,
    /// The card, unless neither format is bound to one.
    pub pan: Option<Pan>,
    /// How it goes on.
    pub outgoing: OutgoingPin,
}

/// Whether a format may become another: never a bound block one that is not bound.
fn is_allowed(incoming: PinFormat, outgoing: PinFormat) -> bool {
    outgoing.binds_pan() || !incoming.binds_pan()
}

impl Payment for TranslatePin {
    fn kind(&self) -> &'static str {
        "translate-pin"
    }

    fn roles(&self) -> Vec<Role> {
        vec![self.incoming.role(), self.outgoing.role()]
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)?;
        let (from, to) = (self.incoming.format, self.outgoing.format);
        if !is_allowed(from, to) {
            return Err(format!("PIN blocks of {from} are not translated to {to}"));
        }
        if self.pan.is_none() && to.binds_pan() {
            return Err(format!("PIN blocks of {to} need the card number"));
        }
        self.incoming.check(&keys[0])?;
        self.outgoing.check(&keys[1])
    }

    fn counted(&self) -> Vec<usize> {
        vec![0]
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("translate-pin-{}-to-{}", self.incoming.name(), self.outgoing.name())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        let pin = self.incoming.read(&mut w, &expanded[0], None);
        let block = self.outgoing.write(&mut w, &expanded[1], &pin);
        w.answer(&block);
        w.finish()
    }

    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8> {
        let pan = self.pan.as_ref();
        [self.incoming.public(&keys[0], pan), self.outgoing.public(&keys[1], pan)].concat()
    }

    fn random_bytes(&self) -> usize {
        self.outgoing.format.random_bytes()
    }

    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.incoming.blocks(&keys[0]), self.outgoing.blocks(&keys[1])]
    }
}

//! Card verification values (CVV, CVV2, iCVV; CVC of Mastercard by the same method): the card number, the
//! date and the service code are encrypted, and the first digits of the result are taken (IBM z/OS ICSF,
//! "Visa CVV-generation method").

use polyclave_cipher::Wire;
use serde::{Deserialize, Serialize};

use crate::card::{Digits, Pan, pack};
use crate::decimalize::{MOST, decimalized};
use crate::payment::Role;
use crate::pin_reference::check_length;
use crate::purpose::Purpose;
use crate::wiring::{Key, Wiring};

/// Bytes of the two blocks.
const BYTES: usize = 16;

/// How many digits a value can have.
pub(crate) const LENGTHS: std::ops::RangeInclusive<usize> = 1..=MOST;

/// What a card verification value is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CardData {
    /// The number.
    pub pan: Pan,
    /// The date of expiry, four digits, in the order that the issuer uses (mostly YYMM).
    pub expiry: Digits,
    /// Three digits: those of the magnetic stripe for CVV, 000 for CVV2, 999 for iCVV.
    pub service_code: Digits,
}

impl CardData {
    pub(crate) fn role() -> Role {
        let takes = |purpose: &Purpose| *purpose == Purpose::CardVerification;
        Role { name: "card verification key", takes }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        check_length(&self.expiry, "a date of expiry", 4..=4)?;
        check_length(&self.service_code, "a service code", 3..=3)
    }

    pub(crate) fn public(&self) -> Vec<u8> {
        let digits = [self.pan.digits(), &self.expiry, &self.service_code].map(Digits::as_str).concat();
        pack(&format!("{digits:0<32}"))
    }

    /// The first digits.
    pub(crate) fn value(w: &mut Wiring, key: &Key, count: usize) -> Vec<Vec<Wire>> {
        let data = w.public(BYTES);
        let left = w.single(key, 0);
        let block = w.encrypt(&left, &data.part(0..8));
        let block = w.xor(&block, &data.part(8..16));
        let block = w.encrypt(key, &block);
        let bits = w.bits(&block);
        decimalized(w, &bits, count)
    }

    /// Blocks: one of DES, one of Triple DES.
    pub(crate) const BLOCKS: u64 = 2;
}

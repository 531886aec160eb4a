//! The PIN verification value of Visa (as in "Visa PIN Verification Value" of the IBM z/OS ICSF guide, and in
//! AWS Payment Cryptography): the transformed security parameter is encrypted under the verification key, and
//! the first four digits of the result are taken.
//!
//! The parameter is 11 digits of the card number, the index of the key, and the first four digits of the PIN.

use polyclave_cipher::Wire;

use crate::card::{Digits, Pan, pack};
use crate::decimalize::decimalized;
use crate::payment::Role;
use crate::wiring::{Key, Value, Wiring};

use super::is_for_visa;

/// Digits of a PVV, and of the PIN that count.
pub(crate) const DIGITS: usize = 4;

/// Digits of the card number in the parameter: the last ones before the check digit.
const PAN_DIGITS: usize = 11;

pub(crate) fn role() -> Role {
    Role { name: "PIN verification key", takes: is_for_visa }
}

pub(crate) fn check_index(index: u8) -> Result<(), String> {
    if index < 10 { Ok(()) } else { Err("the index of a PIN verification key is a digit".into()) }
}

/// What [`value`] takes.
pub(crate) fn public(pan: &Pan, index: u8) -> Vec<u8> {
    pack(&format!("{}{index}", pan.before_check_digit(PAN_DIGITS)))
}

/// What [`require`] takes.
pub(crate) fn public_value(value: &Digits) -> Vec<u8> {
    pack(value.as_str())
}

/// The PVV of the first digits of a PIN: four nibbles.
pub(crate) fn value(w: &mut Wiring, key: &Key, pin: &[Vec<Wire>]) -> Vec<Vec<Wire>> {
    let fixed = w.public(PAN_DIGITS.div_ceil(2));
    let parameter = w.concat(&[&fixed, &Value::of_bits(pin.concat())]);
    let encrypted = w.encrypt(key, &parameter);
    let bits = w.bits(&encrypted);
    decimalized(w, &bits, DIGITS)
}

/// The condition that a PVV is the public one.
pub(crate) fn require(w: &mut Wiring, value: &[Vec<Wire>]) {
    let expected = w.public(DIGITS / 2);
    let difference = w.xor(&Value::of_bits(value.concat()), &expected);
    w.require_zero_value(&difference);
}

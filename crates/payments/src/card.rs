//! Numbers of cards, and other digits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Decimal digits, 1 to 32. Logs show only how many: they can be a card verification value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digits(String);

impl Digits {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many there are. Never none.
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Each as a number.
    pub fn values(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.bytes().map(|c| c - b'0')
    }
}

impl FromStr for Digits {
    type Err = String;

    fn from_str(text: &str) -> Result<Digits, String> {
        match (1..=32).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit()) {
            true => Ok(Digits(text.into())),
            false => Err("1 to 32 decimal digits are expected".into()),
        }
    }
}

impl TryFrom<String> for Digits {
    type Error = String;

    fn try_from(text: String) -> Result<Digits, String> {
        text.parse()
    }
}

impl From<Digits> for String {
    fn from(digits: Digits) -> String {
        digits.0
    }
}

impl fmt::Debug for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} digits", self.0.len())
    }
}

/// The number of a card (primary account number): 12 to 19 digits. Logs show the first six and the last four.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pan(Digits);

impl Pan {
    /// All digits.
    pub fn digits(&self) -> &Digits {
        &self.0
    }

    /// The PAN field of PIN blocks in formats 0 and 3: the last 12 digits without the check digit
    /// (ISO 9564-1, section 9.3.2.3).
    pub fn field(&self) -> [u8; 8] {
        let last = self.before_check_digit(12);
        pack(&format!("0000{last:0>12}")).try_into().expect("16 digits are 8 bytes")
    }

    /// The PAN field of PIN blocks in format 4: the length over 12, all digits, zeros (ISO 9564-1, section
    /// 9.4.2.3).
    pub fn long_field(&self) -> [u8; 16] {
        let digits = format!("{}{}", self.0.len() - 12, self.0.as_str());
        pack(&format!("{digits:0<32}")).try_into().expect("32 digits are 16 bytes")
    }

    /// The last `count` digits of those before the check digit.
    pub fn before_check_digit(&self, count: usize) -> &str {
        let digits = &self.0.as_str()[..self.0.len() - 1];
        &digits[digits.len().saturating_sub(count)..]
    }
}

impl FromStr for Pan {
    type Err = String;

    fn from_str(text: &str) -> Result<Pan, String> {
        let wrong = || "a card number has 12 to 19 digits".to_string();
        match (12..=19).contains(&text.len()) {
            true => text.parse().map(Pan).map_err(|_| wrong()),
            false => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Pan {
    type Error = String;

    fn try_from(text: String) -> Result<Pan, String> {
        text.parse()
    }
}

impl From<Pan> for String {
    fn from(pan: Pan) -> String {
        pan.0.into()
    }
}

impl fmt::Debug for Pan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.as_str();
        write!(f, "{}..{}", &digits[..6], &digits[digits.len() - 4..])
    }
}

/// Digits, two a byte.
///
/// # Panics
/// If they are no hexadecimal digits, or of an odd number.
pub(crate) fn pack(digits: &str) -> Vec<u8> {
    let value = |c: &u8| char::from(*c).to_digit(16).expect("a hexadecimal digit") as u8;
    digits.as_bytes().chunks(2).map(|pair| value(&pair[0]) << 4 | value(&pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_pan_is_shortened() {
        let pan: Pan = "4123456789012345".parse().expect("a PAN");
        assert_eq!(format!("{pan:?}"), "412345..2345");
        assert!("12345678901".parse::<Pan>().is_err());
        assert!("12345678901234567890".parse::<Pan>().is_err());
        assert!("123456789012345x".parse::<Pan>().is_err());
    }

    /// ISO 9564-1: the PAN fields of formats 0 and 4.
    #[test]
    fn fields_of_pins_blocks() {
        let pan: Pan = "43219876543210987".parse().expect("a PAN");
        assert_eq!(pan.field(), [0x00, 0x00, 0x98, 0x76, 0x54, 0x32, 0x10, 0x98]);
        let long = [0x54, 0x32, 0x19, 0x87, 0x65, 0x43, 0x21, 0x09, 0x87];
        assert_eq!(pan.long_field()[..9], long);
        assert_eq!(pan.long_field()[9..], [0; 7]);
        let short: Pan = "123456789012".parse().expect("a PAN");
        assert_eq!(short.field(), [0, 0, 0x01, 0x23, 0x45, 0x67, 0x89, 0x01]);
    }
}

//! What a key is for. It is decided when the key is made, and never changes.

use std::fmt;
use std::str::FromStr;

use polyclave_cipher::Cipher;
use serde::{Deserialize, Serialize};

/// Which digit each hexadecimal digit becomes in the method of IBM 3624.
///
/// It belongs to the key: whoever chooses the table for a verification finds PINs with a few questions
/// (Bond and Zielinski, "Decimalisation table attacks for PIN cracking", 2003). For the same reason a table
/// needs several different digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DecimalizationTable([u8; 16]);

/// A table with fewer different digits gives PINs that are easy to guess (a rule of many HSMs).
const LEAST_DIGITS: usize = 8;

impl DecimalizationTable {
    /// The digits, by hexadecimal digit.
    pub fn digits(&self) -> &[u8; 16] {
        &self.0
    }
}

impl FromStr for DecimalizationTable {
    type Err = String;

    fn from_str(text: &str) -> Result<DecimalizationTable, String> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|c| c - b'0').collect();
        let wrong = "a decimalization table has 16 decimal digits";
        let digits: [u8; 16] = digits.try_into().map_err(|_| wrong)?;
        if text.len() != 16 {
            return Err(wrong.into());
        }
        let mut distinct = digits.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        match distinct.len() < LEAST_DIGITS {
            true => Err(format!("a decimalization table has at least {LEAST_DIGITS} different digits")),
            false => Ok(DecimalizationTable(digits)),
        }
    }
}

impl TryFrom<String> for DecimalizationTable {
    type Error = String;

    fn try_from(text: String) -> Result<DecimalizationTable, String> {
        text.parse()
    }
}

impl From<DecimalizationTable> for String {
    fn from(table: DecimalizationTable) -> String {
        table.to_string()
    }
}

impl fmt::Display for DecimalizationTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|digit| write!(f, "{digit}"))
    }
}

/// What one key is for. A key has one purpose, fixed for ever. It serves the commands for it and nothing
/// else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// PIN blocks in a zone (ISO 9564).
    PinEncryption,
    /// PIN verification values of Visa (PVV).
    PinVerificationVisa,
    /// PINs and offsets by the method of IBM 3624.
    PinVerificationIbm3624 {
        /// How its ciphertexts become digits.
        table: DecimalizationTable,
    },
    /// Card verification values: CVV, CVV2, iCVV, and CVC of Mastercard by the same method.
    CardVerification,
    /// The retail MAC (ISO 9797-1, algorithm 3).
    MacRetail,
    /// CMAC (SP 800-38B, ISO 9797-1 algorithm 5).
    MacCmac,
    /// The base derivation key of DUKPT (ANSI X9.24).
    DukptBase,
    /// Data of clients, encrypted and decrypted.
    DataEncryption,
    /// The issuer's master key for application cryptograms (EMV Book 2, section 8).
    EmvCryptograms,
    /// The issuer's master key for secure messaging, confidentiality (EMV Book 2, section 9.3).
    EmvConfidentiality,
    /// The issuer's master key for secure messaging, integrity (EMV Book 2, section 9.2).
    EmvIntegrity,
    /// Under it card keys go to who personalizes cards.
    Personalization,
    /// The key K of a SIM card for Milenage (TS 35.206).
    MilenageSubscriber,
    /// The value OPc of a SIM card, or OP of an operator, as a key of AES-128.
    MilenageOperator,
    /// The key NwkKey of a device (LoRaWAN 1.1), or its AppKey in LoRaWAN 1.0.
    LorawanNetwork,
    /// The key AppKey of a device (LoRaWAN 1.1).
    LorawanApplication,
    /// CBC-MAC (ISO 9797-1, algorithm 1).
    MacCbc,
    /// The issuer's master key for dCVV of Visa.
    EmvDcvv,
    /// The issuer's master key for CVC3 of Mastercard.
    EmvCvc3,
}

/// What begins the name of a purpose with a table.
const IBM3624: &str = "pin-verification-ibm3624:";

/// Names of purposes without a table.
const NAMES: [(Purpose, &str); 18] = [
    (Purpose::PinEncryption, "pin-encryption"),
    (Purpose::PinVerificationVisa, "pin-verification-visa"),
    (Purpose::CardVerification, "card-verification"),
    (Purpose::MacRetail, "mac-retail"),
    (Purpose::MacCmac, "mac-cmac"),
    (Purpose::DukptBase, "dukpt-base"),
    (Purpose::DataEncryption, "data-encryption"),
    (Purpose::EmvCryptograms, "emv-cryptograms"),
    (Purpose::EmvConfidentiality, "emv-confidentiality"),
    (Purpose::EmvIntegrity, "emv-integrity"),
    (Purpose::Personalization, "personalization"),
    (Purpose::MilenageSubscriber, "milenage-subscriber"),
    (Purpose::MilenageOperator, "milenage-operator"),
    (Purpose::LorawanNetwork, "lorawan-network"),
    (Purpose::LorawanApplication, "lorawan-application"),
    (Purpose::MacCbc, "mac-cbc"),
    (Purpose::EmvDcvv, "emv-dcvv"),
    (Purpose::EmvCvc3, "emv-cvc3"),
];

const TDES2: &str = "3des-ede2";
const TDES3: &str = "3des-ede3";
const AES: [&str; 3] = ["aes-128", "aes-192", "aes-256"];

impl Purpose {
    /// Every purpose; the method of IBM 3624 with this table.
    pub fn all(table: DecimalizationTable) -> impl Iterator<Item = Purpose> {
        let others = NAMES.iter().map(|(purpose, _)| *purpose);
        others.chain([Purpose::PinVerificationIbm3624 { table }])
    }

    /// Whether a key of this cipher can be for it.
    pub fn check(&self, cipher: &Cipher) -> Result<(), String> {
        let name = cipher.name.as_str();
        let fits = match self {
            Purpose::PinVerificationVisa
            | Purpose::PinVerificationIbm3624 { .. }
            | Purpose::CardVerification
            | Purpose::MacRetail
            | Purpose::EmvCryptograms
            | Purpose::EmvDcvv
            | Purpose::EmvCvc3
            | Purpose::EmvConfidentiality
            | Purpose::EmvIntegrity => name == TDES2,
            Purpose::DukptBase => name == TDES2 || AES.contains(&name),
            Purpose::PinEncryption
            | Purpose::MacCmac
            | Purpose::MacCbc
            | Purpose::DataEncryption
            | Purpose::Personalization => [TDES2, TDES3].contains(&name) || AES.contains(&name),
            Purpose::MilenageSubscriber
            | Purpose::MilenageOperator
            | Purpose::LorawanNetwork
            | Purpose::LorawanApplication => name == AES[0],
        };
        match fits {
            true => Ok(()),
            false => Err(format!("a key for {self} cannot be of {name}")),
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Purpose::PinVerificationIbm3624 { table } = self {
            return write!(f, "{IBM3624}{table}");
        }
        let (_, name) = NAMES.iter().find(|(purpose, _)| purpose == self).expect("every purpose has a name");
        f.write_str(name)
    }
}

/// A text that names no purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPurpose(String);

impl fmt::Display for UnknownPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnknownPurpose {}

impl FromStr for Purpose {
    type Err = UnknownPurpose;

    fn from_str(text: &str) -> Result<Purpose, UnknownPurpose> {
        if let Some(table) = text.strip_prefix(IBM3624) {
            let table = table.parse().map_err(UnknownPurpose)?;
            return Ok(Purpose::PinVerificationIbm3624 { table });
        }
        let names: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
        let unknown = || format!("no purpose '{text}'; choose one of {IBM3624}TABLE, {}", names.join(", "));
        let known = NAMES.iter().find(|(_, name)| *name == text);
        known.map(|(purpose, _)| *purpose).ok_or_else(|| UnknownPurpose(unknown()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let table = "0123456789012345".parse().expect("a table");
        for purpose in Purpose::all(table) {
            assert_eq!(purpose.to_string().parse(), Ok(purpose));
        }
        assert!("pin".parse::<Purpose>().is_err());
    }

    #[test]
    fn tables_are_16_digits_of_at_least_8_kinds() {
        for wrong in ["012345678901234", "01234567890123456", "012345678901234x", "0000000000000001"] {
            assert!(wrong.parse::<DecimalizationTable>().is_err(), "{wrong}");
        }
        assert!("0123456701234567".parse::<DecimalizationTable>().is_ok());
        assert!("0123456001234560".parse::<DecimalizationTable>().is_err());
    }
}

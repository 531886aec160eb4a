//! Keys that people bring in parts: each is a component, the key is their sum, and nobody sees it.

use polyclave_cipher::Cipher;
use polyclave_payments::Purpose;
use serde::{Deserialize, Serialize};

use super::{Mode, NewKey};

/// The most components of a key.
pub const MAX_COMPONENTS: u8 = 9;

/// For how long the nodes keep a component that is not combined: a week.
pub const COMPONENT_SECONDS: u64 = 7 * 24 * 3600;

/// What stands between the name of a key and the number of a component.
const SUFFIX: &str = ".component-";

/// A component of a key, as nodes keep it: with the name of [`component_name`] and the properties of the key.
/// It can be used for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// From 1 on.
    pub number: u8,
    /// How many the key has.
    pub of: u8,
    /// Digest of the certificate of the client that gave it.
    pub giver: [u8; 32],
}

/// The name of a component of a key.
pub fn component_name(key: &str, number: u8) -> String {
    format!("{key}{SUFFIX}{number}")
}

/// The key to which a component with this name belongs; `None` if it is the name of a key.
pub fn key_of_component(name: &str) -> Option<&str> {
    let (key, number) = name.rsplit_once(SUFFIX)?;
    (number.len() == 1 && number.bytes().all(|c| c.is_ascii_digit())).then_some(key)
}

/// What somebody expects of a key that they cannot see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCheck {
    /// Which check value.
    pub kind: CheckKind,
    /// Its bytes, as many as this kind has for the cipher.
    pub value: Vec<u8>,
}

/// Check values of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// The first bytes of the CMAC of a block of zeros: 5 for AES (ANSI X9.24-1, annex A), 3 for ciphers with
    /// smaller blocks.
    Cmac,
    /// The first 3 bytes of the encryption of a block of zeros, as older systems have it.
    Zeros,
}

/// Whether something follows from the encryption of zeros under a payment key: the subkeys of CMAC, or a part
/// of an answer for a SIM card. For other purposes it is the usual check value.
fn is_undone_by_zeros(purpose: Purpose) -> bool {
    matches!(
        purpose,
        Purpose::MacCmac
            | Purpose::MilenageSubscriber
            | Purpose::MilenageOperator
            | Purpose::LorawanNetwork
            | Purpose::LorawanApplication
    )
}

/// Whether parity bits of DES matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parity {
    /// They stay as they are.
    Ignore,
    /// They are made right.
    Set,
    /// They must be right.
    Require,
}

/// Why the encryption of zeros must not be shown of a key; `None` if it may be. It is the hash key of GCM,
/// and the subkeys of CMAC follow from it. A cipher that takes a tweak has no one encryption of zeros.
pub fn why_no_zeros(key: &NewKey, cipher: &Cipher) -> Option<String> {
    if cipher.tweak_bytes != 0 {
        return Some(format!("{} takes a tweak: take the check value by CMAC", cipher.name));
    }
    let only_encrypts = |mode: &Mode| mode.encrypts() && !mode.authenticates();
    let undone = !key.modes.iter().all(only_encrypts)
        || key.usage.iter().any(|usage| usage.needs_subkeys())
        || key.purpose().is_some_and(is_undone_by_zeros);
    undone.then(|| {
        "the encryption of zeros is not shown of a key that computes codes or derives, since secrets of these modes follow from it; \
         take the check value by CMAC"
            .into()
    })
}

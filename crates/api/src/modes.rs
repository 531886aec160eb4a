//! What each mode of operation takes: usages, ciphers, other modes beside it, options of a message, and
//! lengths. This is the only place that says so. Nodes refuse by it; clients, the command line, the gateway,
//! PKCS#11 and Python ask it before they ask the nodes.
//!
//! [`facts`] has one entry for each mode. [`pairs`] says which modes and usages one key may be made for
//! together, [`new_key`] whether a key can be made, [`options`] what a message may have, [`whole`] what fits
//! a mode that takes messages whole, and [`uses`] which mode and right a use of a key needs.

mod facts;
mod new_key;
mod options;
mod pairs;
mod usage;
mod uses;
mod whole;

use serde::{Deserialize, Serialize};

pub use facts::Choice;
pub use new_key::{
    MAX_BLOCKS, MAX_SMALL_BLOCKS, MAX_XAES_BLOCKS, check_description, check_new_key, most_blocks,
};
pub use options::MessageOption;
pub use pairs::{warnings, why_apart, why_usages_apart};
pub use usage::{Usage, modes_of, usage_of};

/// A mode of operation. Fixed for a key when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Galois/counter mode: also authenticates what it encrypts.
    Gcm,
    /// Counter mode.
    Ctr,
    /// Cipher block chaining.
    Cbc,
    /// A message authentication code; encrypts nothing.
    Cmac,
    /// Every block by itself: shows which blocks are equal.
    Ecb,
    /// Keys for single files, which the client encrypts by itself. Serves no other mode.
    Envelope,
    /// Key blocks of TR-31; encrypts nothing else.
    Tr31,
    /// Synthetic initial vector (RFC 5297): also authenticates, and needs no nonce. A key of two halves, for
    /// this mode alone.
    Siv,
    /// Counter mode with CBC-MAC (SP 800-38C): also authenticates.
    Ccm,
    /// Tokenization (SP 800-38G): a string of digits for another of the same length. Serves no other mode.
    Ff1,
    /// GCM with a synthetic initial vector (RFC 8452): also authenticates, and a nonce that comes twice shows
    /// only which messages are equal. Serves no other mode.
    #[serde(rename = "gcm-siv")]
    GcmSiv,
    /// XAES-256-GCM (C2SP): GCM with nonces of 24 bytes, and a key of its own for each. Serves no other mode.
    Xaes,
    /// HMAC with SHA-2 (FIPS 198-1): a message authentication code; encrypts nothing. Serves no other mode.
    Hmac,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 13] = [
        Mode::Gcm,
        Mode::Ctr,
        Mode::Cbc,
        Mode::Cmac,
        Mode::Ecb,
        Mode::Envelope,
        Mode::Tr31,
        Mode::Siv,
        Mode::Ccm,
        Mode::Ff1,
        Mode::GcmSiv,
        Mode::Xaes,
        Mode::Hmac,
    ];
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.facts().name)
    }
}

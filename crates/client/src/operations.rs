//! What users of a client ask for. Each file has one thing that nodes do, as calls of
//! [`Client`](crate::Client) or of a handle of a key.

mod approval;
pub(crate) mod encrypt;
pub(crate) mod envelope;
mod hmac;
mod keys;
pub(crate) mod listing;
mod mac;
mod otp;
mod pay;
mod random;
mod report;
mod requests;
mod rewrap;
pub(crate) mod sealed;
pub(crate) mod tokenize;
mod wrap;

pub use encrypt::KeyHandle;
pub use encrypt::aead::Aead;
pub use encrypt::blocks::{Blocks, Padding};
pub use encrypt::counter::{Counter, OnStart};
pub use encrypt::padding::{fill as pad, unfilled as unpadded};
pub use encrypt::pending::Pending;
pub use envelope::{ENVELOPE_MAGIC, EnvelopeHead, Spool};
pub use hmac::{check_value as hmac_check_value, key_block as hmac_key_block};
pub use keys::life::Withdrawal;
pub use listing::{Listed, Listing};
pub use otp::{OTP_DIGITS, one_time_password, totp_counter};
pub use pay::Paid;
pub use sealed::{HEAD, MAGIC, MAGIC_BOUND};
pub use tokenize::{Alphabet, Card, CardTemplate, Feistel, Tokenization, Tweaked};

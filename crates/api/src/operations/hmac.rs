//! Codes of HMAC, of many messages of one length at a time.

use serde::{Deserialize, Serialize};

/// What nodes know of the messages whose codes a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hmac {
    /// The length of each, at most [`MAX_CHAINED`](crate::MAX_CHAINED).
    pub bytes: u32,
    /// How many there are: 1 to [`MAX_CODES`](crate::MAX_CODES).
    pub messages: u32,
    /// Bytes of each code: its first ones, as many as [`code_bytes`](polyclave_cipher::hmac::code_bytes) of
    /// the key's hash has.
    pub code_bytes: u8,
}

impl Hmac {
    /// For the audit log, as the client says it.
    pub(super) fn audit(&self) -> String {
        format!("messages={} bytes={}", self.messages, self.bytes)
    }
}

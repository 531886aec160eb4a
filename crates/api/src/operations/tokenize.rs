//! Values for tokens, and tokens for values.

use serde::{Deserialize, Serialize};

/// Values that are tokenized together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokenize {
    /// Digits of the alphabet, 2 to 36.
    pub radix: u32,
    /// Digits of each value.
    pub length: u32,
    /// One tweak for all values, or one for each. All have the same length, at most 64 bytes.
    pub tweaks: Vec<Vec<u8>>,
    /// How many values: 1 to [`MAX_VALUES`](crate::MAX_VALUES).
    pub values: u32,
    /// Whether tokens are inverted: then the rounds come in the reverse order.
    pub inverse: bool,
}

impl Tokenize {
    /// For the audit log. In which direction is what the client says.
    pub(super) fn audit(&self) -> String {
        format!("values={} inverse={}", self.values, self.inverse)
    }
}

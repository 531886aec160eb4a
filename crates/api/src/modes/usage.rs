//! What keys are used for.

use polyclave_payments::Purpose;
use serde::{Deserialize, Serialize};

use super::Mode;

/// What a key is for. Fixed when it is made. A client needs the right for it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Usage {
    /// Encrypt, in the key's modes.
    Encrypt,
    /// Decrypt, in the key's modes.
    Decrypt,
    /// Compute message authentication codes.
    Mac,
    /// Wrap keys that may be wrapped.
    Wrap,
    /// Unwrap keys.
    Unwrap,
    /// Derive keys.
    Derive,
    /// Give a client bytes that are derived from it.
    Kdf,
    /// Tokenize values and invert tokens: a client that may do one could do the other.
    Tokenize,
    /// Compute the payment commands for a purpose. A key has no other usage beside it, and no mode.
    Payment(Purpose),
}

impl Usage {
    /// All usages without payments.
    pub const ALL: [Usage; 8] = [
        Usage::Encrypt,
        Usage::Decrypt,
        Usage::Mac,
        Usage::Wrap,
        Usage::Unwrap,
        Usage::Derive,
        Usage::Kdf,
        Usage::Tokenize,
    ];

    /// Whether a key needs no mode for it.
    pub fn needs_no_mode(self) -> bool {
        matches!(self, Usage::Wrap | Usage::Unwrap | Usage::Derive | Usage::Kdf | Usage::Payment(_))
    }

    /// Whether nodes keep the subkeys of CMAC with a key of a block cipher for it.
    pub fn needs_subkeys(self) -> bool {
        matches!(self, Usage::Derive | Usage::Kdf)
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Usage::Encrypt => "encrypt",
            Usage::Decrypt => "decrypt",
            Usage::Mac => "mac",
            Usage::Wrap => "wrap",
            Usage::Unwrap => "unwrap",
            Usage::Derive => "derive",
            Usage::Kdf => "kdf",
            Usage::Tokenize => "tokenize",
            Usage::Payment(purpose) => return purpose.fmt(f),
        })
    }
}

/// A usage by its name, as people write it.
impl std::str::FromStr for Usage {
    type Err = String;

    fn from_str(word: &str) -> Result<Usage, String> {
        let word = word.trim().to_ascii_lowercase();
        if let Some(usage) = Usage::ALL.into_iter().find(|usage| usage.to_string() == word) {
            return Ok(usage);
        }
        let names = Usage::ALL.map(|usage| usage.to_string()).join(", ");
        word.parse().map(Usage::Payment).map_err(|e| {
            format!("there is no usage '{word}'; choose from {names}, or a purpose of payments: {e}")
        })
    }
}

/// Everything that keys of these modes can be used for, in order and without repeats.
pub fn usage_of(modes: &[Mode]) -> Vec<Usage> {
    let mut usage: Vec<Usage> = modes.iter().flat_map(|mode| mode.usages()).copied().collect();
    usage.sort();
    usage.dedup();
    usage
}

/// The modes of a key that was requested with only its usage, in order: gcm for data, and the only mode that
/// there is for codes and tokens.
pub fn modes_of(usage: &[Usage]) -> Vec<Mode> {
    let is_for = |mode: &Mode| mode.usages().iter().any(|of_mode| usage.contains(of_mode));
    [Mode::Gcm, Mode::Cmac, Mode::Ff1].into_iter().filter(is_for).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_usages_of_a_key_follow_from_each_other() {
        use Usage::{Decrypt, Encrypt, Mac, Tokenize, Unwrap, Wrap};
        assert_eq!(usage_of(&[Mode::Gcm, Mode::Cmac, Mode::Ecb]), [Encrypt, Decrypt, Mac]);
        assert_eq!(usage_of(&[Mode::Tr31]), [Wrap, Unwrap]);
        assert_eq!(modes_of(&[Decrypt]), [Mode::Gcm]);
        assert_eq!(modes_of(&[Encrypt, Mac, Tokenize]), [Mode::Gcm, Mode::Cmac, Mode::Ff1]);
        assert_eq!(modes_of(&[Wrap]), []);
    }
}

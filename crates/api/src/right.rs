//! What clients may be allowed to do.

use serde::{Deserialize, Serialize};

use super::Usage;

/// What a client may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Make keys.
    Generate,
    /// Import keys.
    Import,
    /// See names and properties of keys.
    List,
    /// Delete keys.
    Delete,
    /// Encrypt.
    Encrypt,
    /// Decrypt.
    Decrypt,
    /// Compute message authentication codes.
    Mac,
    /// Have keys that may be wrapped leave the nodes, wrapped under another key.
    Wrap,
    /// Have wrapped keys unwrapped into keys of the nodes.
    Unwrap,
    /// Derive keys of the nodes from others.
    Derive,
    /// Have random bytes, to which every node contributes.
    Random,
    /// Be given bytes that are derived from a key.
    Kdf,
    /// Change what keys may still be used for, whether they may be deleted, and their labels; and process
    /// data under a version whose key somebody may know.
    Configure,
    /// Have what was encrypted under one key encrypted under another, without seeing it.
    Rewrap,
    /// Tokenize values and invert tokens. It is one right, because each direction can be computed from what
    /// the nodes give for the other.
    Tokenize,
    /// Watch the nodes as an operator does: requests, refusals, faults, certificates, audit logs, and the
    /// names and budgets of all keys.
    Observe,
    /// Have payment commands computed that verify, or pass something on.
    Pay,
    /// Have payment commands computed that make something for a card or its holder: PINs, values of cards,
    /// keys of cards.
    Issue,
}

impl Right {
    /// All rights.
    pub const ALL: [Right; 18] = [
        Right::Generate,
        Right::Import,
        Right::List,
        Right::Delete,
        Right::Encrypt,
        Right::Decrypt,
        Right::Mac,
        Right::Wrap,
        Right::Unwrap,
        Right::Derive,
        Right::Random,
        Right::Kdf,
        Right::Configure,
        Right::Rewrap,
        Right::Tokenize,
        Right::Observe,
        Right::Pay,
        Right::Issue,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Right::Generate => "generate",
            Right::Import => "import",
            Right::List => "list",
            Right::Delete => "delete",
            Right::Encrypt => "encrypt",
            Right::Decrypt => "decrypt",
            Right::Mac => "mac",
            Right::Wrap => "wrap",
            Right::Unwrap => "unwrap",
            Right::Derive => "derive",
            Right::Random => "random",
            Right::Kdf => "kdf",
            Right::Configure => "configure",
            Right::Rewrap => "rewrap",
            Right::Tokenize => "tokenize",
            Right::Observe => "observe",
            Right::Pay => "pay",
            Right::Issue => "issue",
        }
    }

    /// Whether it is a right to something with a key, or with keys of some names.
    pub fn is_about_keys(self) -> bool {
        !matches!(self, Right::Random | Right::Observe)
    }

    /// What a key must be for, so that a client with this right can use it; `None` if the right is not about
    /// using keys.
    pub fn usage(self) -> Option<Usage> {
        match self {
            Right::Encrypt => Some(Usage::Encrypt),
            Right::Decrypt => Some(Usage::Decrypt),
            Right::Mac => Some(Usage::Mac),
            Right::Wrap => Some(Usage::Wrap),
            Right::Unwrap => Some(Usage::Unwrap),
            Right::Derive => Some(Usage::Derive),
            Right::Kdf => Some(Usage::Kdf),
            Right::Tokenize => Some(Usage::Tokenize),
            Right::Generate
            | Right::Import
            | Right::List
            | Right::Delete
            | Right::Random
            | Right::Configure
            | Right::Rewrap
            | Right::Observe
            | Right::Pay
            | Right::Issue => None,
        }
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

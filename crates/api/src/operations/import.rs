//! Keys that come from outside: from a client, in components of several people, and sealed to the nodes.

use serde::{Deserialize, Serialize};

use super::{Describe, Detail};
use crate::{KeyCheck, NewKey, Parity, Permission, Right, SealedImport};

/// Import a key from the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The key that is made.
    pub new: NewKey,
}

/// Give a component of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportComponent {
    /// The key, as it is to become.
    pub new: NewKey,
    /// Which component: from 1 on.
    pub number: u8,
    /// How many the key has.
    pub of: u8,
    /// The check value that the component must have.
    pub expected: Option<KeyCheck>,
}

/// Make a key of its components.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Combine {
    /// The name of the key.
    pub key: String,
    /// The check value that the key must have.
    pub expected: Option<KeyCheck>,
    /// What becomes of its parity bits.
    pub parity: Parity,
}

impl Describe for Import {
    fn kind(&self) -> &'static str {
        "import"
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Import, &self.new.name)]
    }

    fn audit(&self) -> Detail<'_> {
        Detail::of(&self.new.name)
    }

    fn in_words(&self) -> String {
        format!("import the key {:?} ({})", self.new.name, self.new.cipher)
    }
}

impl Describe for ImportComponent {
    fn kind(&self) -> &'static str {
        "import"
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Import, &self.new.name)]
    }

    fn audit(&self) -> Detail<'_> {
        Detail { key: &self.new.name, text: format!("component={}/{}", self.number, self.of) }
    }
}

impl Describe for Combine {
    fn kind(&self) -> &'static str {
        "combine"
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Import, &self.key)]
    }

    fn audit(&self) -> Detail<'_> {
        Detail::of(&self.key)
    }
}

impl Describe for SealedImport {
    fn kind(&self) -> &'static str {
        "import"
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Import, &self.new.name)]
    }

    fn audit(&self) -> Detail<'_> {
        Detail { key: &self.new.name, text: format!("sealed={}", hex::encode(self.nonce)) }
    }

    fn in_words(&self) -> String {
        format!("import the key {:?} ({}) that was sealed to the nodes", self.new.name, self.new.cipher)
    }
}

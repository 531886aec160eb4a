//! Keys that the nodes make by themselves: a new one, the next version of one, and a copy of one.

use serde::{Deserialize, Serialize};

use super::{Describe, Detail, KeyRef};
use crate::{Choice, Demand, Mode, NewKey, Permission, Right};

/// Make a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generate {
    /// The key that is made.
    pub new: NewKey,
}

/// Generate the next version of a key, which becomes the current one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotate {
    /// Its name.
    pub key: String,
}

/// Put a version of a key under a second name and id, for the same or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyKey {
    /// Its name.
    pub key: String,
    /// The id of the version.
    pub id: [u8; 16],
    /// The key that is made. What it is for, and how long, is at most what the other one is for.
    pub new: NewKey,
}

impl Describe for Generate {
    fn kind(&self) -> &'static str {
        "generate"
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Generate, &self.new.name)]
    }

    fn audit(&self) -> Detail<'_> {
        Detail::of(&self.new.name)
    }

    fn in_words(&self) -> String {
        format!("generate the key {:?} ({})", self.new.name, self.new.cipher)
    }
}

impl Describe for Rotate {
    fn kind(&self) -> &'static str {
        "rotate"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![KeyRef::current(&self.key)]
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Generate, &self.key)]
    }

    fn audit(&self) -> Detail<'_> {
        Detail::of(&self.key)
    }
}

impl Describe for CopyKey {
    fn kind(&self) -> &'static str {
        "copy"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![KeyRef::with_id(&self.key, Some(self.id))]
    }

    /// The rules for the copy's own name decide which clients use it, when and how much. So the client that
    /// makes it must be allowed each of its uses under the name of the key, in each of its modes, at all
    /// times and without limits.
    fn permissions(&self) -> Vec<Permission> {
        let (key, new) = (&self.key, &self.new);
        let mut asked = vec![Permission::of(Right::Generate, &new.name)];
        let is_for = |right: Right| right.usage().is_some_and(|usage| new.usage.contains(&usage));
        // A client that encrypts under nonces of its own can decrypt.
        let decrypts =
            |mode: Mode| new.caller_nonces && is_for(Right::Encrypt) && mode.choice() == Choice::Nonce;
        for right in Right::ALL {
            let always = |mode| Permission { mode, demand: Demand::Always, ..Permission::of(right, key) };
            match right {
                Right::Encrypt | Right::Decrypt | Right::Mac | Right::Tokenize => {
                    let is_wanted =
                        |mode: &&Mode| is_for(right) || right == Right::Decrypt && decrypts(**mode);
                    asked.extend(new.modes.iter().filter(is_wanted).map(|mode| always(Some(*mode))));
                }
                Right::Pay | Right::Issue if new.purpose().is_some() => asked.push(always(None)),
                _ if is_for(right) || right == Right::Wrap && new.wrappable => asked.push(always(None)),
                _ => {}
            }
        }
        asked
    }

    fn audit(&self) -> Detail<'_> {
        let text = format!("of={} id={}", self.key, hex::encode(self.id));
        Detail { key: &self.new.name, text }
    }
}

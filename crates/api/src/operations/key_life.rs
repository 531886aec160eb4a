//! Changes in the life of a key that is there.

use serde::{Deserialize, Serialize};

use super::{About, Describe, Detail, KeyRef};
use crate::{Permission, Right, Usage, VersionState};

/// Delete a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delete {
    /// Its name.
    pub key: String,
    /// One version that is not the current one; `None` for all of them.
    pub version: Option<u32>,
}

/// Move a version on to a later state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retire {
    /// The key's name.
    pub key: String,
    /// The version.
    pub version: u32,
    /// Its state from now on.
    pub state: VersionState,
}

/// Set which versions of a key compute, and whether it may be deleted, and withdraw what it was for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configure {
    /// Its name.
    pub key: String,
    /// Older versions compute nothing. At most the current version.
    pub least_version: u32,
    /// Whether clients may delete it.
    pub deletable: bool,
    /// Whether it may not be wrapped any more, for ever.
    pub withdraw_wrappable: bool,
    /// What it may not be used for any more, for ever: in order, without repeats.
    pub withdraw_usage: Vec<Usage>,
}

/// Replace what is written down beside a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribeKey {
    /// The key's name.
    pub key: String,
    /// The id of the version.
    pub id: [u8; 16],
    /// The latest revision at any node. Refused if it is another one.
    pub revision: u64,
    /// The label.
    pub label: String,
    /// The attributes.
    #[serde(with = "serde_bytes")]
    pub attributes: Vec<u8>,
}

impl Describe for Delete {
    fn kind(&self) -> &'static str {
        "delete"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![KeyRef { name: &self.key, about: self.version.map_or(About::Current, About::Version) }]
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Delete, &self.key)]
    }

    fn audit(&self) -> Detail<'_> {
        let text = self.version.map_or(String::new(), |version| format!("version={version}"));
        Detail { key: &self.key, text }
    }

    fn in_words(&self) -> String {
        let version = self.version.map_or(String::new(), |version| format!("version {version} of "));
        format!("delete {version}the key {:?} at all nodes, for ever", self.key)
    }
}

impl Describe for Retire {
    fn kind(&self) -> &'static str {
        "retire"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![KeyRef { name: &self.key, about: About::Version(self.version) }]
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Configure, &self.key)]
    }

    fn audit(&self) -> Detail<'_> {
        Detail { key: &self.key, text: format!("version={} state={}", self.version, self.state) }
    }
}

impl Describe for Configure {
    fn kind(&self) -> &'static str {
        "configure"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![KeyRef::current(&self.key)]
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Configure, &self.key)]
    }

    fn audit(&self) -> Detail<'_> {
        let mut text = format!("least_version={} deletable={}", self.least_version, self.deletable);
        if self.withdraw_wrappable {
            text += " withdrawn=wrappable";
        }
        self.withdraw_usage.iter().for_each(|usage| text += &format!(" withdrawn={usage}"));
        Detail { key: &self.key, text }
    }
}

impl Describe for DescribeKey {
    fn kind(&self) -> &'static str {
        "describe"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![KeyRef::with_id(&self.key, Some(self.id))]
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Configure, &self.key)]
    }

    fn audit(&self) -> Detail<'_> {
        Detail { key: &self.key, text: format!("id={}", hex::encode(self.id)) }
    }
}

//! Versions of a key: which one a request is for, and what changes in their lives.
//!
//! A request names the id of a version, or none, which means the current one. A caller names a version by its
//! number, as in `invoices@2` (no name has an `@`); the id is looked up at the nodes.

use std::collections::BTreeMap;

use polyclave_api::{KeyInfo, KeyVersion, Operation, Reply, Usage, VersionState, operations};

use crate::client::Client;
use crate::{Error, Result};

/// What a key is not for any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withdrawal {
    /// To leave the nodes, wrapped under another key.
    pub wrappable: bool,
    /// To be used in these ways; what the key was not for is no error.
    pub usage: Vec<Usage>,
}

impl Client {
    /// A version of a key by its id, if the caller names it by its number.
    pub(crate) fn resolved(&self, key: KeyVersion) -> Result<KeyVersion> {
        let Some((name, version)) = key.name.split_once('@') else { return Ok(key) };
        Ok((&self.version_numbered(name, version)?).into())
    }

    /// A version of a key by its number, as a caller writes it.
    pub(crate) fn version_numbered(&self, name: &str, version: &str) -> Result<KeyInfo> {
        let number = version.parse();
        let number = number.map_err(|_| Error::Misuse(format!("'{version}' is no version of a key")))?;
        self.version(name, number)
    }

    /// Makes the next version of a key. All nodes take part.
    pub fn rotate(&self, key: &str) -> Result<KeyInfo> {
        self.ask_all_for_key(&Operation::Rotate(operations::Rotate { key: key.into() }))
    }

    /// Moves a version of a key on to a later state. All nodes take part.
    pub fn retire(&self, key: &str, version: u32, state: VersionState) -> Result<()> {
        self.ask_all_for_key(&Operation::Retire(operations::Retire { key: key.into(), version, state }))
            .map(drop)
    }

    /// Sets the oldest version of a key that computes anything, and whether it may be deleted. All nodes take
    /// part.
    pub fn configure(&self, key: &str, least_version: u32, deletable: bool) -> Result<()> {
        self.withdraw(key, (least_version, deletable), &Withdrawal::default())
    }

    /// The same, and withdraws for ever what all versions of the key, and those to come, are for.
    pub fn withdraw(
        &self,
        key: &str,
        (least_version, deletable): (u32, bool),
        what: &Withdrawal,
    ) -> Result<()> {
        let Withdrawal { wrappable: withdraw_wrappable, usage } = what;
        let (withdraw_wrappable, withdraw_usage) = (*withdraw_wrappable, usage.clone());
        let key = key.into();
        self.ask_all_for_key(&Operation::Configure(operations::Configure {
            key,
            least_version,
            deletable,
            withdraw_wrappable,
            withdraw_usage,
        }))
        .map(drop)
    }

    /// Replaces the label and the attributes of a version of a key. Refused if `revision` is not the latest
    /// at any node. All nodes take part.
    pub fn describe(
        &self,
        (key, id): (&str, [u8; 16]),
        revision: u64,
        label: &str,
        attributes: &[u8],
    ) -> Result<()> {
        let (key, label, attributes) = (key.into(), label.into(), attributes.to_vec());
        self.ask_all_for_key(&Operation::Describe(operations::DescribeKey {
            key,
            id,
            revision,
            label,
            attributes,
        }))
        .map(drop)
    }

    /// Deletes all versions of a key at all nodes. Returns the properties of the newest; `None` if there was
    /// no such key.
    pub fn delete(&self, key: &str) -> Result<Option<KeyInfo>> {
        self.ask_all(&Operation::Delete(operations::Delete { key: key.into(), version: None }))
    }

    /// Deletes a version of a key that is not the current one. Returns its properties; `None` if there was no
    /// such version.
    pub fn delete_version(&self, key: &str, version: u32) -> Result<Option<KeyInfo>> {
        self.ask_all(&Operation::Delete(operations::Delete { key: key.into(), version: Some(version) }))
    }

    /// The versions of a key as each node shows them, the newest first. The error is that of a node that did
    /// not show it, if none did.
    fn shown(&self, key: &str) -> Result<Vec<Vec<KeyInfo>>> {
        let versions = |reply: Reply| match reply {
            Reply::Keys { keys, .. } => Some(keys),
            _ => None,
        };
        let (mut shown, mut failed) = (Vec::new(), None);
        for (_, answer) in self.ask_each(&Operation::Show(operations::Show { key: key.into() }), versions) {
            match answer {
                Ok(versions) => shown.push(versions),
                Err(e) => failed = Some(e),
            }
        }
        match failed {
            Some(e) if shown.is_empty() => Err(e),
            _ => Ok(shown),
        }
    }

    /// The versions of a key, the newest first. If nodes show a version differently, for example because a
    /// change was interrupted, it is here more than once, first as most nodes show it.
    pub fn versions(&self, key: &str) -> Result<Vec<KeyInfo>> {
        let mut versions: BTreeMap<u32, Vec<(usize, KeyInfo)>> = BTreeMap::new();
        for info in self.shown(key)?.into_iter().flatten() {
            let alike = versions.entry(info.version).or_default();
            match alike.iter_mut().find(|(_, other)| *other == info) {
                Some((nodes, _)) => *nodes += 1,
                None => alike.push((1, info)),
            }
        }
        let mut all = Vec::new();
        for (_, mut alike) in versions.into_iter().rev() {
            alike.sort_by_key(|(nodes, _)| std::cmp::Reverse(*nodes));
            all.extend(alike.into_iter().map(|(_, info)| info));
        }
        Ok(all)
    }

    /// One version of a key.
    pub fn version(&self, key: &str, version: u32) -> Result<KeyInfo> {
        let versions = self.versions(key)?;
        let newest = versions.first().map_or(0, |info| info.version);
        versions.into_iter().find(|info| info.version == version).ok_or_else(|| {
            let what = if (1..newest).contains(&version) { "was destroyed" } else { "does not exist" };
            Error::Misuse(format!(
                "version {version} of the key '{key}' {what}; the current one is version {newest}"
            ))
        })
    }

    /// The version of a key with an id.
    pub(crate) fn version_with_id(&self, key: &str, id: [u8; 16]) -> Result<KeyInfo> {
        self.versions(key)?.into_iter().find(|info| info.id == id).ok_or_else(|| {
            Error::Misuse(format!("the key '{key}' has no version with the id {}", hex::encode(id)))
        })
    }

    /// The newest version that any node shows.
    pub(crate) fn newest(&self, key: &str) -> Option<KeyInfo> {
        let shown = self.shown(key).ok()?;
        shown.into_iter().filter_map(|versions| versions.into_iter().next()).max_by_key(|info| info.version)
    }
}

//! The modes of keys and the ids of their versions, as the nodes have shown them. A message says the number
//! of its version; nodes are asked by the id.
//!
//! An id belongs to its version for ever, and modes to all versions of a key. If a key was deleted and
//! another one made under its name, the nodes say that they do not know the id any more, or that the key is
//! not for this mode; then they are asked anew.

use std::collections::HashMap;

use parking_lot::Mutex;
use polyclave_api::{KeyInfo, KeyVersion, Mode};

use crate::failure::Failure;
use crate::nodes::Asker;
use crate::queue::Queue;

/// The most names that are remembered.
const MAX: usize = 10_000;

/// What is remembered of keys, by their names.
#[derive(Default)]
pub(crate) struct Versions(Mutex<HashMap<String, Known>>);

/// What is remembered of a key.
struct Known {
    modes: Vec<Mode>,
    ids: HashMap<u32, [u8; 16]>,
}

impl Versions {
    /// The versions of a key, the newest first, as the nodes show them now.
    pub(crate) async fn shown(
        &self,
        asker: &Asker,
        queue: &Queue,
        key: &str,
    ) -> Result<Vec<KeyInfo>, Failure> {
        let name = key.to_owned();
        let mut shown = asker.ask(queue, move |client| client.versions(&name)).await?;
        // Where nodes differ about a version, the first of its entries is what most of them say.
        shown.dedup_by_key(|info| info.version);
        if shown.is_empty() {
            return Err(Failure::NoKey);
        }
        let ids = shown.iter().map(|info| (info.version, info.id)).collect();
        let of_key = Known { modes: shown[0].properties.modes.clone(), ids };
        let mut known = self.0.lock();
        if known.len() >= MAX {
            known.clear();
        }
        known.insert(key.into(), of_key);
        Ok(shown)
    }

    /// The id of a version; from memory, if it is known.
    pub(crate) async fn find(
        &self,
        asker: &Asker,
        queue: &Queue,
        (key, version): (&str, u32),
    ) -> Result<Found, Failure> {
        let of = |id| KeyVersion { name: key.into(), id: Some(id) };
        if let Some(id) = self.0.lock().get(key).and_then(|known| known.ids.get(&version)) {
            return Ok(Found::Version(of(*id), Source::Memory));
        }
        let shown = self.shown(asker, queue, key).await?;
        let newest = shown[0].version;
        match shown.iter().find(|info| info.version == version) {
            Some(info) => Ok(Found::Version(of(info.id), Source::Nodes)),
            None if version > newest => Ok(Found::TooNew),
            None => Ok(Found::Destroyed),
        }
    }

    /// The modes of a key; from memory, if they are known.
    pub(crate) async fn modes(
        &self,
        asker: &Asker,
        queue: &Queue,
        key: &str,
    ) -> Result<(Vec<Mode>, Source), Failure> {
        if let Some(known) = self.0.lock().get(key) {
            return Ok((known.modes.clone(), Source::Memory));
        }
        let shown = self.shown(asker, queue, key).await?;
        Ok((shown[0].properties.modes.clone(), Source::Nodes))
    }

    /// Forgets what is known of a key.
    pub(crate) fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

/// What is known of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is there, or was.
    Version(KeyVersion, Source),
    /// No version has so high a number.
    TooNew,
    /// There was one.
    Destroyed,
}

/// Where an id or a mode comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From an earlier request. The key may be another one now.
    Memory,
    /// From the nodes, now.
    Nodes,
}

//! What a program has to know before it may open a node's directory (`needs.toml`): the version of the store,
//! and the features that the operator has switched on ([`polyclave_protocol::versions`]).
//!
//! It is read before anything else of the directory, and backups begin with it. So a program that lacks
//! something refuses before it has changed a byte. A directory without the file needs nothing besides the
//! first version of the store. The store has the same list, sealed: whoever removes the file hides it only
//! until the store is opened.

use std::path::Path;

use polyclave_protocol::versions::{self, Feature, FeatureSet, STORE, feature};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, private, text};

/// The file in a node's directory.
pub(crate) const FILE: &str = "needs.toml";

/// The version of the store if the file says nothing.
const FIRST_STORE: u8 = 1;

/// What a program has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// The version of the store.
    pub store: u8,
    /// Features that are switched on.
    #[serde(default, rename = "feature")]
    pub features: Vec<Need>,
}

/// A feature that a program has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Its name.
    pub name: String,
    /// The first release that knows it.
    pub release: String,
}

impl Default for Needs {
    fn default() -> Needs {
        Needs { store: FIRST_STORE, features: Vec::new() }
    }
}

impl Needs {
    /// What the directory of a node needs.
    pub fn of(dir: &Path) -> Result<Needs> {
        let path = dir.join(FILE);
        if path.exists() { text::load(&path) } else { Ok(Needs::default()) }
    }

    /// From the text of a file.
    pub fn parse(text: &str) -> Result<Needs> {
        text::parse(text)
    }

    /// Writes the file.
    pub fn save(&self, dir: &Path) -> Result<()> {
        let text = text::render("What a program has to know to open this directory", self);
        private::write_public(&dir.join(FILE), text.as_bytes())
    }

    /// Adds a feature; false if it is there already.
    pub fn add(&mut self, feature: &Feature) -> bool {
        let is_new = self.features.iter().all(|need| need.name != feature.name);
        if is_new {
            self.features.push(Need { name: feature.name.into(), release: feature.release.into() });
        }
        is_new
    }

    /// The features, if this program knows all of them and the version of the store.
    pub fn met(&self) -> Result<FeatureSet> {
        if !STORE.spoken().contains(self.store) {
            return Err(Error::misuse(format!(
                "the store here has version {}, and this program ({}) knows {}. Nothing was changed. Run the release that wrote it, or a later one",
                self.store,
                versions::release(),
                STORE.spoken()
            )));
        }
        let known = self.features.iter().map(|need| {
            feature(&need.name).ok_or_else(|| {
                Error::misuse(format!(
                    "this needs the feature '{}', which was switched on here and which this program ({}) does not know. Nothing was changed. Run \
                     {} or a later release; the way back to an older one is a backup from before it was switched on",
                    need.name,
                    versions::release(),
                    need.release
                ))
            })
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeDir;

    fn needing(store: u8, names: &[&str]) -> Needs {
        let need = |name: &&str| Need { name: (*name).into(), release: "9.1.0".into() };
        Needs { store, features: names.iter().map(need).collect() }
    }

    #[test]
    fn what_this_program_does_not_know_is_refused_with_the_release_that_does() {
        assert!(Needs::default().met().expect("nothing").names().is_empty());
        let message = needing(1, &["flying"]).met().expect_err("unknown").to_string();
        assert!(message.contains("'flying'") && message.contains("Run 9.1.0 or a later"), "{message}");
        let message = needing(7, &[]).met().expect_err("too new").to_string();
        assert!(
            message.contains("has version 7") && message.contains("Run the release that wrote it"),
            "{message}"
        );
    }

    #[test]
    fn a_directory_that_needs_more_is_not_opened_and_nothing_in_it_is_changed() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(Needs::of(dir.path()).expect("none"), Needs::default());
        needing(1, &["flying"]).save(dir.path()).expect("saved");
        assert_eq!(Needs::of(dir.path()).expect("there"), needing(1, &["flying"]));
        std::fs::write(dir.path().join("node.toml"), "").expect("written");
        let message = NodeDir::open(dir.path()).expect_err("refused").to_string();
        assert!(message.contains("'flying'"), "{message}");
    }
}

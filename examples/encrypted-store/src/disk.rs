//! What one node keeps between its runs: files in a directory of its own.
//!
//! | file | what |
//! |---|---|
//! | `setup` | its keys for pseudorandom sharing with the others |
//! | `round-keys`, `hash-key` | its shares of the expanded key, and of powers of GCM's hash key |
//! | `versions` | which version of which record is the newest; no secret, but nobody else's word is taken for it |

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use zeroize::Zeroizing;

/// The newest version of every record, by its number.
pub type Versions = BTreeMap<u32, u32>;

/// A node's directory.
pub struct Disk(PathBuf);

impl Disk {
    /// That of a node, by its place among all.
    pub fn of(directory: &Path, node: usize) -> Disk {
        Disk(directory.join(format!("node-{}", node + 1)))
    }

    /// Makes the directory.
    pub fn create(&self) -> Result<()> {
        std::fs::create_dir_all(&self.0).with_context(|| format!("cannot make {}", self.0.display()))
    }

    /// Writes a file that only its owner can read: whole, or the old one stays.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (file, fresh) = (self.0.join(name), self.0.join(format!("{name}.new")));
        let mut options = std::fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh);
        let written = opened.and_then(|mut to| to.write_all(bytes).and_then(|()| to.sync_all()));
        written
            .and_then(|()| std::fs::rename(&fresh, &file))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Result<Zeroizing<Vec<u8>>> {
        let file = self.0.join(name);
        let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Zeroizing::new(bytes))
    }

    /// The newest versions.
    pub fn versions(&self) -> Result<Versions> {
        Ok(serde_json::from_slice(&self.read("versions")?)?)
    }

    /// Sets the newest versions.
    pub fn write_versions(&self, versions: &Versions) -> Result<()> {
        self.write("versions", &serde_json::to_vec(versions)?)
    }
}

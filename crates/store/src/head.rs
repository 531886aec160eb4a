//! The head: the record that sums a store up. It has the store's mark and a digest of its rows. Every change of covered rows replaces it, in the same
//! transaction.
//!
//! The record is sealed, so nobody can make one without the node's secret. Peers hold its number and value ([`super::mark`]). So rows that are put back
//! are noticed either way: they do not fit the digest of the present record, and with an older record the node is behind what its peers hold.

use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};

use super::Result;
use super::engine::digest::Digest;
use super::engine::{Table, decode};
use super::mark::Mark;

/// The name of the record, in [`Table::Meta`].
pub(super) const HEAD: &[u8] = b"mark";

/// How many values of the latest changes a node remembers. For earlier changes it knows only their start.
pub(super) const RECENT: usize = 64;

/// The record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// The number of the latest change that must not be undone unnoticed.
    pub(super) number: u64,
    /// Values of the latest of these changes, the latest first.
    pub(super) recent: Vec<[u8; 16]>,
    /// Counts the changes that other workers must learn of.
    pub(super) edition: u64,
    /// Counts all changes of covered rows.
    pub(super) changes: u64,
    /// The digest of all covered rows.
    pub(super) digest: Digest,
}

/// The record in stores from before there was a digest.
#[derive(Deserialize)]
struct Uncovered {
    number: u64,
    recent: Vec<[u8; 16]>,
}

impl Head {
    /// The mark: the latest change.
    pub(super) fn mark(&self) -> Mark {
        Mark { number: self.number, value: self.recent.first().copied().unwrap_or_default() }
    }

    /// Moves the mark to the next change.
    pub(super) fn advance(&mut self) -> Result<()> {
        let mut value = [0; 16];
        random_bytes(&mut value)?;
        self.number = self.number.saturating_add(1);
        self.recent.insert(0, value);
        self.recent.truncate(RECENT);
        Ok(())
    }

    /// Reads the record. Returns with it whether it has a digest; a record from before there was one has none.
    pub(super) fn read(bytes: &[u8]) -> Result<(Head, bool)> {
        match decode(Table::Meta, bytes) {
            Ok(head) => Ok((head, true)),
            Err(e) => {
                let Uncovered { number, recent } = decode(Table::Meta, bytes).map_err(|_| e)?;
                Ok((Head { number, recent, ..Head::default() }, false))
            }
        }
    }
}

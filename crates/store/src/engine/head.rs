//! The head: the record that sums a store up. It has the store's mark and a digest of its rows. Every change
//! of covered rows replaces it, in the same transaction.
//!
//! The record is sealed, so nobody can make one without the node's secret. Peers hold its number and value
//! (`mark.rs`). So rows that are put back are noticed either way: they do not fit the digest of the present
//! record, and with an older record the node is behind what its peers hold.

use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};

use super::super::Result;
use super::digest::Digest;
use super::{Table, decode};

/// The name of the record, in [`Table::Meta`].
pub(in super::super) const HEAD: &[u8] = b"mark";

/// The record of the edition, in stores from before the head had it.
pub(in super::super) const EDITION: &[u8] = b"edition";

/// How many values of the latest changes a node remembers. For earlier changes it knows only their start.
pub(in super::super) const RECENT: usize = 64;

/// One change that must not be undone unnoticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// A counter.
    pub number: u64,
    /// Drawn at random for each change.
    pub value: [u8; 16],
}

/// The record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Head {
    /// The number of the latest change that must not be undone unnoticed.
    pub(in super::super) number: u64,
    /// Values of the latest of these changes, the latest first.
    pub(in super::super) recent: Vec<[u8; 16]>,
    /// Counts the changes that other workers must learn of.
    pub(in super::super) edition: u64,
    /// Counts all changes of covered rows.
    pub(in super::super) changes: u64,
    /// The digest of all covered rows.
    pub(in super::super) digest: Digest,
}

/// The record in stores from before there was a digest.
#[derive(Deserialize)]
struct Uncovered {
    number: u64,
    recent: Vec<[u8; 16]>,
}

impl Head {
    /// The mark: the latest change.
    pub(in super::super) fn mark(&self) -> Mark {
        Mark { number: self.number, value: self.recent.first().copied().unwrap_or_default() }
    }

    /// The number of the change that is being made.
    pub(in super::super) fn next_number(&self) -> u64 {
        self.number.saturating_add(1)
    }

    /// Moves the mark to the next change.
    pub(in super::super) fn advance(&mut self) -> Result<()> {
        let mut value = [0; 16];
        random_bytes(&mut value)?;
        self.number = self.next_number();
        self.recent.insert(0, value);
        self.recent.truncate(RECENT);
        Ok(())
    }

    /// Reads the record. Returns with it whether it has a digest; a record from before there was one has
    /// none.
    pub(in super::super) fn read(bytes: &[u8]) -> Result<(Head, bool)> {
        match decode(Table::Meta, bytes) {
            Ok(head) => Ok((head, true)),
            Err(e) => {
                let Uncovered { number, recent } = decode(Table::Meta, bytes).map_err(|_| e)?;
                Ok((Head { number, recent, ..Head::default() }, false))
            }
        }
    }
}

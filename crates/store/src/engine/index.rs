//! Which value each covered row has to have: in memory, for the latest state of the database that this
//! process knows.
//!
//! The rows are read once, when the store is opened, and compared with the digest in the store's [`Head`].
//! Afterwards a transaction compares every row that it reads with the index. It also compares that a row is
//! not there, and that a range is whole. The index keeps only the nonce of each value
//! ([`Stamp`](super::super::seal::Stamp)), some hundred bytes a row.
//!
//! # States
//!
//! A transaction begins with the head of the state that it sees ([`Reader::snapshot`]), and the index follows
//! to that state:
//!
//! * It takes over a change of this process once it is made. If the outcome is not known, it does so once a
//!   transaction sees the change.
//! * It learns of other workers' changes from the [change log](super::change_log). The log is not believed:
//!   the digest has to fit afterwards. If it does not, all rows are read again.
//!
//! A state that is older than what this process knew when the transaction began is refused. A transaction may
//! go on reading its state while others change it. So the index remembers what was replaced for as long as
//! such a transaction lasts.
//!
//! After the first row that does not fit, nothing of the store is used any more ([`Index::damage`]).

mod history;
mod reader;
mod rows;
mod snapshot;

use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use super::super::seal::{Seal, stamp_of};
use super::super::{Result, StoreError};
use super::digest::Digest;
use super::head::{HEAD, Head};
use super::{Reading, Table};

use history::{History, State};
use reader::Reader;
use rows::{damaged_records, read_rows};

pub(super) use history::Pending;
pub(super) use rows::{Delta, digest_of_all};
pub(super) use snapshot::Snapshot;

/// What errors call the head.
pub(super) const HEAD_RECORD: &str = "the record of its latest change";

/// Why nothing is used any more.
enum Misfit {
    /// The store has lost its latest changes.
    Lost { known: u64, found: u64 },
    /// A row differs from the version that was written last.
    PutBack(String),
}

/// The index of a store.
#[derive(Default)]
pub(super) struct Index {
    history: RwLock<History>,
    /// Why nothing is used any more. It is final.
    misfit: OnceLock<Misfit>,
}

impl Index {
    /// Why nothing of the store is used any more, if so.
    pub(super) fn damage(&self) -> Option<StoreError> {
        self.misfit.get().map(|misfit| match misfit {
            Misfit::Lost { known, found } => StoreError::Lost { known: *known, found: *found },
            Misfit::PutBack(what) => StoreError::PutBack { what: what.clone() },
        })
    }

    /// Stops the use of the store: this was put back. Returns the error.
    fn put_back(&self, what: String) -> StoreError {
        tracing::error!(
            what,
            "records of the store were put back, removed or damaged: this node serves nothing any more"
        );
        let _ = self.misfit.set(Misfit::PutBack(what.clone()));
        StoreError::PutBack { what }
    }

    /// Stops the use of the store: it is older than the latest head that the database has shown. Returns the
    /// error.
    fn lost(&self, found: &Head) -> StoreError {
        let (known, found) = (self.history.read().latest.number, found.number);
        match known > found {
            true => {
                let _ = self.misfit.set(Misfit::Lost { known, found });
                StoreError::Lost { known, found }
            }
            false => self.put_back(HEAD_RECORD.into()),
        }
    }

    /// Reads all rows, and compares them with the digest. Nothing else uses the store meanwhile.
    pub(super) fn load(&self, state: &dyn Reading, seal: &Seal) -> Result<()> {
        let (head, sealed) = read_head(state, seal)?;
        let (rows, digest) = read_rows(state, seal)?;
        self.refuse_differing(&head, &digest, state, seal)?;
        let state = State::new(head, stamp_of(&sealed));
        *self.history.write() = History::at(state, rows);
        Ok(())
    }

    /// Refuses rows whose digest is not that of the head, and names those that are damaged.
    fn refuse_differing(&self, head: &Head, digest: &Digest, state: &dyn Reading, seal: &Seal) -> Result<()> {
        let tables = head.digest.differing(digest);
        if tables.is_empty() {
            return Ok(());
        }
        let damaged = damaged_records(state, seal, &tables)?;
        Err(self.put_back(match damaged.as_slice() {
            [] => format!("a record of {}", tables.join(" and of ")),
            damaged => format!("the record {} (damaged: it does not open)", damaged.join(" and the record ")),
        }))
    }

    /// Begins a transaction. While the reader lives, the index remembers the states that the transaction may
    /// see.
    pub(super) fn begin(&self) -> Result<Reader<'_>> {
        if let Some(damage) = self.damage() {
            return Err(damage);
        }
        Ok(Reader::begin(self))
    }

    /// Notes a change that is about to be made.
    pub(super) fn prepare(&self, change: Pending) {
        self.history.write().prepare(change);
    }

    /// Takes over the change that was prepared, once it is made. `changes` is its number.
    pub(super) fn confirm(&self, changes: u64) {
        self.history.write().confirm(|state| state.head.changes == changes);
    }

    /// Compares a head that was read, without any other record, with what the index knows. Returns it.
    pub(super) fn hear(&self, reader: &Reader<'_>, sealed: Option<&[u8]>, seal: &Seal) -> Result<Arc<Head>> {
        let sealed = sealed.ok_or_else(|| self.put_back(HEAD_RECORD.into()))?;
        let known = self.history.read().state().clone();
        if known.stamp == stamp_of(sealed) && known.head.changes >= reader.since() {
            return Ok(known.head);
        }
        let head = open_head(sealed, seal)?;
        if head.changes < reader.since() {
            return Err(self.lost(&head));
        }
        let head = Arc::new(head);
        self.history.write().hear(&head);
        Ok(head)
    }
}

/// Opens the head.
fn open_head(sealed: &[u8], seal: &Seal) -> Result<Head> {
    match Head::read(&seal.open(Table::Meta.name(), HEAD, sealed)?)? {
        (head, true) => Ok(head),
        (_, false) => Err(StoreError::PutBack { what: HEAD_RECORD.into() }),
    }
}

/// The head of a state, opened and sealed.
fn read_head(state: &dyn Reading, seal: &Seal) -> Result<(Head, Vec<u8>)> {
    let sealed = state.get(Table::Meta, HEAD)?.ok_or(StoreError::PutBack { what: HEAD_RECORD.into() })?;
    Ok((open_head(&sealed, seal)?, sealed))
}

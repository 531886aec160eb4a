//! What is read within a transaction. Each record is compared with what the index knows of it, then opened
//! and decoded.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::super::Result;
use super::super::seal::Seal;
use super::head::Head;
use super::index::Snapshot;
use super::{Reading, Record, Table, decode, digest};

/// What can be read within a transaction.
pub(in super::super) trait Records {
    /// The sealed value of a record.
    fn sealed(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>>;

    /// What opens and seals records.
    fn seal(&self) -> &Seal;

    /// The record that sums the store up.
    fn head(&self) -> Arc<Head>;

    /// The sealed records from `first` to `last`, both included, in the order of their bytes.
    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>>;

    /// The plaintext bytes of a record.
    fn bytes(&self, table: Table, record: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let sealed = self.sealed(table, record)?;
        sealed.map(|sealed| self.seal().open(table.name(), record, &sealed)).transpose()
    }

    /// The decoded value of a record.
    fn get<T: DeserializeOwned>(&self, table: Table, record: &[u8]) -> Result<Option<T>> {
        self.bytes(table, record)?.map(|bytes| decode(table, &bytes)).transpose()
    }

    /// Whether a record is there and opens.
    fn holds(&self, table: Table, record: &[u8]) -> Result<bool> {
        Ok(self.bytes(table, record)?.is_some())
    }
}

/// A state of the store, which no other transaction changes meanwhile.
pub(in super::super) struct View<'a> {
    state: &'a dyn Reading,
    seal: &'a Seal,
    /// What the records have to be; `None` before the index is loaded.
    snapshot: Option<Snapshot<'a>>,
}

impl<'a> View<'a> {
    /// A state of the database. Without a snapshot its records are not compared with anything.
    pub(super) fn new(state: &'a dyn Reading, seal: &'a Seal, snapshot: Option<Snapshot<'a>>) -> View<'a> {
        View { state, seal, snapshot }
    }

    /// A state before anything is known of what its records have to be.
    pub(in super::super) fn unchecked(state: &'a dyn Reading, seal: &'a Seal) -> View<'a> {
        View::new(state, seal, None)
    }

    /// Whether a table exists and has records.
    pub(in super::super) fn holds_any(&self, table: Table) -> Result<bool> {
        let found = self.state.holds_any(table)?;
        self.snapshot.as_ref().map_or(Ok(()), |snapshot| snapshot.check_any(table, found))?;
        Ok(found)
    }

    /// Every record of a table, sealed.
    pub(in super::super) fn each_sealed(
        &self,
        table: Table,
        mut work: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(snapshot) = &self.snapshot else { return self.state.each(table, &mut work) };
        let (mut before, mut count) = (None, 0);
        self.state.each(table, &mut |record, sealed| {
            snapshot.check_order(&mut before, table, record)?;
            snapshot.check(table, record, Some(sealed))?;
            count += usize::from(digest::covered(table, record).is_some());
            work(record, sealed)
        })?;
        snapshot.check_count(table, None, count)
    }

    /// Every record of a table, each with the error if it cannot be read.
    pub(in super::super) fn each_readable<T: DeserializeOwned>(
        &self,
        table: Table,
        mut work: impl FnMut(&[u8], Result<T>) -> Result<()>,
    ) -> Result<()> {
        self.each_sealed(table, |record, sealed| {
            let bytes = self.seal.open(table.name(), record, sealed);
            work(record, bytes.and_then(|bytes| decode(table, &bytes)))
        })
    }

    /// Every record of a table.
    pub(in super::super) fn each<T: DeserializeOwned>(
        &self,
        table: Table,
        mut work: impl FnMut(&[u8], T) -> Result<()>,
    ) -> Result<()> {
        self.each_sealed(table, |record, sealed| {
            let bytes = self.seal.open(table.name(), record, sealed)?;
            work(record, decode(table, &bytes)?)
        })
    }
}

impl Records for View<'_> {
    fn sealed(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.state.get(table, record)?;
        self.snapshot.as_ref().map_or(Ok(()), |snapshot| snapshot.check(table, record, found.as_deref()))?;
        Ok(found)
    }

    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>> {
        let found = self.state.between(table, first, last)?;
        self.snapshot
            .as_ref()
            .map_or(Ok(()), |snapshot| snapshot.check_range(table, (first, last), &found))?;
        Ok(found)
    }

    fn seal(&self) -> &Seal {
        self.seal
    }

    fn head(&self) -> Arc<Head> {
        self.snapshot.as_ref().map(|snapshot| snapshot.head().clone()).unwrap_or_default()
    }
}

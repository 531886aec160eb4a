//! What is changed within a transaction. The ledger notes each change of a covered record.

use std::sync::Arc;

use serde::Serialize;
use zeroize::Zeroizing;

use super::super::seal::Seal;
use super::super::{Result, StoreError};
use super::head::Head;
use super::ledger::Ledger;
use super::{Record, Records, Table, Writing, digest, encode};

/// What becomes of the digest in a change.
pub(super) enum Coverage<'a> {
    /// The change replaces it.
    Kept(Ledger<'a>),
    /// It stays as it is: the change concerns only records that it does not cover.
    Own,
    /// It is computed anew afterwards.
    Filled,
}

/// A change of the store that is being made.
pub(in super::super) struct Changes<'a> {
    change: &'a dyn Writing,
    seal: &'a Seal,
    coverage: Coverage<'a>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(change: &'a dyn Writing, seal: &'a Seal, coverage: Coverage<'a>) -> Changes<'a> {
        Changes { change, seal, coverage }
    }

    /// What has become of the digest, at the end of the change.
    pub(super) fn into_coverage(self) -> Coverage<'a> {
        self.coverage
    }

    fn ledger(&self) -> Option<&Ledger<'a>> {
        if let Coverage::Kept(ledger) = &self.coverage { Some(ledger) } else { None }
    }

    /// Changes the record that sums the store up.
    pub(in super::super) fn change_head<T>(&self, change: impl FnOnce(&mut Head) -> T) -> Result<T> {
        let ledger = self.ledger().ok_or_else(uncovered)?;
        Ok(ledger.change_head(change))
    }

    /// Notes a change of a record.
    fn note(&self, table: Table, record: &[u8], sealed: Option<&[u8]>) -> Result<()> {
        match &self.coverage {
            Coverage::Kept(ledger) => ledger.note(table, record, sealed),
            Coverage::Own if digest::covered(table, record).is_some() => return Err(uncovered()),
            Coverage::Own | Coverage::Filled => {}
        }
        Ok(())
    }

    /// Makes a table, if it does not exist.
    pub(in super::super) fn touch(&self, table: Table) -> Result<()> {
        self.change.touch(table)
    }

    /// Removes all records of a table.
    pub(in super::super) fn clear(&self, table: Table) -> Result<()> {
        if let Coverage::Kept(ledger) = &self.coverage {
            ledger.note_cleared(table);
        }
        self.change.clear(table)
    }

    /// Encodes, seals and puts a value.
    pub(in super::super) fn put<T: Serialize>(&self, table: Table, record: &[u8], value: &T) -> Result<()> {
        self.put_bytes(table, record, encode(value, 256)?)
    }

    /// Seals and puts a value that is already encoded.
    pub(in super::super) fn put_bytes(
        &self,
        table: Table,
        record: &[u8],
        value: Zeroizing<Vec<u8>>,
    ) -> Result<()> {
        self.put_sealed(table, record, &self.seal.seal(table.name(), record, value)?)
    }

    /// Puts a value that is already sealed.
    pub(in super::super) fn put_sealed(&self, table: Table, record: &[u8], sealed: &[u8]) -> Result<()> {
        self.note(table, record, Some(sealed))?;
        self.change.put(table, record, sealed)
    }

    /// Removes a record, if it is there.
    pub(in super::super) fn remove(&self, table: Table, record: &[u8]) -> Result<()> {
        self.note(table, record, None)?;
        self.change.remove(table, record)
    }
}

impl Records for Changes<'_> {
    fn sealed(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.change.get(table, record)?;
        self.ledger().map_or(Ok(()), |ledger| ledger.check(table, record, found.as_deref()))?;
        Ok(found)
    }

    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>> {
        let found = self.change.between(table, first, last)?;
        self.ledger().map_or(Ok(()), |ledger| ledger.check_range(table, (first, last), &found))?;
        Ok(found)
    }

    fn seal(&self) -> &Seal {
        self.seal
    }

    fn head(&self) -> Arc<Head> {
        self.ledger().map(Ledger::head).unwrap_or_default()
    }
}

fn uncovered() -> StoreError {
    StoreError::Failed("a record that the digest covers was to be changed without it".into())
}

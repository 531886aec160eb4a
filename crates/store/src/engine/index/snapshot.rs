//! A state that a transaction sees and that the index knows. Everything that the transaction reads is
//! compared with it.

use std::sync::Arc;

use super::super::super::seal::{Stamp, readable, stamp_of};
use super::super::super::{Result, StoreError};
use super::super::digest::{COVERED, covered};
use super::super::head::Head;
use super::super::{Record, Table};
use super::Index;
use super::history::Range;

/// A state that a transaction sees.
pub(in super::super) struct Snapshot<'a> {
    index: &'a Index,
    head: Arc<Head>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(index: &'a Index, head: Arc<Head>) -> Snapshot<'a> {
        Snapshot { index, head }
    }

    /// The head of the state.
    pub(in super::super) fn head(&self) -> &Arc<Head> {
        &self.head
    }

    /// Compares a row that was read. `None` stands for a row that is not there.
    pub(in super::super) fn check(&self, table: Table, record: &[u8], found: Option<&[u8]>) -> Result<()> {
        let Some(number) = covered(table, record) else { return Ok(()) };
        self.check_stamp(table, record, found.map(stamp_of), self.stamp(number, record))
    }

    /// Compares a row that was read with a value that the caller expects.
    pub(in super::super) fn check_stamp(
        &self,
        table: Table,
        record: &[u8],
        found: Option<Stamp>,
        expected: Option<Stamp>,
    ) -> Result<()> {
        match found == expected {
            true => Ok(()),
            false => Err(self.index.put_back(format!("the record {} of {}", readable(record), table.name()))),
        }
    }

    /// Compares the rows of a range that were read. All of them have to be there, and no others.
    pub(in super::super) fn check_range(
        &self,
        table: Table,
        range: (&[u8], &[u8]),
        rows: &[Record],
    ) -> Result<()> {
        let (mut before, mut count) = (None, 0);
        for (record, sealed) in rows {
            self.check_order(&mut before, table, record)?;
            self.check(table, record, Some(sealed))?;
            count += usize::from(covered(table, record).is_some());
        }
        self.check_count(table, Some(range), count)
    }

    /// Compares whether a table has rows.
    pub(in super::super) fn check_any(&self, table: Table, found: bool) -> Result<()> {
        let expected = self.count(table, None) > 0;
        match found == expected || table == Table::Meta || !COVERED.contains(&table) {
            true => Ok(()),
            false => Err(self.misses_a_record_of(table)),
        }
    }

    /// Refuses rows that are not in the order of their keys. A database that gives one of them twice could
    /// leave out another one.
    pub(in super::super) fn check_order(
        &self,
        before: &mut Option<Vec<u8>>,
        table: Table,
        record: &[u8],
    ) -> Result<()> {
        if before.as_deref().is_some_and(|before| before >= record) {
            return Err(self.index.put_back(format!("the order of {}", table.name())));
        }
        *before = Some(record.into());
        Ok(())
    }

    /// Refuses another number of rows of a range than the state has.
    pub(in super::super) fn check_count(&self, table: Table, range: Range<'_>, count: usize) -> Result<()> {
        match count == self.count(table, range) {
            true => Ok(()),
            false => Err(self.misses_a_record_of(table)),
        }
    }

    fn misses_a_record_of(&self, table: Table) -> StoreError {
        self.index.put_back(format!("a record of {}", table.name()))
    }

    /// The value that a row has to have. `table` is its number among the covered ones.
    pub(in super::super) fn stamp(&self, table: usize, record: &[u8]) -> Option<Stamp> {
        self.index.history.read().stamp(self.head.changes, table, record)
    }

    /// The keys of all rows of a table.
    pub(in super::super) fn keys(&self, table: usize) -> Vec<Vec<u8>> {
        self.index.history.read().keys(self.head.changes, table)
    }

    fn count(&self, table: Table, range: Range<'_>) -> usize {
        let Some(number) = COVERED.iter().position(|of| *of == table) else { return 0 };
        self.index.history.read().count(self.head.changes, number, range)
    }
}

//! What a change has done to covered rows so far, beside the snapshot with which it began. Reads within the
//! change are compared with both. At its end the change writes the next [`Head`].

use std::cell::RefCell;
use std::sync::Arc;

use super::super::Result;
use super::super::seal::{Seal, stamp_of};
use super::digest::{COVERED, covered};
use super::head::{HEAD, Head};
use super::index::{Delta, Index, Pending, Snapshot};
use super::{Record, Table, Writing, change_log, encode};

/// The ledger of one change.
pub(super) struct Ledger<'a> {
    snapshot: Snapshot<'a>,
    head: RefCell<Arc<Head>>,
    delta: RefCell<Delta>,
}

impl<'a> Ledger<'a> {
    /// The ledger of a change that begins with this state.
    pub(super) fn new(snapshot: Snapshot<'a>) -> Ledger<'a> {
        let head = RefCell::new(snapshot.head().clone());
        Ledger { snapshot, head, delta: RefCell::default() }
    }

    /// The head as the change has it so far.
    pub(super) fn head(&self) -> Arc<Head> {
        self.head.borrow().clone()
    }

    /// Changes what the next head says.
    pub(super) fn change_head<T>(&self, change: impl FnOnce(&mut Head) -> T) -> T {
        change(Arc::make_mut(&mut self.head.borrow_mut()))
    }

    /// Notes the value that a row has from now on.
    pub(super) fn note(&self, table: Table, record: &[u8], sealed: Option<&[u8]>) {
        if let Some(number) = covered(table, record) {
            self.delta.borrow_mut().insert((number, record.into()), sealed.map(stamp_of));
        }
    }

    /// Notes that all rows of a table are gone.
    pub(super) fn note_cleared(&self, table: Table) {
        let Some(number) = COVERED.iter().position(|of| *of == table) else { return };
        let mut delta = self.delta.borrow_mut();
        delta.iter_mut().filter(|((of, _), _)| *of == number).for_each(|(_, stamp)| *stamp = None);
        delta.extend(self.snapshot.keys(number).into_iter().map(|record| ((number, record), None)));
    }

    /// Compares a row that was read, or notices that it is missing or should not be there.
    pub(super) fn check(&self, table: Table, record: &[u8], found: Option<&[u8]>) -> Result<()> {
        let changed = covered(table, record)
            .and_then(|number| self.delta.borrow().get(&(number, record.into())).copied());
        match changed {
            None => self.snapshot.check(table, record, found),
            Some(expected) => self.snapshot.check_stamp(table, record, found.map(stamp_of), expected),
        }
    }

    /// Compares the rows of a range that were read. All of them have to be there, and no others.
    pub(super) fn check_range(
        &self,
        table: Table,
        (first, last): (&[u8], &[u8]),
        rows: &[Record],
    ) -> Result<()> {
        let mut before = None;
        for (record, sealed) in rows {
            self.snapshot.check_order(&mut before, table, record)?;
            self.check(table, record, Some(sealed))?;
        }
        let delta = self.delta.borrow();
        let is_in = |record: &[u8]| first <= record && record <= last;
        let changed = delta.iter().filter(|((number, record), _)| COVERED[*number] == table && is_in(record));
        // The number of rows before this change follows from those that were found.
        let (mut found, mut added) =
            (rows.iter().filter(|(record, _)| covered(table, record).is_some()).count(), 0);
        for ((number, record), stamp) in changed {
            found += usize::from(self.snapshot.stamp(*number, record).is_some());
            added += usize::from(stamp.is_some());
        }
        self.snapshot.check_count(table, Some((first, last)), found.saturating_sub(added))
    }

    /// Writes the next head, and tells other workers what has changed. Returns the number of the change, or
    /// `None` if nothing has changed.
    pub(super) fn conclude(
        self,
        change: &dyn Writing,
        (seal, index): (&Seal, &Index),
        is_shared: bool,
    ) -> Result<Option<u64>> {
        let mut delta = self.delta.into_inner();
        delta.retain(|(table, record), stamp| self.snapshot.stamp(*table, record) != *stamp);
        let mut head = Arc::unwrap_or_clone(self.head.into_inner());
        if delta.is_empty() && head == **self.snapshot.head() {
            return Ok(None);
        }
        for ((table, record), stamp) in &delta {
            let before = self.snapshot.stamp(*table, record);
            before.iter().chain(stamp).for_each(|stamp| head.digest.toggle(seal, *table, record, stamp));
        }
        head.changes += 1;
        let sealed = seal.seal(Table::Meta.name(), HEAD, encode(&head, 2048)?)?;
        change.put(Table::Meta, HEAD, &sealed)?;
        let number = head.changes;
        if is_shared {
            change_log::append(change, seal, number, &delta)?;
        }
        index.prepare(Pending::new(head, &sealed, delta));
        Ok(Some(number))
    }
}

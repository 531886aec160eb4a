//! What a change has done to covered rows so far, beside the state in which it began: reads within the change are compared with both. At its
//! end the change writes the next [`Head`].

use std::cell::RefCell;
use std::sync::Arc;

use super::super::Result;
use super::super::head::{HEAD, Head};
use super::super::seal::{Seal, Stamp, stamp_of};
use super::digest::{COVERED, covered};
use super::index::{Delta, Index, Pending, Seen, place_of};
use super::{Record, Table, Writing, encode};

pub(super) struct Ledger<'a> {
    seen: Seen<'a>,
    head: RefCell<Arc<Head>>,
    delta: RefCell<Delta>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(seen: Seen<'a>) -> Ledger<'a> {
        let head = RefCell::new(seen.head.clone());
        Ledger { seen, head, delta: RefCell::default() }
    }

    pub(super) fn head(&self) -> Arc<Head> {
        self.head.borrow().clone()
    }

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
        delta.extend(self.seen.keys(number).into_iter().map(|record| ((number, record), None)));
    }

    /// Compares a row that was read, or that there is none.
    pub(super) fn check(&self, table: Table, record: &[u8], found: Option<&[u8]>) -> Result<()> {
        let changed = covered(table, record)
            .and_then(|number| self.delta.borrow().get(&(number, record.into())).copied());
        match changed {
            None => self.seen.check(table, record, found),
            Some(expected) => self.seen.check_stamp(table, record, found.map(stamp_of), expected),
        }
    }

    /// Compares rows of a range that were read: all of them are there, and no others.
    pub(super) fn check_range(
        &self,
        table: Table,
        (first, last): (&[u8], &[u8]),
        rows: &[Record],
    ) -> Result<()> {
        let mut before = None;
        for (record, sealed) in rows {
            self.seen.check_order(&mut before, table, record)?;
            self.check(table, record, Some(sealed))?;
        }
        let delta = self.delta.borrow();
        let is_in = |record: &[u8]| first <= record && record <= last;
        let changed = delta.iter().filter(|((number, record), _)| COVERED[*number] == table && is_in(record));
        // As many as there were before this change.
        let (mut found, mut added) =
            (rows.iter().filter(|(record, _)| covered(table, record).is_some()).count(), 0);
        for ((number, record), stamp) in changed {
            found += usize::from(self.seen.stamp(*number, record).is_some());
            added += usize::from(stamp.is_some());
        }
        self.seen.check_count(table, Some((first, last)), found.saturating_sub(added))
    }

    /// Writes the next head, and tells other workers what has changed. Returns the number of the change, if there was any.
    pub(super) fn conclude(
        self,
        change: &dyn Writing,
        (seal, index): (&Seal, &Index),
        is_shared: bool,
    ) -> Result<Option<u64>> {
        let mut delta = self.delta.into_inner();
        delta.retain(|(table, record), stamp| self.seen.stamp(*table, record) != *stamp);
        let mut head = Arc::unwrap_or_clone(self.head.into_inner());
        if delta.is_empty() && head == *self.seen.head {
            return Ok(None);
        }
        for ((table, record), stamp) in &delta {
            let before = self.seen.stamp(*table, record);
            before.iter().chain(stamp).for_each(|stamp| head.digest.toggle(seal, *table, record, stamp));
        }
        head.changes += 1;
        let sealed = seal.seal(Table::Meta.name(), HEAD, encode(&head, 2048)?)?;
        change.put(Table::Meta, HEAD, &sealed)?;
        let number = head.changes;
        if is_shared {
            tell(change, seal, number, &delta)?;
        }
        index.prepare(Pending::new(head, &sealed, delta));
        Ok(Some(number))
    }
}

fn tell(change: &dyn Writing, seal: &Seal, number: u64, delta: &Delta) -> Result<()> {
    let told: Vec<(u8, &[u8], Option<Stamp>)> =
        delta.iter().map(|((table, record), stamp)| (*table as u8, record.as_slice(), *stamp)).collect();
    let name = place_of(number);
    change.put(Table::Changes, &name, &seal.seal(Table::Changes.name(), &name, encode(&(number, told), 64)?)?)
}

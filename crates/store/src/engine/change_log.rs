//! The change log: what the latest changes of a store have changed, for workers that share it.
//!
//! Each change writes one row of [`Table::Changes`], in the place of an earlier one. The rows are not covered
//! by the digest, so a reader does not believe them: it compares the digest that follows from them with the
//! one in the head ([`super::index`]).

use super::super::Result;
use super::super::seal::{Seal, Stamp};
use super::digest::COVERED;
use super::index::Delta;
use super::{Reading, Table, Writing, decode, encode};

/// How many changes the log keeps. A worker that has missed more of them reads all rows again.
const KEPT: u64 = if cfg!(test) { 16 } else { 1024 };

/// The key of the row that a change writes.
fn place_of(change: u64) -> [u8; 8] {
    (change % KEPT).to_be_bytes()
}

/// A row that a change has changed: its table, its key, and its new value.
type Changed = (u8, Vec<u8>, Option<Stamp>);

/// What the changes from `first` to `last` have changed, as the log has it; `None` if one of them is missing.
pub(super) fn read(state: &dyn Reading, seal: &Seal, first: u64, last: u64) -> Result<Option<Delta>> {
    if last - first >= KEPT {
        return Ok(None);
    }
    let mut rows = Vec::new();
    match place_of(first) <= place_of(last) {
        true => rows.extend(state.between(Table::Changes, &place_of(first), &place_of(last))?),
        false => {
            rows.extend(state.between(Table::Changes, &place_of(first), &[0xff; 8])?);
            rows.extend(state.between(Table::Changes, &[0; 8], &place_of(last))?);
        }
    }
    let (mut all, mut next) = (Delta::new(), first);
    for (record, sealed) in rows {
        let Ok(bytes) = seal.open(Table::Changes.name(), &record, &sealed) else { return Ok(None) };
        let (number, changed): (u64, Vec<Changed>) = decode(Table::Changes, &bytes)?;
        if number != next || changed.iter().any(|(table, ..)| usize::from(*table) >= COVERED.len()) {
            return Ok(None);
        }
        next += 1;
        all.extend(changed.into_iter().map(|(table, record, stamp)| ((usize::from(table), record), stamp)));
    }
    Ok((next == last + 1).then_some(all))
}

/// Writes what a change has changed.
pub(super) fn append(change: &dyn Writing, seal: &Seal, number: u64, delta: &Delta) -> Result<()> {
    let changed: Vec<(u8, &[u8], Option<Stamp>)> =
        delta.iter().map(|((table, record), stamp)| (*table as u8, record.as_slice(), *stamp)).collect();
    let name = place_of(number);
    change.put(
        Table::Changes,
        &name,
        &seal.seal(Table::Changes.name(), &name, encode(&(number, changed), 64)?)?,
    )
}

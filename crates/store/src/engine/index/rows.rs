//! The rows of the index: of a whole state, and of a change.

use std::collections::BTreeMap;

use super::super::super::Result;
use super::super::super::seal::{Seal, Stamp, readable};
use super::super::Reading;
use super::super::digest::{COVERED, Digest, covered};

/// Rows by the number of their table among the covered ones and by their key, each with its new value; `None`
/// if it is gone.
pub(in super::super) type Delta = BTreeMap<(usize, Vec<u8>), Option<Stamp>>;

/// The rows of each covered table.
pub(super) type Rows = [BTreeMap<Box<[u8]>, Stamp>; COVERED.len()];

/// Reads all covered rows of a state, and computes their digest.
pub(super) fn read_rows(state: &dyn Reading, seal: &Seal) -> Result<(Rows, Digest)> {
    let (mut rows, mut digest) = (Rows::default(), Digest::default());
    for (number, table) in COVERED.into_iter().enumerate() {
        state.stamps(table, &mut |record, stamp| {
            if covered(table, record).is_some() {
                digest.toggle(seal, number, record, &stamp);
                rows[number].insert(record.into(), stamp);
            }
            Ok(())
        })?;
    }
    Ok((rows, digest))
}

/// The most records that an error names.
const MAX_NAMED: usize = 4;

/// The first records that do not open in tables that do not fit the digest: their bytes are damaged. A record
/// that was put back opens.
pub(super) fn damaged_records(state: &dyn Reading, seal: &Seal, tables: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for table in COVERED.into_iter().filter(|table| tables.contains(&table.name())) {
        state.each(table, &mut |record, sealed| {
            let opens = covered(table, record).is_none() || seal.open(table.name(), record, sealed).is_ok();
            if !opens && found.len() < MAX_NAMED {
                found.push(format!("{} of {}", readable(record), table.name()));
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The digest of all covered rows of a state.
pub(in super::super) fn digest_of_all(state: &dyn Reading, seal: &Seal) -> Result<Digest> {
    Ok(read_rows(state, seal)?.1)
}

/// What has to change in rows so that they become others.
pub(super) fn difference(now: &Rows, then: &Rows) -> Delta {
    let mut delta = Delta::new();
    for (table, (now, then)) in now.iter().zip(then).enumerate() {
        let gone = now.keys().filter(|key| !then.contains_key(*key)).map(|key| (key, None));
        let new = then
            .iter()
            .filter(|(key, stamp)| now.get(*key) != Some(stamp))
            .map(|(key, stamp)| (key, Some(*stamp)));
        delta.extend(gone.chain(new).map(|(key, stamp)| ((table, key.to_vec()), stamp)));
    }
    delta
}

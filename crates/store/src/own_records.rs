//! The names of records that each worker of a party has for itself. Those of the first worker have no number
//! in them.

use super::Result;
use super::engine::{Changes, Records, Table};

/// Before the names of records of all workers but the first.
const WORKER: &[u8] = b"worker ";

/// The name of a record of a worker.
pub(super) fn own(worker: u16, record: &[u8]) -> Vec<u8> {
    match worker {
        0 => record.into(),
        worker => [WORKER, &worker.to_be_bytes(), b" ", record].concat(),
    }
}

/// The number of the worker that has this record of a kind; `None` for records of the first worker and for
/// all others.
pub(super) fn number_of(record: &[u8], kind: &[u8]) -> Option<u16> {
    let number = record.strip_prefix(WORKER)?.strip_suffix(kind)?.strip_suffix(b" ")?;
    number.try_into().map(u16::from_be_bytes).ok()
}

/// The names of the records of all workers of which each has one: of their starts, or of a peer.
pub(super) fn of_all_workers(changes: &Changes, table: Table, record: &[u8]) -> Result<Vec<Vec<u8>>> {
    let others = changes.between(table, &own(1, record), &own(u16::MAX, record))?;
    let others = others.into_iter().map(|(found, _)| found).filter(|found| found.ends_with(record));
    Ok([record.to_vec()].into_iter().chain(others).collect())
}

//! What the engine asks of a database, and what a database gives it: tables of sealed values, and
//! transactions over them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::seal::Stamp;
use super::super::{Result, StoreError};
use super::Table;

/// A record's key and its sealed value.
pub(in super::super) type Record = (Vec<u8>, Vec<u8>);

/// What is done with each record: with its key and its sealed value.
pub(in super::super) type OnRecord<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// What is done with the sealed values of some records.
pub(in super::super) type OnPeeked<'a> = dyn FnMut(Vec<Option<Vec<u8>>>) -> Result<()> + 'a;

/// The owners of the records that a change concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Scope {
    /// Records of the party: its workers change them one after the other.
    Party,
    /// Records of this worker alone.
    Worker,
}

/// Where records are kept. It sees names and sizes, and never what is in a record.
pub(in super::super) trait Database: Send + Sync {
    /// Reads a state that no other transaction changes meanwhile. The work is done once at most.
    fn read(&self, work: &mut dyn FnMut(&dyn Reading) -> Result<()>) -> Result<()>;

    /// The sealed values of some records of [`Table::Meta`], in a way that is fast.
    fn peek(&self, records: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Reads some records of [`Table::Meta`] and does work with their sealed values. No other process does
    /// this at the same time. The work is done once at most. A file belongs to one process, and the caller
    /// keeps its threads apart.
    fn alone(&self, records: &[&[u8]], work: &mut OnPeeked<'_>) -> Result<()> {
        work(self.peek(records)?)
    }

    /// Makes a change, one at a time. When this returns, all of it is durable or nothing has changed. After
    /// [`StoreError::Failed`] it may be either, and the next transaction shows which. The work is done once
    /// at most.
    fn write(&self, scope: Scope, work: &mut dyn FnMut(&dyn Writing) -> Result<()>) -> Result<()>;

    /// Whether other processes may change the database meanwhile.
    fn is_shared(&self) -> bool;

    /// Erases the values that were replaced or removed from what the database keeps.
    fn erase_replaced(&self) -> Result<()>;

    /// Why the database cannot be used any more, if it is damaged.
    fn damage(&self) -> Option<StoreError>;

    /// Where the database is, for messages.
    fn place(&self) -> &str;

    /// The way in which workers hand material to each other, if there can be several.
    fn deliveries(&self) -> Option<&dyn Deliveries> {
        None
    }
}

/// A state of the database.
pub(in super::super) trait Reading {
    /// The sealed value of a record.
    fn get(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The records from `first` to `last`, both included, in the order of their bytes.
    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>>;

    /// Every record of a table, in the order of their bytes.
    fn each(&self, table: Table, work: &mut OnRecord<'_>) -> Result<()>;

    /// The stamp of every record of a table, in the order of their bytes.
    fn stamps(&self, table: Table, work: &mut dyn FnMut(&[u8], Stamp) -> Result<()>) -> Result<()>;

    /// Whether a table exists and has records.
    fn holds_any(&self, table: Table) -> Result<bool>;
}

/// A change that is being made. It sees what it has changed.
pub(in super::super) trait Writing: Reading {
    /// Makes a table, if it does not exist.
    fn touch(&self, table: Table) -> Result<()>;

    /// Removes all records of a table.
    fn clear(&self, table: Table) -> Result<()>;

    /// Puts a sealed value into a record's place.
    fn put(&self, table: Table, record: &[u8], sealed: &[u8]) -> Result<()>;

    /// Removes a record, if it is there.
    fn remove(&self, table: Table, record: &[u8]) -> Result<()>;
}

/// How far a lot is, which a worker has asked others for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LotState {
    /// It is not here yet.
    Awaited,
    /// It is there.
    Delivered,
    /// The request is gone, or the worker that was to make the lot is.
    Gone,
}

/// Requests of workers for lots of material, each with an id, and the lots. They are not durable, and see
/// names and sizes only.
pub(in super::super) trait Deliveries {
    /// Asks for a lot.
    fn ask(&self, id: &[u8], request: &[u8]) -> Result<()>;

    /// How far a lot is.
    fn state(&self, id: &[u8]) -> Result<LotState>;

    /// Takes a lot out, with the request. Its place is used again.
    fn receive(&self, id: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Removes a request that this worker has made or undertaken.
    fn remove(&self, id: &[u8]) -> Result<()>;

    /// Undertakes the oldest request of a worker that runs. No other one undertakes it any more.
    fn undertake_next(&self) -> Result<Option<Record>>;

    /// Undertakes a request, unless another worker has done so.
    fn undertake(&self, id: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Puts a lot in. Returns whether it is still asked for.
    fn deliver(&self, id: &[u8], lot: &[u8]) -> Result<bool>;
}

/// How long another process may take to give a store back: it has ended, or it carries out an order while no
/// node runs.
const RELEASING: Duration = Duration::from_secs(1);

/// Takes a store, and waits for a moment if another process has it.
pub(in super::super) fn once_released<T>(take: impl Fn() -> Result<T>) -> Result<T> {
    let until = Instant::now() + RELEASING;
    loop {
        match take() {
            Err(StoreError::InUse { .. }) if Instant::now() < until => sleep(RELEASING / 20),
            outcome => return outcome,
        }
    }
}

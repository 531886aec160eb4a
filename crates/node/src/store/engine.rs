//! The database under the store: transactions on sealed records, and recovery from failed writes.
//!
//! After a failed write redb refuses everything, because it does not know what reached the disk. The store then opens the database again
//! before the next transaction, so that a node continues once there is space again.
//!
//! redb trusts its own pages, and some damage to them makes it panic. The panic is caught here and becomes [`StoreError::Damaged`], as does
//! everything else that shows that the file is not what was written. From then on every transaction is refused: nobody knows what a damaged
//! page has caused, and redb's own locks may be left in any state. (A record that cannot be opened is not such a case: it is
//! [`StoreError::Corrupt`], and the other records remain usable.)

use std::any::Any;
use std::cell::Cell;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::thread;

use parking_lot::RwLock;
use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    TableDefinition, WriteTransaction,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::seal::Seal;
use super::{Result, StoreError};

/// Opens the database again.
pub(super) type Reopen = Box<dyn Fn() -> std::result::Result<Database, DatabaseError> + Send + Sync>;

pub(super) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// A table. The names are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Single values.
    Meta,
    /// By name: a key's properties and state.
    Keys,
    /// By id: a key's shares.
    Shares,
    /// By id: keys that were deleted.
    Tombstones,
    /// By id: blocks that count as spent.
    Spent,
    /// By party: the latest change of its store that was seen.
    Peers,
    /// By id: up to where lots of material count as spent.
    Lots,
}

impl Table {
    pub(super) const ALL: [Table; 7] =
        [Table::Meta, Table::Keys, Table::Shares, Table::Tombstones, Table::Spent, Table::Peers, Table::Lots];

    pub(super) fn name(self) -> &'static str {
        match self {
            Table::Meta => "meta",
            Table::Keys => "keys",
            Table::Shares => "shares",
            Table::Tombstones => "tombstones",
            Table::Spent => "spent",
            Table::Peers => "peers",
            Table::Lots => "spent lots",
        }
    }

    pub(super) fn definition(self) -> Definition {
        TableDefinition::new(self.name())
    }
}

/// The database.
pub(super) struct Engine {
    /// `None` only while it is opened again.
    pub(super) database: RwLock<Option<Database>>,
    pub(super) reopen: Reopen,
    pub(super) failed: AtomicBool,
    /// The damage of the file, once it was found.
    damage: OnceLock<String>,
    pub(super) path: Option<String>,
    seal: Arc<Seal>,
}

impl Engine {
    pub(super) fn new(database: Database, reopen: Reopen, path: Option<&Path>, seal: Arc<Seal>) -> Engine {
        let path = path.map(|p| p.display().to_string());
        let (failed, damage) = (AtomicBool::new(false), OnceLock::new());
        Engine { database: RwLock::new(Some(database)), reopen, failed, damage, path, seal }
    }

    /// Why the file cannot be used any more, if it is damaged.
    pub(super) fn damage(&self) -> Option<StoreError> {
        let detail = self.damage.get()?.clone();
        Some(StoreError::Damaged { file: self.path.clone().unwrap_or_default(), detail })
    }

    /// Remembers damage to the file.
    fn note_damage(&self, error: StoreError) -> StoreError {
        let StoreError::Damaged { detail, .. } = error else { return error };
        if self.damage.set(detail.clone()).is_ok() {
            tracing::error!(
                file = self.path,
                detail,
                "the store is damaged: this node serves nothing any more"
            );
        }
        StoreError::Damaged { file: self.path.clone().unwrap_or_default(), detail }
    }

    /// Reads a state that no other transaction changes meanwhile.
    pub(super) fn read<T>(&self, work: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        self.with_database(|database| {
            let transaction = database.begin_read().map_err(failed)?;
            work(&View { transaction, seal: &self.seal })
        })
    }

    /// Makes a change. Either all of it is durable when this returns, or nothing has changed.
    pub(super) fn write<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        self.with_database(|database| {
            let mut transaction = database.begin_write().map_err(failed)?;
            transaction.set_quick_repair(true);
            let changes = Changes { transaction, seal: &self.seal };
            // The transaction is dropped without a commit, so nothing has changed.
            let done = work(&changes)?;
            changes.transaction.commit().map_err(failed)?;
            Ok(done)
        })
    }

    fn with_database<T>(&self, work: impl FnOnce(&Database) -> Result<T>) -> Result<T> {
        if let Some(damaged) = self.damage() {
            return Err(damaged);
        }
        if self.failed.load(Ordering::Acquire) {
            self.open_anew().map_err(|e| self.note_damage(e))?;
        }
        let database = self.database.read();
        let Some(database) = database.as_ref() else {
            return Err(StoreError::Failed("it could not be opened anew".into()));
        };
        let outcome = contained(|| work(database)).map_err(|e| self.note_damage(e));
        if matches!(outcome, Err(StoreError::Failed(_))) {
            self.failed.store(true, Ordering::Release);
        }
        outcome
    }

    fn open_anew(&self) -> Result<()> {
        let mut database = self.database.write();
        if self.failed.load(Ordering::Acquire) {
            // Dropped first, since it holds the lock of the file.
            let old = database.take();
            contained(|| {
                drop(old);
                Ok(())
            })?;
            *database = Some(open(&self.reopen, self.path.as_ref().map(Path::new))?);
            self.failed.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let database = self.database.get_mut().take();
        // Every change was durable when it was made.
        let _ = contained(|| {
            drop(database);
            Ok(())
        });
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What can be read within a transaction.
pub(super) trait Records {
    /// The sealed value of a record.
    fn sealed(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>>;

    fn seal(&self) -> &Seal;

    /// The sealed records between two, in their order, these included.
    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>>;

    /// The plaintext bytes of a record.
    fn bytes(&self, table: Table, record: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let sealed = self.sealed(table, record)?;
        sealed.map(|sealed| self.seal().open(table.name(), record, &sealed)).transpose()
    }

    /// The decoded value of a record.
    fn get<T: DeserializeOwned>(&self, table: Table, record: &[u8]) -> Result<Option<T>> {
        self.bytes(table, record)?.map(|bytes| decode(table, &bytes)).transpose()
    }

    fn holds(&self, table: Table, record: &[u8]) -> Result<bool> {
        Ok(self.bytes(table, record)?.is_some())
    }
}

/// A state of the store.
pub(super) struct View<'a> {
    transaction: ReadTransaction,
    seal: &'a Seal,
}

impl View<'_> {
    /// Whether a table exists and has records.
    pub(super) fn holds_any(&self, table: Table) -> Result<bool> {
        match self.transaction.open_table(table.definition()) {
            Ok(table) => Ok(!table.is_empty().map_err(failed)?),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(false),
            Err(e) => Err(failed(e)),
        }
    }

    /// Every record of a table, sealed.
    pub(super) fn each_sealed(
        &self,
        table: Table,
        mut work: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let records = self.transaction.open_table(table.definition()).map_err(failed)?;
        for record in records.iter().map_err(failed)? {
            let (key, value) = record.map_err(failed)?;
            work(key.value(), value.value())?;
        }
        Ok(())
    }

    /// Every record of a table, each with the error if it cannot be read.
    pub(super) fn each_readable<T: DeserializeOwned>(
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
    pub(super) fn each<T: DeserializeOwned>(
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
        let table = self.transaction.open_table(table.definition()).map_err(failed)?;
        Ok(table.get(record).map_err(failed)?.map(|value| value.value().to_vec()))
    }

    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        collect(&self.transaction.open_table(table.definition()).map_err(failed)?, first, last)
    }

    fn seal(&self) -> &Seal {
        self.seal
    }
}

/// A change of the store that is being made.
pub(super) struct Changes<'a> {
    transaction: WriteTransaction,
    seal: &'a Seal,
}

impl Changes<'_> {
    /// Makes a table, if it does not exist.
    pub(super) fn touch(&self, table: Table) -> Result<()> {
        self.transaction.open_table(table.definition()).map(drop).map_err(failed)
    }

    /// Removes all records of a table.
    pub(super) fn clear(&self, table: Table) -> Result<()> {
        self.transaction.delete_table(table.definition()).map_err(failed)?;
        self.touch(table)
    }

    pub(super) fn put<T: Serialize>(&self, table: Table, record: &[u8], value: &T) -> Result<()> {
        self.put_bytes(table, record, encode(value, 256)?)
    }

    pub(super) fn put_bytes(&self, table: Table, record: &[u8], value: Zeroizing<Vec<u8>>) -> Result<()> {
        self.put_sealed(table, record, &self.seal.seal(table.name(), record, value)?)
    }

    /// Puts a value that is already sealed.
    pub(super) fn put_sealed(&self, table: Table, record: &[u8], sealed: &[u8]) -> Result<()> {
        let mut table = self.transaction.open_table(table.definition()).map_err(failed)?;
        table.insert(record, sealed).map(drop).map_err(failed)
    }

    pub(super) fn remove(&self, table: Table, record: &[u8]) -> Result<()> {
        let mut table = self.transaction.open_table(table.definition()).map_err(failed)?;
        table.remove(record).map(drop).map_err(failed)
    }
}

impl Records for Changes<'_> {
    fn sealed(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>> {
        let table = self.transaction.open_table(table.definition()).map_err(failed)?;
        Ok(table.get(record).map_err(failed)?.map(|value| value.value().to_vec()))
    }

    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        collect(&self.transaction.open_table(table.definition()).map_err(failed)?, first, last)
    }

    fn seal(&self) -> &Seal {
        self.seal
    }
}

fn collect(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    first: &[u8],
    last: &[u8],
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let range = table.range::<&[u8]>(first..=last).map_err(failed)?;
    range
        .map(|record| {
            let (key, value) = record.map_err(failed)?;
            Ok((key.value().to_vec(), value.value().to_vec()))
        })
        .collect()
}

/// Encodes a value. With enough `room` the buffer does not grow, which would leave copies behind.
pub(super) fn encode<T: Serialize>(value: &T, room: usize) -> Result<Zeroizing<Vec<u8>>> {
    let encoded = postcard::to_extend(value, Vec::with_capacity(room));
    encoded.map(Zeroizing::new).map_err(|e| StoreError::Failed(format!("a record cannot be written: {e}")))
}

/// This node wrote what could be opened. If it cannot be decoded, another version wrote it.
pub(super) fn decode<T: DeserializeOwned>(table: Table, bytes: &[u8]) -> Result<T> {
    let wrong = || StoreError::corrupt(format!("a record of {} (of another version?)", table.name()));
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|_| wrong())?;
    if rest.is_empty() { Ok(value) } else { Err(wrong()) }
}

/// Turns an error of redb into one of the store.
pub(super) fn failed(e: impl Into<redb::Error>) -> StoreError {
    let e = e.into();
    let is_damage = match &e {
        redb::Error::Io(e) => matches!(e.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof),
        redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::RepairAborted
        | redb::Error::TableDoesNotExist(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableIsNotMultimap(_) => true,
        _ => false,
    };
    if is_damage { damaged(e.to_string()) } else { StoreError::Failed(e.to_string()) }
}

/// The path is empty here. The caller, which knows the file, fills it in.
fn damaged(detail: String) -> StoreError {
    StoreError::Damaged { file: String::new(), detail }
}

/// Opens a database.
pub(super) fn open(
    open: impl FnOnce() -> std::result::Result<Database, DatabaseError>,
    path: Option<&Path>,
) -> Result<Database> {
    let file = || path.map_or_else(String::new, |p| p.display().to_string());
    let opened = contained(|| {
        open().map_err(|e| match e {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { path: file() },
            e => failed(e),
        })
    });
    opened.map_err(|e| match e {
        StoreError::Damaged { detail, .. } => StoreError::Damaged { file: file(), detail },
        e => e,
    })
}

thread_local! {
    /// Whether a panic of this thread becomes an error.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that may read damaged pages.
pub(super) fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    static QUIET: Once = Once::new();
    // A panic that becomes an error is not also reported as a crash.
    if !thread::panicking() {
        QUIET.call_once(|| {
            let others = take_hook();
            set_hook(Box::new(move |panic| {
                if !CONTAINED.get() {
                    others(panic);
                }
            }));
        });
    }
    let before = CONTAINED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(before);
    outcome.unwrap_or_else(|panic| Err(damaged(said(&*panic))))
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let said =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the database stopped: {}", said.unwrap_or("it did not say why"))
}

//! The embedded database: one file of redb, and recovery from failed writes.
//!
//! After a failed write redb refuses everything, because it does not know what reached the disk. The store
//! then opens the database again before the next transaction, so that a node continues once there is space
//! again.
//!
//! redb trusts its own pages, and some damage to them makes it panic. The panic is caught here and becomes
//! [`StoreError::Damaged`], as does everything else that shows that the file is not what was written. From
//! then on every transaction is refused: the effects of a damaged page are unknown, and redb's own locks may
//! be left in any state. (A record that cannot be opened is not such a case: it is [`StoreError::Corrupt`],
//! and the other records remain usable.)

use std::any::Any;
use std::cell::Cell;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::thread;

use parking_lot::RwLock;
use redb::{
    Database as Redb, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    TableDefinition, WriteTransaction,
};

use super::super::seal::{Stamp, stamp_of};
use super::super::{Result, StoreError};
use super::{Database, OnRecord, Reading, Record, Scope, Table, Writing};

/// Opens the database again.
pub(in super::super) type Reopen = Box<dyn Fn() -> std::result::Result<Redb, DatabaseError> + Send + Sync>;

pub(in super::super) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(in super::super) fn definition(table: Table) -> Definition {
    TableDefinition::new(table.name())
}

/// A file of redb.
pub(in super::super) struct FileDatabase {
    /// `None` only while it is opened again.
    pub(in super::super) database: RwLock<Option<Redb>>,
    pub(in super::super) reopen: Reopen,
    pub(in super::super) failed: AtomicBool,
    /// The damage of the file, once it was found.
    damage: OnceLock<String>,
    pub(in super::super) path: Option<String>,
}

impl FileDatabase {
    pub(in super::super) fn new(database: Redb, reopen: Reopen, path: Option<&Path>) -> FileDatabase {
        let path = path.map(|p| p.display().to_string());
        let (failed, damage) = (AtomicBool::new(false), OnceLock::new());
        FileDatabase { database: RwLock::new(Some(database)), reopen, failed, damage, path }
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

    fn with_database(&self, work: impl FnOnce(&Redb) -> Result<()>) -> Result<()> {
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

impl Database for FileDatabase {
    fn read(&self, work: &mut dyn FnMut(&dyn Reading) -> Result<()>) -> Result<()> {
        self.with_database(|database| work(&database.begin_read().map_err(failed)?))
    }

    fn peek(&self, records: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = Vec::new();
        self.read(&mut |state| {
            found = records.iter().map(|record| state.get(Table::Meta, record)).collect::<Result<_>>()?;
            Ok(())
        })?;
        Ok(found)
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn write(&self, _: Scope, work: &mut dyn FnMut(&dyn Writing) -> Result<()>) -> Result<()> {
        self.with_database(|database| {
            let mut transaction = database.begin_write().map_err(failed)?;
            transaction.set_quick_repair(true);
            // After an error the transaction is dropped without a commit, so nothing has changed.
            work(&transaction)?;
            transaction.commit().map_err(failed)
        })
    }

    fn erase_replaced(&self) -> Result<()> {
        self.rewrite()
    }

    fn damage(&self) -> Option<StoreError> {
        let detail = self.damage.get()?.clone();
        Some(StoreError::Damaged { file: self.path.clone().unwrap_or_default(), detail })
    }

    fn place(&self) -> &str {
        self.path.as_deref().unwrap_or("in memory")
    }
}

impl Drop for FileDatabase {
    fn drop(&mut self) {
        let database = self.database.get_mut().take();
        // Every change was durable when it was made.
        let _ = contained(|| {
            drop(database);
            Ok(())
        });
    }
}

/// Both kinds of transactions read alike, from tables of two types.
macro_rules! reading {
    ($transaction:ty) => {
        impl Reading for $transaction {
            fn get(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>> {
                let table = self.open_table(definition(table)).map_err(failed)?;
                Ok(table.get(record).map_err(failed)?.map(|value| value.value().to_vec()))
            }

            fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>> {
                collect(&self.open_table(definition(table)).map_err(failed)?, first, last)
            }

            fn each(&self, table: Table, work: &mut OnRecord<'_>) -> Result<()> {
                let records = self.open_table(definition(table)).map_err(failed)?;
                for record in records.iter().map_err(failed)? {
                    let (key, value) = record.map_err(failed)?;
                    work(key.value(), value.value())?;
                }
                Ok(())
            }

            fn stamps(&self, table: Table, work: &mut dyn FnMut(&[u8], Stamp) -> Result<()>) -> Result<()> {
                self.each(table, &mut |record, sealed| work(record, stamp_of(sealed)))
            }

            fn holds_any(&self, table: Table) -> Result<bool> {
                match self.open_table(definition(table)) {
                    Ok(table) => Ok(!table.is_empty().map_err(failed)?),
                    Err(redb::TableError::TableDoesNotExist(_)) => Ok(false),
                    Err(e) => Err(failed(e)),
                }
            }
        }
    };
}

reading!(ReadTransaction);
reading!(WriteTransaction);

impl Writing for WriteTransaction {
    fn touch(&self, table: Table) -> Result<()> {
        self.open_table(definition(table)).map(drop).map_err(failed)
    }

    fn clear(&self, table: Table) -> Result<()> {
        self.delete_table(definition(table)).map_err(failed)?;
        self.touch(table)
    }

    fn put(&self, table: Table, record: &[u8], sealed: &[u8]) -> Result<()> {
        let mut table = self.open_table(definition(table)).map_err(failed)?;
        table.insert(record, sealed).map(drop).map_err(failed)
    }

    fn remove(&self, table: Table, record: &[u8]) -> Result<()> {
        let mut table = self.open_table(definition(table)).map_err(failed)?;
        table.remove(record).map(drop).map_err(failed)
    }
}

fn collect(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    first: &[u8],
    last: &[u8],
) -> Result<Vec<Record>> {
    let range = table.range::<&[u8]>(first..=last).map_err(failed)?;
    range
        .map(|record| {
            let (key, value) = record.map_err(failed)?;
            Ok((key.value().to_vec(), value.value().to_vec()))
        })
        .collect()
}

/// Turns an error of redb into one of the store.
pub(in super::super) fn failed(e: impl Into<redb::Error>) -> StoreError {
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
pub(in super::super) fn open(
    open: impl FnOnce() -> std::result::Result<Redb, DatabaseError>,
    path: Option<&Path>,
) -> Result<Redb> {
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
pub(in super::super) fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
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

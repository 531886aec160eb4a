//! The records of the store: sealed values in tables, read and changed in transactions, in one of two
//! databases.
//!
//! | file | what it has |
//! |---|---|
//! | this one | transactions over the database; the digest of a store that had none |
//! | `table.rs` | the tables |
//! | `records.rs`, `changes.rs` | what a transaction reads and changes; `encoding.rs`: values as bytes |
//! | `database.rs` | what a database has to provide: `file.rs` (redb, embedded), `postgres.rs` (a server; `server.rs`, `connection.rs`, `pool.rs`) |
//! | `digest.rs` | the digest of all covered rows |
//! | `index.rs`, `index/` | which value each covered row has to have |
//! | `ledger.rs` | what a change has done to covered rows, and the next digest |
//! | `change_log.rs` | the latest changes, as workers tell them each other |

mod change_log;
mod changes;
pub(crate) mod connection;
mod database;
pub(super) mod digest;
mod encoding;
pub(super) mod file;
pub(super) mod head;
mod index;
mod ledger;
mod pool;
pub(crate) mod postgres;
mod records;
pub(super) mod server;
mod table;

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::seal::Seal;
use super::{Result, StoreError};

pub(super) use changes::Changes;
pub use database::LotState;
pub(super) use database::{
    Database, Deliveries, OnPeeked, OnRecord, Reading, Record, Scope, Writing, once_released,
};
pub(super) use encoding::{decode, decode_one_of, encode};
pub(super) use records::{Records, View};
pub(super) use table::Table;

use changes::Coverage;
use head::{EDITION, HEAD, Head};
use index::Index;
use ledger::Ledger;

/// The free pages of the file hold what a refresh has replaced.
pub(super) const ERASE: &[u8] = b"erase free pages";
/// How often a transaction begins anew because other workers' changes have overtaken it.
const TRIES: usize = 64;

/// A database, and the key under which records are sealed.
pub(super) struct Engine {
    database: Box<dyn Database>,
    seal: Arc<Seal>,
    index: Index,
}

impl Engine {
    /// An engine that has not read its records yet: [`Engine::load`] does.
    pub(super) fn new(database: Box<dyn Database>, seal: Arc<Seal>) -> Engine {
        Engine { database, seal, index: Index::default() }
    }

    /// Why the database cannot be used any more, if it is damaged, or if its records were put back.
    pub(super) fn damage(&self) -> Option<StoreError> {
        self.database.damage().or_else(|| self.index.damage())
    }

    /// Where the database is, for messages.
    pub(super) fn place(&self) -> &str {
        self.database.place()
    }

    /// See [`Database::deliveries`].
    pub(super) fn deliveries(&self) -> Option<&dyn Deliveries> {
        self.database.deliveries()
    }

    /// What seals records.
    pub(super) fn seal(&self) -> &Seal {
        &self.seal
    }

    /// See [`Database::erase_replaced`].
    pub(super) fn erase_replaced(&self) -> Result<()> {
        self.database.erase_replaced()
    }

    /// Reads a state that no other transaction changes meanwhile.
    pub(super) fn read<T>(&self, work: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        let mut once = Once::new(work);
        for _ in 0..TRIES {
            let reader = self.index.begin()?;
            let mut is_stale = false;
            self.database.read(&mut |state| match reader.snapshot(state, &self.seal)? {
                None => {
                    is_stale = true;
                    Ok(())
                }
                snapshot => once.run(&View::new(state, &self.seal, snapshot)),
            })?;
            if !is_stale {
                return once.outcome();
            }
        }
        Err(unsettled())
    }

    /// Reads a state without comparing its records with anything: before [`Engine::load`] has read them.
    pub(super) fn read_unchecked<T>(&self, work: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        let mut once = Once::new(work);
        self.database.read(&mut |state| once.run(&View::new(state, &self.seal, None)))?;
        once.outcome()
    }

    /// Makes a change. Either all of it is durable when this returns, or nothing has changed.
    pub(super) fn write<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        let reader = self.index.begin()?;
        let mut once = Once::new(work);
        let mut made = None;
        self.database.write(Scope::Party, &mut |change| {
            let snapshot = reader.snapshot(change, &self.seal)?.ok_or_else(unsettled)?;
            let changes = Changes::new(change, &self.seal, Coverage::Kept(Ledger::new(snapshot)));
            once.run(&changes)?;
            if let Coverage::Kept(ledger) = changes.into_coverage() {
                made = ledger.conclude(change, (&self.seal, &self.index), self.database.is_shared())?;
            }
            Ok(())
        })?;
        made.inspect(|number| self.index.confirm(*number));
        once.outcome()
    }

    /// Changes records of this worker alone, which the digest does not cover. This does not wait for changes
    /// of other workers.
    pub(super) fn write_own<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        let mut once = Once::new(work);
        let mut change = |change: &dyn Writing| once.run(&Changes::new(change, &self.seal, Coverage::Own));
        self.database.write(Scope::Worker, &mut change)?;
        once.outcome()
    }

    /// Changes records without changing the digest with them. [`Engine::adopt`] or [`Engine::load`] has to
    /// follow.
    pub(super) fn fill<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        let mut once = Once::new(work);
        let mut change = |change: &dyn Writing| once.run(&Changes::new(change, &self.seal, Coverage::Filled));
        self.database.write(Scope::Party, &mut change)?;
        once.outcome()
    }

    /// Reads all records and compares them with the digest.
    pub(super) fn load(&self) -> Result<()> {
        self.database.read(&mut |state| self.index.load(state, &self.seal))
    }

    /// Computes the digest of all records as they are, for a store from before there was one; with
    /// `also_if_covered` for any store, such as a restored one. Returns whether it did.
    pub(super) fn adopt(&self, also_if_covered: bool) -> Result<bool> {
        let mut adopted = false;
        self.database.write(Scope::Party, &mut |change| {
            let sealed = change.get(Table::Meta, HEAD)?;
            let opened = sealed
                .as_deref()
                .map(|sealed| self.seal.open(Table::Meta.name(), HEAD, sealed))
                .transpose()?;
            let (mut head, is_covered) =
                opened.map_or(Ok((Head::default(), false)), |bytes| Head::read(&bytes))?;
            if is_covered && !also_if_covered {
                return Ok(());
            }
            if let Some(sealed) = change.get(Table::Meta, EDITION)? {
                head.edition = decode(Table::Meta, &self.seal.open(Table::Meta.name(), EDITION, &sealed)?)?;
                change.remove(Table::Meta, EDITION)?;
            }
            head.digest = index::digest_of_all(change, &self.seal)?;
            if sealed.is_none() && head.digest != Default::default() {
                return Err(StoreError::PutBack { what: index::HEAD_RECORD.into() });
            }
            head.changes += 1;
            adopted = true;
            change.put(Table::Meta, HEAD, &self.seal.seal(Table::Meta.name(), HEAD, encode(&head, 2048)?)?)
        })?;
        Ok(adopted)
    }

    /// Reads the head as it is now, and nothing else.
    pub(super) fn peek(&self) -> Result<Arc<Head>> {
        let reader = self.index.begin()?;
        let peeked = self.database.peek(&[HEAD])?;
        self.index.hear(&reader, peeked.first().and_then(|head| head.as_deref()), &self.seal)
    }

    /// Reads two records of [`Table::Meta`] and does work with them. No other process does this at the same
    /// time.
    pub(super) fn alone<A: DeserializeOwned, B: DeserializeOwned, T>(
        &self,
        (first, second): (&[u8], &[u8]),
        work: impl FnOnce(Option<A>, Option<B>) -> Result<T>,
    ) -> Result<T> {
        let reader = self.index.begin()?;
        let (mut work, mut outcome) = (Some(work), None);
        self.database.alone(&[HEAD, first, second], &mut |sealed| {
            let [Some(head), one, other] = sealed.as_slice() else {
                return Err(StoreError::Failed("it was asked for records and gave others".into()));
            };
            let (one, other) = match reader.recall(head) {
                Some(snapshot) => {
                    snapshot.check(Table::Meta, first, one.as_deref())?;
                    snapshot.check(Table::Meta, second, other.as_deref())?;
                    (self.opened(first, one.as_deref())?, self.opened(second, other.as_deref())?)
                }
                // Another worker has changed something since.
                None => self.read(|records| {
                    Ok((records.get(Table::Meta, first)?, records.get(Table::Meta, second)?))
                })?,
            };
            outcome = work.take().map(|work| work(one, other));
            Ok(())
        })?;
        outcome.unwrap_or_else(|| Err(StoreError::Failed("it did not do what it was to do alone".into())))
    }

    /// Opens and decodes the value of a record of [`Table::Meta`].
    fn opened<T: DeserializeOwned>(&self, record: &[u8], sealed: Option<&[u8]>) -> Result<Option<T>> {
        let bytes = sealed.map(|sealed| self.seal.open(Table::Meta.name(), record, sealed)).transpose()?;
        bytes.map(|bytes| decode(Table::Meta, &bytes)).transpose()
    }

    /// Whether other processes may change the records meanwhile.
    pub(super) fn is_shared(&self) -> bool {
        self.database.is_shared()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("place", &self.database.place()).finish_non_exhaustive()
    }
}

/// Work that a transaction does once, and its outcome.
struct Once<W, T> {
    work: Option<W>,
    outcome: Option<T>,
}

impl<W, T> Once<W, T> {
    fn new(work: W) -> Once<W, T> {
        Once { work: Some(work), outcome: None }
    }

    fn run<A>(&mut self, argument: &A) -> Result<()>
    where
        W: FnOnce(&A) -> Result<T>,
    {
        let work = self.work.take().ok_or_else(not_once)?;
        self.outcome = Some(work(argument)?);
        Ok(())
    }

    fn outcome(self) -> Result<T> {
        self.outcome.ok_or_else(not_once)
    }
}

fn not_once() -> StoreError {
    StoreError::Failed("a transaction was not run exactly once".into())
}

fn unsettled() -> StoreError {
    StoreError::Failed("it changes faster than it can be read".into())
}

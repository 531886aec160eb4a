//! The records of the store: sealed values in tables, read and changed in transactions, in one of two databases.
//!
//! ```text
//! Engine (seals and encodes records) -> Database: file.rs (redb, embedded), postgres.rs (a server)
//!    |
//! Index (what each row has to be), Ledger (what a change does to it), Digest (of all rows)
//! ```

pub(super) mod digest;
pub(super) mod file;
mod index;
mod ledger;
pub(crate) mod line;
mod pool;
pub(crate) mod postgres;
pub(super) mod server;

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::head::{HEAD, Head};
use super::seal::{Seal, Stamp};
use super::worker::EDITION;
use super::{Result, StoreError};

use index::{Index, Seen};
use ledger::Ledger;

/// How long a process that has ended, or that carries out an order while no node runs, may take to give a store back.
const RELEASING: Duration = Duration::from_secs(1);

/// Takes a store, and waits for a moment if another process has it.
pub(super) fn once_released<T>(take: impl Fn() -> Result<T>) -> Result<T> {
    let until = Instant::now() + RELEASING;
    loop {
        match take() {
            Err(StoreError::InUse { .. }) if Instant::now() < until => sleep(RELEASING / 20),
            outcome => return outcome,
        }
    }
}

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
    /// By number: the latest changes, for workers that share the store.
    Changes,
}

impl Table {
    /// The tables that are kept; [`Table::Changes`] is of no use to another process.
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
            Table::Changes => "changes",
        }
    }
}

/// A record's key and its sealed value.
pub(super) type Record = (Vec<u8>, Vec<u8>);

/// What is done with each record: with its key and its sealed value.
pub(super) type OnRecord<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// What is done with the sealed values of some records.
pub(super) type OnPeeked<'a> = dyn FnMut(Vec<Option<Vec<u8>>>) -> Result<()> + 'a;

/// Whose records a change is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Records of the party: its workers change them one after the other.
    Party,
    /// Records of this worker alone.
    Worker,
}

/// Where records are kept. It sees names and sizes, and never what is in a record.
pub(super) trait Database: Send + Sync {
    /// Reads a state that no other transaction changes meanwhile. The work is done once at most.
    fn read(&self, work: &mut dyn FnMut(&dyn Reading) -> Result<()>) -> Result<()>;

    /// The sealed values of some records of [`Table::Meta`], in a way that is fast.
    fn peek(&self, records: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Reads some records of [`Table::Meta`], and does work with their sealed values while no other process does this. The work is done once at
    /// most. A file has one process, in which the caller takes care of that.
    fn alone(&self, records: &[&[u8]], work: &mut OnPeeked<'_>) -> Result<()> {
        work(self.peek(records)?)
    }

    /// Makes a change, one at a time. Either all of it is durable when this returns, or nothing has changed; after
    /// [`StoreError::Failed`] it may be either, and the next transaction shows which. The work is done once at most.
    fn write(&self, scope: Scope, work: &mut dyn FnMut(&dyn Writing) -> Result<()>) -> Result<()>;

    /// Whether other processes may change it meanwhile.
    fn is_shared(&self) -> bool;

    /// Takes care that values which were replaced or removed are not found any more in what the database keeps.
    fn erase_replaced(&self) -> Result<()>;

    /// Why it cannot be used any more, if it is damaged.
    fn damage(&self) -> Option<StoreError>;

    /// Where it is, for messages.
    fn place(&self) -> &str;

    /// The way in which workers hand material to each other, if there can be several.
    fn deliveries(&self) -> Option<&dyn Deliveries> {
        None
    }
}

/// How far a lot is that a worker has asked others for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LotState {
    /// It is not here yet.
    Awaited,
    /// It is there.
    Delivered,
    /// The request is gone, or whoever was to make it.
    Gone,
}

/// Requests of workers for lots of material, each with an id, and the lots. They are not durable, and see names and sizes only.
pub(super) trait Deliveries {
    /// Asks for a lot.
    fn ask(&self, id: &[u8], request: &[u8]) -> Result<()>;

    fn state(&self, id: &[u8]) -> Result<LotState>;

    /// Takes a lot out, with the request. Its place is used again.
    fn receive(&self, id: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Removes a request that this worker has made or undertaken.
    fn remove(&self, id: &[u8]) -> Result<()>;

    /// Undertakes the oldest request of a worker that runs. No other one undertakes it any more.
    fn undertake_next(&self) -> Result<Option<Record>>;

    /// Undertakes a request, unless another worker did.
    fn undertake(&self, id: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Puts a lot in. Returns whether it is still asked for.
    fn deliver(&self, id: &[u8], lot: &[u8]) -> Result<bool>;
}

/// A state of the database.
pub(super) trait Reading {
    fn get(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The records between two, in the order of their bytes, these included.
    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>>;

    /// Every record of a table, in the order of their bytes.
    fn each(&self, table: Table, work: &mut OnRecord<'_>) -> Result<()>;

    /// The stamp of every record of a table, in the order of their bytes.
    fn stamps(&self, table: Table, work: &mut dyn FnMut(&[u8], Stamp) -> Result<()>) -> Result<()>;

    /// Whether a table exists and has records.
    fn holds_any(&self, table: Table) -> Result<bool>;
}

/// A change that is being made. It sees what it has changed.
pub(super) trait Writing: Reading {
    /// Makes a table, if it does not exist.
    fn touch(&self, table: Table) -> Result<()>;

    /// Removes all records of a table.
    fn clear(&self, table: Table) -> Result<()>;

    fn put(&self, table: Table, record: &[u8], sealed: &[u8]) -> Result<()>;

    fn remove(&self, table: Table, record: &[u8]) -> Result<()>;
}

/// How often a transaction that other workers' changes have overtaken begins anew.
const TRIES: usize = 64;

/// A database, and the key under which records are sealed.
pub(super) struct Engine {
    database: Box<dyn Database>,
    seal: Arc<Seal>,
    index: Index,
}

impl Engine {
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
            self.database.read(&mut |state| match reader.look(state, &self.seal)? {
                None => {
                    is_stale = true;
                    Ok(())
                }
                seen => once.run(&View { state, seal: &self.seal, seen }),
            })?;
            if !is_stale {
                return once.outcome();
            }
        }
        Err(unsettled())
    }

    /// The same before the records are known to be what was written.
    pub(super) fn read_unchecked<T>(&self, work: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        let mut once = Once::new(work);
        self.database.read(&mut |state| once.run(&View { state, seal: &self.seal, seen: None }))?;
        once.outcome()
    }

    /// Makes a change. Either all of it is durable when this returns, or nothing has changed.
    pub(super) fn write<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        let reader = self.index.begin()?;
        let mut once = Once::new(work);
        let mut made = None;
        self.database.write(Scope::Party, &mut |change| {
            let seen = reader.look(change, &self.seal)?.ok_or_else(unsettled)?;
            let course = Course::Kept(Ledger::new(seen));
            let changes = Changes { change, seal: &self.seal, course };
            once.run(&changes)?;
            if let Course::Kept(ledger) = changes.course {
                made = ledger.conclude(change, (&self.seal, &self.index), self.database.is_shared())?;
            }
            Ok(())
        })?;
        made.inspect(|number| self.index.confirm(*number));
        once.outcome()
    }

    /// The same for records of this worker alone that the digest does not cover: it does not wait for changes of other workers.
    pub(super) fn write_own<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        let mut once = Once::new(work);
        let mut change =
            |change: &dyn Writing| once.run(&Changes { change, seal: &self.seal, course: Course::Own });
        self.database.write(Scope::Worker, &mut change)?;
        once.outcome()
    }

    /// Changes records as they are, without a digest: [`Engine::adopt`] or [`Engine::load`] has to follow.
    pub(super) fn fill<T>(&self, work: impl FnOnce(&Changes) -> Result<T>) -> Result<T> {
        let mut once = Once::new(work);
        let mut change =
            |change: &dyn Writing| once.run(&Changes { change, seal: &self.seal, course: Course::Filled });
        self.database.write(Scope::Party, &mut change)?;
        once.outcome()
    }

    /// Reads all records, which have to be those that were written.
    pub(super) fn load(&self) -> Result<()> {
        self.database.read(&mut |state| self.index.load(state, &self.seal))
    }

    /// Makes the digest of all records as they are: of those from before there was one, or also of restored ones. Returns whether there was
    /// anything to do.
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

    /// The head as it is now, in a way that is fast.
    pub(super) fn peek(&self) -> Result<Arc<Head>> {
        let reader = self.index.begin()?;
        let peeked = self.database.peek(&[HEAD])?;
        self.index.hear(&reader, peeked.first().and_then(|head| head.as_deref()), &self.seal)
    }

    /// Reads two records of [`Table::Meta`], and does work with them while no other process does this.
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
                Some(seen) => {
                    seen.check(Table::Meta, first, one.as_deref())?;
                    seen.check(Table::Meta, second, other.as_deref())?;
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

/// Work that is done once, and what came of it.
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

/// What can be read within a transaction.
pub(super) trait Records {
    /// The sealed value of a record.
    fn sealed(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>>;

    fn seal(&self) -> &Seal;

    /// What the store says of all of itself.
    fn head(&self) -> Arc<Head>;

    /// The sealed records between two, in their order, these included.
    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>>;

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
    state: &'a dyn Reading,
    seal: &'a Seal,
    /// What the records have to be, once that is known.
    seen: Option<Seen<'a>>,
}

impl View<'_> {
    /// Whether a table exists and has records.
    pub(super) fn holds_any(&self, table: Table) -> Result<bool> {
        let found = self.state.holds_any(table)?;
        self.seen.as_ref().map_or(Ok(()), |seen| seen.check_any(table, found))?;
        Ok(found)
    }

    /// Every record of a table, sealed.
    pub(super) fn each_sealed(
        &self,
        table: Table,
        mut work: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(seen) = &self.seen else { return self.state.each(table, &mut work) };
        let (mut before, mut count) = (None, 0);
        self.state.each(table, &mut |record, sealed| {
            seen.check_order(&mut before, table, record)?;
            seen.check(table, record, Some(sealed))?;
            count += usize::from(digest::covered(table, record).is_some());
            work(record, sealed)
        })?;
        seen.check_count(table, None, count)
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
        let found = self.state.get(table, record)?;
        self.seen.as_ref().map_or(Ok(()), |seen| seen.check(table, record, found.as_deref()))?;
        Ok(found)
    }

    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>> {
        let found = self.state.between(table, first, last)?;
        self.seen.as_ref().map_or(Ok(()), |seen| seen.check_range(table, (first, last), &found))?;
        Ok(found)
    }

    fn seal(&self) -> &Seal {
        self.seal
    }

    fn head(&self) -> Arc<Head> {
        self.seen.as_ref().map(|seen| seen.head.clone()).unwrap_or_default()
    }
}

/// What becomes of the digest in a change.
enum Course<'a> {
    /// It goes along.
    Kept(Ledger<'a>),
    /// It stays: only records that it does not cover are changed.
    Own,
    /// It is made afterwards.
    Filled,
}

/// A change of the store that is being made.
pub(super) struct Changes<'a> {
    change: &'a dyn Writing,
    seal: &'a Seal,
    course: Course<'a>,
}

impl Changes<'_> {
    fn ledger(&self) -> Option<&Ledger<'_>> {
        if let Course::Kept(ledger) = &self.course { Some(ledger) } else { None }
    }

    /// Changes what the store says of all of itself.
    pub(super) fn change_head<T>(&self, change: impl FnOnce(&mut Head) -> T) -> Result<T> {
        let ledger = self.ledger().ok_or_else(uncovered)?;
        Ok(ledger.change_head(change))
    }

    /// Notes a change of a record.
    fn note(&self, table: Table, record: &[u8], sealed: Option<&[u8]>) -> Result<()> {
        match &self.course {
            Course::Kept(ledger) => ledger.note(table, record, sealed),
            Course::Own if digest::covered(table, record).is_some() => return Err(uncovered()),
            Course::Own | Course::Filled => {}
        }
        Ok(())
    }

    /// Makes a table, if it does not exist.
    pub(super) fn touch(&self, table: Table) -> Result<()> {
        self.change.touch(table)
    }

    /// Removes all records of a table.
    pub(super) fn clear(&self, table: Table) -> Result<()> {
        if let Course::Kept(ledger) = &self.course {
            ledger.note_cleared(table);
        }
        self.change.clear(table)
    }

    pub(super) fn put<T: Serialize>(&self, table: Table, record: &[u8], value: &T) -> Result<()> {
        self.put_bytes(table, record, encode(value, 256)?)
    }

    pub(super) fn put_bytes(&self, table: Table, record: &[u8], value: Zeroizing<Vec<u8>>) -> Result<()> {
        self.put_sealed(table, record, &self.seal.seal(table.name(), record, value)?)
    }

    /// Puts a value that is already sealed.
    pub(super) fn put_sealed(&self, table: Table, record: &[u8], sealed: &[u8]) -> Result<()> {
        self.note(table, record, Some(sealed))?;
        self.change.put(table, record, sealed)
    }

    pub(super) fn remove(&self, table: Table, record: &[u8]) -> Result<()> {
        self.note(table, record, None)?;
        self.change.remove(table, record)
    }
}

impl Records for Changes<'_> {
    fn sealed(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.change.get(table, record)?;
        self.ledger().map_or(Ok(()), |ledger| ledger.check(table, record, found.as_deref()))?;
        Ok(found)
    }

    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>> {
        let found = self.change.between(table, first, last)?;
        self.ledger().map_or(Ok(()), |ledger| ledger.check_range(table, (first, last), &found))?;
        Ok(found)
    }

    fn seal(&self) -> &Seal {
        self.seal
    }

    fn head(&self) -> Arc<Head> {
        self.ledger().map(Ledger::head).unwrap_or_default()
    }
}

fn unsettled() -> StoreError {
    StoreError::Failed("it changes faster than it can be read".into())
}

fn uncovered() -> StoreError {
    StoreError::Failed("a record that the digest covers was to be changed without it".into())
}

/// Encodes a value. With enough `room` the buffer does not grow, which would leave copies behind.
pub(super) fn encode<T: Serialize>(value: &T, room: usize) -> Result<Zeroizing<Vec<u8>>> {
    let encoded = postcard::to_extend(value, Vec::with_capacity(room));
    encoded.map(Zeroizing::new).map_err(|e| StoreError::Failed(format!("a record cannot be written: {e}")))
}

/// This node wrote what could be opened. If it cannot be decoded, another version wrote it.
pub(super) fn decode<T: DeserializeOwned>(table: Table, bytes: &[u8]) -> Result<T> {
    decode_one_of(table.name(), bytes)
}

/// The same for what is in no table of records.
pub(super) fn decode_one_of<T: DeserializeOwned>(records: &str, bytes: &[u8]) -> Result<T> {
    let wrong = || StoreError::corrupt(format!("a record of {records} (of another version?)"));
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|_| wrong())?;
    if rest.is_empty() { Ok(value) } else { Err(wrong()) }
}

//! PostgreSQL, 13 or newer, as the database: for parties whose store is to outlive a machine.
//!
//! Three tables of records in the schema that the connection's `search_path` begins with:
//!
//! | table | column | |
//! |---|---|---|
//! | `polyclave_store`, one row | `format integer` | the version of these tables |
//! | `polyclave_worker` | `number integer` | a worker of the party (`worker.rs`) |
//! | | `owner bytea` | drawn by the process that opened the store last as this worker |
//! | `polyclave_record` | `kind text` | the record's table: `meta`, `keys`, `shares`, `tombstones`, `spent`, `peers`, `spent lots`, `changes` |
//! | | `name bytea` | its key |
//! | | `value bytea` | its value, sealed under the node's secret |
//!
//! A fourth one, in which workers hand material to each other, is described in `delivery.rs`.
//!
//! **One process for each worker.** A process that opens the store as a worker takes an advisory lock of that
//! worker, which lasts as long as a connection. Then it becomes the owner. Every change locks the owner's row
//! first, and goes on only if this process is still the owner. A process may lose its connection, be stopped
//! for an hour or be cut off, and be replaced meanwhile. When it comes back, it changes nothing any more
//! ([`StoreError::TakenOver`]). A command that moves or replaces the whole store opens it alone, and becomes
//! the owner of all rows.
//!
//! **In an order.** A change of the party's records also locks the row of the store, so such changes are made
//! one after the other. A change of a worker's own records ([`Scope::Worker`]) waits for no other worker.
//!
//! **Durable.** `synchronous_commit` is on, and a server with `fsync = off` is refused. If the connection
//! breaks during a commit, the change may be made or not, and the next transaction shows which: it waits for
//! the lock that the commit holds.
//!
//! **Every wait ends**, also if the server is stopped in the middle of an answer: each statement has a limit
//! at the server and here.

mod delivery;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_protocol::session::random_bytes;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::super::seal::{Stamp, stamp_of};
use super::super::{Result, StoreError};
use super::ERASE;
use super::connection::{Connection, Values};
use super::pool::{Lent, Pool};
use super::server::Server;
use super::{
    Database, Deliveries, OnPeeked, OnRecord, Reading, Record, Scope, Table, Writing, once_released,
};

/// The version of the tables, and of the records in them. Workers of two versions may share a store, so the
/// version grows when an older program could not read what this one writes.
const FORMAT: i32 = 3;
/// The oldest server that these statements were written for.
const OLDEST_SERVER: i32 = 130_000;
/// The first half of the number of the advisory lock of the whole store. The second half is the schema's.
///
/// * Workers share this lock, and each holds a lock of its own, with a number behind this one.
/// * [`LOCK`] - 1 is held while the tables are made or changed.
/// * [`LOCK`] - 2 is held while a worker does something [alone](Database::alone).
const LOCK: i32 = i32::from_be_bytes(*b"clav");

/// The second half of the number of an advisory lock.
const SCHEMA: &str = "current_schema()::regnamespace::oid::integer";

/// How long the server may take to free the locks of this process.
const FREEING: Duration = Duration::from_secs(1);
/// How long the table may take to be rewritten.
const REWRITING: Duration = Duration::from_secs(600);
const TABLES: &str = "CREATE TABLE polyclave_store (format integer NOT NULL); \
    CREATE UNIQUE INDEX ON polyclave_store ((true)); \
    CREATE TABLE polyclave_worker (number integer PRIMARY KEY, owner bytea NOT NULL); \
    CREATE TABLE polyclave_record (kind text NOT NULL, name bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (kind, name))";

/// Some records, and behind an empty name the owner of the worker that asks.
const PEEKED: &str = "SELECT name, value FROM polyclave_record WHERE kind = $1 AND name = ANY($2) \
    UNION ALL SELECT '', owner FROM polyclave_worker WHERE number = $3";

/// From format 1, in which a store had one owner.
const FROM_FORMAT_1: &str = "CREATE TABLE polyclave_worker (number integer PRIMARY KEY, owner bytea NOT NULL); \
    ALTER TABLE polyclave_store DROP COLUMN owner; UPDATE polyclave_store SET format = 3";

/// From format 2, in which no digest covered the records.
const FROM_FORMAT_2: &str = "UPDATE polyclave_store SET format = 3";

/// As what a process opens a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Access {
    /// As one of the workers that share it.
    Worker(u16),
    /// Alone: no worker runs.
    Alone,
}

impl Access {
    /// The row of `polyclave_worker` that its changes lock.
    fn row(self) -> i32 {
        match self {
            Access::Worker(number) => number.into(),
            Access::Alone => 0,
        }
    }
}

/// A store at a server.
pub(in super::super) struct Postgres {
    server: Arc<Server>,
    pool: Pool,
    /// The connection that holds the advisory lock; none once another process has the store.
    keeper: Mutex<Option<Connection>>,
    /// When the last attempt to connect it anew has failed, and why.
    failed: Mutex<Option<(Instant, String)>>,
    owner: [u8; 16],
    access: Access,
    /// Bytes of lots that were taken out since their table was cleaned.
    received: AtomicUsize,
}

impl Postgres {
    /// Opens a store, to be read. Makes its tables if there are none and it may, and changes nothing of a
    /// store that is there. Before it is changed, this process [becomes the owner](Postgres::own).
    pub(in super::super) fn open(server: Server, access: Access, may_make: bool) -> Result<Postgres> {
        let server = Arc::new(server);
        let keeper = Connection::watched(&server)?;
        let mut owner = [0; 16];
        random_bytes(&mut owner)?;
        let this = Postgres {
            server,
            pool: Pool::default(),
            keeper: Mutex::default(),
            failed: Mutex::default(),
            owner,
            access,
            received: AtomicUsize::default(),
        };
        this.check_server(&keeper)?;
        once_released(|| this.try_lock(&keeper))?;
        this.check_tables(&keeper, may_make)?;
        *this.keeper.lock() = Some(keeper);
        Ok(this)
    }

    /// Takes the store over from the process that had it as this worker.
    pub(in super::super) fn own(&self) -> Result<()> {
        let keeper = self.keeper.lock();
        let keeper = keeper.as_ref().ok_or_else(|| self.taken_over())?;
        let mine: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.access.row(), Type::INT4), (&&self.owner[..], Type::BYTEA)];
        let text =
            "INSERT INTO polyclave_worker VALUES ($1, $2) ON CONFLICT (number) DO UPDATE SET owner = $2";
        keeper.ask(text, &mine)?;
        delivery::begin(keeper, self.access.row())?;
        if self.access == Access::Alone {
            keeper.ask("UPDATE polyclave_worker SET owner = $1", &mine[1..])?;
        }
        Ok(())
    }

    fn check_server(&self, connection: &Connection) -> Result<()> {
        let asked = "SELECT current_setting('server_version_num')::integer, current_setting('fsync'), current_schema() IS NULL";
        let row = connection.one(asked, &[])?;
        let (version, fsync, homeless): (i32, String, bool) =
            (connection.column(&row, 0)?, connection.column(&row, 1)?, connection.column(&row, 2)?);
        let wrong = |detail: &str| Err(self.server.unusable(detail));
        if version < OLDEST_SERVER {
            return wrong("is a PostgreSQL older than 13; take a newer one");
        }
        if fsync != "on" {
            return wrong("runs with fsync = off and would lose what it has confirmed; set fsync = on");
        }
        if homeless {
            return wrong(
                "has no schema of the search path; create one, and grant this user the right to make tables in it",
            );
        }
        Ok(())
    }

    fn try_lock(&self, connection: &Connection) -> Result<()> {
        let take = |kind: &str, number: i32| {
            let asked = format!("SELECT pg_try_advisory_lock{kind}($1, {SCHEMA})");
            connection.column::<bool>(&connection.one(&asked, &[(&number, Type::INT4)])?, 0)
        };
        let is_free = match self.access {
            Access::Alone => take("", LOCK)?,
            Access::Worker(_) => take("_shared", LOCK)? && take("", LOCK + 1 + self.access.row())?,
        };
        if is_free {
            return Ok(());
        }
        connection.run("SELECT pg_advisory_unlock_all()")?;
        Err(StoreError::InUse { path: self.server.name().into() })
    }

    /// Looks at the tables, and makes or changes them if that is due. One process at a time: workers may
    /// start together.
    fn check_tables(&self, connection: &Connection, may_make: bool) -> Result<()> {
        connection.run("BEGIN")?;
        let alone = format!("SELECT pg_advisory_xact_lock($1, {SCHEMA})");
        connection.ask(&alone, &[(&(LOCK - 1), Type::INT4)])?;
        let row = connection.one("SELECT to_regclass('polyclave_store') IS NULL", &[])?;
        match (connection.column(&row, 0)?, may_make) {
            (true, false) => {
                return Err(self.server.unusable("has no store of this node; has the node ever run?"));
            }
            (true, true) => {
                let text = format!("{TABLES}; INSERT INTO polyclave_store VALUES ({FORMAT})");
                connection.run(&text)?;
            }
            (false, _) => {}
        }
        let format: i32 =
            connection.column(&connection.one("SELECT format FROM polyclave_store", &[])?, 0)?;
        match format {
            FORMAT => {}
            1 | 2 => {
                connection.run(if format == 1 { FROM_FORMAT_1 } else { FROM_FORMAT_2 })?;
                tracing::info!(
                    store = self.server.name(),
                    "the tables of the store are of format {FORMAT} now"
                );
            }
            _ => {
                return Err(self.server.unusable(&format!(
                    "has a store of format {format}, and this version knows format {FORMAT}; run the version that made it"
                )));
            }
        }
        delivery::make_table(connection)?;
        connection.run("COMMIT")
    }

    /// A connection, while this process has the store.
    fn connection(&self) -> Result<Lent<'_>> {
        let came = Instant::now();
        {
            let mut keeper = self.keeper.lock();
            let current = keeper.as_ref().ok_or_else(|| self.taken_over())?;
            if current.is_closed() {
                let next = self.connected_anew(came)?;
                once_released(|| self.try_lock(&next))?;
                *keeper = Some(next);
            }
        }
        self.pool.lend(&self.server)
    }

    /// Makes another connection that holds the lock, for a caller that came at this time. If an attempt has
    /// failed since then, this does not try again: an attempt at a silent host takes long, and callers would
    /// wait for one after the other.
    fn connected_anew(&self, came: Instant) -> Result<Connection> {
        let mut failed = self.failed.lock();
        if let Some((_, message)) = failed.as_ref().filter(|(at, _)| *at >= came) {
            return Err(self.server.failed(message));
        }
        let connected = Connection::watched(&self.server);
        if let Err(StoreError::Server { detail, .. }) = &connected {
            *failed = Some((Instant::now(), detail.clone()));
        }
        connected
    }

    /// Begins a change: it is the only one of its scope, and this process is still the worker that it was.
    fn begin_change(&self, scope: Scope, connection: &Connection) -> Result<()> {
        let party = match scope {
            Scope::Party => "SELECT FROM polyclave_store FOR UPDATE;",
            Scope::Worker => "",
        };
        let number = self.access.row();
        let owner = connection.first(&format!(
            "BEGIN; {party} SELECT encode(owner, 'hex') FROM polyclave_worker WHERE number = {number} FOR UPDATE"
        ))?;
        let owner = owner.and_then(|digits| hex::decode(digits).ok());
        self.refuse_taken_over(owner.as_deref())
    }

    fn refuse_taken_over(&self, owner: Option<&[u8]>) -> Result<()> {
        if owner == Some(&self.owner[..]) {
            return Ok(());
        }
        // Without a lock: the process that has the store now may need it.
        *self.keeper.lock() = None;
        tracing::error!(
            store = self.server.name(),
            "another process has taken the store over: this one changes nothing any more"
        );
        Err(self.taken_over())
    }

    /// The sealed values of some records, which `ask` gets by [`PEEKED`]. A connection on which something
    /// went wrong is not used again.
    fn peeked(
        &self,
        connection: &Connection,
        records: &[&[u8]],
        ask: impl FnOnce(Values<'_>) -> Result<Vec<Row>>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let rows = ask(&[
            (&Table::Meta.name(), Type::TEXT),
            (&records, Type::BYTEA_ARRAY),
            (&self.access.row(), Type::INT4),
        ])?;
        let found = rows.iter().map(|row| record(connection, row)).collect::<Result<Vec<Record>>>()?;
        let owner = found.iter().find(|(name, _)| name.is_empty()).map(|(_, owner)| &owner[..]);
        self.refuse_taken_over(owner)?;
        let value =
            |record: &&[u8]| found.iter().find(|(name, _)| name == record).map(|(_, value)| value.clone());
        Ok(records.iter().map(value).collect())
    }

    fn taken_over(&self) -> StoreError {
        StoreError::TakenOver { place: self.server.name().into() }
    }

    /// Does work in a transaction that has begun. A connection on which something went wrong is closed, which
    /// ends its transaction.
    fn change(&self, connection: Lent<'_>, work: impl FnOnce(&Transaction) -> Result<()>) -> Result<()> {
        let transaction =
            Transaction { connection: &connection, begin: Cell::new(None), broken: Cell::new(false) };
        let done = work(&transaction);
        let broken = transaction.broken.get();
        match done {
            Ok(()) => connection.run("COMMIT")?,
            Err(e) if broken => return Err(e),
            Err(e) => {
                // If even that fails, the connection is closed.
                if connection.run("ROLLBACK").is_ok() {
                    connection.give_back();
                }
                return Err(e);
            }
        }
        connection.give_back();
        Ok(())
    }
}

impl Drop for Postgres {
    /// Gives the lock back now. If that fails, the server does when it notices that the connection has ended.
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.get_mut() {
            let _ = keeper.run_within(FREEING, "SELECT pg_advisory_unlock_all()");
        }
    }
}

impl Database for Postgres {
    fn read(&self, work: &mut dyn FnMut(&dyn Reading) -> Result<()>) -> Result<()> {
        let connection = self.connection()?;
        let begin = Cell::new(Some("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
        let transaction = Transaction { connection: &connection, begin, broken: Cell::new(false) };
        let done = work(&transaction);
        let (is_unused, broken) = (transaction.begin.get().is_some(), transaction.broken.get());
        if !is_unused && !broken {
            connection.send("COMMIT");
        }
        if !broken {
            connection.give_back();
        }
        done
    }

    fn peek(&self, records: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let connection = self.connection()?;
        let values = self.peeked(&connection, records, |values| connection.ask_planned(PEEKED, values))?;
        connection.give_back();
        Ok(values)
    }

    /// Under an advisory lock. This takes one way to the server and back, and no write. The server frees the
    /// lock of a process that has ended.
    fn alone(&self, records: &[&[u8]], work: &mut OnPeeked<'_>) -> Result<()> {
        let connection = self.connection()?;
        let lock = format!("({}, {SCHEMA})", LOCK - 2);
        // The server looks at the records once it has given the lock.
        let taken = format!("SELECT pg_advisory_lock{lock}");
        let values =
            self.peeked(&connection, records, |values| connection.ask_after(&taken, PEEKED, values))?;
        let done = work(values);
        connection.send(&format!("SELECT pg_advisory_unlock{lock}"));
        connection.give_back();
        done
    }

    fn is_shared(&self) -> bool {
        self.access != Access::Alone
    }

    fn write(&self, scope: Scope, work: &mut dyn FnMut(&dyn Writing) -> Result<()>) -> Result<()> {
        let connection = self.connection()?;
        self.begin_change(scope, &connection)?;
        self.change(connection, |transaction| work(transaction))
    }

    /// Rewrites the table without the dead rows. The server's log of changes and its backups still have them.
    fn erase_replaced(&self) -> Result<()> {
        let connection = self.connection()?;
        connection.run("SET statement_timeout = 0")?;
        // The connection has no limit at the server now, so it is closed afterwards.
        connection.run_within(REWRITING, "VACUUM FULL polyclave_record")?;
        self.write(Scope::Party, &mut |change| change.remove(Table::Meta, ERASE))
    }

    /// The server finds damage by itself, and says so with every answer.
    fn damage(&self) -> Option<StoreError> {
        // Held while it connects anew: then the store still belongs to this process, as far as it knows.
        self.keeper.try_lock().filter(|keeper| keeper.is_none()).map(|_| self.taken_over())
    }

    fn place(&self) -> &str {
        self.server.name()
    }

    fn deliveries(&self) -> Option<&dyn Deliveries> {
        Some(self)
    }
}

fn record(connection: &Connection, row: &Row) -> Result<Record> {
    Ok((connection.column(row, 0)?, connection.column(row, 1)?))
}

/// A transaction that goes on.
struct Transaction<'a> {
    connection: &'a Connection,
    /// What begins it, if nothing has been asked yet: it goes together with the first question.
    begin: Cell<Option<&'static str>>,
    /// Whether a statement has failed: then the connection is not used again.
    broken: Cell<bool>,
}

impl Transaction<'_> {
    fn ask(&self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        let asked = match self.begin.take() {
            None => self.connection.ask(text, values),
            Some(begin) => self.connection.ask_after(begin, text, values),
        };
        asked.inspect_err(|_| self.broken.set(true))
    }

    /// Reads a table in pieces, so that a store of any size is read in little memory and each answer is soon
    /// there.
    fn in_pieces(&self, text: &str, table: Table, work: &mut OnRecord<'_>) -> Result<()> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let rows = self.ask(text, &[(&table.name(), Type::TEXT), (&after, Type::BYTEA)])?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(self.connection.column(last, 0)?);
            for row in &rows {
                work(self.connection.column(row, 0)?, self.connection.column(row, 1)?)?;
            }
        }
    }
}

impl Reading for Transaction<'_> {
    fn get(&self, table: Table, record: &[u8]) -> Result<Option<Vec<u8>>> {
        let rows = self.ask(
            "SELECT value FROM polyclave_record WHERE kind = $1 AND name = $2",
            &[(&table.name(), Type::TEXT), (&record, Type::BYTEA)],
        )?;
        rows.first().map(|row| self.connection.column(row, 0)).transpose()
    }

    fn between(&self, table: Table, first: &[u8], last: &[u8]) -> Result<Vec<Record>> {
        let rows = self.ask(
            "SELECT name, value FROM polyclave_record WHERE kind = $1 AND name BETWEEN $2 AND $3 ORDER BY name",
            &[(&table.name(), Type::TEXT), (&first, Type::BYTEA), (&last, Type::BYTEA)],
        )?;
        rows.iter().map(|row| record(self.connection, row)).collect()
    }

    fn each(&self, table: Table, work: &mut OnRecord<'_>) -> Result<()> {
        let text = "SELECT name, value FROM polyclave_record WHERE kind = $1 AND ($2::bytea IS NULL OR name > $2) ORDER BY name LIMIT 500";
        self.in_pieces(text, table, work)
    }

    fn stamps(&self, table: Table, work: &mut dyn FnMut(&[u8], Stamp) -> Result<()>) -> Result<()> {
        // Only the beginnings of values leave the server.
        let text = format!(
            "SELECT name, substring(value FROM 1 FOR {}) FROM polyclave_record WHERE kind = $1 AND ($2::bytea IS NULL OR name > $2) ORDER BY name LIMIT 5000",
            1 + size_of::<Stamp>()
        );
        self.in_pieces(&text, table, &mut |record, sealed| work(record, stamp_of(sealed)))
    }

    fn holds_any(&self, table: Table) -> Result<bool> {
        let rows = self.ask(
            "SELECT EXISTS (SELECT FROM polyclave_record WHERE kind = $1)",
            &[(&table.name(), Type::TEXT)],
        )?;
        rows.first().map_or(Ok(false), |row| self.connection.column(row, 0))
    }
}

impl Writing for Transaction<'_> {
    fn touch(&self, _table: Table) -> Result<()> {
        Ok(())
    }

    fn clear(&self, table: Table) -> Result<()> {
        self.ask("DELETE FROM polyclave_record WHERE kind = $1", &[(&table.name(), Type::TEXT)]).map(drop)
    }

    fn put(&self, table: Table, record: &[u8], sealed: &[u8]) -> Result<()> {
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&table.name(), Type::TEXT), (&record, Type::BYTEA), (&sealed, Type::BYTEA)];
        let text = "INSERT INTO polyclave_record VALUES ($1, $2, $3) ON CONFLICT (kind, name) DO UPDATE SET value = $3";
        self.ask(text, &values).map(drop)
    }

    fn remove(&self, table: Table, record: &[u8]) -> Result<()> {
        self.ask(
            "DELETE FROM polyclave_record WHERE kind = $1 AND name = $2",
            &[(&table.name(), Type::TEXT), (&record, Type::BYTEA)],
        )
        .map(drop)
    }
}

#[cfg(test)]
pub(in super::super) mod tests;

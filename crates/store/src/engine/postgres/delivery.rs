//! The table in which workers of a party ask each other for material ([`Deliveries`]).
//!
//! | table | column | |
//! |---|---|---|
//! | `polyclave_delivery` | `number bigint` | the order in which was asked |
//! | | `id bytea` | the request, one for each lot |
//! | | `worker integer` | who asks |
//! | | `request bytea` | what for, sealed under the node's secret |
//! | | `maker integer` | who makes it; `NULL` as long as nobody does |
//! | | `lot bytea` | the material, sealed to whoever asked; `NULL` until it is there |
//!
//! The table is not logged: nothing in it reaches the server's log of changes, its backups and replicas, and
//! it is empty after a crash of the server. Then the lots are asked for again. Its advisory lock shows
//! whether a worker still runs.

use std::sync::atomic::Ordering::Relaxed;

use tokio_postgres::types::Type;

use super::super::super::Result;
use super::super::connection::Connection;
use super::super::{Deliveries, LotState, Record};
use super::{LOCK, Postgres};

/// What is sealed cannot be compressed, so the server need not try.
const TABLE: &str = "CREATE UNLOGGED TABLE polyclave_delivery (number bigint GENERATED ALWAYS AS IDENTITY, id bytea PRIMARY KEY, \
                     worker integer NOT NULL, request bytea NOT NULL, maker integer, lot bytea); \
                     ALTER TABLE polyclave_delivery ALTER COLUMN lot SET STORAGE EXTERNAL";

/// After this many bytes of lots their space in the table is reclaimed.
const VACUUMED_AFTER: usize = 64 << 20;

/// Whether the worker in this column runs.
fn runs(column: &str) -> String {
    format!(
        "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND classid = ({} + {column})::oid AND objid = current_schema()::regnamespace::oid)",
        LOCK + 1
    )
}

/// Makes the table if it is not there. No other process looks at the tables meanwhile.
pub(super) fn make_table(connection: &Connection) -> Result<()> {
    let row = connection.one("SELECT to_regclass('polyclave_delivery') IS NULL", &[])?;
    if connection.column(&row, 0)? { connection.run(TABLE) } else { Ok(()) }
}

/// Removes what an earlier process of this worker asked for, or was to make.
pub(super) fn begin(connection: &Connection, worker: i32) -> Result<()> {
    connection
        .ask("DELETE FROM polyclave_delivery WHERE worker = $1 OR maker = $1", &[(&worker, Type::INT4)])
        .map(drop)
}

impl Postgres {
    /// Lets the server use the place of lots that were taken out, before it would do so by itself.
    fn vacuum(&self) {
        let vacuumed = self.connection().and_then(|connection| {
            connection.run("VACUUM (SKIP_LOCKED) polyclave_delivery")?;
            connection.give_back();
            Ok(())
        });
        if let Err(e) = vacuumed {
            tracing::debug!(error = %e, "the table of lots grows until the server makes room in it by itself");
        }
    }

    /// One statement, which is a transaction of its own. A connection on which something went wrong is not
    /// used again.
    fn once(&self, text: &str, values: super::Values<'_>) -> Result<Option<Record>> {
        let connection = self.connection()?;
        let rows = connection.ask(text, values)?;
        let record = rows.first().map(|row| super::record(&connection, row)).transpose()?;
        connection.give_back();
        Ok(record)
    }
}

impl Deliveries for Postgres {
    fn ask(&self, id: &[u8], request: &[u8]) -> Result<()> {
        self.once(
            "INSERT INTO polyclave_delivery (id, worker, request) VALUES ($1, $2, $3)",
            &[(&id, Type::BYTEA), (&self.access.row(), Type::INT4), (&request, Type::BYTEA)],
        )
        .map(drop)
    }

    fn state(&self, id: &[u8]) -> Result<LotState> {
        let text = format!(
            "SELECT '\\x'::bytea, CASE WHEN lot IS NOT NULL THEN '\\x02'::bytea WHEN maker IS NULL OR {} THEN '\\x01'::bytea ELSE '\\x00'::bytea END \
             FROM polyclave_delivery WHERE id = $1",
            runs("maker")
        );
        let found = self.once(&text, &[(&id, Type::BYTEA)])?;
        Ok(match found.as_ref().and_then(|(_, state)| state.first()) {
            Some(2) => LotState::Delivered,
            Some(1) => LotState::Awaited,
            _ => LotState::Gone,
        })
    }

    fn receive(&self, id: &[u8]) -> Result<Option<Vec<u8>>> {
        let received = self.once(
            "DELETE FROM polyclave_delivery WHERE id = $1 AND lot IS NOT NULL RETURNING id, lot",
            &[(&id, Type::BYTEA)],
        )?;
        if let Some((_, lot)) = &received
            && self.received.fetch_add(lot.len(), Relaxed) + lot.len() > VACUUMED_AFTER
        {
            self.received.store(0, Relaxed);
            self.vacuum();
        }
        Ok(received.map(|(_, lot)| lot))
    }

    fn remove(&self, id: &[u8]) -> Result<()> {
        self.once(
            "DELETE FROM polyclave_delivery WHERE id = $1 AND (worker = $2 OR maker = $2) RETURNING id, id",
            &[(&id, Type::BYTEA), (&self.access.row(), Type::INT4)],
        )
        .map(drop)
    }

    fn undertake_next(&self) -> Result<Option<Record>> {
        let text = format!(
            "UPDATE polyclave_delivery SET maker = $1 WHERE id = (SELECT id FROM polyclave_delivery WHERE maker IS NULL AND {} \
             ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, request",
            runs("worker")
        );
        self.once(&text, &[(&self.access.row(), Type::INT4)])
    }

    fn undertake(&self, id: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.once(
            "UPDATE polyclave_delivery SET maker = $1 WHERE id = $2 AND (maker IS NULL OR maker = $1) RETURNING id, request",
            &[(&self.access.row(), Type::INT4), (&id, Type::BYTEA)],
        )?;
        Ok(found.map(|(_, request)| request))
    }

    fn deliver(&self, id: &[u8], lot: &[u8]) -> Result<bool> {
        let text = "UPDATE polyclave_delivery SET lot = $1 WHERE id = $2 AND lot IS NULL RETURNING id, id";
        Ok(self.once(text, &[(&lot, Type::BYTEA), (&id, Type::BYTEA)])?.is_some())
    }
}

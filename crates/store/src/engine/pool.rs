//! The connections of a process with the server of its store: few, since a server accepts only a few, and
//! they are kept open.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::super::Result;
use super::connection::{ANSWERING, Connection};
use super::server::Server;

/// The most connections of a process, besides the one that holds its lock.
const MAX: usize = 3;

/// Connections, those that are lent included.
#[derive(Default)]
pub(super) struct Pool {
    held: Mutex<Held>,
    given_back: Condvar,
}

#[derive(Default)]
struct Held {
    idle: Vec<Connection>,
    lent: usize,
}

/// A connection for one transaction. It is closed when this is dropped, which ends the transaction, unless it
/// is given back.
pub(super) struct Lent<'p> {
    pool: &'p Pool,
    connection: Option<Connection>,
    is_sound: bool,
}

impl Pool {
    /// Lends a connection, or waits for one.
    pub(super) fn lend(&self, server: &Arc<Server>) -> Result<Lent<'_>> {
        let until = Instant::now() + ANSWERING;
        let mut held = self.held.lock();
        while held.lent >= MAX {
            if self.given_back.wait_until(&mut held, until).timed_out() {
                return Err(server.failed(format!(
                    "its {MAX} connections with it were in use for {} s",
                    ANSWERING.as_secs()
                )));
            }
        }
        held.lent += 1;
        let mut lent = Lent { pool: self, connection: None, is_sound: false };
        while let Some(connection) = held.idle.pop() {
            if !connection.turns_out_closed() {
                lent.connection = Some(connection);
                return Ok(lent);
            }
        }
        drop(held);
        lent.connection = Some(Connection::new(server)?);
        Ok(lent)
    }
}

impl Lent<'_> {
    /// No transaction is open on it.
    pub(super) fn give_back(mut self) {
        self.is_sound = true;
    }
}

impl Deref for Lent<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is lent with a connection")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let connection = self.connection.take().filter(|_| self.is_sound);
        let mut held = self.pool.held.lock();
        held.lent -= 1;
        held.idle.extend(connection);
        self.pool.given_back.notify_one();
    }
}

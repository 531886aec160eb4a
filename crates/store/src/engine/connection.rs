//! One connection with the server of a store. Every wait for it ends.

use std::cell::OnceCell;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Row, SimpleQueryMessage, Statement};

use super::super::{Result, StoreError};
use super::server::Server;

const CONNECTING: Duration = Duration::from_secs(10);
/// How long a statement may take here. At the server it may take a little less, so that it is over when it is
/// given up here.
pub(super) const ANSWERING: Duration = Duration::from_secs(15);
/// For each connection. A server that hears nothing of a client any more frees its lock within half a minute,
/// so that another process can start.
const SESSION: &str = "SET statement_timeout = '12s'; SET lock_timeout = '12s'; SET idle_in_transaction_session_timeout = '60s'; \
                       SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET synchronous_commit = on; SET client_min_messages = warning";

/// Values of a statement, with their types.
pub(super) type Values<'v> = &'v [(&'v (dyn ToSql + Sync), Type)];

/// A connection.
pub(super) struct Connection {
    server: Arc<Server>,
    client: Client,
    /// The runtime that reads and writes it.
    runtime: Arc<Runtime>,
    /// A statement that is planned once, since it is run for every request.
    planned: OnceCell<Statement>,
}

impl Connection {
    /// A connection that the threads which wait for answers read and write themselves: no other thread has to
    /// be woken for each.
    pub(super) fn new(server: &Arc<Server>) -> Result<Connection> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Connection::on(Arc::new(runtime.map_err(|e| server.failed(e))?), server)
    }

    /// A connection that a thread looks after, so that it is known soon if it has ended.
    pub(super) fn watched(server: &Arc<Server>) -> Result<Connection> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("store").enable_all().build();
        Connection::on(Arc::new(runtime.map_err(|e| server.failed(e))?), server)
    }

    fn on(runtime: Arc<Runtime>, server: &Arc<Server>) -> Result<Connection> {
        let connected = runtime.block_on(async {
            timeout(CONNECTING, async {
                let (client, connection) = server.connect().await?;
                // It ends with the client, or with the connection, which the client then reports.
                tokio::spawn(connection);
                client.batch_execute(SESSION).await?;
                Ok::<Client, tokio_postgres::Error>(client)
            })
            .await
        });
        let client = match connected {
            Ok(connected) => connected.map_err(|e| server.failed(message_of(&e)))?,
            Err(_) => return Err(server.failed(format!("no connection within {} s", CONNECTING.as_secs()))),
        };
        Ok(Connection { server: server.clone(), client, runtime, planned: OnceCell::new() })
    }

    /// Whether it is known to have ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The same, after a check of the connection, for connections that nothing else reads.
    pub(super) fn turns_out_closed(&self) -> bool {
        self.runtime.block_on(async {
            // The first lets the runtime hear what has arrived, and the second lets the connection read it.
            yield_now().await;
            yield_now().await;
        });
        self.client.is_closed()
    }

    fn wait<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        match self.runtime.block_on(async { timeout(limit, answer).await }) {
            Ok(answer) => answer.map_err(|e| self.server.failed(message_of(&e))),
            Err(_) => Err(self.server.failed(format!("it has not answered within {} s", limit.as_secs()))),
        }
    }

    /// Runs statements that give nothing.
    pub(super) fn run(&self, text: &str) -> Result<()> {
        self.run_within(ANSWERING, text)
    }

    pub(super) fn run_within(&self, limit: Duration, text: &str) -> Result<()> {
        self.wait(limit, self.client.batch_execute(text))
    }

    /// Sends statements whose outcome does not matter, and does not wait for it: the next ones on this
    /// connection come after them.
    pub(super) fn send(&self, text: &str) {
        let mut sent = Box::pin(self.client.batch_execute(text));
        self.runtime.block_on(async {
            poll_fn(|context| {
                let _ = sent.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
            yield_now().await;
        });
    }

    /// The rows that a statement gives.
    pub(super) fn ask(&self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        self.wait(ANSWERING, self.client.query_typed(text, values))
    }

    /// The same, with statements that are sent before it without waiting for their end.
    pub(super) fn ask_after(&self, before: &str, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        self.wait(ANSWERING, async {
            let both = tokio::try_join!(biased; self.client.batch_execute(before), self.client.query_typed(text, values));
            both.map(|(_, rows)| rows)
        })
    }

    /// The rows of the one statement that this connection plans once.
    pub(super) fn ask_planned(&self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        let statement = match self.planned.get() {
            Some(planned) => planned,
            None => {
                let types: Vec<Type> = values.iter().map(|(_, of)| of.clone()).collect();
                let planned = self.wait(ANSWERING, self.client.prepare_typed(text, &types))?;
                self.planned.get_or_init(|| planned)
            }
        };
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|(value, _)| *value).collect();
        self.wait(ANSWERING, self.client.query(statement, &values))
    }

    /// The one row that a statement gives.
    pub(super) fn one(&self, text: &str, values: Values<'_>) -> Result<Row> {
        let mut rows = self.ask(text, values)?;
        rows.pop().ok_or_else(|| {
            self.server.unusable("lacks the row of the store; restore it, or make the store anew")
        })
    }

    /// The first value that statements give, as text.
    pub(super) fn first(&self, text: &str) -> Result<Option<String>> {
        let answers = self.wait(ANSWERING, self.client.simple_query(text))?;
        Ok(answers.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) if !row.is_empty() => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }

    /// A value of a row.
    pub(super) fn column<'r, T: FromSql<'r>>(&self, row: &'r Row, at: usize) -> Result<T> {
        row.try_get(at).map_err(|e| self.server.failed(message_of(&e)))
    }
}

/// Makes a schema in the database of a URL. Returns the URL of a store in it.
pub fn make_schema(
    url: &str,
    password: Option<&std::path::Path>,
    schema: &str,
) -> std::result::Result<String, StoreError> {
    let nowhere = std::path::Path::new("");
    let server = Server::new(url, password.unwrap_or(nowhere), nowhere)?;
    Connection::new(&Arc::new(server))?.run(&format!("CREATE SCHEMA {schema}"))?;
    let and = if url.contains('?') { '&' } else { '?' };
    Ok(format!("{url}{and}options=-csearch_path%3D{schema}"))
}

/// What the server, or the way to it, said.
fn message_of(error: &tokio_postgres::Error) -> String {
    let mut text = match error.as_db_error() {
        Some(said) => return format!("{} ({})", said.message(), said.code().code()),
        None => error.to_string(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        text += &format!(": {deeper}");
        cause = deeper.source();
    }
    text
}

//! What an operation is done with: the client that asks, its rights, and the nodes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polyclave_api::{KeyVersion, Right};
use polyclave_client::Client;
use tokio::time::timeout;

use super::codes::{Version, tag};
use super::fields::Fields;
use super::object::{Stop, read_identifier};
use super::refused::{Reason, Result, invalid, missing};
use super::ttlv::{Value, Writer};
use crate::failure::Failure;
use crate::queue::Queue;
use crate::tokens::KmipClient;

/// A request of a client.
pub(super) struct Call<'c> {
    pub(super) client: &'c KmipClient,
    pub(super) queue: &'c Queue,
    /// The time within which an item of the batch is answered.
    pub(super) within: Duration,
    pub(super) version: Version,
}

/// What an operation has come to.
pub(super) struct Done {
    /// The items of the response's payload.
    pub(super) payload: Writer,
    pub(super) placeholder: Placeholder,
}

/// The unique identifier that operations after this one in the batch mean if they name none.
pub(super) enum Placeholder {
    /// That of before.
    Same,
    /// Another one, or none.
    Now(Option<String>),
}

impl Done {
    /// Writes a payload of about so many bytes.
    pub(super) fn with(bytes: usize, write: impl FnOnce(&mut Writer)) -> Done {
        let mut payload = Writer::with_capacity(bytes);
        write(&mut payload);
        Done { payload, placeholder: Placeholder::Same }
    }

    /// The same for what an operation has done with one object.
    pub(super) fn to(identifier: String, bytes: usize, write: impl FnOnce(&mut Writer, &str)) -> Done {
        let done = Done::with(bytes + identifier.len(), |payload| write(payload, &identifier));
        Done { placeholder: Placeholder::Now(Some(identifier)), ..done }
    }
}

impl Call<'_> {
    /// Refuses what the entry of the client does not allow, whether or not the key is there.
    pub(super) fn may(&self, right: Right, key: &str) -> Result<()> {
        match self.client.entry.allows(right, key) {
            true => Ok(()),
            false => Err(Reason::PermissionDenied
                .because(format!("this client does not have the right {right} with this key"))),
        }
    }

    /// Asks the nodes for something that changes nothing.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl Fn(&Client) -> std::result::Result<T, Stop> + Send + 'static,
    ) -> Result<T> {
        self.in_time(self.client.asker.ask(self.queue, move |client| judged(work(client)))).await
    }

    /// Asks once for a change.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Client) -> std::result::Result<T, Stop> + Send + 'static,
    ) -> Result<T> {
        self.in_time(self.client.asker.change(self.queue, move |client| judged(work(client)))).await
    }

    async fn in_time<T>(
        &self,
        asked: impl Future<Output = std::result::Result<Result<T>, Failure>>,
    ) -> Result<T> {
        timeout(self.within, asked).await.unwrap_or(Err(Failure::Late))?
    }
}

/// Leaves the errors of the nodes to who asks them again.
fn judged<T>(outcome: std::result::Result<T, Stop>) -> polyclave_client::Result<Result<T>> {
    match outcome {
        Ok(done) => Ok(Ok(done)),
        Err(Stop::Refused(refused)) => Ok(Err(refused)),
        Err(Stop::Nodes(error)) => Err(error),
    }
}

/// The key that a payload names, or that the operation before it in the batch was about.
pub(super) fn key(payload: &mut Fields<'_>, placeholder: Option<&str>) -> Result<KeyVersion> {
    let wrong = || invalid("unique identifier");
    let identifier = match payload.take(tag::UNIQUE_IDENTIFIER)? {
        Some(Value::Text(text)) => text,
        Some(_) => return Err(wrong()),
        None => placeholder.ok_or_else(|| missing("unique identifier"))?,
    };
    read_identifier(identifier).ok_or_else(wrong)
}

/// Seconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The nodes have answered as they never should.
pub(super) fn nonsense(what: &str) -> Stop {
    Stop::Nodes(polyclave_client::Error::Answers(what.into()))
}

//! Asking the nodes: on threads of their own, since the client library waits, with a limit on the requests at
//! a time, and in turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_client::{Again, Client, Result};

use crate::failure::Failure;
use crate::memory::Held;
use crate::queue::{Full, Place, Queue};
use crate::traced;

/// How often a use of a key is tried at once if nodes fail in the middle of it.
const TRIES: usize = 3;
/// A request whose line is full is refused after this time. A caller that is refused at once asks again at
/// once, and each of these requests takes processor time of the gateway from the other callers.
const REFUSED_AFTER: Duration = Duration::from_secs(1);

/// A caller on whose behalf the gateway asks.
#[derive(Clone)]
pub(crate) struct Asker {
    /// The name of the token or the KMS.
    pub(crate) name: Arc<str>,
    /// The gateway's client, on behalf of that name.
    pub(crate) client: Arc<Client>,
    /// What the request holds of the memory, until the nodes are done.
    pub(crate) held: Option<Arc<Held>>,
}

impl Asker {
    pub(crate) fn new(client: &Client, name: &str) -> Result<Asker> {
        let client = Arc::new(client.on_behalf_of(name)?);
        Ok(Asker { name: name.into(), client, held: None })
    }

    /// Asks for something that changes nothing, so that it can be asked for again if a node fails.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        queue: &Queue,
        work: impl Fn(&Client) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, Failure> {
        Ok(self.try_to_ask(queue, work).await??)
    }

    /// The same for callers that judge the error of the nodes themselves.
    pub(crate) async fn try_to_ask<T: Send + 'static>(
        &self,
        queue: &Queue,
        work: impl Fn(&Client) -> Result<T> + Send + 'static,
    ) -> std::result::Result<Result<T>, Failure> {
        self.run(queue, move |client| {
            let (mut tries, mut again) = (1, Again::without_failed_nodes(client));
            loop {
                match work(client) {
                    Err(e) if e.may_be_repeated() && tries < TRIES => tries += 1,
                    Err(e) if again.after(&e) => {}
                    outcome => return outcome,
                }
            }
        })
        .await
    }

    /// Asks once for a change.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        queue: &Queue,
        work: impl FnOnce(&Client) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, Failure> {
        Ok(self.run(queue, work).await??)
    }

    async fn run<T: Send + 'static>(
        &self,
        queue: &Queue,
        work: impl FnOnce(&Client) -> Result<T> + Send + 'static,
    ) -> std::result::Result<Result<T>, Failure> {
        let (trace, came) = (traced::current(), Instant::now());
        trace.iter().for_each(|trace| trace.note_caller(&self.name));
        let place = place(queue, &self.name).await?;
        trace.iter().for_each(|trace| trace.add("queue", came));
        let (client, held) = (self.client.clone(), self.held.clone());
        // If the caller goes away, the request with the nodes ends all the same, and holds its place and its
        // memory until then.
        let done = tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            let outcome = match &trace {
                Some(trace) => work(&client.in_trace(Some(trace.context()))),
                None => work(&client),
            };
            drop((place, held));
            trace.iter().for_each(|trace| trace.add("nodes", began));
            outcome
        });
        match done.await {
            Ok(outcome) => Ok(outcome),
            Err(_) => {
                Err(Failure::Internal("the request ended with an error of this program; see its log".into()))
            }
        }
    }
}

async fn place(queue: &Queue, line: &Arc<str>) -> std::result::Result<Place, Failure> {
    match queue.place(line).await {
        Ok(place) => Ok(place),
        Err(Full) => {
            tokio::time::sleep(REFUSED_AFTER).await;
            Err(Failure::Full)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_whose_line_is_full_is_not_refused_at_once() {
        let queue = Queue::new(1, 0);
        let line: Arc<str> = "a".into();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let refused = tokio::time::timeout(REFUSED_AFTER / 2, place(&queue, &line)).await;
            assert!(refused.is_err(), "it waits");
            assert_eq!(place(&queue, &line).await.err(), Some(Failure::Full));
        });
    }
}

//! The thread that sends spans to a collector, and the queue before it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use polyclave_protocol::{Error, Result};
use ureq::Agent;

use crate::otlp::document;
use crate::span::Span;

/// The most spans that wait. What comes when there is no room is lost.
const MOST_WAITING: usize = 8192;
/// The most spans that are sent at once.
const AT_ONCE: usize = 512;
/// Spans are sent when so many wait, or after this time.
const EVERY: Duration = Duration::from_secs(1);
/// How long the collector may take for a document; when the process ends, how long it may take for the last
/// one.
const WITHIN: Duration = Duration::from_secs(5);
const LAST_WITHIN: Duration = Duration::from_secs(1);
/// The most bytes of its answer.
const MAX_ANSWER: u64 = 64 << 10;

/// Texts about the process, which all its spans have.
pub type Resource = Vec<(&'static str, String)>;

/// Sends spans to a collector. It ends when this is dropped.
pub struct Exporter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What has become of the spans so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// The collector has taken them.
    pub sent: u64,
    /// The queue was full.
    pub dropped: u64,
    /// The collector did not take them.
    pub failed: u64,
}

struct Shared {
    collector: String,
    resource: Resource,
    waiting: Mutex<VecDeque<Span>>,
    /// There is a document's worth of spans, or the end has come.
    due: Condvar,
    stopping: AtomicBool,
    sent: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Exporter {
    /// Starts the thread that sends spans to a collector, `http://HOST:PORT/v1/traces`. The collector need
    /// not be there.
    pub fn start(collector: &str, resource: Resource) -> Result<Arc<Exporter>> {
        let shared = Arc::new(Shared {
            collector: collector.into(),
            resource,
            waiting: Mutex::default(),
            due: Condvar::new(),
            stopping: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("traces".into()).spawn(move || of_thread.run());
        let thread = thread.map_err(|e| Error::System(format!("no thread for traces: {e}")))?;
        Ok(Arc::new(Exporter { shared, thread: Some(thread) }))
    }

    /// Takes spans, or counts them as lost. It waits for nobody but another caller of this.
    pub(crate) fn offer(&self, spans: Vec<Span>) {
        let mut waiting = self.shared.waiting.lock();
        if waiting.len() + spans.len() > MOST_WAITING {
            self.shared.dropped.fetch_add(spans.len() as u64, Relaxed);
            return;
        }
        waiting.extend(spans);
        let is_due = waiting.len() >= AT_ONCE;
        drop(waiting);
        if is_due {
            self.shared.due.notify_one();
        }
    }

    /// What has become of the spans so far.
    pub fn counts(&self) -> SpanCounts {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let Shared { sent, dropped, failed, .. } = &*self.shared;
        SpanCounts { sent: of(sent), dropped: of(dropped), failed: of(failed) }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        {
            // Under the lock, so that the thread does not go to sleep in between.
            let _waiting = self.shared.waiting.lock();
            self.shared.stopping.store(true, Relaxed);
        }
        self.shared.due.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread has no result.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let (agent, last) = (agent(WITHIN), agent(LAST_WITHIN));
        let mut works = true;
        loop {
            let spans = self.next();
            let is_last = self.stopping.load(Relaxed);
            if spans.is_empty() {
                if is_last {
                    return;
                }
                continue;
            }
            let began = Instant::now();
            let agent = if is_last { &last } else { &agent };
            let outcome = send(agent, &self.collector, document(&self.resource, &spans).to_string());
            let count = if outcome.is_ok() { &self.sent } else { &self.failed };
            count.fetch_add(spans.len() as u64, Relaxed);
            match outcome {
                Ok(()) if !works => {
                    tracing::info!(collector = self.collector, "the collector takes traces again");
                    works = true;
                }
                Ok(()) => {}
                Err(error) => {
                    if works {
                        tracing::warn!(
                            collector = self.collector,
                            error,
                            "traces were not taken and are lost; requests are served all the same"
                        );
                    }
                    works = false;
                    if is_last {
                        return;
                    }
                    self.pause(EVERY.saturating_sub(began.elapsed()));
                }
            }
        }
    }

    /// The next spans to send, when there are many or they have waited for a while.
    fn next(&self) -> Vec<Span> {
        let mut waiting = self.waiting.lock();
        if waiting.len() < AT_ONCE && !self.stopping.load(Relaxed) {
            self.due.wait_for(&mut waiting, EVERY);
        }
        let count = waiting.len().min(AT_ONCE);
        waiting.drain(..count).collect()
    }

    /// Waits, or until the end.
    fn pause(&self, long: Duration) {
        let (until, mut waiting) = (Instant::now() + long, self.waiting.lock());
        while !self.stopping.load(Relaxed) {
            if self.due.wait_until(&mut waiting, until).timed_out() {
                return;
            }
        }
    }
}

fn agent(within: Duration) -> Agent {
    let config = Agent::config_builder()
        .timeout_global(Some(within))
        .max_redirects(0)
        .proxy(None)
        .http_status_as_error(false)
        .user_agent(concat!("polyclave/", env!("CARGO_PKG_VERSION")));
    config.build().into()
}

fn send(agent: &Agent, collector: &str, document: String) -> std::result::Result<(), String> {
    let request = agent.post(collector).header("content-type", "application/json");
    let mut response = request.send(document).map_err(|e| e.to_string())?;
    let status = response.status();
    // Read to its end, so that the connection can be used again.
    let answer = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
    match status.is_success() {
        true => answer.map(drop).map_err(|e| e.to_string()),
        false => Err(format!("the collector answered with the status {status}")),
    }
}

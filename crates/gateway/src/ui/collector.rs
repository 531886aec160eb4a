//! Asks each node once a second while there are viewers, and tells all viewers the same.
//!
//! Each worker of each node has a thread of its own, so one that does not answer delays nobody else's
//! figures. The threads wait while nobody looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use parking_lot::{Condvar, Mutex};
use polyclave_api::{
    LATENCY_BOUNDS_MS, MAX_REPORTED_CERTIFICATES, MAX_REPORTED_KEYS, NodeStatus, Reason, Report,
};
use polyclave_client::{Client, Error};
use polyclave_protocol::Party;
use tokio::sync::watch;

use super::history::History;
use super::snapshot::{Cluster, snapshot};
use super::viewers::{Place, Viewers};
use crate::counts::{Counts, RequestCounts};
use crate::queue::Queue;

/// How often nodes are asked, and snapshots are made.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// The same for a node that does not let this client watch: each question has its lines in the node's audit
/// log.
const SELDOM: Duration = Duration::from_secs(5);

/// The most rows of a node about other nodes or material, and the most numbers of keys or requests.
const MAX_ROWS: usize = 64;
const MAX_COUNTS: usize = 512;

/// What a gateway counts itself.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) counts: Arc<Counts>,
    pub(crate) queue: Queue,
}

/// See the [module](self).
pub(crate) struct Collector {
    shared: Arc<Shared>,
    newest: watch::Receiver<Option<Bytes>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

pub(super) struct Shared {
    client: Arc<Client>,
    cluster: Cluster,
    own: Option<Own>,
    viewers: Arc<Viewers>,
    /// Each node's worker in each worker group.
    workers: Vec<Mutex<Seen>>,
    stopping: AtomicBool,
    /// Raised when somebody begins to look, or all ends.
    wake: (Mutex<()>, Condvar),
}

/// What one worker of a node said last.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) said: Option<Said>,
    /// When it was asked last, while it has not answered.
    pub(super) asked: Option<Instant>,
    /// Since when it does not answer, and why.
    pub(super) gone: Option<(Instant, Error)>,
    pub(super) history: History,
}

/// An answer.
pub(super) struct Said {
    pub(super) at: Instant,
    pub(super) took: Duration,
    pub(super) what: What,
}

/// What a node tells this client.
pub(super) enum What {
    Report(Box<Report>),
    /// It does not let this client watch, and says why.
    Status(NodeStatus, String),
}

impl What {
    pub(super) fn status(&self) -> &NodeStatus {
        match self {
            What::Report(report) => &report.status,
            What::Status(status, _) => status,
        }
    }

    pub(super) fn report(&self) -> Option<&Report> {
        match self {
            What::Report(report) => Some(report),
            What::Status(..) => None,
        }
    }
}

impl Collector {
    /// Starts the threads, which wait until somebody looks.
    pub(crate) fn new(client: Arc<Client>, own: Option<Own>) -> crate::Result<Arc<Collector>> {
        let cluster = Cluster::of(&client)?;
        let (nodes, worker_groups) = (client.cluster().nodes(), client.cluster().worker_groups());
        let shared = Arc::new(Shared {
            client,
            cluster,
            own,
            viewers: Arc::default(),
            workers: (0..nodes * worker_groups).map(|_| Mutex::default()).collect(),
            stopping: AtomicBool::new(false),
            wake: Default::default(),
        });
        let (sender, newest) = watch::channel(None);
        let collector = Collector { shared: shared.clone(), newest, threads: Mutex::default() };
        for (at, (worker, node)) in places(worker_groups, nodes).enumerate() {
            let of_thread = shared.clone();
            collector.spawn("watch a node", move || {
                of_thread.run(|| of_thread.ask(&of_thread.workers[at], worker, node));
            })?;
        }
        collector.spawn("snapshots", move || {
            shared.run(|| {
                let text =
                    snapshot(&shared.cluster, &shared.client, &shared.workers, shared.counts().as_ref());
                sender.send_replace(Some(Bytes::from(format!("data: {text}\n\n"))));
            });
        })?;
        Ok(Arc::new(collector))
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> crate::Result<()> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(work)?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// A place for a viewer with the token of this name, if one is free.
    pub(super) fn look(&self, name: &str) -> Option<Place> {
        let place = self.shared.viewers.place(name)?;
        self.shared.wake();
        Some(place)
    }

    /// The newest snapshot, as an event; another one each second.
    pub(super) fn newest(&self) -> watch::Receiver<Option<Bytes>> {
        let mut newest = self.newest.clone();
        // The one before is of a time when others looked.
        newest.mark_unchanged();
        newest
    }

    pub(super) fn client(&self) -> Arc<Client> {
        self.shared.client.clone()
    }

    /// Ends the threads, and with them all streams.
    pub(crate) fn end(&self) {
        self.shared.stopping.store(true, Relaxed);
        self.shared.wake();
        // Not those that wait for a node; they end when it answers, or does not.
        if let Some(snapshots) = self.threads.lock().pop() {
            // It has no result.
            let _ = snapshots.join();
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// Does something once a second while somebody looks.
    fn run(&self, work: impl Fn()) {
        while !self.stopping.load(Relaxed) {
            let began = Instant::now();
            if self.viewers.count() > 0 {
                work();
            }
            let (lock, raised) = &self.wake;
            let mut held = lock.lock();
            match self.viewers.count() {
                0 if !self.stopping.load(Relaxed) => {
                    raised.wait_for(&mut held, EVERY);
                }
                _ => {
                    let rest = EVERY.saturating_sub(began.elapsed());
                    drop(held);
                    self.pause(rest);
                }
            }
        }
    }

    /// Waits, but not when all ends.
    fn pause(&self, time: Duration) {
        let (lock, raised) = &self.wake;
        let mut held = lock.lock();
        raised.wait_while_for(&mut held, |()| !self.stopping.load(Relaxed), time);
    }

    fn wake(&self) {
        // Held for a moment, so that nobody is between the question and the wait.
        drop(self.wake.0.lock());
        self.wake.1.notify_all();
    }

    fn counts(&self) -> Option<RequestCounts> {
        self.own.as_ref().map(|own| own.counts.counts(own.queue.lengths()))
    }

    fn ask(&self, seen: &Mutex<Seen>, worker: u16, node: Party) {
        let began = Instant::now();
        {
            let mut seen = seen.lock();
            let is_denied = seen.said.as_ref().filter(|said| said.what.report().is_none());
            if seen.gone.is_none() && is_denied.is_some_and(|said| said.at.elapsed() < SELDOM) {
                return;
            }
            seen.asked = Some(began);
        }
        let answer = match self.client.report(worker, node) {
            Ok(report) => Ok(What::Report(Box::new(clipped(report)))),
            Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::Denied => {
                self.client.status_of(worker, node).map(|status| What::Status(status, refusal.message))
            }
            Err(e) => Err(e),
        };
        let mut seen = seen.lock();
        seen.asked = None;
        match answer {
            Ok(what) => {
                if let Some(report) = what.report() {
                    seen.history.add(began, report);
                }
                seen.said = Some(Said { at: Instant::now(), took: began.elapsed(), what });
                seen.gone = None;
            }
            Err(e) => {
                let since = seen.gone.take().map_or(began, |(since, _)| since);
                seen.gone = Some((since, e));
            }
        }
    }
}

/// The workers in the order in which they are kept and shown: their number, and their node.
pub(super) fn places(worker_groups: usize, nodes: usize) -> impl Iterator<Item = (u16, Party)> {
    (0..).take(worker_groups).flat_map(move |worker| Party::all(nodes).map(move |node| (worker, node)))
}

/// The report with no more than an honest node tells.
fn clipped(mut report: Report) -> Report {
    report.status.stock.truncate(MAX_ROWS);
    report.why_missing.truncate(MAX_ROWS);
    report.faults.truncate(MAX_ROWS);
    report.requests.truncate(MAX_COUNTS);
    report.latencies.truncate(LATENCY_BOUNDS_MS.len() + 1);
    report.certificates.truncate(MAX_REPORTED_CERTIFICATES);
    report.standby.truncate(MAX_ROWS);
    if let Some(keys) = &mut report.keys {
        keys.counts.truncate(MAX_COUNTS);
        keys.least.truncate(MAX_REPORTED_KEYS);
        keys.ending.truncate(MAX_REPORTED_KEYS);
    }
    report
}

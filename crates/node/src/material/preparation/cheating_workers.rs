//! Two nodes with several workers each, under `spdz-tower`, of which one cheats at all workers at the same
//! time. All workers of the honest node together have one failed check under a MAC key. Without PostgreSQL it
//! says that it was not run.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_harness::postgres::Postgres;
use polyclave_protocol::authenticated::Guesses;
use polyclave_protocol::{Error, GuessGuard, Result};
use polyclave_store::Store;

use super::cheating_maker::{Counts, Lie, encrypted, start_in};
use super::tests::PROCESSORS;
use crate::Running;
use crate::local::{Local, Shared, create_shared};
use crate::material::epoch;
use crate::node::open_store;

const WORKERS: u16 = 3;
/// On so many streams material is made with [`PROCESSORS`].
const STREAMS: u8 = 2;
/// Long enough for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(180);
/// The state of a store after one failed check: the count, and whether the node is under quarantine.
const ENDED: (Guesses, bool) = (Guesses { failed: 1, unanswered: 0 }, true);

/// All streams of all workers of the cheater begin to make material, and only then does it cheat, on all of
/// them. The honest workers come to the check together.
pub(super) struct Trap {
    /// The honest node's store, as another process sees it: a worker that does nothing else.
    store: Arc<Store>,
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    /// Streams on which the cheater makes material: worker, stream.
    begun: BTreeSet<(u16, u8)>,
    /// Honest workers that have come to a check since all streams have begun.
    at_check: BTreeSet<u16>,
    /// Checks that have failed.
    failed: usize,
    /// What the store has when the gate lets a worker go on with an error of its check.
    after_failure: Vec<(Guesses, bool)>,
    /// The same when a worker begins an epoch after that.
    at_epoch: Vec<(Guesses, bool)>,
}

impl Seen {
    fn all_have_begun(&self) -> bool {
        self.begun.len() == usize::from(WORKERS) * usize::from(STREAMS)
    }

    fn all_are_at_check(&self) -> bool {
        self.at_check.len() == usize::from(WORKERS)
    }
}

impl Trap {
    /// The cheater waits here before it makes material.
    pub(super) fn wait_for_all(&self, worker: u16, stream: u8) {
        let mut seen = self.seen.lock();
        seen.begun.insert((worker, stream));
        self.changed.notify_all();
        self.changed.wait_while_for(&mut seen, |seen| !seen.all_have_begun(), PATIENCE);
    }

    /// An honest worker begins an epoch.
    pub(super) fn see_epoch(&self) {
        if self.seen.lock().failed > 0 {
            let stored = self.stored();
            self.seen.lock().at_epoch.push(stored);
        }
    }

    /// The gate of an honest worker, behind which all of them come to the check together.
    pub(super) fn before(trap: &Arc<Trap>, worker: u16, gate: Arc<dyn GuessGuard>) -> Arc<dyn GuessGuard> {
        Arc::new(Watched { trap: trap.clone(), worker, gate })
    }

    fn stored(&self) -> (Guesses, bool) {
        (self.store.guesses().expect("read"), self.store.quarantined().expect("read").is_some())
    }
}

struct Watched {
    trap: Arc<Trap>,
    worker: u16,
    gate: Arc<dyn GuessGuard>,
}

impl GuessGuard for Watched {
    fn look(&self, fault: &mut dyn FnMut() -> Option<Error>) -> Result<Option<Error>> {
        {
            let mut seen = self.trap.seen.lock();
            if seen.all_have_begun() {
                seen.at_check.insert(self.worker);
                self.trap.changed.notify_all();
                self.trap.changed.wait_while_for(&mut seen, |seen| !seen.all_are_at_check(), PATIENCE);
            }
        }
        let looked = self.gate.look(&mut || {
            let found = fault();
            self.trap.seen.lock().failed += usize::from(found.is_some());
            found
        });
        if matches!(looked, Ok(Some(_))) {
            let stored = self.trap.stored();
            self.trap.seen.lock().after_failure.push(stored);
        }
        looked
    }
}

/// The cheater guesses at all workers at once, on two streams each, and again whenever they make material.
#[test]
fn workers_at_which_checks_would_fail_at_once_have_one_failed_check_together() {
    let Some(mut server) = Postgres::start("a cheater at three workers", &[]) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let url = server.url();
    // One more for the test to look through.
    let shared = Shared { workers: usize::from(WORKERS) + 1, store: &url, password: None, roles: None };
    let local = create_shared(&dir.path().join("cluster"), ("spdz-tower", 2, 1), shared).expect("a cluster");
    let observer = NodeDir::open(&local.workers[usize::from(WORKERS) - 1]).expect("its directory");
    let trap = Arc::new(Trap {
        store: open_store(&observer).expect("the store"),
        seen: Mutex::default(),
        changed: Condvar::new(),
    });
    let cheated = Arc::<Counts>::default();
    let start = |node: usize, worker: u16| {
        let (lie, counts) = match node {
            0 => (Lie::Watched(worker, trap.clone()), Arc::default()),
            _ => (Lie::AtWorker(worker, trap.clone()), cheated.clone()),
        };
        let path = path(&local, node, worker);
        // The first workers agree on the common secrets, without which the others do not start.
        let mut started = None;
        until(&|| "it starts".into(), || {
            started = start_in(&path, PROCESSORS, (lie.clone(), counts.clone())).ok();
            started.is_some()
        });
        started.expect("it did")
    };
    let honest = || (0..WORKERS).map(|worker| start(0, worker)).collect::<Vec<Running>>();
    let both: Vec<[Running; 2]> = (0..WORKERS).map(|worker| [0, 1].map(|node| start(node, worker))).collect();
    let (mut workers, _cheater): (Vec<_>, Vec<_>) = both.into_iter().map(|[one, other]| (one, other)).unzip();

    refuse(&workers, &trap, "at once");
    until(&|| "the gate lets the worker go on".into(), || !trap.seen.lock().after_failure.is_empty());
    {
        let seen = trap.seen.lock();
        assert!(seen.all_have_begun() && seen.all_are_at_check(), "{seen:?}");
        assert_eq!((seen.failed, &seen.after_failure[..]), (1, &[ENDED][..]));
    }
    let client = Client::open(&ClientDir::open(&local.client).expect("its directory")).expect("a client");
    assert_eq!(encrypted(&client), None, "a node under quarantine served");
    // After a crash of the server and a start of all workers the cheater gets no other try, either.
    drop(workers);
    server.kill();
    server.start_again();
    let epochs = cheated.epochs.load(SeqCst);
    workers = honest();
    assert!(workers.iter().all(|worker| worker.material.is_quarantined()), "they remember");
    refuse(&workers, &trap, "after a start");
    assert_eq!(encrypted(&client), None, "a node under quarantine served");
    assert_eq!(cheated.epochs.load(SeqCst), epochs, "there is no other epoch");
    let seen = trap.seen.lock();
    assert_eq!(seen.failed, 1);
    assert!(seen.at_epoch.iter().all(|stored| *stored == ENDED), "{:?}", seen.at_epoch);
    assert_eq!(trap.stored(), ENDED);
}

/// Waits until all workers refuse requests, and sees that they make no epoch.
fn refuse(workers: &[Running], trap: &Trap, when: &str) {
    for (number, worker) in workers.iter().enumerate() {
        let what = || format!("worker {number}, {when}: it is under quarantine; {:?}", trap.seen.lock());
        until(&what, || worker.material.refuse_quarantined().is_err());
        assert!(!worker.is_ready(), "worker {number}, {when}");
        assert!(epoch::join(&worker.material, [1; 16]).is_err(), "worker {number}, {when}: no other epoch");
    }
}

fn path(local: &Local, node: usize, worker: u16) -> PathBuf {
    match worker.checked_sub(1) {
        None => local.nodes[node].clone(),
        Some(further) => local.workers[node * usize::from(WORKERS) + usize::from(further)].clone(),
    }
}

fn until(what: &dyn Fn() -> String, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{}", what());
        std::thread::sleep(Duration::from_millis(50));
    }
}

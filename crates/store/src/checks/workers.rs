//! Comparisons of several workers, at a real server. Without PostgreSQL these tests say that they were not
//! run.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use polyclave_harness::postgres::Postgres as TestServer;

use super::super::engine::postgres::Access;
use super::super::engine::postgres::tests::open_as;
use super::super::testing::secret;
use super::*;

const SETUP: [u8; 32] = [1; 32];

fn worker(at: &TestServer, number: u16) -> Store {
    let store = open_as(at, Access::Worker(number), &secret()).expect("opened");
    store.begin_incarnation().expect("counted");
    if number == 0 {
        store.put_setup(SETUP, 1, b"common secrets", true).expect("put");
    }
    store.use_setup(SETUP);
    store.sync().expect("asked");
    store
}

fn failure() -> Quarantine {
    Quarantine { reason: "a check failed".into(), since: 1 }
}

fn failed(failed: u32) -> Guesses {
    Guesses { failed, unanswered: 0 }
}

/// Compares once the worker has noticed that its sessions have ended.
fn again(store: &Store, compare: impl Fn() -> Option<Quarantine>) -> bool {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match store.compare_alone(false, &compare) {
            Ok(compared) => return compared,
            Err(e) => assert!(Instant::now() < until, "{e}"),
        }
    }
}

/// A cheater spoils a check of every worker, and lets all workers come to it at the same time.
#[test]
fn of_workers_whose_checks_would_fail_at_once_one_compares_and_fails() {
    const WORKERS: u16 = 6;
    let Some(at) = TestServer::start("checks of six workers", &[]) else { return };
    let workers: Vec<Store> = (0..WORKERS).map(|number| worker(&at, number)).collect();
    let (inside, overlapped, compared) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
    let compare = |fails: bool| {
        overlapped.fetch_or(inside.fetch_add(1, SeqCst) > 0, SeqCst);
        compared.fetch_add(1, SeqCst);
        // Long enough for the others to come.
        std::thread::sleep(Duration::from_millis(20));
        inside.fetch_sub(1, SeqCst);
        fails.then(failure)
    };
    for (fails, all) in [(false, usize::from(WORKERS)), (true, 1)] {
        compared.store(0, SeqCst);
        let together = Barrier::new(workers.len());
        let done = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .iter()
                .map(|store| {
                    scope.spawn(|| {
                        together.wait();
                        store.compare_alone(false, || compare(fails)).expect("asked")
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        assert_eq!((compared.load(SeqCst), done.iter().filter(|compared| **compared).count()), (all, all));
        assert!(!overlapped.load(SeqCst), "two compared at the same time");
    }
    for store in &workers {
        assert_eq!(store.guesses().expect("read"), failed(1));
        assert!(!store.compare_alone(false, || panic!("none takes place")).expect("asked"));
    }
    // The first worker refreshes keys. A failure then counts again.
    assert!(workers[0].compare_alone(true, || Some(failure())).expect("asked"));
    assert_eq!(workers[3].guesses().expect("read"), failed(2));
}

#[test]
fn a_worker_that_is_killed_in_a_comparison_does_not_keep_the_others_from_theirs() {
    let Some(at) = TestServer::start("a worker killed in a check", &[]) else { return };
    let (first, second) = (worker(&at, 0), worker(&at, 1));
    let compared = first.compare_alone(false, || {
        // The server ends its sessions, as if its process were gone.
        at.cut();
        assert!(again(&second, || None), "nobody is in the way");
        None
    });
    assert!(compared.expect("it learns nothing of that"));
    // A comparison that fails after the worker has lost its lock counts all the same.
    let late = first.compare_alone(false, || {
        at.cut();
        assert!(again(&second, || Some(failure())), "nobody is in the way");
        Some(failure())
    });
    assert!(late.expect("counted"));
    assert_eq!(second.guesses().expect("read"), failed(2));
}

#[test]
fn a_worker_with_replaced_common_secrets_compares_and_counts_nothing() {
    let Some(at) = TestServer::start("a worker left behind", &[]) else { return };
    let (first, second) = (worker(&at, 0), worker(&at, 1));
    first.put_setup([2; 32], 2, b"fresh", true).expect("put");
    assert!(!second.compare_alone(false, || panic!("of replaced secrets")).expect("asked"));
    second.count_failure(&failure(), true).expect("of no concern");
    second.count_guesses(Guesses { failed: 0, unanswered: 1 }).expect("of no concern");
    assert_eq!(first.guesses().expect("read"), Guesses::default());
    assert_eq!(first.quarantined().expect("read"), None);
}

/// Run by hand:
/// `cargo test --release -p polyclave-node --lib -- what_a_comparison_costs --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_a_comparison_costs() {
    const TIMES: u32 = 2000;
    let Some(at) = TestServer::start("the cost of a comparison", &[]) else { return };
    let (first, dir) = (worker(&at, 0), tempfile::tempdir().expect("a directory"));
    let file = Store::create(&dir.path().join("store.redb"), &secret()).expect("made");
    file.put_setup(SETUP, 1, b"common secrets", true).expect("put");
    for (what, store) in [("at a server", &first), ("in a file", &file)] {
        let began = Instant::now();
        for _ in 0..TIMES {
            assert!(store.compare_alone(false, || None).expect("compared"));
        }
        println!("a comparison with a store {what}: {:?}", began.elapsed() / TIMES);
    }
}

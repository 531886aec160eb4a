//! A check that fails at one worker, and what follows at the others. Without PostgreSQL it says that it was
//! not run.

use std::path::Path;
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_harness::postgres::Postgres;

use crate::local::{Shared, create_shared};
use crate::material::preparation::tests::{PROCESSORS, count_on};
use crate::operator::admin::{Instruction, order};
use crate::{Cheat, Running};

/// Long enough for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(path: impl AsRef<Path>) -> Running {
    Running::start(NodeDir::open(path.as_ref()).expect("its directory")).expect("it starts")
}

fn seal(client: &Client) -> polyclave_client::Result<u64> {
    client.seal("k", &mut &b"twelve boxes"[..], &mut Vec::new(), &mut |_| ())
}

#[test]
fn a_check_that_fails_at_one_worker_stops_all_of_them_until_a_refresh() {
    let Some(server) = Postgres::start("a quarantine of all workers", &[]) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let url = server.url();
    let shared = Shared { workers: 2, store: &url, password: None, roles: None };
    let local =
        create_shared(&dir.path().join("cluster"), ("replicated-active", 3, 1), shared).expect("a cluster");
    local.nodes.iter().chain(&local.workers).for_each(|path| count_on(path, PROCESSORS));
    let mut first: Vec<Running> = local.nodes.iter().map(start).collect();
    let client = Client::open(&ClientDir::open(&local.client).expect("its directory")).expect("a client");
    until("the first workers are ready", || first.iter().all(Running::is_ready));
    let key = NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 1 << 20);
    until("a key", || client.generate(key.clone()).is_ok());
    until("an answer of the first workers", || seal(&client).is_ok());

    let cheater = NodeDir::open(&local.workers[2]).expect("its directory");
    let cheater = Running::start_cheating(cheater, Cheat::InProducts).expect("it starts");
    let honest: Vec<Running> = local.workers[..2].iter().map(start).collect();
    until("the second workers are ready", || honest.iter().chain([&cheater]).all(Running::is_ready));
    until("a check fails", || {
        // In turn with the first workers, which may still answer.
        let _ = seal(&client);
        honest[0].status().quarantined
    });
    let failed = Instant::now();
    until("the node's first worker stops", || first[0].status().quarantined);
    println!("the first worker was under quarantine {:?} after the second", failed.elapsed());
    until("it is not ready", || !first[0].is_ready());
    assert!(seal(&client).is_err(), "nobody computes anything");
    // Not over a restart, either.
    first.remove(0);
    first.insert(0, start(&local.nodes[0]));
    assert!(first[0].status().quarantined);

    cheater.stop();
    for path in &local.nodes {
        order(
            &NodeDir::open(path).expect("its directory"),
            &Instruction::Rotate { approval: None, despite_failures: false },
        )
        .expect("ordered");
    }
    until("the first workers serve again", || first.iter().all(Running::is_ready));
    until("the others have to start again", || honest.iter().all(Running::is_outdated));
    assert!(!honest[0].is_ready());
    honest.into_iter().for_each(Running::stop);
    let second: Vec<Running> = local.workers.iter().map(start).collect();
    until("the second workers serve again", || second.iter().all(Running::is_ready));
    for _ in 0..4 {
        until("an answer", || seal(&client).is_ok());
    }
}

/// Run by hand:
/// `cargo test --release -p polyclave-node --lib -- until_a_worker_serves --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn until_a_worker_serves_again_with_ten_thousand_keys() {
    const KEYS: u32 = 10_000;
    let Some(server) = Postgres::start("a start with many keys", &[]) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let url = server.url();
    let shared = Shared { workers: 2, store: &url, password: None, roles: None };
    let local = create_shared(&dir.path().join("cluster"), ("shamir", 3, 1), shared).expect("a cluster");
    std::thread::scope(|scope| {
        for path in &local.nodes {
            scope.spawn(|| {
                let store =
                    crate::node::open_store(&NodeDir::open(path).expect("its directory")).expect("made");
                for number in 0..KEYS {
                    let mut key = polyclave_store::testing::key(&format!("k{number}"), 1);
                    key.info.id[..4].copy_from_slice(&number.to_be_bytes());
                    key.info.account = key.info.id;
                    store.put_pending(&key).expect("put");
                    store.announce(&key.info.properties.name, key.info.id).expect("announced");
                }
            });
        }
    });
    let mut all: Vec<Running> = local.nodes.iter().map(start).collect();
    until("the first workers are ready", || all.iter().all(Running::is_ready));
    all.extend(local.workers.iter().map(start));
    until("all are ready", || all.iter().all(Running::is_ready));
    for (at, path) in [(0, &local.nodes[0]), (3, &local.workers[0])] {
        let connected = |running: &Running| running.is_ready() && running.status().connected.len() == 3;
        all.remove(at);
        let began = Instant::now();
        all.insert(at, start(path));
        until("it serves again", || connected(&all[at]));
        println!("worker {} of node 1 serves again after {:?}, with {KEYS} keys", at / 3, began.elapsed());
    }
}

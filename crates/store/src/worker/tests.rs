//! Workers that share one store, at a real server. Without PostgreSQL these tests say that they were not run.

use polyclave_harness::postgres::Postgres as TestServer;

use super::super::engine::postgres::Access;
use super::super::engine::postgres::tests::open_as;
use super::super::testing::{key, secret};
use super::super::{KeyState, RefreshedKey};
use super::*;

const KEY: ([u8; 16], [u8; 16]) = ([1; 16], [1; 16]);

fn worker(at: &TestServer, number: u16) -> Result<Store> {
    let store = open_as(at, Access::Worker(number), &secret())?;
    store.begin_incarnation()?;
    store.sync()?;
    Ok(store)
}

fn put(store: &Store, name: &str, seed: u8) -> Result<()> {
    store.put_pending(&key(name, seed))?;
    store.announce(name, [seed; 16])?;
    store.release_claims(|claimed| claimed == name)
}

#[test]
fn what_one_worker_changes_counts_for_the_others_at_once() {
    let Some(at) = TestServer::start("two workers", &[]) else { return };
    let (first, second) = (worker(&at, 0).expect("opened"), worker(&at, 1).expect("opened"));
    put(&first, "k", 1).expect("put");
    second.sync().expect("asked");
    assert_eq!(second.key("k").expect("read").expect("there").shares, key("k", 1).shares);
    let edition = second.edition();
    second.sync().expect("asked");
    assert_eq!(second.edition(), edition, "nothing has changed");
    first.spend(KEY, 1, 640).expect("in the budget");
    second.sync().expect("asked");
    assert_eq!(second.edition(), edition, "nobody else need know of a lease");
    first.delete("k", [1; 16]).expect("deleted");
    assert!(second.cache.get("k", super::super::Which::Current).is_ok(), "it was kept");
    second.sync().expect("asked");
    assert!(second.key("k").expect("read").is_none());
    second.quarantine("a check failed", 7).expect("written");
    first.sync().expect("asked");
    assert!(first.quarantined().expect("read").is_some());
    assert_eq!(first.mark().expect("read"), second.mark().expect("read"), "the mark is the party's");
    // What a greeting tells is not taken back by the next beat.
    put(&second, "l", 2).expect("put");
    let message = first.past().expect("read").number;
    assert_eq!((message, first.mark().expect("read").number), (second.mark().expect("read").number, message));
    let starts = |store: &Store| store.past().expect("read").starts;
    assert!(starts(&first) != starts(&second) && starts(&first).len() == 1, "starts are each worker's");
}

#[test]
fn workers_of_a_node_let_no_more_verifications_fail_together_than_one() {
    let Some(at) = TestServer::start("failures of two workers", &[]) else { return };
    let workers = [worker(&at, 0).expect("opened"), worker(&at, 1).expect("opened")];
    put(&workers[0], "k", 1).expect("put");
    let mut failed = 0;
    for turn in 0..100 {
        let attempts = workers[turn % 2].attempt(KEY, 1, 50, 3600);
        failed += attempts.map(|mut attempts| attempts.begin()).is_ok() as usize;
    }
    assert_eq!(failed, 50);
    drop(workers[1].attempt(KEY, 1, 50, 7200).expect("in the next hour"));
}

#[test]
fn a_key_that_another_worker_changes_between_question_and_use_is_not_used_in_its_old_form() {
    let Some(at) = TestServer::start("a key that changes meanwhile", &[]) else { return };
    let (first, second) = (worker(&at, 0).expect("opened"), worker(&at, 1).expect("opened"));
    first.put_setup([1; 32], 1, b"common secrets", true).expect("put");
    put(&first, "k", 1).expect("put");
    first.use_setup([1; 32]);
    assert!(matches!(second.sync(), Err(StoreError::Renewed)), "it began without common secrets");
    second.use_setup([1; 32]);
    second.sync().expect("the same");
    // Fresh common secrets come between the question and the read.
    let shares = [("round keys".to_owned(), zeroize::Zeroizing::new(vec![9]))].into_iter().collect();
    first.prepare_keys(0, &[RefreshedKey { name: "k".into(), id: [1; 16], shares }]).expect("prepared");
    first.prepare_refresh([2; 32], b"fresh").expect("prepared");
    first.commit_refresh([2; 32], 9).expect("committed");
    assert!(matches!(second.key("k"), Err(StoreError::Renewed)));
    assert!(matches!(second.sync(), Err(StoreError::Renewed)), "until it has started again");
    second.quarantine("a check failed before", 8).expect("of no concern");
    assert!(first.quarantined().expect("read").is_none());
    first.use_setup([2; 32]);
    first.sync().expect("its own");
    assert_eq!(*first.key("k").expect("read").expect("there").shares["round keys"], vec![9]);
}

#[test]
fn workers_together_never_spend_more_than_the_budget_and_give_back_what_they_held() {
    const LIMIT: u64 = 20_000;
    let Some(at) = TestServer::start("a budget of four workers", &[]) else { return };
    let workers: Vec<Store> = (0..4).map(|number| worker(&at, number).expect("opened")).collect();
    put(&workers[0], "k", 1).expect("put");
    let spend = |store: &Store, seed: u64, most: u64| -> u64 {
        (0..most).map(|i| 1 + (seed + i) % 13).filter(|blocks| store.spend(KEY, *blocks, LIMIT).is_ok()).sum()
    };
    let passed: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|seed| {
                let store = &workers[seed as usize % 4];
                scope.spawn(move || spend(store, seed, 250))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    workers.iter().for_each(|worker| worker.settle().expect("given back"));
    assert_eq!(workers[3].spent([1; 16]).expect("read"), passed);
    let rest = LIMIT - passed;
    // One that crashes keeps what it held.
    workers[1].spend(KEY, 1, LIMIT).expect("in the budget");
    let held = workers[0].spent([1; 16]).expect("read") - passed;
    assert!(held > 1 && held <= LIMIT / 64, "{held}");
    std::mem::forget(workers.into_iter().nth(1));
    at.cut();
    let again = worker(&at, 1).expect("it starts again");
    assert!(matches!(again.spend(KEY, rest, LIMIT), Err(StoreError::Spent { left }) if left == rest - held));
    again.spend(KEY, rest - held, LIMIT).expect("all that is left");
    assert!(matches!(again.spend(KEY, 1, LIMIT), Err(StoreError::Spent { left: 0 })));
}

#[test]
fn each_number_is_one_process_and_nobody_changes_the_whole_store_while_workers_run() {
    let Some(at) = TestServer::start("numbers of workers", &[]) else { return };
    let (first, second) = (worker(&at, 0).expect("opened"), worker(&at, 7).expect("opened"));
    assert!(matches!(worker(&at, 7), Err(StoreError::InUse { .. })));
    let alone = || open_as(&at, Access::Alone, &secret());
    assert!(matches!(alone(), Err(StoreError::InUse { .. })));
    drop(second);
    assert!(matches!(alone(), Err(StoreError::InUse { .. })), "one of them is enough");
    // As after a network that was cut.
    at.cut();
    let whole = alone().expect("no worker holds its lock");
    assert!(matches!(worker(&at, 1), Err(StoreError::InUse { .. })));
    drop(whole);
    for _ in 0..2 {
        assert!(matches!(first.sync(), Err(StoreError::TakenOver { .. })));
        assert!(matches!(put(&first, "late", 2), Err(StoreError::TakenOver { .. })));
        assert!(matches!(first.file_damage(), Some(StoreError::TakenOver { .. })));
    }
    put(&worker(&at, 1).expect("opened"), "k", 1).expect("put");
}

#[test]
fn two_workers_do_not_make_a_key_of_one_name_at_once() {
    let Some(at) = TestServer::start("a name that two workers want", &[]) else { return };
    let (first, second) = (worker(&at, 0).expect("opened"), worker(&at, 1).expect("opened"));
    first.put_pending(&key("k", 1)).expect("put");
    assert!(matches!(second.put_pending(&key("k", 2)), Err(StoreError::Busy { .. })));
    assert!(matches!(second.delete("k", [1; 16]), Err(StoreError::Busy { .. })));
    second.put_pending(&key("l", 3)).expect("another name");
    first.put_pending(&key("k", 4)).expect("the same worker tries again");
    first.release_claims(|name| name == "k").expect("its request is over");
    second.put_pending(&key("k", 2)).expect("nobody makes it any more");
    assert!(matches!(first.announce("k", [4; 16]), Err(StoreError::NoKey { .. })));
    second.announce("k", [2; 16]).expect("announced");
    // A worker that was killed claims nothing once it has started again.
    first.put_pending(&key("m", 5)).expect("put");
    std::mem::forget(first);
    at.cut();
    assert!(matches!(second.put_pending(&key("m", 6)), Err(StoreError::Busy { .. })), "it may come back");
    let again = worker(&at, 0).expect("it starts again");
    second.put_pending(&key("m", 6)).expect("it is not being made");
    assert_eq!(again.state("m", [6; 16]).expect("read"), Some(KeyState::Pending));
}

#[test]
fn while_keys_are_refreshed_no_other_worker_changes_any_and_what_was_begun_ends_before() {
    let Some(at) = TestServer::start("a round", &[]) else { return };
    let (first, second) = (worker(&at, 0).expect("opened"), worker(&at, 1).expect("opened"));
    put(&second, "old", 1).expect("put");
    second.put_pending(&key("begun", 2)).expect("put");
    first.begin_round().expect("begun");
    assert!(first.others_are_making().expect("read"), "it waits for that one");
    assert!(second.others_refresh().expect("read") && !first.others_refresh().expect("read"));
    assert!(matches!(second.put_pending(&key("late", 3)), Err(StoreError::Refreshing)));
    assert!(matches!(second.delete("old", [1; 16]), Err(StoreError::Refreshing)));
    assert!(matches!(second.amend("old", |info| info.deletable = false), Err(StoreError::Refreshing)));
    second.announce("begun", [2; 16]).expect("what was begun is finished");
    second.release_claims(|name| name == "begun").expect("over");
    assert!(!first.others_are_making().expect("read"));
    first.put_pending(&key("own", 4)).expect("the gate of its own process keeps that apart");
    first.end_round().expect("ended");
    assert!(!second.others_refresh().expect("read"));
    put(&second, "late", 3).expect("put");
}

#[test]
fn records_of_one_worker_are_not_those_of_another() {
    let Some(at) = TestServer::start("records of workers", &[]) else { return };
    let (first, second) = (worker(&at, 0).expect("opened"), worker(&at, 300).expect("opened"));
    for (store, lot) in [(&first, [1; 16]), (&second, [2; 16])] {
        store.begin_lots([8; 32]).expect("begun");
        store.spend_lots([8; 32], &[(lot, 5)]).expect("spent");
        store.note_audit_head(lot[0].into(), [0; 32]).expect("noted");
    }
    // Each begins another epoch without those of the other.
    first.begin_lots([9; 32]).expect("begun");
    assert_eq!(second.spent_of_lot([8; 32], [2; 16]).expect("its epoch goes on"), 5);
    second.begin_lots([9; 32]).expect("begun");
    first.spend_lots([9; 32], &[([1; 16], 3)]).expect("spent");
    second.begin_lots([7; 32]).expect("begun");
    assert_eq!(first.spent_of_lot([9; 32], [1; 16]).expect("its epoch goes on"), 3);
    assert_eq!(
        (first.audit_head().expect("read"), second.audit_head().expect("read")),
        (Some((1, [0; 32])), Some((2, [0; 32])))
    );
    let party = polyclave_protocol::Party(1);
    for store in [&first, &second] {
        store.peer_seen(party, &second.past().expect("read")).expect("the first time");
    }
    assert!(first.held_of(party).expect("read") > 0);
    first.readmit(party).expect("forgotten");
    assert_eq!((first.held_of(party).expect("read"), second.held_of(party).expect("read")), (0, 0));
}

#[test]
fn a_server_that_lost_changes_is_noticed_though_other_workers_went_on_from_there() {
    let Some(at) = TestServer::start("a server that forgets for two workers", &[]) else { return };
    let (first, second) = (worker(&at, 0).expect("opened"), worker(&at, 1).expect("opened"));
    put(&first, "k", 1).expect("put");
    second.sync().expect("asked");
    at.run("CREATE TABLE before AS SELECT * FROM polyclave_record");
    put(&first, "lost", 2).expect("put");
    at.run("BEGIN; DELETE FROM polyclave_record; INSERT INTO polyclave_record SELECT * FROM before; COMMIT");
    // The second had not yet heard of it, and goes beyond.
    (3..9).for_each(|seed| put(&second, &format!("k{seed}"), seed).expect("put"));
    assert!(second.mark().expect("read").number > first.mark().expect("read").number);
    assert!(matches!(first.sync(), Err(StoreError::Lost { .. })));
    assert!(matches!(first.file_damage(), Some(StoreError::Lost { .. })), "the node is not ready");
}

#[test]
fn a_failover_to_a_replica_that_lacks_the_last_changes_is_noticed_by_who_knew_them_and_by_peers() {
    let Some(mut at) = TestServer::start("a failover", &[]) else { return };
    let (first, second) = (worker(&at, 0).expect("opened"), worker(&at, 1).expect("opened"));
    put(&first, "k", 1).expect("put");
    second.sync().expect("asked");
    at.copy();
    first.delete("k", [1; 16]).expect("deleted");
    first.spend(([2; 16], [2; 16]), 5, 640).expect("in the budget");
    // What a peer in another worker group was told of it.
    second.sync().expect("asked");
    let (party, peer) = (polyclave_protocol::Party(1), super::super::testing::in_memory().0);
    peer.peer_seen(party, &second.past().expect("read")).expect("the first time");
    at.fail_over();
    for worker in [&first, &second] {
        assert!(matches!(worker.sync(), Err(StoreError::Lost { .. })));
        assert!(matches!(put(worker, "late", 3), Err(StoreError::Lost { .. })));
    }
    drop((first, second));
    let again = worker(&at, 1).expect("it knows nothing of it");
    assert!(again.key("k").expect("read").is_some(), "what was deleted is back");
    assert!(matches!(
        peer.peer_seen(party, &again.past().expect("read")),
        Err(StoreError::RolledBack { .. })
    ));
}

/// Run by hand: `cargo test --release -p polyclave-node --lib -- leases_a_second --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn leases_a_second() {
    let Some(at) = TestServer::start("leases", &[]) else { return };
    for count in [1, 2, 4, 8] {
        let workers: Vec<Store> = (0..count).map(|number| worker(&at, number).expect("opened")).collect();
        let began = std::time::Instant::now();
        let leases: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0_u8..8)
                .map(|thread| {
                    let store = &workers[usize::from(thread) % workers.len()];
                    // With a budget of 64 blocks each lease has one.
                    let spend = move |key: u8| {
                        let account = [[thread, key, count as u8].as_slice(), &[7; 13]].concat();
                        let account: [u8; 16] = account.try_into().expect("16 bytes");
                        (0..64).filter(|_| store.spend((account, account), 1, 64).is_ok()).count() as u64
                    };
                    scope.spawn(move || (0..4).map(spend).sum::<u64>())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!(leases, 8 * 4 * 64);
        println!("{count} workers: {:.0} leases a second", leases as f64 / began.elapsed().as_secs_f64());
    }
}

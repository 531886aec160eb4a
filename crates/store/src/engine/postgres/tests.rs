//! A store at a real server: one writer, nothing confirmed is lost, every wait ends. Without PostgreSQL these
//! tests say that they were not run.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use polyclave_config::{NodeDir, NodeSettings};
use polyclave_harness::postgres::Postgres as TestServer;
use polyclave_transport::Identity;

use super::super::super::testing::{key, secret};
use super::super::super::{KeyState, Secret, Store, StoreError, migrate};
use super::super::server::Server;
use super::*;

fn server(url: &str) -> Server {
    let nowhere = Path::new("/nowhere/at/all");
    Server::new(url, nowhere, nowhere).expect("a server")
}

fn open(at: &TestServer) -> Result<Store> {
    open_with(at, &secret())
}

fn open_with(at: &TestServer, secret: &Secret) -> Result<Store> {
    open_as(at, Access::Worker(0), secret)
}

/// The store at a server, opened as a worker or alone.
pub(in super::super::super) fn open_as(at: &TestServer, access: Access, secret: &Secret) -> Result<Store> {
    Store::over_server(Postgres::open(server(&at.url()), access, true)?, access, secret)
}

fn put(store: &Store, name: &str, seed: u8) -> Result<()> {
    store.put_pending(&key(name, seed))?;
    store.announce(name, [seed; 16])
}

fn is_whole(store: &Store, name: &str, seed: u8) -> bool {
    store.key(name).expect("read").is_some_and(|found| found.shares == key(name, seed).shares)
}

#[test]
fn what_is_changed_is_there_for_the_next_process() {
    let Some(at) = TestServer::start("a store at a server", &[]) else { return };
    let store = open(&at).expect("made");
    put(&store, "first", 1).expect("put");
    put(&store, "second", 2).expect("put");
    store.spend(([1; 16], [1; 16]), 5, 640).expect("in the budget");
    store.delete("second", [2; 16]).expect("deleted");
    let (mark, past) = (store.mark().expect("read"), store.past().expect("read"));
    assert!(matches!(store.put_pending(&key("first", 9)), Err(StoreError::Taken { .. })));
    drop(store);
    let store = open(&at).expect("opened");
    assert!(is_whole(&store, "first", 1));
    assert_eq!(store.state("second", [2; 16]).expect("read"), Some(KeyState::Deleted));
    assert!(store.spent([1; 16]).expect("read") >= 5);
    assert!(
        store.mark().expect("read").number >= mark.number
            && store.past().expect("read").number >= past.number
    );
    assert_eq!(store.keys().expect("read").len(), 1);
}

#[test]
fn tables_of_the_format_before_are_brought_to_this_one() {
    let Some(at) = TestServer::start("tables of format 1", &[]) else { return };
    let store = open(&at).expect("made");
    put(&store, "k", 1).expect("put");
    drop(store);
    at.run("DROP TABLE polyclave_worker; ALTER TABLE polyclave_store ADD COLUMN owner bytea; UPDATE polyclave_store SET format = 1, owner = ''");
    let store = open(&at).expect("opened");
    assert!(is_whole(&store, "k", 1));
    put(&store, "l", 2).expect("put");
    assert_eq!(at.run("SELECT format FROM polyclave_store"), "3");
}

#[test]
fn records_are_sealed_and_in_the_order_of_their_bytes() {
    let Some(at) = TestServer::start("records at a server", &[]) else { return };
    let store = open(&at).expect("made");
    // More than are read at once, with names that a collation would put in another order.
    let names: Vec<Vec<u8>> = (0..1200_u32).map(|n| n.reverse_bits().to_be_bytes()[..3].to_vec()).collect();
    store
        .engine
        .write(|changes| names.iter().try_for_each(|name| changes.put(Table::Lots, name, &0xdead_beef_u64)))
        .expect("written");
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    let mut read = Vec::new();
    store
        .engine
        .read(|state| {
            state.each::<u64>(Table::Lots, |name, value| {
                assert_eq!(value, 0xdead_beef);
                read.push(name.to_vec());
                Ok(())
            })
        })
        .expect("read");
    assert_eq!(read, sorted);
    put(&store, "k", 1).expect("put");
    let shares = hex::encode(&*key("k", 1).shares["key"]);
    assert_eq!(
        at.run(&format!(
            "SELECT count(*) FROM polyclave_record WHERE encode(value, 'hex') LIKE '%{shares}%'"
        )),
        "0"
    );
    assert_eq!(at.run("SELECT count(*) FROM polyclave_record WHERE kind = 'shares'"), "1");
}

#[test]
fn a_second_process_is_refused_and_one_that_was_replaced_changes_nothing() {
    let Some(at) = TestServer::start("two processes with one store", &[]) else { return };
    let first = open(&at).expect("made");
    put(&first, "k", 1).expect("put");
    assert!(matches!(open(&at), Err(StoreError::InUse { .. })));
    // The first is cut off, as by a network, and the second starts.
    at.cut();
    let second = open(&at).expect("the first has lost its lock");
    assert!(matches!(put(&first, "late", 2), Err(StoreError::InUse { .. } | StoreError::TakenOver { .. })));
    put(&second, "next", 3).expect("it is the owner");
    drop(second);
    // The lock is free again, and the first would get it.
    for _ in 0..2 {
        assert!(matches!(put(&first, "late", 2), Err(StoreError::TakenOver { .. })));
        assert!(matches!(first.file_damage(), Some(StoreError::TakenOver { .. })), "the node is not ready");
    }
    let third = open(&at).expect("opened");
    assert!(
        is_whole(&third, "k", 1)
            && is_whole(&third, "next", 3)
            && third.pending_key("late").expect("read").is_none()
    );
}

#[test]
fn nothing_confirmed_is_lost_when_the_server_is_killed() {
    let Some(mut at) = TestServer::start("a server that is killed", &[]) else { return };
    let store = open(&at).expect("made");
    let mut confirmed = Vec::new();
    for turn in 0..4_u8 {
        std::thread::scope(|scope| {
            let (store, turn) = (&store, turn * 40);
            // Until one fails, or there are enough.
            let writer = scope.spawn(move || {
                (1..40)
                    .map(|seed| turn + seed)
                    .take_while(|seed| put(store, &format!("k{seed}"), *seed).is_ok())
                    .collect::<Vec<u8>>()
            });
            sleep(Duration::from_millis(30 + 20 * u64::from(turn)));
            at.kill();
            at.start_again();
            confirmed.extend(writer.join().expect("no panic"));
        });
        for seed in &confirmed {
            assert!(is_whole(&store, &format!("k{seed}"), *seed), "{seed} is lost");
        }
    }
    put(&store, "after", 250).expect("it goes on");
    drop(store);
    let store = open(&at).expect("opened");
    assert!(confirmed.iter().all(|seed| is_whole(&store, &format!("k{seed}"), *seed)));
}

#[test]
fn a_server_that_stands_still_is_not_waited_for_for_ever() {
    let Some(at) = TestServer::start("a server that stands still", &[]) else { return };
    let store = open(&at).expect("made");
    at.pause();
    let began = Instant::now();
    let refused = put(&store, "k", 1);
    let took = began.elapsed();
    // Many requests that wait at once end soon after each other, and not one after the other.
    let began = Instant::now();
    std::thread::scope(|scope| {
        (0..16).for_each(|_| drop(scope.spawn(|| assert!(store.sync().is_err()))));
    });
    let all_took = began.elapsed();
    at.go_on();
    let message = refused.expect_err("nobody answers").to_string();
    assert!(message.contains("not answered") || message.contains("no connection"), "{message}");
    assert!(took < 4 * super::super::connection::ANSWERING, "{took:?}");
    assert!(all_took < 4 * super::super::connection::ANSWERING, "{all_took:?}");
    put(&store, "other", 2).expect("it goes on");
}

#[test]
fn callers_that_wait_for_a_new_connection_do_not_try_one_after_the_other() {
    let Some(at) = TestServer::start("a server that cannot be connected", &[]) else { return };
    let store = open(&at).expect("made");
    at.cut();
    at.pause();
    let began = Instant::now();
    std::thread::scope(|scope| {
        (0..8).for_each(|_| drop(scope.spawn(|| assert!(store.mark().is_err()))));
    });
    // One attempt takes 10 s.
    let took = began.elapsed();
    at.go_on();
    assert!(took < Duration::from_secs(40), "{took:?}");
    put(&store, "k", 1).expect("it goes on");
}

#[test]
fn what_a_server_forgets_while_it_is_used_is_noticed() {
    let Some(at) = TestServer::start("a server that forgets", &[]) else { return };
    let store = open(&at).expect("made");
    put(&store, "k", 1).expect("put");
    at.run("CREATE TABLE before AS SELECT * FROM polyclave_record");
    put(&store, "later", 2).expect("put");
    // As after a failover to a replica that had not received the last changes.
    at.run("BEGIN; DELETE FROM polyclave_record; INSERT INTO polyclave_record SELECT * FROM before; COMMIT");
    assert!(store.file_damage().is_none());
    assert!(matches!(put(&store, "k3", 3), Err(StoreError::Lost { .. })));
    assert!(matches!(store.file_damage(), Some(StoreError::Lost { .. })), "the node is not ready");
}

#[test]
fn stores_that_do_not_fit_are_refused_with_the_reason() {
    let Some(at) = TestServer::start("stores that do not fit", &[]) else { return };
    drop(open(&at).expect("made"));
    assert!(matches!(open_with(&at, &Secret::from_bytes([9; 32])), Err(StoreError::WrongSecret)));
    at.run("UPDATE polyclave_store SET format = 4");
    assert!(open(&at).expect_err("refused").to_string().contains("format 4"));
    at.run("DELETE FROM polyclave_store");
    assert!(open(&at).expect_err("refused").to_string().contains("lacks the row"));
    at.run("DROP TABLE polyclave_store, polyclave_worker, polyclave_record; CREATE ROLE other LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC, other");
    let other = at.url().replace("polyclave@", "other@");
    let message = Postgres::open(server(&other), Access::Worker(0), true).err().expect("refused").to_string();
    assert!(message.contains("no schema") || message.contains("permission denied"), "{message}");
    let message =
        Postgres::open(server(&at.url()), Access::Worker(0), false).err().expect("refused").to_string();
    assert!(message.contains("no store of this node"), "{message}");
    let far = |url: &str| {
        Server::new(url, Path::new("/no/password"), Path::new("/no/ca.pem"))
            .err()
            .expect("refused")
            .to_string()
    };
    assert!(far("postgresql://u@db.example/d").contains("/no/ca.pem"));
    assert!(far("postgresql://u@db.example/d?sslmode=disable").contains("TLS"));
    assert!(far("postgresql://u:secret@localhost/d").contains("/no/password"));
    assert!(!far("postgresql://u:secret@localhost/d").contains("secret@"));
    let Some(careless) = TestServer::start("a careless server", &["fsync=off"]) else { return };
    assert!(open(&careless).expect_err("refused").to_string().contains("fsync"));
}

/// Of a worker that has ended, nothing is removed, either: its place is taken by a program that can read the
/// store.
#[test]
fn a_worker_whose_program_lacks_what_the_store_needs_or_has_another_secret_changes_nothing() {
    let Some(at) = TestServer::start("a store that needs more", &[]) else { return };
    let worker = |number: u16| open_as(&at, Access::Worker(number), &secret());
    let store = worker(0).expect("made");
    drop(worker(1).expect("a second worker"));
    at.run("INSERT INTO polyclave_delivery (id, worker, request) VALUES ('a', 1, 'b')");
    let all = || {
        let rows = ["store", "worker", "record", "delivery"].map(|table| {
            format!("SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM polyclave_{table} t")
        });
        at.run(&rows.join(" UNION ALL "))
    };
    let before = all();
    let other = open_as(&at, Access::Worker(1), &Secret::from_bytes([9; 32]));
    assert!(matches!(other, Err(StoreError::WrongSecret)));
    assert_eq!(all(), before);
    store.change(|changes| changes.put(Table::Meta, b"features", &vec![("flying", "9.1.0")])).expect("put");
    let before = all();
    for access in [Access::Worker(1), Access::Worker(2)] {
        let message = open_as(&at, access, &secret()).expect_err("refused").to_string();
        assert!(message.contains("'flying'") && message.contains("Run 9.1.0 or a later"), "{message}");
        assert_eq!(all(), before);
    }
    drop(store);
    open_as(&at, Access::Alone, &secret()).expect_err("refused");
    assert_eq!(at.run("SELECT count(*) FROM polyclave_delivery"), "1");
}

#[test]
fn a_store_moves_to_a_server_and_back() {
    let Some(at) = TestServer::start("a store that moves", &[]) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let settings = NodeSettings::new("alpha", "127.0.0.1:7000", "127.0.0.1:7001");
    let identity = Identity::generate_named("alpha", 1).expect("an identity");
    let (path, key) = (dir.path().join("alpha"), identity.reveal_private_key());
    NodeDir::init(&path, &settings, &identity.certificate(), &key).expect("made");
    let mut node = NodeDir::open(&path).expect("opened");
    let secret = Secret::from_bytes(*node.secret().expect("its secret"));
    let store = Store::of_or_new(&node, &secret).expect("made");
    put(&store, "k", 1).expect("put");
    let past = store.past().expect("read");
    assert!(migrate(&mut node, Some(at.url())).is_err(), "it is in use");
    drop(store);
    // What an interrupted try has left there.
    let half = open_with(&at, &secret).expect("made");
    put(&half, "old", 7).expect("put");
    drop(half);
    let moved = migrate(&mut node, Some(at.url())).expect("moved").expect("it was elsewhere");
    assert!(moved.records > 2 && !node.store_path().exists(), "{moved:?}");
    // As an interruption leaves it behind the change of settings.
    std::fs::write(node.store_path(), b"what was replaced").expect("written");
    assert!(migrate(&mut node, Some(at.url())).expect("nothing to do").is_none());
    assert!(!node.store_path().exists());
    let node_again = NodeDir::open(&path).expect("opened");
    let store = Store::of(&node_again, &secret).expect("opened");
    assert!(is_whole(&store, "k", 1) && store.key("old").expect("read").is_none());
    assert_eq!(store.past().expect("read"), past);
    put(&store, "k2", 2).expect("put");
    drop(store);
    migrate(&mut node, None).expect("moved back").expect("it was elsewhere");
    assert_eq!(at.run("SELECT count(*) FROM polyclave_record"), "0");
    let store = Store::of(&node, &secret).expect("opened");
    assert!(is_whole(&store, "k", 1) && is_whole(&store, "k2", 2));
}

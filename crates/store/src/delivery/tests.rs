//! Lots handed from worker to worker at a real server. Without PostgreSQL these tests say that they were not
//! run.

use polyclave_harness::postgres::Postgres as TestServer;

use super::super::engine::postgres::Access;
use super::super::engine::postgres::tests::open_as;
use super::super::testing::{in_memory, secret};
use super::*;

const RUN: [u8; 32] = [9; 32];

fn worker(at: &TestServer, number: u16) -> Store {
    open_as(at, Access::Worker(number), &secret()).expect("opened")
}

fn wanted(id: u8) -> WantedLot {
    WantedLot { id: [id; 16], setup: [7; 32], kind: 2, count: 640 }
}

fn items() -> Vec<u8> {
    b"material ".repeat(100_000)
}

/// Another worker makes the lot that was asked for first.
fn make(maker: &Store) -> Option<WantedLot> {
    let request = maker.undertake_next_lot().expect("asked")?;
    assert!(maker.deliver_lot(&request, RUN, &items()).expect("delivered"));
    Some(request.wanted)
}

fn rows(at: &TestServer) -> String {
    at.run("SELECT count(*) FROM polyclave_delivery")
}

#[test]
fn a_lot_goes_to_whoever_asked_for_it_and_nothing_of_it_stays() {
    let Some(at) = TestServer::start("lots for other workers", &[]) else { return };
    let (serving, maker) = (worker(&at, 0), worker(&at, 1));
    assert!(maker.undertake_next_lot().expect("asked").is_none());
    let asked = serving.ask_for_lot(wanted(1)).expect("asked");
    let next = serving.ask_for_lot(wanted(2)).expect("asked");
    assert_eq!(asked.state().expect("asked"), LotState::Awaited);
    assert_eq!(make(&maker), Some(wanted(1)), "in the order in which was asked");
    assert_eq!(asked.state().expect("asked"), LotState::Delivered);
    let found =
        at.run("SELECT count(*) FROM polyclave_delivery WHERE position('material'::bytea IN lot) > 0");
    assert_eq!(found, "0", "it is sealed");
    let lot = asked.receive().expect("received");
    assert!(lot.run == RUN && *lot.items == items());
    assert_eq!(make(&maker), Some(wanted(2)));
    assert_eq!(next.receive().expect("received").run, RUN);
    assert_eq!(rows(&at), "0");
    assert_eq!(
        at.run("SELECT relpersistence FROM pg_class WHERE relname = 'polyclave_delivery'"),
        "u",
        "not logged"
    );
}

#[test]
fn a_lot_that_was_received_opens_to_nobody_any_more() {
    let Some(at) = TestServer::start("an old copy of a lot", &[]) else { return };
    let (serving, maker) = (worker(&at, 0), worker(&at, 1));
    let asked = serving.ask_for_lot(wanted(1)).expect("asked");
    make(&maker).expect("made");
    at.run("CREATE TABLE copied AS SELECT * FROM polyclave_delivery");
    drop(asked.receive().expect("received"));
    // The server is put back to the copy. Then the same worker asks with the same id, and after it its next
    // start.
    let mut serving = Some(serving);
    for _ in 0..2 {
        let again = serving.take().unwrap_or_else(|| worker(&at, 0));
        let asked = again.ask_for_lot(wanted(1)).expect("asked");
        at.run(
            "DELETE FROM polyclave_delivery; INSERT INTO polyclave_delivery OVERRIDING SYSTEM VALUE SELECT * FROM copied",
        );
        assert_eq!(asked.state().expect("asked"), LotState::Delivered);
        assert!(matches!(asked.receive(), Err(StoreError::Corrupt { .. })));
    }
}

#[test]
fn one_worker_makes_a_lot_and_it_is_asked_for_anew_when_that_one_has_ended() {
    let Some(at) = TestServer::start("workers that make lots", &[]) else { return };
    let (serving, maker, other) = (worker(&at, 0), worker(&at, 1), worker(&at, 2));
    let asked = serving.ask_for_lot(wanted(1)).expect("asked");
    assert!(maker.undertake_lot(&[1; 16]).expect("asked").is_some());
    assert!(maker.undertake_lot(&[1; 16]).expect("asked").is_some(), "it is the one that makes it");
    assert!(other.undertake_lot(&[1; 16]).expect("asked").is_none());
    assert!(other.undertake_next_lot().expect("asked").is_none());
    assert!(other.undertake_lot(&[2; 16]).expect("asked").is_none(), "nobody asks for it");
    drop(maker);
    assert_eq!(asked.state().expect("asked"), LotState::Gone);
    drop(asked);
    assert_eq!(rows(&at), "0");
    // The makers do not work for a worker that has ended, and one that starts again begins with nothing.
    let asked = serving.ask_for_lot(wanted(3)).expect("asked");
    std::mem::forget(asked);
    drop(serving);
    assert!(other.undertake_next_lot().expect("asked").is_none());
    assert_eq!(rows(&at), "1");
    let serving = worker(&at, 0);
    assert_eq!(rows(&at), "0");
    // Nobody waits for a lot any more that was undertaken.
    let asked = serving.ask_for_lot(wanted(4)).expect("asked");
    let request = other.undertake_next_lot().expect("asked").expect("there");
    drop(asked);
    assert!(!other.deliver_lot(&request, RUN, &items()).expect("asked"));
    let asked = serving.ask_for_lot(wanted(5)).expect("asked");
    other.undertake_next_lot().expect("asked").expect("there");
    other.give_up_lot(&[5; 16]).expect("given up");
    assert_eq!(asked.state().expect("asked"), LotState::Gone);
}

#[test]
fn what_was_changed_or_moved_is_refused_and_a_server_that_was_killed_has_lost_it() {
    let Some(mut at) = TestServer::start("lots that were changed", &[]) else { return };
    let (serving, maker) = (worker(&at, 0), worker(&at, 1));
    let change = |what: &str| at.run(&format!("UPDATE polyclave_delivery SET {what}"));
    let asked = serving.ask_for_lot(wanted(1)).expect("asked");
    change("request = set_byte(request, 40, get_byte(request, 40) # 1)");
    assert!(matches!(maker.undertake_next_lot(), Err(StoreError::Corrupt { .. })));
    drop(asked);
    for place in ["0", "1", "40", "1000", "length(lot) - 1"] {
        let asked = serving.ask_for_lot(wanted(1)).expect("asked");
        make(&maker).expect("made");
        change(&format!("lot = set_byte(lot, {place}, get_byte(lot, {place}) # 1)"));
        assert!(matches!(asked.receive(), Err(StoreError::Corrupt { .. })), "{place}");
    }
    // A request under the id of another one.
    let asked = serving.ask_for_lot(wanted(1)).expect("asked");
    change("id = decode(repeat('02', 16), 'hex')");
    assert!(matches!(maker.undertake_lot(&[2; 16]), Err(StoreError::Corrupt { .. })));
    at.run("DELETE FROM polyclave_delivery");
    drop(asked);
    // A lot of the same size for another request.
    let (one, other) = (serving.ask_for_lot(wanted(1)), serving.ask_for_lot(wanted(2)));
    let (one, other) = (one.expect("asked"), other.expect("asked"));
    make(&maker).and_then(|_| make(&maker)).expect("made");
    change("lot = (SELECT lot FROM polyclave_delivery ORDER BY number LIMIT 1)");
    assert!(one.receive().is_ok());
    assert!(matches!(other.receive(), Err(StoreError::Corrupt { .. })));

    let asked = serving.ask_for_lot(wanted(1)).expect("asked");
    make(&maker).expect("made");
    at.kill();
    assert!(matches!(asked.state(), Err(StoreError::Server { .. })));
    at.start_again();
    assert_eq!(asked.state().expect("asked"), LotState::Gone);
    drop(asked);
    let asked = serving.ask_for_lot(wanted(1)).expect("asked");
    make(&maker).expect("made");
    assert!(asked.receive().is_ok());
}

#[test]
fn the_place_of_lots_that_were_received_is_used_again() {
    let Some(at) = TestServer::start("many lots", &["autovacuum=off"]) else { return };
    let (serving, maker) = (worker(&at, 0), worker(&at, 1));
    let size =
        || at.run("SELECT pg_total_relation_size('polyclave_delivery')").parse::<usize>().expect("bytes");
    // A fifth more than after which it is cleaned, twice.
    for round in 0..2 {
        for _ in 0..((64 << 20) + (12 << 20)) / items().len() {
            let asked = serving.ask_for_lot(wanted(1)).expect("asked");
            make(&maker).expect("made");
            asked.receive().expect("received");
        }
        assert!(size() < 110 << 20, "after round {round} it has {} bytes", size());
    }
}

#[test]
fn a_store_in_a_file_has_no_other_workers() {
    let (store, _) = in_memory();
    let refused = store.ask_for_lot(wanted(1)).err().expect("refused").to_string();
    assert!(refused.contains("PostgreSQL"), "{refused}");
}

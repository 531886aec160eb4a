//! Somebody who can write the database puts rows back one by one. The node notices it when it uses a row, and
//! at its next start. The tests run with a file and with a server. Without PostgreSQL the tests with a server
//! say that they were not run.

use std::collections::BTreeMap;

use polyclave_harness::postgres::Postgres as TestServer;
use polyclave_protocol::Party;
use polyclave_protocol::authenticated::Guesses;

use super::engine::Table;
use super::engine::digest::covered;
use super::engine::head::HEAD;
use super::engine::postgres::Access;
use super::engine::postgres::tests::open_as;
use super::testing::*;
use super::*;

/// The number of a table, and a record's key.
type Row = (usize, Vec<u8>);

/// All records as they are, sealed.
type Content = BTreeMap<Row, Vec<u8>>;

fn content(store: &Store) -> Content {
    let mut content = Content::new();
    let read = store.engine.read_unchecked(|state| {
        Table::ALL.into_iter().enumerate().try_for_each(|(number, table)| {
            state.each_sealed(table, |record, sealed| {
                content.insert((number, record.to_vec()), sealed.to_vec());
                Ok(())
            })
        })
    });
    read.expect("read");
    content
}

/// Puts a sealed record into the database, or removes it, as the operator of the database can.
fn put(store: &Store, (table, record): &Row, sealed: Option<&Vec<u8>>) {
    let table = Table::ALL[*table];
    let done = store.engine.fill(|changes| match sealed {
        Some(sealed) => changes.put_sealed(table, record, sealed),
        None => changes.remove(table, record),
    });
    done.expect("written");
}

/// A place for a store: a file or a server.
trait Place {
    fn open(&self) -> Result<Store>;
}

impl Place for Disk {
    fn open(&self) -> Result<Store> {
        Store::with_backend(self.clone(), &secret())
    }
}

impl Place for TestServer {
    fn open(&self) -> Result<Store> {
        // The process runs under these common secrets.
        open_as(self, Access::Worker(0), &secret()).inspect(|store| store.use_setup([1; 32]))
    }
}

fn announced(store: &Store, key: &StoredKey) {
    store.put_pending(key).expect("put");
    store.announce(&key.info.properties.name, key.info.id).expect("announced");
    store.release_claims(|_| true).expect("the request is over");
}

fn version(number: u32, seed: u8) -> StoredKey {
    let mut version = key("k", seed);
    version.info.version = number;
    version
}

fn past(number: u8) -> Past {
    let starts = vec![Start { first: 1, boot: [1; 16] }];
    Past { number: number.into(), recent: (1..=number).rev().map(|n| [n; 16]).collect(), starts }
}

const KEY: ([u8; 16], [u8; 16]) = ([1; 16], [1; 16]);

/// Keys that are deleted.
const GONE: [u8; 4] = [9, 10, 11, 12];

fn delete(store: &Store, seed: u8) {
    store.delete(&format!("gone-{seed}"), [seed; 16]).expect("deleted");
}

/// Fills a store with what the cases change.
fn begin(store: &Store) {
    store.begin_incarnation().expect("counted");
    store.put_setup([1; 32], 1, b"old", true).expect("put");
    announced(store, &version(1, 1));
    GONE.iter().for_each(|seed| announced(store, &key(&format!("gone-{seed}"), *seed)));
    store.spend(KEY, 1, 64).expect("in the budget");
    store.note_policy("old rules").expect("noted");
    store.note_audit_head(1, [1; 32]).expect("noted");
    store.peer_seen(Party(1), &past(1)).expect("seen");
    store.count_guesses(Guesses { failed: 1, unanswered: 0 }).expect("counted");
}

/// Something that must not be forgotten: its name, its table, a change of it, and a use that depends on it.
type Case = (&'static str, Table, fn(&Store), fn(&Store) -> Result<()>);

const CASES: [Case; 14] = [
    ("a budget", Table::Spent, |s| s.spend(KEY, 1, 64).expect("in the budget"), |s| s.spend(KEY, 1, 64)),
    (
        "how much is spent",
        Table::Spent,
        |s| s.spend(KEY, 1, 64).expect("in the budget"),
        |s| s.spent(KEY.0).map(drop),
    ),
    ("a deleted key", Table::Keys, |s| delete(s, 9), |s| s.key("gone-9").map(drop)),
    ("a deleted share", Table::Shares, |s| delete(s, 10), |s| s.shares_of([10; 16]).map(drop)),
    ("a tombstone", Table::Tombstones, |s| delete(s, 11), |s| s.put_pending(&key("gone-11", 11))),
    ("a state", Table::Tombstones, |s| delete(s, 12), |s| s.state("gone-12", [12; 16]).map(drop)),
    ("a new version", Table::Keys, |s| announced(s, &version(2, 2)), |s| s.key("k").map(drop)),
    (
        "what a key may do",
        Table::Keys,
        |s| s.amend("k", |info| info.deletable = false).expect("amended"),
        |s| s.versions("k").map(drop),
    ),
    ("a share", Table::Shares, |s| s.change_share([1; 16]), |s| s.load("k", Which::Id([1; 16])).map(drop)),
    (
        "an approval",
        Table::Meta,
        |s| assert!(s.spend_approval([5; 32], [6; 32], 7).expect("spent").is_none()),
        |s| s.spend_approval([5; 32], [6; 32], 8).map(drop),
    ),
    ("rules", Table::Meta, |s| s.note_policy("new rules").expect("noted"), |s| s.noted_policy().map(drop)),
    (
        "the audit log's end",
        Table::Meta,
        |s| s.note_audit_head(2, [2; 32]).expect("noted"),
        |s| s.audit_head().map(drop),
    ),
    (
        "failed checks",
        Table::Meta,
        |s| s.count_guesses(Guesses { failed: 1, unanswered: 0 }).expect("counted"),
        |s| s.guesses().map(drop),
    ),
    (
        "a peer",
        Table::Peers,
        |s| s.peer_seen(Party(1), &past(2)).expect("seen"),
        |s| s.held_of(Party(1)).map(drop),
    ),
];

/// Puts back each row that a change has replaced.
fn each_row_is_noticed(place: &dyn Place, undo: &dyn Fn(&Row, Option<&Vec<u8>>)) {
    for (what, table, change, used) in CASES {
        let mut store = place.open().expect("opened");
        let before = content(&store);
        change(&store);
        let after = content(&store);
        let mut rows: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
        rows.sort();
        rows.dedup();
        rows.retain(|row| covered(Table::ALL[row.0], &row.1).is_some() && before.get(row) != after.get(row));
        assert!(rows.iter().any(|row| Table::ALL[row.0] == table), "{what}");
        for row in rows {
            let name = Table::ALL[row.0].name();
            put(&store, &row, before.get(&row));
            if Table::ALL[row.0] == table {
                let message = used(&store).expect_err(what).to_string();
                assert!(
                    message.contains(&format!(" of {name} ")) && message.contains("put back"),
                    "{what}: {message}"
                );
                assert!(
                    matches!(store.file_damage(), Some(StoreError::PutBack { .. })),
                    "{what}: the node is not ready"
                );
                assert!(store.put_pending(&key("later", 77)).is_err(), "{what}: nothing is changed any more");
            }
            drop(store);
            let message =
                place.open().err().unwrap_or_else(|| panic!("{what}: not noticed at start")).to_string();
            assert!(message.contains(&format!("a record of {name} in the store")), "{what}: {message}");
            undo(&row, after.get(&row));
            store = place.open().expect("nothing else is wrong");
        }
    }
}

#[test]
fn every_row_that_is_put_back_in_a_file_is_noticed_when_it_is_used_and_at_start() {
    let (store, disk) = in_memory();
    begin(&store);
    drop(store);
    let undo = |row: &Row, sealed: Option<&Vec<u8>>| {
        let engine = unchecked(&disk);
        put(&engine, row, sealed);
    };
    each_row_is_noticed(&disk, &undo);
}

/// No other record could be told from it, if not by opening all.
#[test]
fn a_record_whose_nonce_is_damaged_is_named_at_start_with_what_to_do() {
    let (store, disk) = in_memory();
    begin(&store);
    let content = content(&store);
    drop(store);
    let row = content.keys().find(|(table, record)| Table::ALL[*table] == Table::Keys && record == b"k");
    let row = row.expect("the record of the key");
    let mut damaged = content[row].clone();
    damaged[5] ^= 1;
    let engine = unchecked(&disk);
    put(&engine, row, Some(&damaged));
    drop(engine);
    let message = disk.open().expect_err("noticed").to_string();
    assert!(message.contains("the record k of keys (damaged: it does not open) in the store"), "{message}");
    assert!(
        message.contains("node restore") && message.contains("Without a backup, replace the node"),
        "{message}"
    );
    let engine = unchecked(&disk);
    put(&engine, row, content.get(row));
    drop(engine);
    disk.open().expect("nothing else is wrong");
}

/// The store of a disk, without comparing anything with the digest.
fn unchecked(disk: &Disk) -> Store {
    let clone = disk.clone();
    let reopen: engine::file::Reopen = Box::new(move || builder().create_with_backend(clone.clone()));
    let database = engine::file::open(&reopen, None).expect("opened");
    Store::from_database(database, reopen, None, &secret())
}

#[test]
fn every_row_that_is_put_back_at_a_server_is_noticed_when_it_is_used_and_at_start() {
    let Some(at) = TestServer::start("rows that are put back", &[]) else { return };
    let store = at.open().expect("made");
    begin(&store);
    drop(store);
    let undo = |(table, record): &Row, sealed: Option<&Vec<u8>>| {
        let place = format!("kind = '{}' AND name = '\\x{}'", Table::ALL[*table].name(), hex::encode(record));
        at.run(&format!("DELETE FROM polyclave_record WHERE {place}"));
        if let Some(sealed) = sealed {
            let (kind, name, value) = (Table::ALL[*table].name(), hex::encode(record), hex::encode(sealed));
            at.run(&format!("INSERT INTO polyclave_record VALUES ('{kind}', '\\x{name}', '\\x{value}')"));
        }
    };
    each_row_is_noticed(&at, &undo);
}

#[test]
fn all_rows_except_the_head_and_the_head_alone_are_noticed() {
    let (store, disk) = in_memory();
    begin(&store);
    let before = content(&store);
    store.spend(KEY, 20, 64).expect("in the budget");
    delete(&store, 9);
    let (after, newest) = (content(&store), store.mark().expect("read").number);
    drop(store);
    let rows = || before.keys().chain(after.keys());
    for only_head in [false, true] {
        let disk = disk.copy();
        let store = reopen(&disk);
        rows().filter(|row| (row.1 == HEAD) == only_head).for_each(|row| put(&store, row, before.get(row)));
        assert!(matches!(store.spend(KEY, 1, 64), Err(StoreError::PutBack { .. } | StoreError::Lost { .. })));
        drop(store);
        let message = disk.open().expect_err("noticed").to_string();
        assert!(message.contains("spent") && message.contains("tombstones"), "{message}");
    }
    // With both, the store is an older one as a whole. A running node notices it; after a start, peers and
    // the audit log do.
    let store = reopen(&disk);
    rows().for_each(|row| put(&store, row, before.get(row)));
    assert!(matches!(store.spent(KEY.0), Err(StoreError::Lost { .. })));
    drop(store);
    assert!(disk.open().expect("whole").mark().expect("read").number < newest);
}

#[test]
fn a_store_from_before_the_digest_is_taken_over_once_and_one_without_its_head_is_not() {
    let (store, disk) = in_memory();
    begin(&store);
    let (number, recent) = (store.past().expect("read").number, store.past().expect("read").recent);
    let old = store.engine.fill(|changes| {
        changes.put(Table::Meta, engine::head::EDITION, &41_u64)?;
        changes.put(Table::Meta, HEAD, &(number, recent.clone()))
    });
    old.expect("written");
    drop(store);
    let headless = disk.copy();
    let store = reopen(&disk);
    assert_eq!((store.past().expect("read").number, store.past().expect("read").recent), (number, recent));
    assert_eq!(store.engine.peek().expect("read").edition, 41);
    assert!(store.key("k").expect("read").is_some());
    let spent = (4, KEY.0.to_vec());
    put(&store, &spent, None);
    drop(store);
    assert!(matches!(disk.open(), Err(StoreError::PutBack { .. })), "from now on its rows are covered");
    let store = unchecked(&headless);
    put(&store, &(0, HEAD.to_vec()), None);
    drop(store);
    assert!(matches!(headless.open(), Err(StoreError::PutBack { .. })));
}

#[test]
fn a_reader_sees_a_whole_state_and_no_false_alarm_while_others_change_the_store() {
    let changing = |store: &Store, other: &Store| {
        for seed in 1..40 {
            announced(store, &key(&format!("k{seed}"), seed));
        }
        std::thread::scope(|scope| {
            for thread in 0..2_u8 {
                scope.spawn(move || {
                    for turn in 0..25_u8 {
                        let (name, seed) = (format!("new{thread}-{turn}"), 100 + 50 * thread + turn);
                        announced(store, &key(&name, seed));
                        store.spend(([seed; 16], [seed; 16]), 1, 640).expect("in the budget");
                        store.delete(&name, [seed; 16]).expect("deleted");
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..40 {
                        other.sync().expect("heard");
                        assert!(other.keys().expect("whole").len() >= 39);
                        let k7 = other.key("k7").expect("read").expect("there");
                        assert_eq!(k7.shares, key("k7", 7).shares);
                        other.spent_of_all().expect("whole");
                        other.note_audit_head(1, [1; 32]).expect("noted");
                        other.cache.clear();
                    }
                });
            }
        });
        assert_eq!(store.keys().expect("read").len(), 39);
    };
    let (store, disk) = in_memory();
    changing(&store, &store);
    drop(store);
    drop(reopen(&disk));
    let Some(at) = TestServer::start("a store that is read while it changes", &[]) else { return };
    let store = at.open().expect("made");
    let other = open_as(&at, Access::Worker(1), &secret()).expect("opened");
    changing(&store, &other);
    drop((store, other));
    drop(at.open().expect("its digest is right"));
}

#[test]
fn a_worker_follows_what_others_change_and_notices_what_is_put_back() {
    let Some(at) = TestServer::start("rows of two workers", &[]) else { return };
    let open = |number| open_as(&at, Access::Worker(number), &secret()).expect("opened");
    let (first, second) = (open(0), open(1));
    begin(&first);
    assert_eq!(second.spent(KEY.0).expect("it learns of it"), 1);
    // More changes than are kept for others.
    for seed in 20..40 {
        announced(&first, &key(&format!("k{seed}"), seed));
    }
    assert_eq!(second.keys().expect("all rows are read anew").len(), 25);
    // The change log is not believed.
    let kept = || {
        at.run("SELECT count(*) FROM polyclave_record WHERE kind = 'changes'")
            .parse::<u64>()
            .expect("a number")
    };
    assert!(kept() <= 20, "{}", kept());
    first.spend(KEY, 5, 640).expect("in the budget");
    at.run("UPDATE polyclave_record SET value = value || '\\x00' WHERE kind = 'changes'");
    second.spend(KEY, 1, 640).expect("all rows are read anew");
    first.note_policy("rules").expect("noted");
    at.run("DELETE FROM polyclave_record WHERE kind = 'changes'");
    assert_eq!(second.noted_policy().expect("read").as_deref(), Some("rules"));
    // The first worker's store has the row put back, and the second has not read it before.
    let before = content(&first);
    delete(&first, 9);
    let tombstone = (3, vec![9; 16]);
    put(&first, &tombstone, before.get(&tombstone));
    let message = second.state("gone-9", [9; 16]).expect_err("noticed").to_string();
    assert!(message.contains("tombstones"), "{message}");
}

//! Full disks, crashes at every sync, flipped and swapped records.

use std::time::Instant;

use super::engine::{Records, Table};
use super::testing::*;
use super::*;

fn announced(store: &Store, name: &str, seed: u8) {
    store.put_pending(&key(name, seed)).expect("put");
    store.announce(name, [seed; 16]).expect("announced");
}

fn is_whole(store: &Store, name: &str, seed: u8) -> bool {
    store.key(name).expect("read").is_some_and(|found| found.shares == key(name, seed).shares)
}

/// Works until the disk is full. Returns how many steps succeeded.
fn work(store: &Store) -> usize {
    let steps: [&dyn Fn() -> Result<()>; 5] = [
        &|| store.put_pending(&key("new", 9)),
        &|| store.announce("new", [9; 16]),
        &|| store.spend(([1; 16], [1; 16]), 1, 64),
        &|| store.delete("old", [1; 16]),
        &|| store.note_audit_head(1, [1; 32]),
    ];
    steps.iter().take_while(|step| step().is_ok()).count()
}

#[test]
fn a_full_disk_fails_the_operation_and_nothing_else() {
    let mut failed = [false; 6];
    for room in (0..400_000).step_by(3_000) {
        let (store, disk) = in_memory();
        announced(&store, "old", 1);
        announced(&store, "other", 2);
        disk.leave(room);
        let done = work(&store);
        failed[done] = true;
        disk.make_room();
        let fresh = reopen(&disk.copy());
        for store in [&store, &fresh] {
            assert!(is_whole(store, "other", 2), "{room}");
            // A commit that failed may still have reached the disk; one that succeeded has.
            if done >= 2 {
                assert!(is_whole(store, "new", 9), "{room}");
            }
            if done < 3 {
                assert!(is_whole(store, "old", 1), "{room}");
            }
            if done >= 4 {
                assert!(store.key("old").expect("read").is_none(), "{room}");
            }
            announced(store, "after", 3);
            assert!(is_whole(store, "after", 3), "{room}");
        }
    }
    assert!(failed[0] && failed[5], "the range of room covers both ends: {failed:?}");
}

#[test]
fn a_full_disk_is_survived_without_opening_the_store_anew() {
    let (store, disk) = in_memory();
    announced(&store, "old", 1);
    for _ in 0..3 {
        disk.fill_up();
        assert!(matches!(store.put_pending(&key("new", 9)), Err(StoreError::Failed(_))));
        disk.make_room();
        assert!(is_whole(&store, "old", 1));
        store.put_pending(&key("new", 9)).expect("there is room again");
    }
}

/// A crash right after each sync: everything that was reported as done by then is there.
#[test]
fn after_a_crash_at_any_sync_every_announced_key_is_there() {
    let (store, disk) = in_memory();
    disk.record();
    let mut done: Vec<(usize, u8)> = Vec::new();
    for seed in 1..12 {
        announced(&store, &format!("k{seed}"), seed);
        done.push((disk.history().len(), seed));
    }
    store.spend(([1; 16], [1; 16]), 1, 6400).expect("in the budget");
    let spent_at = disk.history().len();
    store.delete("k2", [2; 16]).expect("deleted");
    let deleted_at = disk.history().len();
    let history = disk.history();
    assert!(history.len() > 40, "{}", history.len());
    for (sync, bytes) in history.into_iter().enumerate() {
        let crashed = reopen(&Disk::from_bytes(bytes));
        for (at, seed) in &done {
            // The sync with this index has happened when the count is one more.
            if *at <= sync + 1 && (*seed != 2 || deleted_at > sync + 1) {
                let there = is_whole(&crashed, &format!("k{seed}"), *seed);
                assert!(there || *seed == 2, "{seed} after sync {sync}");
            }
        }
        if deleted_at <= sync + 1 {
            assert!(crashed.key("k2").expect("read").is_none());
        }
        if spent_at <= sync + 1 {
            assert_eq!(crashed.spent([1; 16]).expect("read"), 100);
        }
        announced(&crashed, "after", 77);
    }
}

/// A crash that loses all but some of the writes since the last sync.
#[test]
fn writes_between_syncs_that_are_lost_in_part_harm_no_announced_key() {
    let (store, disk) = in_memory();
    for seed in 1..6 {
        announced(&store, &format!("k{seed}"), seed);
    }
    disk.record_writes();
    announced(&store, "k6", 6);
    let (base, writes) = disk.writes();
    assert!(writes.len() > 5);
    for lost in 0..writes.len() {
        // Writes after the next sync cannot have been made when this one was lost.
        let end = writes[lost..].iter().position(|w| w.is_sync()).map_or(writes.len(), |at| lost + at);
        let kept = writes[..end].iter().enumerate().filter(|(i, _)| *i != lost).map(|(_, w)| w);
        let crashed = reopen(&Disk::from_bytes(replay(&base, kept)));
        for seed in 1..6 {
            assert!(is_whole(&crashed, &format!("k{seed}"), seed), "{seed} without write {lost}");
        }
    }
}

/// A peer in its first start, after a number of changes.
fn peers_past(number: u8) -> Past {
    let starts = vec![Start { first: 1, boot: [1; 16] }];
    Past { number: number.into(), recent: (1..=number).rev().map(|n| [n; 16]).collect(), starts }
}

/// Replaces a sealed value.
fn tamper(store: &Store, table: Table, record: &[u8], change: impl Fn(&mut Vec<u8>)) {
    let sealed = store.engine.read(|records| records.sealed(table, record));
    let mut sealed = sealed.expect("read").expect("there");
    change(&mut sealed);
    store.engine.write(|changes| changes.put_sealed(table, record, &sealed)).expect("written");
}

#[test]
fn a_flipped_byte_in_any_record_is_noticed() {
    let (store, disk) = in_memory();
    announced(&store, "k", 1);
    store.spend(([1; 16], [1; 16]), 1, 64).expect("in the budget");
    store.put_setup([1; 32], 1, b"setup", true).expect("put");
    store.peer_seen(polyclave_protocol::Party(1), &peers_past(1)).expect("seen");
    let corrupt = |e: Option<StoreError>| matches!(e, Some(StoreError::Corrupt { .. }));
    type Use = fn(&Store) -> Option<StoreError>;
    let records: [(Table, &[u8], Use); 5] = [
        (Table::Keys, b"k", |s| s.key("k").err()),
        (Table::Shares, &[1; 16], |s| s.key("k").err()),
        (Table::Spent, &[1; 16], |s| s.spend(([1; 16], [1; 16]), 1, 64).err()),
        (Table::Meta, b"setup agreed", |s| s.setup().err()),
        (Table::Peers, &[1], |s| s.peer_seen(polyclave_protocol::Party(1), &peers_past(2)).err()),
    ];
    for (table, record, used) in records {
        let len = store.engine.read(|r| r.sealed(table, record)).expect("read").expect("there").len();
        for at in 0..len {
            let fresh = reopen(&disk.copy());
            tamper(&fresh, table, record, |sealed| sealed[at] ^= 0x10);
            assert!(corrupt(used(&fresh)), "{table:?} {at}");
        }
        let fresh = reopen(&disk.copy());
        tamper(&fresh, table, record, Vec::clear);
        assert!(corrupt(used(&fresh)), "{table:?} empty");
    }
}

/// Flips bytes of the file itself, including what redb stores there for itself.
#[test]
fn a_flipped_byte_of_the_file_never_gives_a_wrong_key() {
    let (store, disk) = in_memory();
    for seed in 1..20 {
        announced(&store, &format!("k{seed}"), seed);
    }
    let bytes = disk.bytes();
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let mut noticed = 0;
    for at in used.iter().step_by(used.len() / 700) {
        let mut flipped = bytes.clone();
        flipped[*at] ^= 0x10;
        let Ok(store) = Store::with_backend(Disk::from_bytes(flipped), &secret()) else {
            noticed += 1;
            continue;
        };
        for seed in 1..20 {
            match store.key(&format!("k{seed}")) {
                Ok(Some(found)) => {
                    assert_eq!(found.shares, key(&found.info.properties.name, seed).shares, "{at}")
                }
                Ok(None) | Err(_) => noticed += 1,
            }
        }
    }
    assert!(noticed > 0);
}

#[test]
fn swapped_records_are_noticed() {
    let (store, disk) = in_memory();
    announced(&store, "a", 1);
    announced(&store, "b", 2);
    let swap = |store: &Store, table: Table, one: &[u8], other: &[u8]| {
        let sealed = store.engine.read(|r| r.sealed(table, other)).expect("read").expect("there");
        tamper(store, table, one, |value| value.clone_from(&sealed));
    };
    let names = reopen(&disk.copy());
    swap(&names, Table::Keys, b"a", b"b");
    assert!(matches!(names.key("a"), Err(StoreError::Corrupt { .. })));
    assert!(matches!(names.keys(), Err(StoreError::Corrupt { .. })));
    let shares = reopen(&disk.copy());
    swap(&shares, Table::Shares, &[1; 16], &[2; 16]);
    assert!(matches!(shares.key("a"), Err(StoreError::Corrupt { .. })));
    assert!(is_whole(&shares, "b", 2));
}

#[test]
fn the_error_for_a_damaged_record_says_what_to_do() {
    let (store, _) = in_memory();
    announced(&store, "payroll", 1);
    tamper(&store, Table::Keys, b"payroll", |sealed| sealed[30] ^= 1);
    let error = store.key("payroll").expect_err("damaged").to_string();
    assert!(error.contains("payroll") && error.contains("backup"), "{error}");
}

#[test]
fn no_more_keys_are_in_memory_than_allowed() {
    let (store, _) = in_memory();
    for i in 0..CACHED_KEYS + 50 {
        let mut key = key(&format!("k{i}"), 0);
        key.info.id[..8].copy_from_slice(&(i as u64 + 1).to_le_bytes());
        store.put_pending(&key).expect("put");
        store.announce(&format!("k{i}"), key.info.id).expect("announced");
        store.key(&format!("k{i}")).expect("read").expect("there");
    }
    assert_eq!(store.cache.len(), CACHED_KEYS);
}

/// Asserts nothing about speed; prints the measurement that is quoted:
/// `cargo test -p polyclave-node --release -- --ignored --nocapture open_with`.
#[test]
#[ignore = "a measurement"]
fn open_with_ten_thousand_keys_after_a_kill() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store.redb");
    let store = Store::create(&path, &secret()).expect("made");
    let started = Instant::now();
    for i in 0..10_000_u64 {
        let mut key = key(&format!("k{i}"), 0);
        key.info.id[..8].copy_from_slice(&(i + 1).to_le_bytes());
        store.put_pending(&key).expect("put");
        store.announce(&format!("k{i}"), key.info.id).expect("announced");
    }
    println!("made: {:?} for 10000 keys", started.elapsed());
    // The file as a kill leaves it: the store was not closed.
    let killed = dir.path().join("killed.redb");
    private::write(&killed, b"").expect("written");
    std::fs::copy(&path, &killed).expect("copied");
    let started = Instant::now();
    let store = Store::open(&killed, &secret()).expect("opened");
    println!("opened: {:?}", started.elapsed());
    let started = Instant::now();
    assert_eq!(store.keys().expect("read").len(), 10_000);
    println!("listed: {:?}", started.elapsed());
}

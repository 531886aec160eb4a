//! Damage to the file itself, including what redb stores there for itself, gives errors, and never a panic or
//! another key.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::testing::*;
use super::*;

/// Does everything that a node does with its store. Returns whether any of it failed.
fn use_all(store: &Store) -> bool {
    let mut failed = store.keys().is_err() | store.count().is_err();
    for seed in 1..12 {
        match store.key(&format!("k{seed}")) {
            Ok(Some(found)) => assert_eq!(found.shares, key(&found.info.properties.name, seed).shares),
            Ok(None) | Err(_) => failed = true,
        }
    }
    failed |= store.spend(([1; 16], [1; 16]), 1, 64).is_err() | store.spent([2; 16]).is_err();
    failed |= store.setup().is_err() | store.quarantined().is_err() | store.audit_head().is_err();
    failed |= store.put_pending(&key("new", 99)).is_err() | store.announce("new", [99; 16]).is_err();
    failed |= store.delete("k3", [3; 16]).is_err() | store.note_audit_head(7, [7; 32]).is_err();
    failed | store.begin_incarnation().is_err()
}

fn filled() -> (Store, Disk) {
    let (store, disk) = in_memory();
    for seed in 1..12 {
        store.put_pending(&key(&format!("k{seed}"), seed)).expect("put");
        store.announce(&format!("k{seed}"), [seed; 16]).expect("announced");
    }
    store.put_setup([1; 32], 1, b"setup", true).expect("put");
    store.delete("k11", [11; 16]).expect("deleted");
    (store, disk)
}

#[test]
fn no_damage_to_the_file_makes_a_panic() {
    let (store, disk) = filled();
    drop(store);
    let bytes = disk.bytes();
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let (mut damaged, mut refused) = (0, 0);
    for (turn, at) in used.iter().step_by((used.len() / 600).max(1)).enumerate() {
        let mut bytes = bytes.clone();
        bytes[*at] ^= [0x01, 0x80, 0xff][turn % 3];
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let Ok(store) = Store::with_backend(Disk::from_bytes(bytes), &secret()) else {
                return (false, true);
            };
            use_all(&store);
            (store.file_damage().is_some(), false)
        }));
        let (is_damaged, is_refused) = outcome.unwrap_or_else(|_| panic!("a panic escaped, of byte {at}"));
        damaged += usize::from(is_damaged);
        refused += usize::from(is_refused);
    }
    assert!(damaged > 0 && refused > 0, "{damaged} found in use and {refused} on opening");
}

#[test]
fn a_file_that_is_cut_off_or_overwritten_is_told_with_its_name_and_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store.redb");
    drop(Store::create(&path, &secret()).expect("made"));
    let whole = std::fs::read(&path).expect("read");
    let half = &whole[..whole.len() / 2];
    for bytes in [&whole[..100], half, &vec![0; whole.len()][..], &vec![0x55; whole.len()][..]] {
        std::fs::write(&path, bytes).expect("written");
        let message = Store::open(&path, &secret()).expect_err("it is damaged").to_string();
        assert!(message.contains("store.redb is damaged") && message.contains("node restore"), "{message}");
    }
}

#[test]
fn a_store_found_damaged_in_use_refuses_everything_and_says_why() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store.redb");
    let store = Store::create(&path, &secret()).expect("made");
    store.put_pending(&key("k", 1)).expect("put");
    assert!(store.file_damage().is_none());
    store.find_damage();
    let message = store.file_damage().expect("noted").to_string();
    assert!(message.contains("store.redb") && message.contains("a page makes no sense"), "{message}");
    assert!(matches!(store.pending_key("k"), Err(StoreError::Damaged { .. })));
    assert!(matches!(store.put_pending(&key("l", 2)), Err(StoreError::Damaged { .. })));
}

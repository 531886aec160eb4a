//! A backup restores everything or nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use polyclave_config::NodeSettings;

use super::super::testing::key;
use super::*;

struct Made {
    dir: tempfile::TempDir,
    node: NodeDir,
    store: Store,
}

impl Made {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn backup_key() -> Secret {
    Secret::from_bytes([3; 32])
}

/// A node with two announced keys, one pending key and a long audit log, and a backup of it.
fn made() -> Made {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("node");
    let settings = NodeSettings::new("a", "a.example:1", "a.example:2");
    NodeDir::init(&path, &settings, &[0x30, 1, 2, 3], &[0x30, 4, 5, 6]).expect("made");
    let node = NodeDir::open(&path).expect("opened");
    private::write(&node.audit_path(), &vec![b'x'; 200_000]).expect("written");
    let secret = node.secret().expect("read").into();
    let store = Store::create(&node.store_path(), &secret).expect("made");
    for (name, seed) in [("one", 1), ("two", 2), ("three", 3)] {
        store.put_pending(&key(name, seed)).expect("put");
    }
    store.announce("one", [1; 16]).expect("announced");
    store.announce("two", [2; 16]).expect("announced");
    store.backup(&node, &dir.path().join("backup"), &backup_key()).expect("backed up");
    Made { dir, node, store }
}

#[test]
fn a_restored_node_has_everything_of_the_moment() {
    let made = made();
    made.store.delete("one", [1; 16]).expect("deleted");
    let path = made.path("restored");
    restore(&made.path("backup"), &backup_key(), &path).expect("restored");
    let node = NodeDir::open(&path).expect("opened");
    assert_eq!(node.identity(), made.node.identity());
    assert_eq!(fs::read(node.audit_path()).expect("read"), vec![b'x'; 200_000]);
    let store = Store::open(&node.store_path(), &node.secret().expect("read").into()).expect("opened");
    assert_eq!(store.count().expect("read"), 2);
    let one = store.key("one").expect("read").expect("there");
    assert_eq!(one.shares, key("one", 1).shares);
    assert!(store.pending_key("three").expect("read").is_some());
}

#[test]
fn a_node_is_restored_into_the_empty_directory_that_a_package_made() {
    let made = made();
    let path = made.path("restored");
    fs::create_dir(&path).expect("made");
    restore(&made.path("backup"), &backup_key(), &path).expect("restored");
    let node = NodeDir::open(&path).expect("opened");
    assert_eq!(node.identity(), made.node.identity());
    Store::open(&node.store_path(), &node.secret().expect("read").into()).expect("opened");
    let names = |dir| fs::read_dir(dir).expect("a directory").map(|f| f.expect("a file").file_name());
    assert!(names(&path).all(|name| !name.to_string_lossy().starts_with('.')), "nothing else is left");
    assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o700);
    let again = restore(&made.path("backup"), &backup_key(), &path);
    assert!(matches!(again, Err(StoreError::Exists { .. })), "it is not empty any more");
}

#[test]
fn session_keys_are_in_no_backup() {
    let made = made();
    let mut session = key("session", 4);
    session.info.properties.lifetime = polyclave_api::Lifetime::Session { seconds: 60 };
    made.store.put_pending(&session).expect("put");
    made.store.announce("session", [4; 16]).expect("announced");
    made.store.spend(([4; 16], [4; 16]), 1, 100).expect("in the budget");
    made.store.put_setup([1; 32], 1, b"secrets", true).expect("put");
    let refreshed = |name: &str, seed| {
        let shares = [("key".to_owned(), Zeroizing::new(vec![9; 4]))].into_iter().collect();
        super::super::RefreshedKey { name: name.into(), id: [seed; 16], shares }
    };
    let all = [refreshed("one", 1), refreshed("two", 2), refreshed("three", 3), refreshed("session", 4)];
    made.store.prepare_keys(0, &all).expect("prepared");
    made.store.prepare_refresh([2; 32], b"fresh").expect("prepared");
    made.store.backup(&made.node, &made.path("later"), &backup_key()).expect("backed up");
    made.store.key("session").expect("read").expect("it is still here");
    restore(&made.path("later"), &backup_key(), &made.path("restored")).expect("restored");
    let node = NodeDir::open(&made.path("restored")).expect("opened");
    let store = Store::open(&node.store_path(), &node.secret().expect("read").into()).expect("opened");
    let held = || store.held_keys().expect("read").iter().map(|key| key.id[0]).collect::<Vec<_>>();
    assert_eq!((held(), store.count().expect("read")), (vec![1, 2, 3], 2));
    assert!(store.shares_of([4; 16]).is_err());
    assert_eq!(store.spent([4; 16]).expect("read"), 0);
    store.commit_refresh([2; 32], 7).expect("what was prepared is completed without it");
    assert_eq!((held(), store.count().expect("read")), (vec![1, 2, 3], 3));
}

#[test]
fn nothing_is_written_over_and_nothing_of_a_damaged_backup() {
    let made = made();
    let path = made.path("restored");
    let again = made.store.backup(&made.node, &made.path("backup"), &backup_key());
    assert!(matches!(again, Err(StoreError::Exists { .. })));
    let existing = restore(&made.path("backup"), &backup_key(), made.node.path());
    assert!(matches!(existing, Err(StoreError::Exists { .. })));
    let wrong = restore(&made.path("backup"), &Secret::from_bytes([4; 32]), &path);
    let message = wrong.expect_err("another key").to_string();
    assert!(
        message.contains("key file that it was made with") && !message.contains("restore this node"),
        "{message}"
    );
    let bytes = fs::read(made.path("backup")).expect("read");
    let before = fs::read_dir(made.dir.path()).expect("a directory").count();
    for at in [0, 20, 40, bytes.len() / 2, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        fs::write(made.path("backup"), &flipped).expect("written");
        let error = restore(&made.path("backup"), &backup_key(), &path);
        assert!(matches!(error, Err(StoreError::BadBackup { .. })), "{at}");
    }
    for len in [0, 10, 32, 1000, 32 + (64 << 10) + 16, bytes.len() - 1] {
        fs::write(made.path("backup"), &bytes[..len]).expect("written");
        let error = restore(&made.path("backup"), &backup_key(), &path);
        assert!(matches!(error, Err(StoreError::BadBackup { .. })), "{len}");
    }
    assert!(!path.exists());
    assert_eq!(fs::read_dir(made.dir.path()).expect("a directory").count(), before);
}

#[test]
fn a_backup_shows_nothing_and_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let made = made();
    let bytes = fs::read(made.path("backup")).expect("read");
    assert!(!bytes.windows(9).any(|w| w == b"xxxxxxxxx" || w == b"node.toml"));
    let mode = fs::metadata(made.path("backup")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_backup_can_be_made_while_keys_are_made() {
    let made = made();
    std::thread::scope(|scope| {
        scope
            .spawn(|| (10..40).for_each(|i| made.store.put_pending(&key(&format!("n{i}"), i)).expect("put")));
        for i in 0..5 {
            let (file, dir) = (made.path(&format!("b{i}")), made.path(&format!("r{i}")));
            made.store.backup(&made.node, &file, &backup_key()).expect("backed up");
            restore(&file, &backup_key(), &dir).expect("restored");
        }
    });
}

#[test]
fn a_backup_key_comes_back_from_its_file() {
    let made = made();
    let file = made.path("backup.key");
    let key = Secret::generate_file(&file).expect("made");
    assert!(Secret::generate_file(&file).is_err());
    made.store.backup(&made.node, &made.path("other"), &key).expect("backed up");
    let key = Secret::load_file(&file).expect("read");
    restore(&made.path("other"), &key, &made.path("restored")).expect("restored");
}

#[test]
fn what_is_restored_is_refused_by_peers_that_have_seen_the_node_also_if_nothing_has_happened_since() {
    use polyclave_protocol::Party;

    use super::super::testing::in_memory;
    let made = made();
    made.store.begin_incarnation().expect("counted");
    let (peer, _) = in_memory();
    peer.peer_seen(Party(0), &made.store.past().expect("read")).expect("the first");
    made.store.backup(&made.node, &made.path("current"), &backup_key()).expect("backed up");
    restore(&made.path("current"), &backup_key(), &made.path("restored")).expect("restored");
    let node = NodeDir::open(&made.path("restored")).expect("opened");
    let store = Store::open(&node.store_path(), &node.secret().expect("read").into()).expect("opened");
    assert_eq!(store.begin_incarnation().expect("counted").number, 2);
    for _ in 0..3 {
        let refused = peer.peer_seen(Party(0), &store.past().expect("read"));
        assert!(matches!(refused, Err(StoreError::RolledBack { .. })), "{refused:?}");
        store.begin_incarnation().expect("counted");
    }
    peer.readmit(Party(0)).expect("readmitted");
    peer.peer_seen(Party(0), &store.past().expect("read")).expect("readmitted");
}

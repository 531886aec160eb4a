//! A log of several files is one chain. Deleted files are accepted only if the chain says that they were
//! deleted.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use super::*;

const LINES: u64 = 9000;

/// Settings with small files, and a log that fills several.
fn rotated(keep: Option<usize>) -> (tempfile::TempDir, PathBuf, Head) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.log");
    let log = AuditLog::open(&path, &small(keep), None, (false, 0)).expect("opened");
    (0..LINES).for_each(|i| log.append(&event(&format!("k{i}"))).expect("appended"));
    let head = log.sync().expect("synced");
    (dir, path, head)
}

fn small(keep_files: Option<usize>) -> AuditSettings {
    AuditSettings { rotate_mib: 1, keep_files, ..AuditSettings::default() }
}

fn closed(path: &Path) -> Vec<PathBuf> {
    files::closed(path).expect("read").into_iter().map(|(_, path)| path).collect()
}

#[test]
fn the_chain_goes_on_from_file_to_file_and_over_starts() {
    let (_dir, path, head) = rotated(None);
    let count = closed(&path).len();
    assert!(count >= 2, "{count}");
    let found = verify(&path, Some(head)).expect("whole");
    assert_eq!((found.lines, found.files, found.discarded), (LINES, count + 1, 0));
    let first = fs::read_to_string(&path).expect("read");
    let last = fs::read_to_string(&closed(&path)[count - 1]).expect("read");
    let hash = last.lines().last().and_then(|l| Line::parse(l.as_bytes())).expect("a line").hash;
    assert!(first.lines().next().is_some_and(|line| line.contains(&hex::encode(hash))));
    let log = AuditLog::open(&path, &small(None), Some(head), (false, 0)).expect("opened");
    log.append(&event("more")).expect("appended");
    assert_eq!(verify(&path, Some(head)).expect("whole").lines, LINES + 1);
}

#[test]
fn what_was_changed_or_removed_in_any_file_is_named() {
    for at in 0..2 {
        let (_dir, path, head) = rotated(None);
        let file = closed(&path)[at].clone();
        let text = fs::read_to_string(&file).expect("read");
        fs::write(&file, text.replacen("alice", "alicf", 1)).expect("written");
        let error = verify(&path, Some(head));
        assert!(matches!(&error, Err(AuditError::Broken { path, .. }) if *path == file), "{error:?}");
        fs::remove_file(&file).expect("removed");
        let error = verify(&path, Some(head));
        assert!(
            matches!(error, Err(AuditError::Broken { line: 1, damage: Damage::Removed, .. })),
            "{error:?}"
        );
    }
    let (_dir, path, head) = rotated(None);
    fs::remove_file(&path).expect("removed");
    assert!(matches!(verify(&path, Some(head)), Err(AuditError::Cut { .. })));
    assert!(matches!(open(&path, Some(head)), Err(AuditError::Cut { .. })));
}

#[test]
fn a_node_starts_again_after_a_crash_between_two_files() {
    let (_dir, path, _) = rotated(None);
    let last = closed(&path).pop().expect("there");
    fs::remove_file(&path).expect("the other one was not begun yet");
    fs::write(path.with_file_name("audit.log.next"), "").expect("written");
    let noted = verify(&path, None).expect("whole").head;
    let log = open(&path, Some(noted)).expect("opened");
    log.append(&event("more")).expect("appended");
    assert_eq!(verify(&path, Some(noted)).expect("whole").head.0, noted.0 + 1);
    let lines = fs::read_to_string(&last).expect("read");
    fs::write(&last, &lines[..lines.len() - 10]).expect("written");
    assert!(open(&path, Some(noted)).is_err() && verify(&path, None).is_err());
}

#[test]
fn files_that_are_not_kept_are_not_missing_and_others_are() {
    let (_dir, path, head) = rotated(Some(1));
    let left = closed(&path);
    assert_eq!(left.len(), 1);
    let found = verify(&path, Some(head)).expect("whole");
    assert!(found.discarded > 1000 && found.lines == head.0 - found.discarded, "{found:?}");
    drop(AuditLog::open(&path, &small(Some(1)), Some(head), (false, 0)).expect("opened"));
    fs::remove_file(&left[0]).expect("removed");
    let error = verify(&path, Some(head));
    assert!(matches!(error, Err(AuditError::Broken { line: 1, damage: Damage::Removed, .. })), "{error:?}");
    assert!(open(&path, Some(head)).is_err());
}

#[test]
fn a_log_restored_without_its_earlier_files_says_so_and_goes_on() {
    for whole in [true, false] {
        let (_dir, path, head) = rotated(None);
        closed(&path).iter().for_each(|file| fs::remove_file(file).expect("removed"));
        if !whole {
            fs::write(&path, "").expect("written");
        }
        assert!(open(&path, Some(head)).is_err());
        drop(AuditLog::open(&path, &small(None), Some(head), (true, 0)).expect("opened"));
        let found = verify(&path, Some(head)).expect("whole");
        assert!(found.head.0 == head.0 + 1 && found.discarded > 0, "{found:?}");
        open(&path, Some(found.head)).expect("and so it stays");
    }
}

#[test]
fn all_lines_go_to_syslog_and_nobody_waits_for_one_that_does_not_listen() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, socket) = (dir.path().join("audit.log"), dir.path().join("syslog"));
    let settings = AuditSettings { syslog: Some(socket.clone()), ..AuditSettings::default() };
    let log = AuditLog::open(&path, &settings, None, (false, 0)).expect("opened");
    log.append(&event("nobody-listens")).expect("appended");
    let receiver = UnixDatagram::bind(&socket).expect("bound");
    log.append(&event("taken")).expect("appended");
    let mut message = [0; 4096];
    let len = receiver.recv(&mut message).expect("a line");
    let text = fs::read_to_string(&path).expect("read");
    let line = text.lines().last().expect("a line");
    assert_eq!(message[..len], *format!("<110>polyclave-audit: {line}").as_bytes());
    // More than any socket buffers.
    (0..5000).for_each(|_| log.append(&event("full")).expect("appended"));
    assert_eq!(verify(&path, None).expect("whole").lines, 5002);
}

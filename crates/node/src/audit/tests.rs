//! Verification finds every kind of manipulation, at its line.

mod full;
mod several;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::line::Line;
use super::*;

fn event(key: &str) -> Event<'_> {
    Event {
        client: "alice",
        operation: "seal",
        key,
        outcome: "ok",
        blocks: 3,
        request: [9; 16],
        ..Event::default()
    }
}

fn open(path: &Path, noted: Option<Head>) -> Result<AuditLog, AuditError> {
    AuditLog::open(path, &AuditSettings::default(), noted, (false, 0))
}

/// A log of ten lines.
fn log() -> (tempfile::TempDir, PathBuf, Head) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.log");
    let log = open(&path, None).expect("opened");
    (0..10).for_each(|i| log.append(&event(&format!("k{i}"))).expect("appended"));
    let head = log.sync().expect("synced");
    (dir, path, head)
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).expect("read").lines().map(str::to_owned).collect()
}

fn damage(path: &Path, lines: &[String]) -> (u64, Damage) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(path, text).expect("written");
    match verify(path, None) {
        Err(AuditError::Broken { line, damage, .. }) => (line, damage),
        other => panic!("not found: {other:?}"),
    }
}

#[test]
fn an_untouched_log_verifies_and_goes_on_where_it_ended() {
    let (_dir, path, head) = log();
    let verified = verify(&path, Some(head)).expect("untouched");
    assert_eq!((verified.lines, verified.head, head.0), (10, head, 10));
    assert!(verified.first.is_some() && verified.first <= verified.last);
    let log = open(&path, Some(head)).expect("opened");
    log.append(&event("more")).expect("appended");
    assert_eq!(verify(&path, Some(head)).expect("untouched").lines, 11);
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_identity_of_a_client_is_written_whole_and_no_free_text_is() {
    let long = format!("spiffe://corp.example/{}", "a".repeat(200));
    let shown =
        |client: &str| Line::new(&Event { client, ..event("k") }, String::new(), (0, [0; 32]), 0).client;
    assert_eq!([shown("alice"), shown(&long), shown("dns:web.example")], ["alice", &long, "dns:web.example"]);
    for text in ["spiffe://corp.example/a b", "http://corp.example/a", "a b", &format!("{long}{long}")] {
        assert_eq!(shown(text), "?");
    }
}

#[test]
fn an_altered_line_is_named_whatever_was_altered() {
    let (_dir, path, _) = log();
    let before = lines(&path);
    for at in 0..before[4].len() {
        let mut bytes = before[4].clone().into_bytes();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        let mut after = before.clone();
        after[4] = String::from_utf8(bytes).expect("still ASCII");
        assert_eq!(damage(&path, &after), (5, Damage::Altered), "{at}");
    }
    let mut spaced = before.clone();
    spaced[4] = spaced[4].replace(",", ", ");
    assert_eq!(damage(&path, &spaced), (5, Damage::Altered));
}

#[test]
fn a_removed_line_is_named() {
    let (_dir, path, _) = log();
    let mut after = lines(&path);
    after.remove(4);
    assert_eq!(damage(&path, &after), (5, Damage::Removed));
    let mut after = after.clone();
    after.remove(0);
    assert_eq!(damage(&path, &after), (1, Damage::Removed));
}

#[test]
fn reordered_and_inserted_lines_are_named() {
    let (_dir, path, _) = log();
    let before = lines(&path);
    let mut swapped = before.clone();
    swapped.swap(4, 5);
    assert_eq!(damage(&path, &swapped), (5, Damage::Removed));
    let mut repeated = before.clone();
    repeated.insert(5, before[2].clone());
    assert_eq!(damage(&path, &repeated), (6, Damage::Inserted));
    let mut foreign = before.clone();
    let forged = Line::new(&event("forged"), "2026-01-01T00:00:00Z".into(), (5, [1; 32]), 0);
    foreign[5] = forged.to_text().trim_end().into();
    assert_eq!(damage(&path, &foreign), (6, Damage::Replaced));
    let mut empty = before.clone();
    empty.insert(3, String::new());
    assert_eq!(damage(&path, &empty), (4, Damage::Altered));
}

#[test]
fn a_cut_end_is_noticed_by_what_the_store_knows() {
    let (_dir, path, head) = log();
    let after = lines(&path)[..7].join("\n") + "\n";
    std::fs::write(&path, after).expect("written");
    assert_eq!(verify(&path, None).expect("nothing else shows it").lines, 7);
    assert!(matches!(verify(&path, Some(head)), Err(AuditError::Cut { last: 7, noted: 10, .. })));
    assert!(matches!(open(&path, Some(head)), Err(AuditError::Cut { last: 7, noted: 10, .. })));
    std::fs::remove_file(&path).expect("removed");
    assert!(matches!(open(&path, Some(head)), Err(AuditError::Cut { last: 0, .. })));
}

#[test]
fn a_log_written_anew_is_noticed_by_what_the_store_knows() {
    let (_dir, path, head) = log();
    std::fs::remove_file(&path).expect("removed");
    let forged = open(&path, None).expect("opened");
    (0..12).for_each(|_| forged.append(&event("harmless")).expect("appended"));
    drop(forged);
    assert!(verify(&path, None).is_ok());
    assert!(matches!(verify(&path, Some(head)), Err(AuditError::Rewritten { noted: 10, .. })));
    assert!(matches!(open(&path, Some(head)), Err(AuditError::Rewritten { noted: 10, .. })));
}

#[test]
fn a_torn_line_is_cut_off_and_the_log_says_so() {
    let (_dir, path, head) = log();
    let whole = std::fs::read(&path).expect("read");
    let eleventh = { Line::new(&event("k"), "2026-01-01T00:00:00Z".into(), head, 0).to_text() };
    for len in [1, 20, eleventh.len() - 1] {
        let torn = [&whole, &eleventh.as_bytes()[..len]].concat();
        std::fs::write(&path, torn).expect("written");
        assert!(matches!(
            verify(&path, None),
            Err(AuditError::Broken { line: 11, damage: Damage::Torn, .. })
        ));
        drop(open(&path, Some(head)).expect("recovered"));
        assert_eq!(verify(&path, Some(head)).expect("whole").lines, 11);
        assert!(lines(&path)[10].contains("recovered"));
    }
}

#[test]
fn a_damaged_end_is_not_written_on() {
    let (_dir, path, _) = log();
    let mut after = lines(&path);
    after[9] = after[9].replace("k9", "k8");
    std::fs::write(&path, after.join("\n") + "\n").expect("written");
    let error = open(&path, None);
    assert!(matches!(error, Err(AuditError::Broken { line: 10, damage: Damage::Altered, .. })), "{error:?}");
}

#[test]
fn the_end_of_a_long_log_is_checked_back_to_what_the_store_knows() {
    let (_dir, path, head) = log();
    let log = open(&path, Some(head)).expect("opened");
    (0..2000).for_each(|_| log.append(&event("k")).expect("appended"));
    drop(log);
    assert!(std::fs::metadata(&path).expect("there").len() > 4 * (64 << 10));
    assert_eq!(open(&path, Some(head)).expect("opened").head().0, 2010);
    let wrong = open(&path, Some((10, [1; 32])));
    assert!(matches!(wrong, Err(AuditError::Rewritten { noted: 10, .. })));
}

#[test]
fn a_log_that_is_given_back_in_a_moment_is_waited_for() {
    let (_dir, path, _) = log();
    let writer = open(&path, None).expect("opened");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(writer);
        });
        open(&path, None).expect("it waits");
    });
}

#[test]
fn one_process_writes_it_and_no_other_reads_it() {
    let (_dir, path, _) = log();
    let _writer = open(&path, None).expect("opened");
    assert!(matches!(open(&path, None), Err(AuditError::InUse { .. })));
    drop(_writer);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("set");
    assert!(open(&path, None).expect_err("refused").to_string().contains("chmod 600"));
}

#[test]
fn what_is_no_name_is_not_logged() {
    let (_dir, path, head) = log();
    let log = open(&path, Some(head)).expect("opened");
    let secret = "two words and \"quotes\"\n{}";
    log.append(&Event { client: secret, ..event(secret) }).expect("appended");
    log.append(&Event { outcome: &"x".repeat(65), ..event("k") }).expect("appended");
    let text = std::fs::read_to_string(&path).expect("read");
    assert!(!text.contains("words") && !text.contains("xxx") && text.contains("\"client\":\"?\""));
    assert_eq!(verify(&path, None).expect("whole").lines, 12);
}

#[test]
fn lines_of_many_threads_make_one_chain() {
    let (_dir, path, head) = log();
    let log = open(&path, Some(head)).expect("opened");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| log.append(&event("k")).expect("appended")));
        }
    });
    assert_eq!(verify(&path, Some(log.head())).expect("whole").lines, 210);
}

#[test]
fn a_store_that_is_older_than_the_mark_of_the_last_line_is_refused() {
    let (_dir, path, head) = log();
    let at = |mark, restored| AuditLog::open(&path, &AuditSettings::default(), Some(head), (restored, mark));
    let log = at(7, false).expect("no line has a mark yet");
    log.append(&event("seven")).expect("appended");
    log.at_mark(40);
    log.at_mark(39);
    log.append(&event("forty")).expect("appended");
    drop(log);
    assert!(lines(&path)[10].contains("\"mark\":7,") && lines(&path)[11].contains("\"mark\":40,"));
    let message = at(39, false).expect_err("it was put back").to_string();
    assert!(
        message.contains("at mark 40, and it is at mark 39") && message.contains("node audit renew"),
        "{message}"
    );
    for mark in [40, 41] {
        drop(at(mark, false).expect("as far as the line says, or farther"));
    }
    // A restored node is older, and its first line says so.
    drop(at(12, true).expect("restored"));
    drop(at(12, false).expect("it goes on from there"));
    assert!(at(11, false).is_err());
}

#[test]
fn the_mark_of_a_line_cannot_be_altered_and_lines_without_one_verify() {
    let (_dir, path, head) = log();
    let log = AuditLog::open(&path, &AuditSettings::default(), Some(head), (false, 300)).expect("opened");
    log.append(&event("k")).expect("appended");
    drop(log);
    assert_eq!(verify(&path, Some(head)).expect("untouched").lines, 11);
    let mut after = lines(&path);
    after[10] = after[10].replace("\"mark\":300", "\"mark\":200");
    assert_eq!(damage(&path, &after), (11, Damage::Altered));
    after[10] = after[10].replace("\"mark\":200,", "");
    assert_eq!(damage(&path, &after), (11, Damage::Altered));
}

//! With a full disk nothing is served without a line, or it is counted; afterwards the chain says so.

use polyclave_config::WhenUnwritable;

use super::*;

fn with(path: &Path, when_unwritable: WhenUnwritable) -> AuditLog {
    let settings = AuditSettings { when_unwritable, ..AuditSettings::default() };
    AuditLog::open(path, &settings, None, (false, 0)).expect("opened")
}

fn begun() -> Event<'static> {
    Event { outcome: BEGUN, ..event("k") }
}

#[test]
fn a_request_without_a_line_is_refused_until_there_is_room() {
    let (_dir, path, _) = log();
    let log = with(&path, WhenUnwritable::Refuse);
    testing::fill_up(&path);
    assert!((0..3).all(|_| log.admit(&begun()).is_err()));
    let (why, refuses) = log.failure().expect("it fails");
    assert!(why.contains("disk is full") && refuses, "{why}");
    assert!(!log.retry());
    assert_eq!(verify(&path, None).expect("whole").lines, 10);
    testing::make_room(&path);
    assert!(log.retry() && log.failure().is_none() && log.gap().is_none());
    log.admit(&begun()).expect("there is room");
    let found = verify(&path, Some(log.head())).expect("whole");
    assert_eq!((found.lines, found.gaps.len(), found.unended), (12, 1, 1));
    assert_eq!((found.gaps[0].0.events, found.gaps[0].0.served), (3, 0));
}

#[test]
fn requests_that_are_served_without_a_line_are_counted_in_the_chain() {
    let (_dir, path, _) = log();
    let log = with(&path, WhenUnwritable::Serve);
    testing::fill_up(&path);
    for _ in 0..40 {
        log.admit(&begun()).expect("served all the same");
        assert!(log.append(&event("k")).is_err());
    }
    assert!(matches!(log.failure(), Some((_, false))));
    testing::make_room(&path);
    log.admit(&begun()).expect("there is room");
    let found = verify(&path, Some(log.head())).expect("whole");
    let (gap, until) = &found.gaps[0];
    assert_eq!((found.gaps.len(), gap.events, gap.served), (1, 80, 40));
    assert!(gap.since.len() == until.len() && gap.since <= *until, "{gap:?} {until}");
}

#[test]
fn a_gap_that_was_open_when_the_node_ended_is_in_the_chain() {
    let (_dir, path, head) = log();
    let log = with(&path, WhenUnwritable::Serve);
    testing::fill_up(&path);
    log.admit(&begun()).expect("served all the same");
    let gap = log.gap().expect("open");
    drop(log);
    testing::make_room(&path);
    let log = with(&path, WhenUnwritable::Serve);
    log.resume(gap.clone());
    assert!(log.retry());
    let found = verify(&path, Some(head)).expect("whole");
    assert_eq!(found.gaps.iter().map(|(gap, _)| gap).collect::<Vec<_>>(), [&gap]);
}

#[test]
fn what_has_begun_and_not_ended_and_kills_are_counted() {
    let (_dir, path, _) = log();
    let log = with(&path, WhenUnwritable::Refuse);
    let line = |operation, outcome| log.append(&Event::of_node(operation, outcome)).expect("appended");
    line(STARTED, "done");
    let (one, two) = (Event { request: [1; 16], ..begun() }, Event { request: [2; 16], ..begun() });
    [one, two].iter().for_each(|event| log.admit(event).expect("there is room"));
    log.append(&Event { outcome: "outvoted-node-2", ..two }).expect("appended");
    log.append(&Event { outcome: "done", ..one }).expect("appended");
    line(STARTED, "done");
    line(STOPPED, "in-order");
    line(STARTED, "done");
    let found = verify(&path, None).expect("whole");
    assert_eq!((found.unended, found.kills), (1, 1));
}

#[test]
fn what_tells_of_a_change_has_names_and_numbers_only_and_an_end() {
    let (_dir, path, _) = log();
    let log = with(&path, WhenUnwritable::Refuse);
    let long = "rights=encrypt,".repeat(200);
    for detail in ["node=alpha", "a \"quote\"", &long] {
        log.append(&Event { detail, ..event("k") }).expect("appended");
    }
    let text = lines(&path);
    assert!(text[10].contains("\"detail\":\"node=alpha\"") && text[11].contains("\"detail\":\"?\""));
    assert!(text[12].contains("blake3:") && text[12].len() < line::MAX_LINE);
    assert_eq!(verify(&path, None).expect("whole").lines, 13);
}

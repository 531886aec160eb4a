//! Party processes of `bench`: what happens when one dies, stops, or is left alone. Found and signalled the
//! Linux way.
#![cfg(target_os = "linux")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start() -> Child {
    // Long enough to be interrupted.
    Command::new(env!("CARGO_BIN_EXE_polyclave-lab"))
        .args(["bench", "--blocks", "20000000", "--timeout", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Process ids of the parties, once all of them are at work.
fn parties(bench: &Child) -> Vec<u32> {
    let list = format!("/proc/{0}/task/{0}/children", bench.id());
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let children = std::fs::read_to_string(&list).unwrap_or_default();
        let ids: Vec<u32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
        if ids.len() == 3 {
            std::thread::sleep(Duration::from_millis(500));
            return ids;
        }
        assert!(Instant::now() < deadline, "the parties did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(name: &str, process: u32) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

fn runs(process: u32) -> bool {
    // A zombie is no running process.
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

fn assert_all_end(processes: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while processes.iter().any(|p| runs(*p)) {
        assert!(Instant::now() < deadline, "a party outlived its command");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn error_of(bench: Child) -> String {
    let output = bench.wait_with_output().expect("it ends");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("it is text")
}

#[test]
fn a_killed_party_is_named_and_ends_all() {
    let bench = start();
    let parties = parties(&bench);
    signal("KILL", parties[2]);
    let error = error_of(bench);
    assert!(error.contains("party 3"), "{error}");
    assert_all_end(&parties);
}

#[test]
fn a_stopped_party_is_named_within_the_limit_and_ends_all() {
    let bench = start();
    let parties = parties(&bench);
    let began = Instant::now();
    signal("STOP", parties[1]);
    let error = error_of(bench);
    assert!(error.contains("party 2 did not answer within 3s"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
    assert_all_end(&parties);
}

#[test]
fn all_parties_stopped_is_noticed_and_ends_all() {
    let bench = start();
    let parties = parties(&bench);
    let began = Instant::now();
    parties.iter().for_each(|p| signal("STOP", *p));
    let error = error_of(bench);
    assert!(error.contains("no sign of life"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
    assert_all_end(&parties);
}

/// Standard output that is closed early, or full, is no reason to panic.
#[test]
fn output_that_goes_nowhere_ends_the_command_in_order() {
    let commands: [&[&str]; 2] = [&["reproduce", "damgard-keller-2010", "1"], &["--help"]];
    for arguments in commands {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let output = Command::new(env!("CARGO_BIN_EXE_polyclave-lab")).args(arguments).stdout(full).output();
        let output = output.expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!error.contains("panicked"), "{arguments:?}: {error}");
        let mut child = Command::new(env!("CARGO_BIN_EXE_polyclave-lab"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let error = child.wait_with_output().expect("it ends").stderr;
        let error = String::from_utf8_lossy(&error);
        assert!(!error.contains("panicked"), "{arguments:?}: {error}");
    }
}

#[test]
fn no_party_outlives_a_killed_command() {
    let mut bench = start();
    let parties = parties(&bench);
    signal("KILL", bench.id());
    bench.wait().expect("it ends");
    assert_all_end(&parties);
}

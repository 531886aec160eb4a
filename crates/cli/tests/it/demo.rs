//! `polyclave demo` as a person runs it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn polyclave(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polyclave")).args(arguments).output().expect("the program starts")
}

fn json(output: &Output) -> serde_json::Value {
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {error}"))
}

/// A file of pseudorandom bytes, removed at the end of the test.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, bytes: usize) -> TestFile {
        let path = std::env::temp_dir().join(format!("polyclave-test-{}-{name}", std::process::id()));
        let content: Vec<u8> = (0..bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        std::fs::write(&path, content).expect("the temporary directory is writable");
        TestFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain name")
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn files_of_every_size_come_back() {
    for bytes in [0, 1, 17, 300_000] {
        let file = TestFile::new(&format!("size-{bytes}"), bytes);
        let before = std::fs::read(&file.0).expect("it is there");
        let output = polyclave(&["demo", file.path(), "--json"]);
        let summary = json(&output);
        assert!(output.status.success(), "{summary}");
        assert_eq!(summary["bytes"], bytes);
        let holds = ["round_trip", "known_answer", "change_noticed", "refused_by_policy", "holds"];
        for field in holds.into_iter().chain(["served_without_one"]) {
            assert_eq!(summary[field], true, "{field} of {bytes} bytes");
        }
        assert_eq!(summary["verified"], false, "shamir is passive");
        assert_eq!(std::fs::read(&file.0).expect("it is there"), before);
    }
}

#[test]
fn the_story_is_told() {
    let output = polyclave(&["demo"]);
    let story = String::from_utf8(output.stdout).expect("it is text");
    assert!(output.status.success(), "{story}");
    for part in [
        "69c4e0d86a7b0430d8cdb78070b4c55a",
        "Every byte came back",
        "refused to open",
        "was killed",
        "its policy does not allow auditor to encrypt",
        "Passive",
        "blocks/s",
    ] {
        assert!(story.contains(part), "{part} is missing:\n{story}");
    }
}

#[test]
fn other_numbers_of_nodes_work() {
    let file = TestFile::new("numbers", 5000);
    for (nodes, threshold, spare) in [("3", "1", false), ("5", "2", false), ("4", "1", true)] {
        let options = ["demo", file.path(), "--json", "--parties", nodes, "--threshold", threshold];
        let summary = json(&polyclave(&options));
        assert_eq!(summary["holds"], true, "{nodes} {threshold}: {summary}");
        assert_eq!(summary["served_without_one"].as_bool(), spare.then_some(true), "{nodes} {threshold}");
    }
}

#[test]
fn three_nodes_of_which_one_may_cheat_seal_a_file() {
    let file = TestFile::new("three", 70_000);
    for (protocol, verified) in [("replicated-active", true), ("replicated", false)] {
        let output = polyclave(&["demo", file.path(), "--json", "--protocol", protocol]);
        let summary = json(&output);
        assert!(output.status.success(), "{summary}");
        assert_eq!((&summary["holds"], &summary["parties"]), (&true.into(), &3.into()), "{summary}");
        assert_eq!(summary["verified"], verified);
    }
    let story = String::from_utf8(polyclave(&["demo", "--protocol", "replicated-active"]).stdout);
    let story = story.expect("it is text");
    assert!(story.contains("was proven") && story.contains("shamir-active goes on"), "{story}");
    assert!(!story.contains("Passive"), "{story}");
}

#[test]
fn what_cannot_work_is_said_and_fails() {
    for (arguments, reason) in [
        (&["demo", "/no/such/file"][..], "cannot read /no/such/file"),
        (&["demo", "/"], "no regular file"),
        (&["demo", "--parties", "2", "--protocol", "shamir"], "3 to 9 parties, not 2"),
        (&["demo", "--parties", "2", "/etc/hostname"], "a short message"),
        (&["demo", "--parties", "300"], "3 to 9 parties, not 300"),
        (&["demo", "--parties", "5", "--threshold", "3"], "from 1 to 2"),
        (&["demo", "--protocol", "rot13"], "a protocol 'rot13'"),
        (&["demo", "--protocol", "cleartext"], "cleartext"),
        (&["eval", "--protocol", "shamir"], "polyclave-lab"),
        (&["bench", "--help"], "polyclave-lab"),
        (&["reproduce"], "polyclave-lab"),
    ] {
        let output = polyclave(arguments);
        let message =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(message.contains(reason), "{arguments:?} says: {message}");
        assert!(!message.contains("panicked"), "{arguments:?} says: {message}");
    }
}

/// Standard output that is closed early, or full, is no reason to panic.
#[test]
#[cfg(target_os = "linux")]
fn output_that_goes_nowhere_ends_the_command_in_order() {
    let commands: [&[&str]; 2] = [&["demo"], &["--help"]];
    for arguments in commands {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let output = Command::new(env!("CARGO_BIN_EXE_polyclave")).args(arguments).stdout(full).output();
        let output = output.expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!error.contains("panicked"), "{arguments:?}: {error}");
        let mut child = Command::new(env!("CARGO_BIN_EXE_polyclave"))
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

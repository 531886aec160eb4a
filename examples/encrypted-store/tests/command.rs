//! The command as people run it, with nodes as processes that start anew for every step. It compares with
//! plain code itself.

use std::process::{Command, Output};

fn run(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polyclave-encrypted-store")).args(options).output().expect("it starts")
}

#[test]
fn demonstration_decides_writes_back_and_refuses_what_the_store_changed() {
    for (nodes, limit, answer) in [("4", "60000", "Yes"), ("3", "999999", "No")] {
        // Three nodes are too few for protocols that find cheaters.
        let protocol: &[&str] = if nodes == "3" { &["--protocol", "shamir"] } else { &[] };
        let output = run(&[&["--nodes", nodes, "--limit", limit][..], protocol].concat());
        let message = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{message}{}", String::from_utf8_lossy(&output.stderr));
        assert!(message.contains(&format!("{answer}. Opened")), "{message}");
        assert_eq!(message.matches("is not what the nodes have last written").count(), 3, "{message}");
    }
}

#[test]
fn directory_is_kept_when_it_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = directory.path().join("kept");
    let name = kept.to_str().expect("it is text");
    assert!(run(&["--choose", "2", "--dir", name]).status.success());
    for file in ["store/record-6.sealed", "store/record-100.sealed", "node-3/round-keys", "node-1/versions"] {
        assert!(kept.join(file).exists(), "{file}");
    }
    let again = run(&["--dir", name]);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("is there already"));
}

#[test]
fn bad_options_are_refused_by_name() {
    for (options, because) in [
        (&["--protocol", "des"][..], "shamir"),
        (&["--nodes", "2"], "3..=4"),
        (&["--choose", "9"], "records 1 to 6"),
        (&["--limit=-1"], "invalid value '-1'"),
        (&["--choose", "1,1"], "twice"),
    ] {
        let output = run(options);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(because), "{error}");
    }
}

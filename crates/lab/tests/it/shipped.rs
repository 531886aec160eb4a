//! The search before packaging (`scripts/check-shipped`) finds all that it searches for, in the program that
//! has all of it: the laboratory.

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Each text of the search, so that none goes out of date, is in the laboratory.
#[test]
fn the_search_before_packaging_finds_all_that_it_searches_for_in_a_program_that_has_it() {
    let text = std::fs::read_to_string(repository().join("scripts/check-shipped")).expect("the script");
    let (_, list) = text.split_once("\ntexts=(\n").expect("the list begins");
    let (list, _) = list.split_once("\n)").expect("the list ends");
    let program = std::fs::read(env!("CARGO_BIN_EXE_polyclave-lab")).expect("it is built");
    let texts: Vec<&str> = list.lines().map(|line| line.trim().trim_matches('"')).collect();
    assert!(texts.len() > 3);
    for text in texts {
        assert!(contains(&program, text.as_bytes()), "nothing has '{text}' any more");
        let place = tempfile::tempdir().expect("a directory");
        let library = place.path().join("library.so");
        std::fs::write(&library, format!("any{text}thing")).expect("written");
        let output = Command::new(repository().join("scripts/check-shipped")).arg(library).output();
        let output = output.expect("it starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(text), "{message}");
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let begins = |at: &usize| bytes[*at..].starts_with(text);
    (0..bytes.len()).filter(|at| bytes[*at] == text[0]).any(|at| begins(&at))
}

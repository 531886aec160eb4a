//! The command as people run it, where it fails before it asks any node.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the command says when it fails.
fn error(arguments: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_polyclave-acvp");
    let output =
        Command::new(program).args(arguments).env_remove("POLYCLAVE_CLIENT").output().expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

fn vectors(set: &str, file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../vectors/acvp", set, file].iter().collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

#[test]
fn what_is_wrong_with_files_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let malformed = dir.path().join("malformed.json");
    std::fs::write(&malformed, "{\"vsId\": 1,\n}").expect("written");
    let prompt = vectors("ACVP-AES-ECB-1.0", "prompt.json");
    let of_another = vectors("ACVP-AES-CBC-1.0", "expectedResults.json");
    let (prompt, missing) = (text(&prompt), dir.path().join("missing"));
    for (arguments, because) in [
        (&[text(&malformed)][..], "line 2 column 1"),
        (&[text(&missing)], "cannot open"),
        (&[prompt], "give --expected FILE, --response FILE, or both"),
        (&[prompt, "--expected", text(&of_another)], "the prompt is set"),
        (&[prompt, "--response", "r.json", "--at-once", "0"], "invalid value '0'"),
    ] {
        let message = error(&[arguments, &["--client", text(&missing)]].concat());
        assert!(message.contains(because), "{message}");
    }
    assert!(error(&[prompt]).contains("--client <DIR>"));
}

//! The programs of `examples/gateway`, as they are, on a gateway in this process. A program that is not
//! installed is skipped, and a line on standard error says why. One that is there and does not run fails its
//! test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use polyclave_harness::programs::{ended, python_with, skipped, succeeds};

use crate::common::{PATIENCE, World};

/// How long packages are waited for that have to be fetched.
const FETCHING: Duration = Duration::from_secs(60);

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway").canonicalize().expect("it is there")
}

/// Runs a program with the gateway's address and token. Returns whether it succeeds, and what it prints on
/// both streams.
fn ran(command: &mut Command, key: &str) -> (bool, String) {
    let world = World::shared();
    command.env("VAULT_ADDR", format!("http://{}", world.address())).env("VAULT_TOKEN", &world.root);
    let output = ended(command.arg(key), PATIENCE).expect("it is installed and ends");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

/// Runs a program, which has to succeed and to print a line.
fn prints(command: &mut Command, key: &str, line: &str) {
    let (succeeds, printed) = ran(command, key);
    assert!(succeeds && printed.lines().any(|printed| printed == line), "{printed}");
}

#[test]
fn hvac_runs_unchanged() {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples-hvac");
    let Some(python) = python_with(&["hvac==2.4.0"], &own, FETCHING) else {
        return skipped(
            "the example with hvac",
            "python3 or hvac 2.4.0 is not installed, and could not be fetched",
        );
    };
    let mut command = Command::new(&python);
    command.arg(examples().join("python/run.py"));
    prints(&mut command, "of-python", "python: the messages came back");
    // A key that was there before is not touched.
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/kept", serde_json::Value::Null);
    let mut command = Command::new(&python);
    let (succeeds, printed) = ran(command.arg(examples().join("python/run.py")), "kept");
    assert!(!succeeds && printed.contains("there is already a key kept"), "{printed}");
    world.done("GET", "/v1/transit/keys/kept", serde_json::Value::Null);
    let mut command = Command::new(python);
    command.arg(examples().join("python/tokens.py"));
    prints(&mut command, "shop", "python: the values came back");
}

#[test]
fn sops_runs_unchanged() {
    if !succeeds(Command::new("sops").arg("--version").arg("--disable-version-check"), FETCHING) {
        return skipped("the example with SOPS", "sops is not installed");
    }
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/of-sops", serde_json::Value::Null);
    prints(&mut Command::new(examples().join("sops/run")), "of-sops", "sops: the file came back");
}

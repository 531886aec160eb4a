//! The programs of `examples/gateway`, as they are, on a gateway in this process. A program that is not installed is skipped, and a line on standard error
//! says why. One that is there and does not run fails its test.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, World};

/// How long packages are waited for that have to be fetched.
const FETCHING: Duration = Duration::from_secs(60);

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway").canonicalize().expect("it is there")
}

/// Past what captures the output of tests.
fn skipped(program: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: the example with {program}: {why}");
}

/// Runs a command to its end. `None` if it is not installed, or takes longer than that.
fn ended(command: &mut Command, patience: Duration) -> Option<Output> {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name| std::fs::File::create(dir.path().join(name)).expect("made");
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + patience;
    let status = loop {
        match child.try_wait().expect("it runs") {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill().expect("ended");
                child.wait().expect("ended");
                return None;
            }
        }
    };
    let read = |name| std::fs::read(dir.path().join(name)).expect("read");
    Some(Output { status, stdout: read("out"), stderr: read("err") })
}

fn succeeds(command: &mut Command) -> bool {
    ended(command, FETCHING).is_some_and(|output| output.status.success())
}

/// Runs a program with the gateway's address and token, and looks for its last line.
fn prints(command: &mut Command, key: &str, line: &str) {
    let world = World::shared();
    command.env("VAULT_ADDR", format!("http://{}", world.address())).env("VAULT_TOKEN", &world.root);
    let output = ended(command.arg(key), PATIENCE).expect("it is installed and ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.lines().any(|printed| printed == line), "{out}\n{err}");
}

#[test]
fn hvac_runs_unchanged() {
    let version = "2.4.0";
    let asks = format!("import hvac, importlib.metadata as m; assert m.version('hvac') == '{version}'");
    let has_package = |python: &Path| succeeds(Command::new(python).args(["-c", &asks]));
    let system = PathBuf::from("python3");
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples-hvac");
    let python = match has_package(&system) {
        true => system,
        false => {
            let python = own.join("bin/python3");
            if !has_package(&python) {
                succeeds(Command::new(system).args(["-m", "venv"]).arg(&own));
                let package = format!("hvac=={version}");
                succeeds(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).arg(&package));
            }
            python
        }
    };
    if !has_package(&python) {
        return skipped("hvac", "python3 or hvac 2.4.0 is not installed, and could not be fetched");
    }
    let mut command = Command::new(python);
    command.arg(examples().join("python/run.py"));
    prints(&mut command, "of-python", "python: the messages came back");
}

#[test]
fn sops_runs_unchanged() {
    if !succeeds(Command::new("sops").arg("--version").arg("--disable-version-check")) {
        return skipped("SOPS", "sops is not installed");
    }
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/of-sops", serde_json::Value::Null);
    prints(&mut Command::new(examples().join("sops/run")), "of-sops", "sops: the file came back");
}

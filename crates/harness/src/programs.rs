//! Programs of others, which tests run as they are if they are there, or can be fetched.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Runs a command to its end. `None` if it is not installed, or takes longer than `within`.
pub fn ended(command: &mut Command, within: Duration) -> Option<Output> {
    // Into files: a pipe that nobody reads would hold up the program.
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name| File::create(dir.path().join(name)).expect("made");
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + within;
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

/// Whether a command succeeds in this time.
pub fn succeeds(command: &mut Command, within: Duration) -> bool {
    ended(command, within).is_some_and(|output| output.status.success())
}

/// A Python interpreter that has packages, each given as `name==version`: that of the system, or one of an
/// environment in `dir`, into which they are fetched. `None` if they cannot be had in this time.
pub fn python_with(packages: &[&str], dir: &Path, within: Duration) -> Option<PathBuf> {
    // One at a time: pip does not expect another one in the same environment.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let asks = format!(
        "import importlib.metadata as m; assert all(m.version(p.split('==')[0]) == p.split('==')[1] for p in {packages:?})"
    );
    let has_packages = |python: &Path| succeeds(Command::new(python).args(["-c", &asks]), within);
    let (system, own) = (PathBuf::from("python3"), dir.join("bin/python3"));
    if has_packages(&system) {
        return Some(system);
    }
    if !has_packages(&own) {
        succeeds(Command::new(&system).args(["-m", "venv"]).arg(dir), within);
        succeeds(Command::new(&own).args(["-m", "pip", "install", "--quiet"]).args(packages), within);
    }
    has_packages(&own).then_some(own)
}

/// A command of Go in a folder with a `go.mod`, in the background of what else runs here: it compiles for all
/// processors. Nothing is fetched but the modules of `go.sum`: not another version of Go, and not other
/// modules.
pub fn go_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("nice");
    command
        .args(["-n", "19", "go"])
        .args(arguments)
        .current_dir(folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=readonly");
    command
}

/// Says on standard error, past what captures the output of tests, that something was not run.
pub fn skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}: {why}");
}

//! The package in Python: its own tests over real clusters (`tests/suite`), its stubs as a type checker reads them, and the notebook of
//! `examples/python`. Python, and packages of it, are fetched into an environment of this test if they are not there. What cannot be had is
//! skipped, and a line on standard error says why. What is there and fails, fails its test.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long the tests of the package may take: much longer than they take.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long packages are waited for that have to be fetched.
const FETCHING: Duration = Duration::from_secs(400);

const PYTEST: &[&str] = &["pytest==8.4.2"];
const MYPY: &[&str] = &["mypy==1.18.2"];
const NOTEBOOK: &[&str] = &["nbclient==0.10.2", "ipykernel==6.30.1", "matplotlib==3.9.4"];

#[test]
fn the_tests_of_the_package_pass() {
    let Some(python) = Python::with(PYTEST) else { return };
    let suite = crate_dir().join("tests/suite");
    let mut command = python.command();
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(suite);
    python.succeeds(&mut command);
}

#[test]
fn the_stubs_pass_a_strict_type_checker() {
    let Some(python) = Python::with(MYPY) else { return };
    let mut command = python.command();
    command.args([
        "-m",
        "mypy",
        "--strict",
        "--no-incremental",
        "--cache-dir",
        "/dev/null",
        "-p",
        "polyclave",
    ]);
    python.succeeds(&mut command);
    let mut command = python.command();
    command.args(["-m", "mypy", "--strict", "--no-incremental", "--cache-dir", "/dev/null"]);
    command.arg(crate_dir().join("tests/typed.py"));
    python.succeeds(&mut command);
}

#[test]
fn the_notebook_runs() {
    let Some(python) = Python::with(NOTEBOOK) else { return };
    let notebook = crate_dir().join("../../examples/python/table2.ipynb");
    let run = "import nbformat, nbclient, sys\n\
        notebook = nbformat.read(sys.argv[1], 4)\n\
        assert not any(cell.get('outputs') for cell in notebook.cells), 'strip the outputs before you commit'\n\
        nbclient.NotebookClient(notebook, timeout=600).execute()\n\
        drawn = [o for c in notebook.cells for o in c.get('outputs', []) if 'image/png' in o.get('data', {})]\n\
        assert drawn, 'nothing was drawn'\n";
    let mut command = python.command();
    command.args(["-c", run]).arg(notebook);
    python.succeeds(&mut command);
}

/// An interpreter with packages, and the package under test as cargo built it.
struct Python {
    interpreter: PathBuf,
    package: tempfile::TempDir,
}

impl Python {
    /// `None` if these packages cannot be had.
    fn with(packages: &[&str]) -> Option<Python> {
        let asks = "import sys; assert sys.version_info >= (3, 9)";
        if !succeeds(Command::new("python3").args(["-c", asks])) {
            return skipped(packages, "python3 is not installed, or older than 3.9");
        }
        let Some(interpreter) = environment(packages) else {
            return skipped(packages, "it is not installed and could not be fetched");
        };
        let package = tempfile::tempdir().expect("a directory");
        let own = package.path().join("polyclave");
        copy(&crate_dir().join("python/polyclave"), &own);
        std::fs::copy(library(), own.join("_polyclave.abi3.so")).expect("copied");
        Some(Python { interpreter, package })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.env("PYTHONPATH", self.package.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("MYPYPATH", self.package.path()).current_dir(self.package.path());
        command.env("POLYCLAVE_BIN", program("POLYCLAVE_BIN", "polyclave"));
        command.env("POLYCLAVE_LAB", program("POLYCLAVE_LAB", "polyclave-lab"));
        command.env_remove("POLYCLAVE_CLIENT");
        command
    }

    fn succeeds(&self, command: &mut Command) {
        let output = ended(command, PATIENCE).expect("it is installed and ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    }
}

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directory in which cargo puts what it builds.
fn target() -> PathBuf {
    let test = std::env::current_exe().expect("it has a path");
    test.parent().and_then(Path::parent).expect("deps is in a directory").into()
}

fn library() -> PathBuf {
    let name = "lib_polyclave.so";
    let places = [target().join("deps").join(name), target().join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo builds the library of the package under test")
}

/// A program of the workspace, which is another package's.
fn program(variable: &str, name: &str) -> PathBuf {
    let program = std::env::var_os(variable).map_or_else(|| target().join(name), PathBuf::from);
    assert!(
        program.exists(),
        "{} is not built: `cargo test --workspace` builds it, or `cargo build -p polyclave-cli -p polyclave-lab`; or set {variable}",
        program.display()
    );
    program
}

/// The interpreter of an environment that stays between runs, with these packages.
fn environment(packages: &[&str]) -> Option<PathBuf> {
    // One at a time: pip does not expect another in the same environment.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().expect("nothing panics here");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let own = dir.join("bin/python3");
    let asks = format!(
        "import importlib.metadata as m; assert all(m.version(p.split('==')[0]) == p.split('==')[1] for p in {packages:?})"
    );
    let has_packages = || succeeds(Command::new(&own).args(["-c", &asks]));
    if !has_packages() {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&dir));
        succeeds(Command::new(&own).args(["-m", "pip", "install", "--quiet"]).args(packages));
    }
    has_packages().then_some(own)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let path = entry.expect("read").path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
        }
    }
}

/// Past what captures the output of tests.
fn skipped<T>(packages: &[&str], why: &str) -> Option<T> {
    let _ = writeln!(std::io::stderr(), "skipped: the package in Python with {}: {why}", packages.join(", "));
    None
}

/// Whether a command that only asks or fetches succeeds.
fn succeeds(command: &mut Command) -> bool {
    ended(command, FETCHING).is_some_and(|output| output.status.success())
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

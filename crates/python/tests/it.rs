//! The package in Python: its own tests over real clusters (`tests/suite`), its stubs as a type checker reads
//! them, and the notebook of `examples/python`. Python, and packages of it, are fetched into an environment
//! of this test if they are not there. What cannot be had is skipped, and a line on standard error says why.
//! What is there and fails, fails its test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use polyclave_harness::programs::{self, ended, python_with};

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
        if !programs::succeeds(Command::new("python3").args(["-c", asks]), FETCHING) {
            return skipped(packages, "python3 is not installed, or older than 3.9");
        }
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
        let Some(interpreter) = python_with(packages, &own, FETCHING) else {
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

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let path = entry.expect("read").path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
        }
    }
}

fn skipped<T>(packages: &[&str], why: &str) -> Option<T> {
    programs::skipped(&format!("the package in Python with {}", packages.join(", ")), why);
    None
}

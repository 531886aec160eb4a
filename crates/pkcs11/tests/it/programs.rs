//! The programs of `examples/pkcs11`, as they are, with the built library over nodes in this process. A
//! program whose language is not installed is skipped, and a line on standard error says why. One that is
//! there and does not compile or run fails its test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use polyclave_harness::programs::{self, ended, python_with};

use crate::common::*;

/// How long a program may take, with everything that it compiles first: much longer than it takes.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long packages are waited for that have to be fetched.
const FETCHING: Duration = Duration::from_secs(60);

/// The nodes of all these programs. `POLYCLAVE_PKCS11_PROTOCOL` names another protocol than `shamir`.
fn cluster() -> &'static TestCluster {
    static CLUSTER: OnceLock<TestCluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let protocol = std::env::var("POLYCLAVE_PKCS11_PROTOCOL").unwrap_or("shamir".into());
        TestCluster::start_under(&protocol, if protocol == "shamir-active" { 4 } else { 3 })
    })
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pkcs11").canonicalize().expect("it is there")
}

/// A directory that stays between runs, for what was fetched.
fn kept(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&dir).expect("made");
    dir
}

fn skipped(language: &str, why: &str) {
    programs::skipped(&format!("the example in {language}"), why);
}

/// Whether a command that only asks or fetches succeeds.
fn succeeds(command: &mut Command) -> bool {
    programs::succeeds(command, FETCHING)
}

/// Whether a program is there, whatever it thinks of the argument.
fn is_installed(program: &str, asks: &str) -> bool {
    ended(Command::new(program).arg(asks), FETCHING).is_some()
}

/// Runs a program with a token of its own, and looks for its last line.
fn prints(
    name: &str,
    command: &mut Command,
    arguments: impl FnOnce(&Path, String) -> Vec<String>,
    line: &str,
) {
    prints_with(cluster(), name, command, arguments, line);
}

fn prints_with(
    cluster: &TestCluster,
    name: &str,
    command: &mut Command,
    arguments: impl FnOnce(&Path, String) -> Vec<String>,
    line: &str,
) {
    let configuration = cluster.configuration(name, 1, "");
    command.args(arguments(&built(), format!("{name}-0")));
    command.env("POLYCLAVE_PKCS11_CONFIG", &configuration);
    command.env("POLYCLAVE_PKCS11_LOG", configuration.with_extension("log"));
    let output = ended(command, PATIENCE).expect("it is installed and ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}\n{}", log_of(&configuration));
    assert!(out.lines().any(|printed| printed == line), "{out}\n{err}");
}

fn pin() -> String {
    String::from_utf8(USER_PIN.to_vec()).expect("text")
}

fn module_and_pin(module: &Path, _: String) -> Vec<String> {
    vec![module.display().to_string(), pin()]
}

fn module_token_and_pin(module: &Path, token: String) -> Vec<String> {
    vec![module.display().to_string(), token, pin()]
}

#[test]
fn the_example_of_the_shell_runs() {
    if !is_installed("pkcs11-tool", "--help") {
        return skipped("the shell", "pkcs11-tool (OpenSC) is not installed");
    }
    let mut command = Command::new(examples().join("shell/run"));
    prints("shell", &mut command, module_and_pin, "shell: the file came back");
}

#[test]
fn the_example_in_java_runs() {
    let Some(listed) = ended(Command::new("java").arg("--list-modules"), FETCHING) else {
        return skipped("Java", "java is not installed");
    };
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    if !["jdk.crypto.cryptoki", "jdk.compiler"].iter().all(|module| listed.contains(module)) {
        return skipped("Java", "a JDK with SunPKCS11 is not installed");
    }
    let mut command = Command::new("java");
    command.arg(examples().join("java/Run.java"));
    let arguments = |module: &Path, _| vec![module.display().to_string(), "0".into(), pin()];
    prints("java", &mut command, arguments, "java: the secrets came back");
}

#[test]
fn the_example_in_go_runs() {
    let compiler = std::env::var("CC").unwrap_or("cc".into());
    if !is_installed("go", "version") || !is_installed(&compiler, "--version") {
        return skipped("Go", "go is not installed, or no C compiler, which crypto11 needs");
    }
    let dir = examples().join("go");
    let go = |arguments: &[&str]| {
        let mut command = programs::go_in(&dir, arguments);
        command.env("CGO_ENABLED", "1").env("CC", &compiler);
        command
    };
    if !succeeds(&mut go(&["mod", "download"])) {
        return skipped(
            "Go",
            "its modules are not here and could not be fetched, or go is older than go.mod asks",
        );
    }
    let program = kept("examples-go").join("example");
    let built = ended(&mut go(&["build", "-o", &program.display().to_string(), "."]), PATIENCE);
    let built = built.expect("it is installed and ends");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    prints("go", &mut Command::new(program), module_token_and_pin, "go: the secrets came back");
}

#[test]
fn the_example_in_python_runs() {
    let Some(python) = python_with(&["python-pkcs11==0.10.1"], &kept("examples-python"), FETCHING) else {
        return skipped(
            "Python",
            "python3 or python-pkcs11 0.10.1 is not installed, and could not be fetched",
        );
    };
    let mut command = Command::new(python);
    command.arg(examples().join("python/run.py"));
    prints("python", &mut command, module_token_and_pin, "python: the secret came back");
}

/// The program in Rust, which nothing has to be fetched for.
fn example_in_rust() -> Command {
    let test = std::env::current_exe().expect("it has a path");
    let target = test.parent().and_then(Path::parent).expect("deps is in a directory");
    let program = target.join("examples").join("cryptoki");
    assert!(
        program.exists(),
        "`cargo test -p polyclave-pkcs11` builds it, unless an option like --test names what to build"
    );
    Command::new(program)
}

#[test]
fn the_example_in_rust_runs() {
    prints("rust", &mut example_in_rust(), module_and_pin, "rust: the secret came back");
}

#[test]
fn the_example_in_rust_runs_where_one_of_three_nodes_may_cheat() {
    let cluster = TestCluster::start_under("replicated-active", 3);
    prints_with(&cluster, "rust", &mut example_in_rust(), module_and_pin, "rust: the secret came back");
}

#[test]
fn the_example_in_rust_runs_where_answers_come_whatever_one_of_four_nodes_does() {
    let cluster = TestCluster::start_under("shamir-active", 4);
    cluster.wait_until_full();
    prints_with(&cluster, "rust", &mut example_in_rust(), module_and_pin, "rust: the secret came back");
}

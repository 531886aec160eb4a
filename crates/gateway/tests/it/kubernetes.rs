//! The API server's own code, from `examples/gateway/kubernetes`, on the KMS of a gateway in this process. It is skipped where Go or its modules are not to be had,
//! and a line on standard error says so.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use polyclave_harness::programs::{ended, skipped, succeeds};

use crate::common::{PATIENCE, World};

/// How long modules are waited for that have to be fetched.
const FETCHING: Duration = Duration::from_secs(180);

/// How long a build may take: a busy machine compiles the API server's libraries for minutes.
const BUILDING: Duration = Duration::from_secs(900);

#[test]
fn the_api_server_s_own_code_runs_unchanged() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway/kubernetes");
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command
            .args(arguments)
            .current_dir(&example)
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=readonly");
        command.env("CGO_ENABLED", "0");
        command
    };
    // As long as the version that go.mod asks for is this one: nothing is fetched but modules.
    if !succeeds(&mut go(&["mod", "download"]), FETCHING) {
        return skipped(
            "the example of Kubernetes",
            "go is not installed or older than go.mod asks, or its modules could not be fetched",
        );
    }
    let tested = ended(&mut go(&["test", "."]), BUILDING).expect("it ends");
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
    let world = World::shared();
    let program = world.dir.path().join("kubernetes");
    let built =
        ended(&mut go(&["build", "-o", &program.display().to_string(), "."]), BUILDING).expect("it ends");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    // As the page has it, with another socket.
    let text = std::fs::read_to_string(example.join("encryption-configuration.yaml")).expect("read");
    let socket = world.socket().display().to_string();
    let configuration = world.dir.path().join("encryption-configuration.yaml");
    assert!(text.contains("/run/polyclave/kms.sock"));
    std::fs::write(&configuration, text.replace("/run/polyclave/kms.sock", &socket)).expect("written");
    let output = ended(Command::new(program).arg(&configuration), PATIENCE).expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "kubernetes: the secret came back\n", "{err}");
}

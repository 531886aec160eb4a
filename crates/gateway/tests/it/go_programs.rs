//! Programs in Go of `examples/gateway`, which are the code of others: the API server of Kubernetes, and the
//! transit seal of Vault. They ask a gateway in this process. They are skipped where Go or their modules are
//! not to be had, and a line on standard error says so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use polyclave_harness::programs::{ended, go_in, skipped, succeeds};

use crate::common::{PATIENCE, World};

/// How long modules are waited for that have to be fetched.
const FETCHING: Duration = Duration::from_secs(180);

/// How long a build may take: a busy machine compiles the API server's libraries for minutes.
const BUILDING: Duration = Duration::from_secs(900);

/// Tests and builds an example. `None` if it cannot be built here.
fn built(world: &World, name: &str) -> Option<PathBuf> {
    let example = folder(name);
    if !succeeds(&mut go_in(&example, &["mod", "download"]), FETCHING) {
        skipped(
            &format!("the example {name}"),
            "go is not installed or older than go.mod asks, or its modules could not be fetched",
        );
        return None;
    }
    let program = world.dir.path().join(name);
    let text = program.display().to_string();
    for arguments in [&["test", "."][..], &["build", "-o", &text, "."]] {
        let output = ended(&mut go_in(&example, arguments), BUILDING).expect("it ends");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}\n{err}");
    }
    Some(program)
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway").join(name)
}

fn prints(command: &mut Command, line: &str) {
    let output = ended(command, PATIENCE).expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out.trim_end(), line, "{err}");
}

#[test]
fn the_api_server_s_own_code_runs_unchanged() {
    let world = World::shared();
    let Some(program) = built(&world, "kubernetes") else { return };
    // As the page has it, with another socket.
    let text = std::fs::read_to_string(folder("kubernetes/encryption-configuration.yaml")).expect("read");
    assert!(text.contains("/run/polyclave/kms.sock"));
    let configuration = world.dir.path().join("encryption-configuration.yaml");
    let socket = world.socket().display().to_string();
    std::fs::write(&configuration, text.replace("/run/polyclave/kms.sock", &socket)).expect("written");
    prints(Command::new(program).arg(&configuration), "kubernetes: the secret came back");
}

#[test]
fn the_code_of_vault_s_transit_seal_runs_unchanged() {
    let world = World::shared();
    let Some(program) = built(&world, "seal") else { return };
    world.done("POST", "/v1/transit/keys/of-a-seal", serde_json::Value::Null);
    let address = format!("http://{}", world.address());
    let mut command = Command::new(program);
    command.arg("of-a-seal").env("VAULT_ADDR", address).env("VAULT_TOKEN", &world.root);
    prints(&mut command, "seal: the root key came back");
}

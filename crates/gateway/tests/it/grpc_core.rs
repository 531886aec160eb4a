//! The KMS, asked by clients of gRPC's C core, which Python has. The core names the socket in `:authority` by
//! its path.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use polyclave_harness::programs::{ended, python_with, skipped};

use crate::common::{PATIENCE, World};

/// How long to wait for the package.
const FETCHING: Duration = Duration::from_secs(120);

/// Asks for the status, encrypts and decrypts. Messages are written as bytes: field 1 with its length.
const PROGRAM: &str = r#"
import sys, grpc
for target in ["unix:" + sys.argv[1], "unix://" + sys.argv[1]]:
    with grpc.insecure_channel(target) as channel:
        ask = lambda method, message: channel.unary_unary("/v2.KeyManagementService/" + method)(message, timeout=60)
        status = ask("Status", b"")
        assert b"v2" in status and b"kubernetes/1/" in status, status
        # From the second request on one connection, names of headers come from the table.
        for _ in range(5):
            sealed = ask("Encrypt", b"\x0a\x03abc")
            assert sealed[0] == 0x0a and sealed[1] == 3 + 28, sealed
            ciphertext, rest = sealed[:2 + 31], sealed[2 + 31:]
            # The id of the key is field 2 of this answer, and field 3 of the question.
            assert rest[0] == 0x12
            assert ask("Decrypt", ciphertext + b"\x1a" + rest[1:]) == b"\x0a\x03abc"
print("grpc: the message came back")
"#;

#[test]
fn clients_of_grpc_core_are_served() {
    let world = World::shared();
    for version in ["1.62.3", "1.85.1"] {
        let package = format!("grpcio=={version}");
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("grpcio-{version}"));
        let Some(python) = python_with(&[&package], &own, FETCHING) else {
            skipped(
                "a client of gRPC's C core",
                &format!("{package} is not installed, and could not be fetched"),
            );
            continue;
        };
        let mut command = Command::new(python);
        command.args(["-c", PROGRAM]).arg(world.socket());
        let output = ended(&mut command, PATIENCE).expect("it ends");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(out.trim_end(), "grpc: the message came back", "{version}: {err}");
    }
}

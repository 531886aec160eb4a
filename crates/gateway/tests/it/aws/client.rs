//! AWS's own client (boto3), as it is, on a gateway in this process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use polyclave_harness::programs::{ended, python_with, skipped};

use super::world;
use crate::common::PATIENCE;

/// How long packages are waited for that have to be fetched.
const FETCHING: Duration = Duration::from_secs(120);

#[test]
fn boto3_runs_unchanged() {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples-boto3");
    let Some(python) = python_with(&["boto3==1.44.8"], &own, FETCHING) else {
        return skipped(
            "the example with boto3",
            "python3 or boto3 1.44.8 is not installed, and could not be fetched",
        );
    };
    let (world, key) = world();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway/python/payments.py");
    let mut command = Command::new(python);
    command.arg(example).arg(format!("http://{}", world.address()));
    command.env("AWS_ACCESS_KEY_ID", &key.id).env("AWS_SECRET_ACCESS_KEY", &key.secret);
    command.env("AWS_REGION", "eu-central-1").env("AWS_DEFAULT_REGION", "eu-central-1");
    // Nothing of the machine's own settings of AWS.
    for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CA_BUNDLE", "HTTP_PROXY", "http_proxy"] {
        command.env_remove(name);
    }
    command.env("AWS_CONFIG_FILE", "/dev/null").env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    let output = ended(&mut command, PATIENCE).expect("it is installed and ends");
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("python: the PIN was verified, and nobody saw it"), "{printed}");
}

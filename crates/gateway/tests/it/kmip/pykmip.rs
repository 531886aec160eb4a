//! PyKMIP's client, unchanged, over real nodes: the program in `examples/gateway/kmip`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use polyclave_harness::programs::{ended, python_with, skipped};

use super::*;
use crate::common::PATIENCE;

/// How long packages are waited for that have to be fetched.
const FETCHING: Duration = Duration::from_secs(60);

#[test]
fn pykmip_runs_unchanged() {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples-pykmip");
    let Some(python) = python_with(&["PyKMIP==0.11.0"], &own, FETCHING) else {
        let why = "python3 or PyKMIP 0.11.0 is not installed, and could not be fetched";
        return skipped("the example with PyKMIP", why);
    };
    let kmip = Kmip::start();
    let file = |name: &str| kmip.world.dir.path().join(name);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["maker.test".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, &kmip.authority).expect("signed");
    std::fs::write(file("maker.crt"), certificate.pem()).expect("written");
    std::fs::write(file("maker.key"), key.serialize_pem()).expect("written");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway/kmip/run.py");
    let address = kmip.world.gateway.as_ref().expect("it runs").kmip_addresses()[0];
    let mut command = Command::new(python);
    command.arg(program).args([address.ip().to_string(), address.port().to_string()]);
    command.args([file("maker.crt"), file("maker.key"), file("tls.crt")]).arg("m-");
    let output = ended(&mut command, 5 * PATIENCE).expect("it is installed and ends");
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let is_whole = printed.lines().any(|line| line == "python: all of it went as it should");
    assert!(output.status.success() && is_whole, "{printed}");
    assert!(kmip.world.client().keys().expect("listed").keys.is_empty(), "the keys are gone");
    println!("{printed}");
}

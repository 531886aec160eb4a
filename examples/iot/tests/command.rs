//! The command as people run it, with two server processes and material that they make themselves.

use std::process::{Command, Output};

fn run(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polyclave-iot")).args(options).output().expect("it starts")
}

/// The command itself compares with plain code, and fails if anything differs.
#[test]
fn both_protocols_and_both_ciphers_run_between_processes_with_their_own_material() {
    for (protocol, cipher) in [("tinytable-linear64", "aes-128"), ("spdz-lt", "skinny-64-128")] {
        let options = ["--devices", "2", "--readings", "3", "--threshold", "0", "--json"];
        let output = run(&[&["--protocol", protocol, "--cipher", cipher][..], &options].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let message: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        assert_eq!(message["report"]["statistics"]["above"], 6);
        // Of 6 readings the sum has 19 bits, the maximum 16, the count 4.
        assert_eq!(message["report"]["opened_bits"], 19 + 16 + 4);
    }
}

#[test]
fn bad_options_are_refused_by_name() {
    for (options, because) in [
        (&["--protocol", "shamir"][..], "tinytable-linear64, spdz-lt, tinytable"),
        (&["--cipher", "des"], "skinny-64-128, aes-128"),
        (&["--devices", "0"], "1..=256"),
        (&["--readings", "257"], "1..=256"),
        (&["--devices", "256", "--readings", "256"], "at most 4096"),
        (&["--threshold", "65536"], "0..=65535"),
        (&["--preprocessing", "mine"], "insecure_dealer"),
    ] {
        let output = run(options);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(because), "{error}");
    }
}

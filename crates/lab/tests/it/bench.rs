//! `polyclave-lab bench`: its document, and that payload is what the operations account for. No speed is
//! asserted.

use std::process::{Command, Output};

use polyclave_protocol_lab::additive;

fn polyclave(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polyclave-lab")).args(arguments).output().expect("the program starts")
}

fn bench(more: &[&str]) -> serde_json::Value {
    let output = polyclave(&[&["bench", "--json", "--blocks", "40", "--repeats", "2"], more].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{more:?}: {e}: {error}"))
}

fn number(document: &serde_json::Value, path: &str) -> f64 {
    document
        .pointer(path)
        .and_then(serde_json::Value::as_f64)
        .unwrap_or_else(|| panic!("{path} in {document}"))
}

/// n = 3: every operation sends a byte to each of two peers.
#[test]
fn payload_is_two_bytes_an_operation() {
    for (inversion, operations) in [
        ("standard", 14),
        ("shortest", 12),
        ("shortest-least-rounds", 12),
        ("least-rounds", 14),
        ("masked-exponentiation", 8),
        ("viff-11", 12),
        ("viff-9", 12),
        ("views", 5),
        ("carried-squares", 4),
        ("masking", 0),
    ] {
        let document = bench(&["--inversion", inversion]);
        let counted = number(&document, "/online/operations_per_block");
        let payload = number(&document, "/online/payload_bytes_per_block");
        assert_eq!(payload, 2.0 * counted, "{inversion}");
        // Masking retries by chance.
        assert!(operations == 0 || counted == f64::from(160 * operations), "{inversion}: {counted}");
        assert!(number(&document, "/online/bytes_per_block") > payload, "TLS adds something");
    }
}

/// Of a protocol that only the catalog names: the toy.
#[test]
fn a_new_protocol_is_measured_by_its_name_alone() {
    let document = bench(&["--protocol", additive::DESCRIPTOR.name]);
    assert_eq!(document["protocol"], additive::DESCRIPTOR.name);
    assert!(number(&document, "/online/payload_bytes_per_block") > 0.0);
}

#[test]
fn the_document_has_every_field() {
    let document = bench(&["--cipher", "des", "--threads", "2"]);
    for path in [
        "/preprocessing/seconds",
        "/preprocessing/blocks_per_s",
        "/preprocessing/bytes_per_block",
        "/online/seconds",
        "/online/blocks_per_s",
        "/online/latency_ms",
        "/online/rounds",
        "/online/bytes_per_block",
        "/online/payload_bytes_per_block",
        "/total/seconds",
        "/total/blocks_per_s",
        "/material_bytes_per_block",
        "/peak_memory_bytes",
    ] {
        assert!(number(&document, path) > 0.0, "{path}");
    }
    assert_eq!((&document["protocol"], &document["cipher"]), (&"shamir".into(), &"des".into()));
    assert_eq!(
        (&document["parties"], &document["threads"], &document["blocks"]),
        (&3.into(), &2.into(), &40.into())
    );
    assert_eq!(document["network"], "loopback");
    assert!(bench(&[])["preprocessing"].is_null(), "views need none");
    assert!(number(&bench(&["--protocol", "cleartext"]), "/online/blocks_per_s") > 0.0);
}

#[test]
fn a_slow_network_is_felt() {
    // 40 rounds of at least half a round-trip time each.
    let document = bench(&["--network", "4ms,1Gbit"]);
    assert!(number(&document, "/online/latency_ms") >= 80.0, "{document}");
}

#[test]
fn decryption_and_key_schedule_are_measured_too() {
    for more in [&["--decrypt"][..], &["--key-schedule"], &["--decrypt", "--key-schedule"]] {
        for inversion in ["views", "carried-squares"] {
            bench(&[more, &["--inversion", inversion]].concat());
        }
    }
}

/// AES-128 has 5440 ANDs, 40 deep; an active protocol checks in two rounds more.
#[test]
fn boolean_circuits_are_measured_and_give_what_the_tables_give() {
    for (protocol, rounds) in [("shamir", 40.0), ("tinytable", 40.0), ("tinytable-linear64", 42.0)] {
        let dealt = ["--preprocessing", "insecure_dealer"];
        let dealt = if protocol == "shamir" { &[][..] } else { &dealt };
        let document = bench(&[&["--circuit", "boolean", "--protocol", protocol], dealt].concat());
        assert_eq!(document["circuit"], "boolean");
        assert_eq!(number(&document, "/online/rounds"), rounds, "{protocol}");
        assert_eq!(number(&document, "/online/operations_per_block"), 5440.0, "{protocol}");
    }
    for more in [&["--decrypt"][..], &["--key-schedule", "--cipher", "des"]] {
        bench(&[&["--circuit", "boolean"], more].concat());
    }
    let cleartext = bench(&["--circuit", "boolean", "--protocol", "cleartext"]);
    assert!(number(&cleartext, "/online/blocks_per_s") > 0.0);
    assert_eq!(bench(&[])["circuit"], "tables");
}

#[test]
fn what_cannot_work_is_said_and_fails() {
    for (arguments, reason) in [
        (&["--blocks", "0"][..], "--blocks takes 1"),
        (&["--threads", "0"], "--threads takes 1"),
        (&["--repeats", "0"], "--repeats takes 1"),
        (&["--cipher", "enigma"], "no cipher 'enigma'"),
        (&["--network", "carrier pigeon"], "carrier pigeon"),
        (&["--plot", "picture.png"], "ends in .svg"),
        (&["--plot-active", "picture.png"], "ends in .svg"),
        (&["--plot", "picture.svg", "--circuit", "boolean"], "leave out --circuit"),
        (&["--circuit", "adder-64.txt"], "runs under `polyclave-lab eval`"),
        (&["--parties", "10"], "3 to 9 parties"),
        (&["--inversion", "guess"], "no inversion 'guess'"),
        (&["--tables", "guess"], "no tables 'guess'; choose one of masked"),
    ] {
        let output = polyclave(&[&["bench"], arguments].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(reason), "{arguments:?} says: {message}");
    }
    let alone = polyclave(&["bench-party"]);
    let message = String::from_utf8_lossy(&alone.stdout);
    assert!(!alone.status.success() && message.contains("started by"), "{message}");
}

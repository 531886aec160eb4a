//! `polyclave-lab eval --circuit`: ciphers as Boolean circuits, and circuits from files.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const PLAINTEXT: &str = "00112233445566778899aabbccddeeff";
const CIPHERTEXT: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const MASCOT_IS_SLOW: [&str; 2] = ["--preprocessing", "insecure_dealer"];

fn eval(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_polyclave-lab");
    Command::new(program).arg("eval").args(arguments).output().expect("the program starts")
}

/// Runs that end well.
fn answer(arguments: &[&str]) -> String {
    let output = eval(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(&[arguments, &["--json"]].concat())).expect("one JSON document")
}

/// Runs that end with exit code 1 and this message.
fn refused(arguments: &[&str], message: &str) {
    let output = eval(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(error.contains(message) && !error.contains("panicked"), "{arguments:?}: {error} lacks {message}");
}

/// Options that name a protocol.
fn under(protocol: &str) -> Vec<&str> {
    let dealt = if protocol.starts_with("spdz") { &MASCOT_IS_SLOW[..] } else { &[] };
    [&["--protocol", protocol][..], dealt].concat()
}

fn shipped(name: &str) -> String {
    format!("{REPOSITORY}/circuits/{name}.txt")
}

/// A file of its own for one test.
fn file(name: &str, content: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("the directory can be written");
    path.to_str().expect("text").into()
}

/// The outputs of a circuit from a file.
fn outputs(protocol: &str, file: &str, more: &[&str]) -> Vec<String> {
    let shown = document(&[&under(protocol)[..], &["--circuit", file], more].concat());
    let outputs = shown["outputs"].as_array().expect("a list");
    outputs.iter().map(|output| output.as_str().expect("hex").into()).collect()
}

#[test]
fn fips_197_example_as_a_boolean_circuit_takes_a_round_for_each_level_of_ands() {
    let active = ["tinytable-linear64", "tinytable-lookup64"];
    for protocol in ["shamir", "spdz-lt", "tinytable"].into_iter().chain(active) {
        let aes = ["--circuit", "Boolean", "--cipher", "aes-128", "--key", KEY];
        let shown = document(&[&under(protocol)[..], &aes, &["--input", PLAINTEXT]].concat());
        assert_eq!((&shown["output"], &shown["circuit"]), (&CIPHERTEXT.into(), &"boolean".into()));
        // Of scrambled tables that are verified the checks count, as in the paper: before and after the
        // output is opened.
        let rounds = if active.contains(&protocol) { 42 } else { 40 };
        assert_eq!((&shown["rounds"], &shown["operations"]), (&rounds.into(), &5440.into()), "{protocol}");
    }
}

#[test]
fn garbled_circuits_take_the_boolean_form_unasked_and_count_half_gates() {
    let aes = ["--cipher", "aes-128", "--key", KEY, "--input", PLAINTEXT];
    let shown = document(&[&under("garbled-half")[..], &aes].concat());
    assert_eq!((&shown["output"], &shown["circuit"]), (&CIPHERTEXT.into(), &"boolean".into()));
    assert_eq!((&shown["rounds"], &shown["operations"]), (&1.into(), &5440.into()));
    assert_eq!((&shown["ciphertexts"], &shown["hash_calls"]), (&10880.into(), &21760.into()));
    assert_eq!(shown["payload_bytes"], 174_080);
}

#[test]
fn boolean_circuits_go_both_ways_and_expand_keys() {
    for protocol in ["cleartext", "shamir"] {
        let aes = ["--circuit", "boolean", "--cipher", "aes-128", "--key", KEY, "--input", CIPHERTEXT];
        let text = answer(&[&under(protocol)[..], &aes, &["--decrypt", "--key-schedule"]].concat());
        assert_eq!(text.lines().next(), Some(PLAINTEXT));
    }
    let vectors = format!("{REPOSITORY}/vectors/block-ciphers.json");
    for (cipher, count) in [("AES-256", 77), ("aes-192-keyschedule", 5), ("3des-ede2", 55)] {
        let text = answer(&["--circuit", "boolean", "--vectors", &vectors, "--cipher", cipher]);
        assert_eq!(text.lines().last(), Some(&format!("{count} passed, 0 failed, 0 skipped")[..]));
    }
}

#[test]
fn shipped_files_add_and_compare() {
    let (a, b, sum) = ("fedcba9876543210", "0123456789abcdf1", "0000000000000001");
    for protocol in ["cleartext", "shamir", "spdz-lt", "tinytable-linear64"] {
        assert_eq!(outputs(protocol, &shipped("adder-64"), &["--input", a, "--input", b]), [sum]);
        for (a, b, less) in [(a, b, "00"), (b, a, "01"), (a, a, "00")] {
            let inputs = ["--input", a, "--input", b];
            assert_eq!(outputs(protocol, &shipped("comparator-64"), &inputs), [less], "{protocol}");
        }
    }
}

#[test]
fn a_shipped_cipher_takes_the_bytes_of_its_standard() {
    let inputs = ["--input", PLAINTEXT, "--input", KEY];
    let found = outputs("tinytable", &shipped("aes-128-with-keyschedule"), &inputs);
    assert_eq!(found, [CIPHERTEXT]);
}

#[test]
fn files_are_answered_line_by_line_with_what_they_took() {
    let arguments = ["--input", "000000000000000a", "--input", "000000000000000b"];
    let adder = shipped("adder-64");
    let all = [&["--protocol", "tinytable-linear64", "--circuit", &adder][..], &arguments].concat();
    let text = answer(&all);
    assert_eq!(text.lines().next(), Some("0000000000000015"));
    assert!(text.lines().any(|line| line.starts_with("evaluation") && line.contains(" 9 ")), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("verified: tinytable-linear64")));
    let shown = document(&all);
    assert_eq!((&shown["rounds"], &shown["operations"]), (&9.into(), &373.into()));
    assert_eq!((&shown["protocol"], &shown["verified"]), (&"tinytable-linear64".into(), &true.into()));
    // All inputs are shared together.
    assert_eq!(shown["sharing_the_input"]["rounds"], 1);
    assert!(shown["preprocessing"]["bytes"].as_u64() > Some(0));
}

/// Inputs of 3 and 9 bits: the first negated, its first bit and the last of the second multiplied, the second
/// copied.
const OWN: &str = "13 25
2 3 9
3 3 1 9

1 1 0 12 INV
1 1 1 13 INV
1 1 2 14 INV
2 1 0 11 15 AND
1 1 3 16 EQW
1 1 4 17 EQW
1 1 5 18 EQW
1 1 6 19 EQW
1 1 7 20 EQW
1 1 8 21 EQW
1 1 9 22 EQW
1 1 10 23 EQW
1 1 11 24 EQW
";

#[test]
fn a_file_of_ones_own_has_values_of_any_number_of_bits() {
    let path = file("own.txt", OWN);
    for protocol in ["cleartext", "shamir", "spdz-lt", "tinytable", "tinytable-lookup64"] {
        let given = |order: &[&str]| {
            outputs(protocol, &path, &[&["--input", "03", "--input", "0x0100"], order].concat())
        };
        // As numbers, 3 has its lowest bit in the first wire and 256 its highest in the last.
        assert_eq!(given(&[]), ["04", "01", "0100"], "{protocol}");
        assert_eq!(given(&["--bit-order", "numbers"]), ["04", "01", "0100"], "{protocol}");
        assert_eq!(given(&["--bit-order", "cells"]), ["04", "00", "0100"], "{protocol}");
    }
}

#[test]
fn the_old_format_is_read() {
    let path = file("old.txt", "2 6\n2 2 2\n\n2 1 0 2 4 XOR\n2 1 1 3 5 AND\n");
    let given = |order| outputs("shamir", &path, &["--input", "03", "--input", "02", "--bit-order", order]);
    assert_eq!(given("numbers"), ["03"]);
    assert_eq!(given("cells"), ["00"]);
}

#[test]
fn wrong_inputs_and_files_are_refused() {
    let adder = shipped("adder-64");
    let adder_takes = |inputs: &[&str], message| {
        let given = inputs.iter().flat_map(|input| ["--input", *input]);
        refused(&["--circuit", &adder].into_iter().chain(given).collect::<Vec<&str>>(), message);
    };
    let one = "0000000000000001";
    adder_takes(&[], "adder-64.txt takes 2 --input, of 64 and 64 bits in this order; 0 given");
    adder_takes(&[one], "in this order; 1 given");
    adder_takes(&[one; 3], "in this order; 3 given");
    adder_takes(&[one, "01"], "--input number 2 has 64 bits: 16 hex digits, not 2");
    adder_takes(&["000000000000000g", one], "--input number 1 has 'g' at position 16");
    let own = file("own-refused.txt", OWN);
    let inputs = ["--input", "08", "--input", "0000"];
    refused(
        &[&["--circuit", &own], &inputs[..]].concat(),
        "--input number 1 has 3 bits; the first 5 of 08 must be 0",
    );

    refused(
        &["--circuit", "bolean"],
        "--circuit is neither tables nor boolean, and the file bolean cannot be read",
    );
    refused(&["--circuit", REPOSITORY], "is no regular file");
    let broken = file("broken.txt", &OWN.replace("1 1 4 17 EQW", "1 1 4 17 NAND"));
    refused(
        &["--circuit", &broken],
        "broken.txt is no circuit in Bristol Fashion: line 10: `NAND` is no gate",
    );
    let cut = file("cut.txt", OWN.rsplit_once("1 1 11").expect("the last gate").0);
    refused(&["--circuit", &cut], "line 16: the file ends after this line");
}

#[test]
fn options_of_ciphers_and_of_files_are_kept_apart() {
    let own = file("own-apart.txt", OWN);
    for more in [
        &["--key", KEY][..],
        &["--cipher", "aes-128"],
        &["--decrypt"],
        &["--key-schedule"],
        &["--tweak", "00"],
    ] {
        refused(&[&["--circuit", &own], more].concat(), &format!("{} is for ciphers", more[0]));
    }
    let aes = ["--cipher", "aes-128", "--key", KEY, "--input", PLAINTEXT];
    refused(&[&aes[..], &["--bit-order", "cells"]].concat(), "--bit-order is for --circuit FILE");
    refused(&[&aes[..], &["--input", PLAINTEXT]].concat(), "aes-128 takes one --input");
    refused(&["--circuit", "boolean", "--input", PLAINTEXT], "--cipher and --key are needed");
    assert_eq!(eval(&["--circuit", &own, "--bit-order", "upside-down"]).status.code(), Some(2));
}

//! `polyclave-lab eval` as a user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use polyclave_protocol::catalog;
use polyclave_protocol::descriptor::Descriptor;
use serde_json::Value;

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const PLAINTEXT: &str = "00112233445566778899aabbccddeeff";
const CIPHERTEXT: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/block-ciphers.json");
const LIGHTWEIGHT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/lightweight-ciphers.json");

fn eval(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_polyclave-lab");
    Command::new(program).arg("eval").args(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// Runs that end well.
fn answer(arguments: &[&str]) -> String {
    let output = eval(arguments);
    assert!(output.status.success(), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(&[arguments, &["--json"]].concat())).expect("one JSON document")
}

/// Runs that end with exit code 1 and this message.
fn refused(arguments: &[&str], message: &str) {
    let output = eval(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stdout(&output));
    assert!(stderr(&output).contains(message), "{arguments:?}: {} lacks {message}", stderr(&output));
    assert!(!stderr(&output).contains("panicked"));
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

/// A file of its own for one test.
fn file(name: &str, content: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("the directory can be written");
    path
}

fn vectors(path: &Path) -> [&str; 2] {
    ["--vectors", path.to_str().expect("text")]
}

#[test]
fn known_answers_pass_in_the_clear_and_under_shamir() {
    for protocol in ["cleartext", "shamir", "shamir-active"] {
        let text = answer(&["--protocol", protocol, "--vectors", VECTORS]);
        assert_eq!(last_line(&text), "500 passed, 0 failed, 0 skipped", "{protocol}");
        let worth = if protocol == "shamir-active" { "verified: shamir-active" } else { "unverified" };
        assert!(text.contains(worth), "{protocol} says what its answers are worth");
    }
}

#[test]
fn known_answers_pass_with_carried_squares_and_with_the_key_schedule_inside() {
    for options in [&["--inversion", "carried-squares"][..], &["--key-schedule"]] {
        for (cipher, count) in [("Aes-128", 85), ("AES-256-keyschedule", 5), ("3des-ede2", 55)] {
            let text = answer(&[&["--vectors", VECTORS, "--cipher", cipher], options].concat());
            assert_eq!(last_line(&text), format!("{count} passed, 0 failed, 0 skipped"), "{cipher}");
        }
    }
}

#[test]
fn known_answers_of_triple_des_pass_by_polynomials_with_nothing_made_ahead() {
    let text = answer(&["--vectors", VECTORS, "--cipher", "3des-ede2", "--tables", "polynomial"]);
    assert_eq!(last_line(&text), "55 passed, 0 failed, 0 skipped");
    let (key, block) = ("0123456789abcdef23456789abcdef01456789abcdef0123", "0123456789abcdef");
    let arguments = ["--cipher", "3des-ede3", "--key", key, "--input", block, "--tables", "polynomial"];
    let shown = document(&arguments);
    assert_eq!((&shown["operations"], &shown["rounds"]), (&1152.into(), &138.into()));
    assert_eq!(shown["preprocessing"]["operations"], 0);
    assert_eq!(shown["output"], document(&arguments[..6])["output"]);
}

#[test]
fn fips_197_example_runs_both_ways_under_every_protocol() {
    // An option without a default has to be chosen.
    let chosen = |protocol: &Descriptor| -> Vec<String> {
        let open = protocol.options.iter().filter(|option| option.default.is_none());
        open.flat_map(|option| [format!("--{}", option.name), (option.values)()[0].to_owned()]).collect()
    };
    polyclave_protocol_lab::add_to_catalog();
    let listed = catalog::all().into_iter().map(|protocol| (protocol.name, chosen(protocol)));
    for (protocol, chosen) in listed.chain([("cleartext", Vec::new())]) {
        let chosen: Vec<&str> = chosen.iter().map(String::as_str).collect();
        let common = [&["--protocol", protocol, "--cipher", "AES-128", "--key", KEY][..], &chosen].concat();
        // One protocol is for tables as small as those of DES, and says so.
        if protocol == "spdz-raw" {
            refused(
                &[&common[..], &["--input", PLAINTEXT]].concat(),
                "the AES S-box of aes-128-keyschedule has more: evaluate it as gates (--circuit boolean), or take another protocol, such as spdz-lt",
            );
            continue;
        }
        let text = answer(&[&common[..], &["--input", PLAINTEXT]].concat());
        assert_eq!(text.lines().next(), Some(CIPHERTEXT), "{protocol}");
        let text = answer(&[&common[..], &["--input", CIPHERTEXT, "--decrypt"]].concat());
        assert_eq!(text.lines().next(), Some(PLAINTEXT), "{protocol}");
    }
}

#[test]
fn several_blocks_are_several_lanes() {
    let input = [PLAINTEXT, PLAINTEXT, PLAINTEXT].concat();
    let shown = document(&["--cipher", "aes-128", "--key", KEY, "--input", &input]);
    assert_eq!(shown["output"], [CIPHERTEXT; 3].concat());
    assert_eq!((&shown["blocks"], &shown["operations"]), (&3.into(), &2400.into()));
    assert_eq!((&shown["rounds"], &shown["operations_per_block"]), (&40.into(), &800.0.into()));
}

#[test]
fn json_has_the_counts_of_the_cipher_alone() {
    let arguments = ["--cipher", "aes-128", "--key", KEY, "--input", PLAINTEXT];
    let shown = document(&[&arguments[..], &["--inversion", "masked-exponentiation"]].concat());
    for (field, value) in [("protocol", "shamir"), ("cipher", "aes-128"), ("direction", "encrypt")] {
        assert_eq!(shown[field], value);
    }
    assert_eq!(shown["output"], CIPHERTEXT);
    assert_eq!(shown["verified"], false);
    // 160 S-boxes: online two openings and six products in five rounds, ahead seven products in seven rounds
    // for all. An element is a byte to each of two peers.
    let counts = [("rounds", 50, 7), ("openings", 320, 0), ("multiplications", 960, 1120)];
    let sums = [("operations", 1280, 1120), ("bytes", 2560, 2240), ("payload_bytes", 2560, 2240)];
    for (field, online, ahead) in counts.into_iter().chain(sums) {
        assert_eq!(shown[field], online, "{field}");
        assert_eq!(shown["preprocessing"][field], ahead, "{field}");
    }
}

#[test]
fn key_schedule_is_counted_when_it_is_asked_for() {
    let arguments = ["--cipher", "aes-128", "--key", KEY, "--input", PLAINTEXT];
    let options = ["--inversion", "shortest-least-rounds", "--key-schedule"];
    let shown = document(&[&arguments[..], &options].concat());
    assert_eq!((&shown["operations"], &shown["rounds"]), (&2400.into(), &100.into()));
    assert_eq!(shown["output"], CIPHERTEXT);
}

#[test]
fn round_keys_are_the_output_of_a_key_schedule() {
    for protocol in ["cleartext", "shamir", "shamir-active"] {
        let shown = document(&["--protocol", protocol, "--cipher", "aes-128-keyschedule", "--key", KEY]);
        let output = shown["output"].as_str().expect("hex");
        assert_eq!(output.len(), 2 * 176);
        assert!(output.starts_with(KEY) && output.ends_with("13111d7fe3944a17f307a78b4d2b30c5"));
    }
}

#[test]
fn other_numbers_of_parties_and_thresholds_compute_the_same() {
    let common = ["--cipher", "aes-128", "--key", KEY, "--input", PLAINTEXT];
    for (parties, threshold) in [("4", "1"), ("5", "2"), ("7", "1")] {
        let text = answer(&[&common[..], &["--parties", parties, "--threshold", threshold]].concat());
        assert_eq!(text.lines().next(), Some(CIPHERTEXT));
        assert!(text.contains(&format!("at most {threshold} of {parties} parties")));
    }
}

#[test]
fn wrong_answer_fails_and_is_named() {
    let wrong = "00".repeat(16);
    let list = format!(
        r#"[{{"cipher": "AES-128", "key": "{KEY}", "plaintext": "{PLAINTEXT}", "ciphertext": "{CIPHERTEXT}"}},
            {{"cipher": "AES-128", "key": "{KEY}", "plaintext": "{PLAINTEXT}", "ciphertext": "{wrong}"}},
            {{"cipher": "AES-128-KEYSCHEDULE", "key": "{KEY}", "plaintext": "", "ciphertext": "{wrong}"}}]"#
    );
    let path = file("wrong.json", &list);
    for protocol in ["cleartext", "shamir", "shamir-active"] {
        let arguments = [&vectors(&path)[..], &["--protocol", protocol]].concat();
        let output = eval(&arguments);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(last_line(&text), "1 passed, 2 failed, 0 skipped");
        assert!(text.contains("wrong.json, entry 2 (aes-128): encryption gives 69c4e0d8"), "{text}");
        assert!(text.contains("; decryption gives"), "one failure, although both directions differ: {text}");
        assert!(text.contains("entry 3 (aes-128-keyschedule): the key schedule gives"), "{text}");
        let output = eval(&[&arguments[..], &["--json"]].concat());
        let shown: Value = serde_json::from_str(&stdout(&output)).expect("one JSON document");
        assert_eq!(
            (&shown["passed"], &shown["failed"], &shown["skipped"]),
            (&1.into(), &2.into(), &0.into())
        );
        assert_eq!((&shown["failures"][0]["entry"], &shown["failures"][1]["entry"]), (&2.into(), &3.into()));
    }
}

#[test]
fn unsupported_entries_are_skipped_with_the_reason() {
    let list = format!(
        r#"[{{"cipher": "AES-256-GCM", "key": "", "nonce": "00", "plaintext": "", "ciphertext": "", "tag": "00"}},
            {{"cipher": "AES-256-GCM"}},
            {{"cipher": "Unheard-Of", "key": "00"}},
            {{"cipher": "AES-128", "key": "{KEY}", "tweak": "00", "plaintext": "", "ciphertext": ""}},
            {{"cipher": "aes-128", "key": "{KEY}", "plaintext": "{PLAINTEXT}", "ciphertext": "{CIPHERTEXT}"}}]"#
    );
    let path = file("skipped.json", &list);
    let text = answer(&vectors(&path));
    assert!(text.contains("skipped 2 of AES-256-GCM: a mode, not a cipher of this version"), "{text}");
    assert!(text.contains("skipped 1 of Unheard-Of: not a cipher of this version"), "{text}");
    assert!(text.contains("skipped 1 of AES-128: has a tweak"), "{text}");
    assert_eq!(last_line(&text), "1 passed, 0 failed, 4 skipped");
    let shown = document(&vectors(&path));
    assert_eq!(
        (&shown["skips"][0]["count"], &shown["skips"][0]["cipher"]),
        (&2.into(), &"AES-256-GCM".into())
    );
}

#[test]
fn known_answers_of_lightweight_ciphers_hold_with_and_without_a_tweak() {
    for circuit in ["tables", "boolean"] {
        let text = answer(&["--vectors", LIGHTWEIGHT, "--protocol", "cleartext", "--circuit", circuit]);
        assert_eq!(last_line(&text), "45 passed, 0 failed, 0 skipped");
    }
    for cipher in ["mantis5", "CRAFT", "piccolo-128", "WAGE-PERMUTATION"] {
        let text = answer(&[
            "--vectors",
            LIGHTWEIGHT,
            "--protocol",
            "tinytable",
            "--preprocessing",
            "insecure_dealer",
            "--cipher",
            cipher,
        ]);
        assert!(last_line(&text).ends_with("passed, 0 failed, 0 skipped"), "{text}");
    }
}

#[test]
fn tweak_goes_with_every_block_and_permutation_has_no_key() {
    let (key, block) = ("92f09952c625e3e9d7a060f714c0292b", "3b5c77a4921f9718");
    let (tweak, other) = ("ba912e6f1055fed2", "0000000000000000");
    let twice = block.repeat(2);
    let mantis = ["--protocol", "cleartext", "--cipher", "mantis5", "--key", key, "--input", &twice];
    let output = |tweak: &str| {
        let text = answer(&[&mantis[..], &["--tweak", tweak]].concat());
        text.lines().next().unwrap_or_default().to_owned()
    };
    let same = output(tweak);
    assert_eq!(same, "d6522035c1c0c6c1".repeat(2));
    let each = output(&[tweak, other].concat());
    assert_eq!((&each[..16], each[16..] == same[16..]), (&same[..16], false));
    refused(&mantis, "mantis5 needs --tweak: 8 bytes in hex");
    refused(
        &[&mantis[..], &["--tweak", "00"]].concat(),
        "--tweak has 1 bytes; mantis5 takes a tweak of 8 bytes",
    );

    let words = "00".repeat(37);
    let wage = ["--cipher", "wage-permutation", "--input", &words];
    answer(&[&wage[..], &["--key", ""]].concat());
    refused(&[&wage[..], &["--key", "00"]].concat(), "the key of wage-permutation has 0 bytes");
    refused(&[&wage[..], &["--key", "", "--decrypt"]].concat(), "wage-permutation has no decryption");
    refused(&["--cipher", "wage-permutation-keyschedule", "--key", ""], "no key and no round keys");
}

#[test]
fn modes_of_a_permutation_are_skipped_as_modes() {
    let list = r#"[{"cipher": "WAGE-AEAD", "key": "00", "nonce": "00", "plaintext": "", "ciphertext": "", "tag": "00"}]"#;
    let text = stdout(&eval(&vectors(&file("wage.json", list))));
    assert!(text.contains("skipped 1 of WAGE-AEAD: a mode, not a cipher of this version"), "{text}");
}

#[test]
fn run_that_checks_nothing_is_no_success() {
    let path = file("all-skipped.json", r#"[{"cipher": "Unheard-Of", "key": "00"}]"#);
    refused(&vectors(&path), "nothing was checked");
    assert_eq!(last_line(&stdout(&eval(&vectors(&path)))), "0 passed, 0 failed, 1 skipped");
    refused(&vectors(&file("empty.json", "[]")), "is an empty list");
    refused(&["--vectors", VECTORS, "--cipher", "skinny"], "has no entry of cipher 'skinny'");
}

#[test]
fn malformed_entries_of_a_supported_cipher_fail() {
    let entry = |key: &str, p: &str, c: &str| {
        format!(r#"{{"cipher": "AES-128", "key": {key}, "plaintext": "{p}", "ciphertext": "{c}"}}"#)
    };
    let key = format!(r#""{KEY}""#);
    let cases = [
        (entry(&key, "0g", ""), "plaintext has 'g' at position 2"),
        (entry(&key, "001", ""), "plaintext has 3 hex digits"),
        (entry(r#""00""#, PLAINTEXT, CIPHERTEXT), "the key of aes-128 has 16 bytes (32 hex digits), not 1"),
        (entry("5", PLAINTEXT, CIPHERTEXT), r#""key" is no string of hex"#),
        (entry(&key, "", ""), "plaintext has 0 bytes"),
        (entry(&key, PLAINTEXT, "00"), "the plaintext has 16 bytes and the ciphertext 1"),
        (r#"{"cipher": "AES-128", "key": "00"}"#.into(), r#"the entry has no "plaintext""#),
        (r#"{"key": "00"}"#.into(), r#"the entry has no "cipher""#),
        ("7".into(), "the entry is no object"),
    ];
    let list: Vec<&str> = cases.iter().map(|(entry, _)| entry.as_str()).collect();
    let path = file("malformed.json", &format!("[{}]", list.join(",")));
    let output = eval(&vectors(&path));
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(last_line(&text), "0 passed, 9 failed, 0 skipped");
    for (number, (_, reason)) in (1..).zip(&cases) {
        let named =
            |line: &str| line.contains(&format!("malformed.json, entry {number} (")) && line.contains(reason);
        assert!(text.lines().any(named), "entry {number} for {reason}: {text}");
    }
}

#[test]
fn files_that_are_no_list_of_known_answers_are_refused() {
    refused(&["--vectors", "/nowhere/at-all.json"], "/nowhere/at-all.json cannot be read");
    refused(&vectors(&file("text.json", "not json")), "text.json is not JSON");
    refused(&vectors(&file("object.json", "{}")), "object.json is not a list of known answers");
    refused(&["--vectors", VECTORS, "--protocol", "magic"], "there is no protocol 'magic'");
}

#[test]
fn bad_inputs_are_refused_with_what_was_wrong() {
    let aes = |key, input, more: &[&'static str], message| {
        refused(&[&["--cipher", "aes-128", "--key", key, "--input", input], more].concat(), message);
    };
    aes("00", PLAINTEXT, &[], "the key of aes-128 has 16 bytes (32 hex digits), not 1");
    aes("", PLAINTEXT, &[], "not 0");
    aes("0", PLAINTEXT, &[], "--key has 1 hex digits");
    aes("zz", PLAINTEXT, &[], "--key has 'z' at position 1");
    aes(KEY, "0011", &[], "--input has 2 bytes; aes-128 takes one or more blocks of 16 bytes");
    aes(KEY, "", &[], "--input has 0 bytes");
    aes(KEY, "é0", &[], "--input");
    aes(KEY, PLAINTEXT, &["--tweak", "00"], "aes-128 takes no tweak");
    aes(KEY, PLAINTEXT, &["--protocol", "magic"], "there is no protocol 'magic'");
    aes(KEY, PLAINTEXT, &["--inversion", "magic"], "shamir has no inversion 'magic'; choose one of standard");
    aes(KEY, PLAINTEXT, &["--parties", "2"], "shamir runs among 3 to 9 parties, not 2");
    aes(KEY, PLAINTEXT, &["--parties", "4", "--threshold", "2"], "needs a threshold from 1 to 1");
    aes(
        KEY,
        PLAINTEXT,
        &["--kappa", "40"],
        "shamir has no option --kappa; of these options it has --inversion, --tables",
    );
    let active = ["--protocol", "shamir-active", "--parties", "5", "--threshold", "2"];
    aes(KEY, PLAINTEXT, &active, "with threshold 2 takes 7 parties at least");
    refused(&["--cipher", "aes-128", "--key", KEY], "aes-128 needs --input: one or more blocks of 16 bytes");
    for name in ["magic", "magic-keyschedule"] {
        refused(&["--cipher", name, "--key", KEY, "--input", PLAINTEXT], "there is no cipher 'magic'");
    }
    let key_schedule = ["--cipher", "aes-128-keyschedule", "--key", KEY];
    refused(&[&key_schedule[..], &["--input", PLAINTEXT]].concat(), "leave out --input");
    refused(&[&key_schedule[..], &["--decrypt"]].concat(), "leave out --decrypt");
    refused(&[&key_schedule[..], &["--key-schedule"]].concat(), "leave out --key-schedule");
}

#[test]
fn missing_options_are_a_usage_error() {
    assert_eq!(eval(&[]).status.code(), Some(2));
    assert_eq!(eval(&["--cipher", "aes-128"]).status.code(), Some(2));
    assert_eq!(eval(&["--vectors", VECTORS, "--key", KEY]).status.code(), Some(2));
}

#[test]
fn triples_of_shamir_active_are_made_in_either_way() {
    let active = ["--protocol", "shamir-active", "--cipher", "aes-128", "--key", KEY, "--input", PLAINTEXT];
    for way in ["prss", "hyper-invertible"] {
        for inversion in ["masked-powers", "shortest"] {
            let text = answer(&[&active[..], &["--preprocessing", way, "--inversion", inversion]].concat());
            assert!(text.starts_with(CIPHERTEXT), "{text}");
        }
    }
    refused(
        &[&active[..], &["--preprocessing", "mascot"]].concat(),
        "shamir-active has no preprocessing 'mascot'; choose one of prss, hyper-invertible",
    );
}

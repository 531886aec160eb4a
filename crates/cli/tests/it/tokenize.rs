//! Tokens on the command line.

use crate::common::Place;

/// Of the samples that NIST publishes for FF1 with AES-128.
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";

fn secret(place: &Place, name: &str, digits: &str) {
    use std::os::unix::fs::PermissionsExt;
    place.write(name, digits.as_bytes());
    std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(0o600)).expect("set");
}

#[test]
fn values_become_tokens_of_their_format_and_come_back() {
    let place = Place::new();
    let _cluster = place.cluster();
    secret(&place, "key.hex", KEY);
    place.run("key import known --modes ff1 --key-file key.hex");
    let shown = place.run("key show known");
    assert!(shown.contains("modes        ff1") && shown.contains("usage        tokenize"), "{shown}");

    assert_eq!(place.run("tokenize --key known 0123456789"), "2433477484\n");
    let tweak = "--tweak 39383736353433323130";
    assert_eq!(
        place.run(&format!("tokenize --key known {tweak} 0123456789 0123456789")),
        "6124200773\n".repeat(2)
    );
    let letters = "--key known --radix 36 --tweak 3737373770717273373737";
    assert_eq!(place.run(&format!("tokenize {letters} 0123456789abcdefghi")), "a9tv40mll9kdu509eum\n");
    assert_eq!(place.run(&format!("detokenize {letters} a9tv40mll9kdu509eum")), "0123456789abcdefghi\n");
    assert_eq!(place.run("tokenize --key known --keep-others 01-2345.6789"), "24-3347.7484\n");
    assert_eq!(place.run("tokenize --key known --alphabet abcdefghij abcdefghij"), "ceddehheie\n");

    // Standard input, files, and JSON.
    let lines = b"0123456789\r\n4929123456\n";
    let tokens = place.pipe("tokenize --key known", lines);
    assert!(
        tokens.starts_with(b"2433477484\n") && tokens.len() == 22,
        "{}",
        String::from_utf8_lossy(&tokens)
    );
    place.write("tokens", &tokens);
    assert_eq!(place.run("detokenize --key known --in tokens"), "0123456789\n4929123456\n");
    let json: serde_json::Value =
        serde_json::from_str(&place.run("detokenize --key known --json 2433477484")).expect("JSON");
    assert_eq!(json, serde_json::json!({ "key": "known", "values": ["0123456789"] }));

    // Cards.
    let number = "4111-1111-1111-1111";
    for options in ["--card", "--card --luhn --keep-first 0"] {
        let token = place.run(&format!("tokenize --key known {options} {number}"));
        assert!(token.ends_with("-1111\n") && token.trim() != number, "{token}");
        let back = place.run(&format!("detokenize --key known {options} {}", token.trim()));
        assert_eq!(back.trim(), number);
    }

    // Other versions have other tokens.
    place.run("key rotate known");
    assert_ne!(place.run("tokenize --key known 0123456789"), "2433477484\n");
    assert_eq!(place.run("tokenize --key known --key-version 1 0123456789"), "2433477484\n");

    for (command, why) in [
        ("tokenize --key known 12345", "value 1: there are only 100000 strings"),
        ("tokenize --key known 123456 12345x", "value 2: its character number 6 is not in the alphabet"),
        ("tokenize --key known --radix 37 123456", "a radix is 2 to 36"),
        ("tokenize --key known --alphabet 00 123456", "'0' twice"),
        ("tokenize --key known --tweak 0 123456", "--tweak"),
        ("tokenize --key known --card --luhn 4111111111111111", "5 would be free"),
        ("tokenize --key known", "there is no value"),
        ("encrypt --key known --mode ff1 --raw key.hex out", "polyclave tokenize"),
        ("key generate both --modes ff1,cmac", "ff1 undoes cmac"),
    ] {
        let message = place.fails(command);
        assert!(message.contains(why), "{command}: {message}");
    }
}

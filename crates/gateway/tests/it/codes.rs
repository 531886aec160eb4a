//! Codes of HMAC: they are those of the standard, and only the right ones are valid.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::{Mode, NewKey, Right, VersionState};
use serde_json::{Value, json};

use crate::common::{Answer, World};

/// Imports a key, and gives a function that asks for something with it.
fn with_key<'w>(world: &'w World, name: &str, key: &[u8]) -> impl Fn(&str, Value) -> Answer + 'w {
    let new = NewKey::for_modes(name, "hmac-sha-256", &[Mode::Hmac], 1 << 32);
    world.client().import(new, key).expect("imported");
    let name = name.to_owned();
    move |what, body| world.ask("POST", &format!("/v1/transit/{what}/{name}"), body)
}

/// The text of a code of another implementation.
fn code(version: u32, key: &[u8], message: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
    format!("vault:v{version}:{}", STANDARD.encode(ring::hmac::sign(&key, message)))
}

fn results(answer: &Answer) -> Vec<Value> {
    answer.json["data"]["batch_results"].as_array().expect("results").clone()
}

/// Test cases 1, 4 and 6 of RFC 4231, section 4, whose keys have 20, 25 and 131 bytes.
#[test]
fn codes_are_those_of_rfc_4231_and_no_other_is_valid() {
    let world = World::shared();
    let counted: Vec<u8> = (1..=25).collect();
    let cases: [(&str, &[u8], &[u8], &str); 3] = [
        (
            "codes-1",
            &[0x0b; 20],
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            "codes-4",
            &counted,
            &[0xcd; 50],
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
        ),
        (
            "codes-6",
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ];
    for (name, key, message, expected) in cases {
        let ask = with_key(&world, name, key);
        let input = STANDARD.encode(message);
        let expected = hex::decode(expected).expect("digits");
        let text = format!("vault:v1:{}", STANDARD.encode(&expected));
        assert_eq!(ask("hmac", json!({ "input": input })).data("hmac"), text, "{name}");
        let path = format!("/v1/transit/verify/{name}/sha2-256");
        let verified = world.ask("POST", &path, json!({ "input": input, "hmac": text }));
        assert_eq!((verified.status, &verified.json["data"]["valid"]), (200, &json!(true)), "{name}");
        let mut wrong: Vec<Vec<u8>> = (0..expected.len()).map(|_| expected.clone()).collect();
        wrong.iter_mut().enumerate().for_each(|(at, code)| code[at] ^= 1 << (at % 8));
        wrong.extend([expected[..16].to_vec(), [&expected[..], &[0]].concat(), Vec::new()]);
        let item =
            |code: &Vec<u8>| json!({ "input": input, "hmac": format!("vault:v1:{}", STANDARD.encode(code)) });
        let items: Vec<Value> = wrong.iter().map(item).collect();
        let verified = ask("verify", json!({ "batch_input": items }));
        assert_eq!(verified.status, 200);
        assert_eq!(results(&verified), vec![json!({ "valid": false }); wrong.len()], "{name}");
    }
}

#[test]
fn every_version_verifies_until_it_is_too_old_and_only_active_ones_make_codes() {
    let world = World::shared();
    let made =
        world.done("POST", "/v1/transit/keys/codes-turning", json!({ "type": "hmac", "key_size": 64 }));
    assert_eq!(
        (&made["data"]["type"], &made["data"]["supports_encryption"]),
        (&json!("hmac"), &json!(false))
    );
    let ask = |what: &str, body| world.ask("POST", &format!("/v1/transit/{what}/codes-turning"), body);
    let valid = |code: &str| ask("verify", json!({ "input": "AAAA", "hmac": code }));
    let first = ask("hmac", json!({ "input": "AAAA" })).data("hmac").to_owned();
    for _ in 0..3 {
        world.done("POST", "/v1/transit/keys/codes-turning/rotate", Value::Null);
    }
    let fourth = ask("hmac", json!({ "input": "AAAA" })).data("hmac").to_owned();
    assert!(first.starts_with("vault:v1:") && fourth.starts_with("vault:v4:"));
    assert_eq!(ask("hmac", json!({ "input": "AAAA", "key_version": "1" })).data("hmac"), first);
    assert_eq!(valid(&first).json["data"]["valid"], true);
    assert_eq!(valid(&first.replace(":v1:", ":v4:")).json["data"]["valid"], false);
    let too_new = valid(&first.replace(":v1:", ":v5:"));
    assert!(too_new.status == 400 && too_new.errors().contains("version is too new"), "{too_new:?}");
    let too_high = ask("hmac", json!({ "input": "AAAA", "key_version": 5 }));
    assert!(too_high.errors().contains("higher than the latest"), "{too_high:?}");

    // The gateway's client may configure keys, so nodes would compute under all of these.
    let client = world.client();
    client.retire("codes-turning", 1, VersionState::Deactivated).expect("deactivated");
    let retired = ask("hmac", json!({ "input": "AAAA", "key_version": 1 }));
    assert!(retired.status == 400 && retired.errors().contains("only verifies"), "{retired:?}");
    assert_eq!(valid(&first).json["data"]["valid"], true);
    client.retire("codes-turning", 1, VersionState::Compromised).expect("compromised");
    let known = valid(&first);
    assert!(known.status == 400 && known.errors().contains("compromised"), "{known:?}");

    world.done("POST", "/v1/transit/keys/codes-turning/config", json!({ "min_decryption_version": 3 }));
    let old = valid(&first.replace(":v1:", ":v2:"));
    assert!(old.status == 400 && old.errors().contains("too old"), "{old:?}");
    let old = ask("hmac", json!({ "input": "AAAA", "key_version": 2 }));
    assert!(old.status == 400 && old.errors().contains("too old"), "{old:?}");
}

#[test]
fn a_batch_tells_each_mistake_where_it_is() {
    let world = World::shared();
    let key = [7; 64];
    let ask = with_key(&world, "codes-batches", &key);
    let messages: [&[u8]; 4] = [b"", b"one", b"two", &[9; 200]];
    let mut items: Vec<Value> = messages
        .iter()
        .enumerate()
        .map(|(at, message)| json!({ "input": STANDARD.encode(message), "reference": at.to_string() }))
        .collect();
    items.insert(1, json!({ "input": "not base64!", "reference": "bad" }));
    items.push(json!({}));
    items.push(json!({ "input": STANDARD.encode(vec![0; (64 << 10) + 1]) }));
    let answer = ask("hmac", json!({ "batch_input": items, "input": "ignored" }));
    assert_eq!(answer.status, 200, "as in Vault");
    let made = results(&answer);
    assert_eq!(made.len(), items.len());
    for (at, message) in [(0, 0), (2, 1), (3, 2), (4, 3)] {
        let expected = json!({ "hmac": code(1, &key, messages[message]), "reference": message.to_string() });
        assert_eq!(made[at], expected, "{at}");
    }
    for (at, why) in [(1, "base64-decode input"), (5, "missing input"), (6, "more than 65536 bytes")] {
        let error = made[at]["error"].as_str().expect("an error");
        assert!(error.contains(why) && made[at]["hmac"].is_null(), "{at}: {error}");
    }
    assert_eq!(made[1]["reference"], "bad");

    let right = code(1, &key, b"one");
    let one = STANDARD.encode(b"one");
    let verified = ask(
        "verify",
        json!({ "batch_input": [
            { "input": one, "hmac": right },
            { "input": one, "hmac": code(1, &key, b"two") },
            { "input": one, "hmac": right.replace("vault:", "") },
            { "input": one, "hmac": "vault:v1:?" },
            { "input": one, "signature": right },
            { "input": one },
            { "hmac": right },
            { "input": one, "hmac": right, "reference": "last" },
        ] }),
    );
    assert_eq!(verified.status, 200);
    let found = results(&verified);
    let valid: Vec<bool> = found.iter().map(|one| one["valid"].as_bool().expect("said")).collect();
    assert_eq!(valid, [true, false, false, false, false, false, false, true]);
    assert_eq!(found[7]["reference"], "last");
    let words =
        [(2, "no prefix"), (3, "base64"), (4, "signature cannot"), (5, "missing hmac"), (6, "missing input")];
    for (at, why) in words {
        assert!(found[at]["error"].as_str().expect("an error").contains(why), "{at}: {:?}", found[at]);
    }
    assert!(found[1]["error"].is_null(), "a wrong code is no error");
}

#[test]
fn what_is_not_hmac_with_the_hash_of_the_key_is_refused() {
    let world = World::shared();
    let _ = with_key(&world, "codes-other", &[1; 16]);
    world.done("POST", "/v1/transit/keys/codes-aes", Value::Null);
    let hmac = code(1, &[1; 16], &[0; 3]);
    for (path, body, why) in [
        ("hmac/codes-other/sha2-512", json!({ "input": "AAAA" }), "for HMAC with sha2-256 alone"),
        ("verify/codes-other/sha2-384", json!({ "input": "AAAA", "hmac": hmac }), "with sha2-256 alone"),
        ("hmac/codes-other/sha2-224", json!({ "input": "AAAA" }), "unsupported algorithm \"sha2-224\""),
        ("keys/codes-longer", json!({ "type": "hmac-sha2-512", "key_size": 64 }), "key_size must be 128"),
        ("keys/codes-type", json!({ "type": "hmac-sha2-224" }), "hmac-sha2-384, hmac-sha2-512"),
        ("hmac/codes-other", json!({ "input": "AAAA", "algorithm": "sha3-256" }), "unsupported algorithm"),
        (
            "verify/codes-other",
            json!({ "input": "AAAA", "hmac": hmac, "hash_algorithm": "sha2-224" }),
            "unsupported algorithm",
        ),
        ("verify/codes-other/sha1", json!({ "input": "AAAA", "hmac": hmac }), "unsupported algorithm"),
        ("verify/codes-other", json!({ "input": "AAAA", "signature": hmac }), "signature cannot be verified"),
        (
            "verify/codes-other",
            json!({ "input": "AAAA", "cmac": hmac, "hmac": hmac }),
            "cmac cannot be verified",
        ),
        ("hmac/codes-other", json!({}), "missing input"),
        ("hmac/codes-other", json!({ "batch_input": [] }), "missing batch input"),
        ("hmac/codes-aes", json!({ "input": "AAAA" }), "not for HMAC"),
        ("hmac/codes-nothing", json!({ "input": "AAAA" }), "key not found"),
        ("keys/codes-small", json!({ "type": "hmac", "key_size": 32 }), "key_size must be 64"),
        ("encrypt/codes-other", json!({ "plaintext": "AAAA" }), ""),
    ] {
        let refused = world.ask("POST", &format!("/v1/transit/{path}"), body);
        assert!(refused.status == 400 && refused.errors().contains(why), "{path}: {refused:?}");
    }
    assert_eq!(world.ask("POST", "/v1/transit/hmac", json!({ "input": "AAAA" })).status, 404);
}

/// Vault's algorithm is that of the request; here it is that of the key.
#[test]
fn keys_of_a_type_of_their_own_have_longer_codes() {
    let world = World::shared();
    for (name, of_ring, bytes) in
        [("sha2-384", ring::hmac::HMAC_SHA384, 48), ("sha2-512", ring::hmac::HMAC_SHA512, 64)]
    {
        let key = format!("codes-{name}");
        let kind = format!("hmac-{name}");
        let made = world.done("POST", &format!("/v1/transit/keys/{key}"), json!({ "type": kind }));
        assert_eq!(made["data"]["type"], json!(kind));
        let post = |path: String, body| world.ask("POST", &format!("/v1/transit/{path}"), body);
        let code = post(format!("hmac/{key}"), json!({ "input": "AAAA" })).data("hmac").to_owned();
        let encoded = code.strip_prefix("vault:v1:").expect("of the first version");
        assert_eq!(STANDARD.decode(encoded).expect("base64").len(), bytes);
        let verified = post(format!("verify/{key}/{name}"), json!({ "input": "AAAA", "hmac": code }));
        assert_eq!(verified.json["data"]["valid"], true, "{verified:?}");

        // The same of a key that another program knows.
        let known = format!("codes-known-{name}");
        let new = NewKey::for_modes(&known, &kind.replace("sha2", "sha"), &[Mode::Hmac], 1 << 32);
        world.client().import(new, &[9; 40]).expect("imported");
        let expected = ring::hmac::sign(&ring::hmac::Key::new(of_ring, &[9; 40]), &[0; 3]);
        let body = json!({ "input": "AAAA", "algorithm": name });
        let found = post(format!("hmac/{known}"), body).data("hmac").to_owned();
        assert_eq!(found, format!("vault:v1:{}", STANDARD.encode(expected)));
        let other = post(format!("hmac/{known}/sha2-256"), json!({ "input": "AAAA" }));
        assert!(other.status == 400 && other.errors().contains(&format!("with {name} alone")), "{other:?}");
    }
}

#[test]
fn codes_take_the_right_mac_for_their_key() {
    let world = World::shared();
    let ask = with_key(&world, "codes-mine", &[2; 16]);
    let _ = with_key(&world, "codes-of-another", &[3; 16]);
    let body = json!({ "input": "AAAA", "hmac": code(1, &[2; 16], &[0; 3]) });
    let may = world.add_token("codes", &[Right::Mac], &["codes-mine"]);
    let may_not = world.add_token("no-codes", &[Right::Encrypt, Right::Decrypt], &["*"]);
    for what in ["hmac", "verify"] {
        let path = |key: &str| format!("/v1/transit/{what}/{key}");
        assert_eq!(ask(what, body.clone()).status, 200);
        assert_eq!(world.ask_as(&may, "POST", &path("codes-mine"), body.clone()).status, 200);
        assert_eq!(world.ask_as(&may, "POST", &path("codes-of-another"), body.clone()).status, 403);
        assert_eq!(world.ask_as(&may_not, "POST", &path("codes-mine"), body.clone()).status, 403);
    }
}

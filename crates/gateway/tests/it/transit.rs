//! The transit API does what it says: what was encrypted comes back, under the version and with the data that
//! belong to it.

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::{Mode, NewKey, Right};
use serde_json::{Value, json};

use crate::common::{Answer, World};

/// Makes a key, and gives a function that asks for something with it.
fn with_key<'w>(world: &'w World, name: &str) -> impl Fn(&str, Value) -> Answer + 'w {
    world.done("POST", &format!("/v1/transit/keys/{name}"), Value::Null);
    let name = name.to_owned();
    move |what, body| world.ask("POST", &format!("/v1/transit/{what}/{name}"), body)
}

/// A message of so many bytes.
fn message(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn messages_come_back_whatever_their_length() {
    let world = World::shared();
    let ask = with_key(&world, "lengths");
    for bytes in [0, 1, 15, 16, 17, 32, 1000, 1 << 20] {
        let plaintext = STANDARD.encode(message(bytes));
        let encrypted = ask("encrypt", json!({ "plaintext": plaintext }));
        assert_eq!(
            (encrypted.status, encrypted.json["data"]["key_version"].as_u64()),
            (200, Some(1)),
            "{bytes}"
        );
        let ciphertext = encrypted.data("ciphertext");
        let again = ask("encrypt", json!({ "plaintext": plaintext }));
        assert_ne!(again.data("ciphertext"), ciphertext, "each has a nonce of its own");
        assert_eq!(
            ask("decrypt", json!({ "ciphertext": ciphertext })).data("plaintext"),
            plaintext,
            "{bytes}"
        );
    }
}

/// Against another implementation, with a key that was imported.
#[test]
fn a_ciphertext_is_nonce_ciphertext_and_tag_of_gcm() {
    let world = World::shared();
    let key: [u8; 32] = std::array::from_fn(|i| i as u8);
    let new = NewKey::for_modes("imported", "aes-256", &[Mode::Gcm], 1 << 32);
    world.client().import(new, &key).expect("imported");
    let (plain, additional) = (message(100), b"to whom");
    let asked =
        json!({ "plaintext": STANDARD.encode(&plain), "associated_data": STANDARD.encode(additional) });
    let encrypted = world.ask("POST", "/v1/transit/encrypt/imported", asked);
    let text =
        encrypted.data("ciphertext").strip_prefix("vault:v1:").expect("the version is in front").to_owned();
    let bytes = STANDARD.decode(text).expect("base64");
    let (nonce, sealed) = bytes.split_at(12);
    let nonce: [u8; 12] = nonce.try_into().expect("12 bytes");
    let oracle = Aes256Gcm::new(&key.into());
    let payload = Payload { msg: sealed, aad: additional };
    assert_eq!(oracle.decrypt(&nonce.into(), payload).expect("authentic"), plain);
    let shown = world.ask("GET", "/v1/transit/keys/imported", Value::Null);
    assert_eq!((shown.data("type"), &shown.json["data"]["imported_key"]), ("aes256-gcm96", &json!(true)));
}

#[test]
fn every_version_decrypts_until_it_is_too_old() {
    let world = World::shared();
    let ask = with_key(&world, "turning");
    let mut ciphertexts = Vec::new();
    for version in 1..=3_u32 {
        let plaintext = STANDARD.encode(format!("under version {version}"));
        let encrypted = ask("encrypt", json!({ "plaintext": plaintext }));
        assert_eq!(encrypted.json["data"]["key_version"], version);
        assert!(encrypted.data("ciphertext").starts_with(&format!("vault:v{version}:")));
        ciphertexts.push((encrypted.data("ciphertext").to_owned(), plaintext));
        world.done("POST", "/v1/transit/keys/turning/rotate", Value::Null);
    }
    for (ciphertext, plaintext) in &ciphertexts {
        assert_eq!(ask("decrypt", json!({ "ciphertext": ciphertext })).data("plaintext"), plaintext);
    }
    let older = ask("encrypt", json!({ "plaintext": "AAAA", "key_version": "2" }));
    assert!(older.data("ciphertext").starts_with("vault:v2:"));
    let too_new = ciphertexts[0].0.replace("vault:v1:", "vault:v9:");
    assert!(ask("decrypt", json!({ "ciphertext": too_new })).errors().contains("version is too new"));
    let other = ciphertexts[0].0.replace("vault:v1:", "vault:v2:");
    assert!(ask("decrypt", json!({ "ciphertext": other })).errors().contains("unable to decrypt"));
    let higher = ask("encrypt", json!({ "plaintext": "AAAA", "key_version": 9 }));
    assert!(higher.errors().contains("higher than the latest"), "{higher:?}");

    // Vault's own program sends numbers as texts.
    let config = json!({ "min_decryption_version": "3" });
    let set = world.done("PUT", "/v1/transit/keys/turning/config", config);
    assert_eq!(
        (&set["data"]["min_decryption_version"], &set["data"]["latest_version"]),
        (&json!(3), &json!(4))
    );
    let old = ask("decrypt", json!({ "ciphertext": ciphertexts[1].0 }));
    assert!(old.status == 400 && old.errors().contains("disallowed by policy (too old)"), "{old:?}");
    let lower = ask("encrypt", json!({ "plaintext": "AAAA", "key_version": 1 }));
    assert!(lower.errors().contains("less than the minimum"), "{lower:?}");
    assert_eq!(ask("decrypt", json!({ "ciphertext": ciphertexts[2].0 })).data("plaintext"), ciphertexts[2].1);
}

#[test]
fn rewrapping_gives_the_same_message_under_the_latest_version() {
    let world = World::shared();
    let ask = with_key(&world, "rewrapped");
    let additional = STANDARD.encode(b"bound to this");
    // Short ones the nodes rewrap themselves; long ones are decrypted and encrypted.
    for (bytes, version) in [(0, 1), (32, 2), (1024, 3), (1025, 4), (100_000, 5)] {
        let plaintext = STANDARD.encode(message(bytes));
        let asked = json!({ "plaintext": plaintext, "associated_data": additional });
        let old = ask("encrypt", asked).data("ciphertext").to_owned();
        world.done("POST", "/v1/transit/keys/rewrapped/rotate", Value::Null);
        let rewrapped = ask("rewrap", json!({ "ciphertext": old, "associated_data": additional }));
        assert_eq!(rewrapped.json["data"]["key_version"], version + 1, "{bytes}: {rewrapped:?}");
        let new = rewrapped.data("ciphertext");
        let back = ask("decrypt", json!({ "ciphertext": new, "associated_data": additional }));
        assert_eq!(back.data("plaintext"), plaintext, "{bytes}");
        let other = ask("rewrap", json!({ "ciphertext": old }));
        assert!(other.status == 400 && other.errors().contains("unable to decrypt"), "{other:?}");
        let named =
            ask("rewrap", json!({ "ciphertext": old, "associated_data": additional, "key_version": 1 }));
        assert!(named.data("ciphertext").starts_with("vault:v1:"), "{named:?}");
    }
}

#[test]
fn a_batch_tells_each_mistake_where_it_is() {
    let world = World::shared();
    let ask = with_key(&world, "batches");
    let items: Vec<Value> = (0..20)
        .map(|i| match i {
            7 => json!({ "plaintext": "not base64!", "reference": "seven" }),
            11 => json!({ "reference": "eleven" }),
            _ => json!({ "plaintext": STANDARD.encode(format!("item {i}")), "reference": i.to_string() }),
        })
        .collect();
    let encrypted = ask("encrypt", json!({ "batch_input": items }));
    assert_eq!(encrypted.status, 400, "something failed");
    let results = encrypted.json["data"]["batch_results"].as_array().expect("results").clone();
    assert_eq!((results.len(), &results[7]["reference"]), (20, &json!("seven")));
    assert!(results[7]["error"].as_str().expect("an error").contains("base64-decode plaintext"));
    assert!(results[11]["error"].as_str().expect("an error").contains("missing plaintext"));
    let good: Vec<Value> =
        results.iter().filter(|result| result["ciphertext"].is_string()).cloned().collect();
    assert_eq!(good.len(), 18);
    let decrypted = ask("decrypt", json!({ "batch_input": good }));
    assert_eq!(decrypted.status, 200);
    for (result, item) in
        decrypted.json["data"]["batch_results"].as_array().expect("results").iter().zip(&good)
    {
        let i = item["reference"].as_str().expect("kept");
        assert_eq!(
            (result["plaintext"].as_str(), &result["reference"]),
            (Some(&*STANDARD.encode(format!("item {i}"))), &item["reference"])
        );
    }
    let wanted = ask("encrypt", json!({ "batch_input": items, "partial_failure_response_code": 207 }));
    assert_eq!(wanted.status, 207);
    let mixed =
        json!({ "batch_input": [{ "plaintext": "AAAA", "context": "AAAA" }, { "plaintext": "AAAA" }] });
    assert!(ask("encrypt", mixed).errors().contains("all the request blocks or in none"));
    assert!(ask("encrypt", json!({ "batch_input": [] })).errors().contains("missing batch input"));
}

#[test]
fn keys_for_data_are_of_the_length_that_was_asked_for() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/of-data", Value::Null);
    for (bits, bytes) in [(json!(null), 32), (json!(128), 16), (json!("256"), 32), (json!(512), 64)] {
        let made = world.ask("POST", "/v1/transit/datakey/plaintext/of-data", json!({ "bits": bits }));
        let shown = made.data("plaintext").to_owned();
        assert_eq!(STANDARD.decode(&shown).expect("base64").len(), bytes);
        let asked = json!({ "ciphertext": made.data("ciphertext") });
        assert_eq!(world.ask("POST", "/v1/transit/decrypt/of-data", asked).data("plaintext"), shown);
    }
    let wrapped = world.ask("POST", "/v1/transit/datakey/wrapped/of-data", json!({}));
    assert!(wrapped.json["data"]["plaintext"].is_null() && wrapped.status == 200);
    let wrong = world.ask("POST", "/v1/transit/datakey/wrapped/of-data", json!({ "bits": 192 }));
    assert_eq!(wrong.status, 400);
}

#[test]
fn a_key_is_deleted_only_after_that_was_allowed_and_its_successor_is_another_key() {
    let world = World::shared();
    let ask = with_key(&world, "passing");
    let old = ask("encrypt", json!({ "plaintext": "AAAA" })).data("ciphertext").to_owned();
    assert_eq!(ask("decrypt", json!({ "ciphertext": old })).data("plaintext"), "AAAA");
    let refused = world.ask("DELETE", "/v1/transit/keys/passing", Value::Null);
    assert!(refused.status == 400 && refused.errors().contains("deletion is not allowed"), "{refused:?}");
    let again = world.ask("POST", "/v1/transit/keys/passing", json!({ "type": "aes128-gcm96" }));
    assert_eq!((again.status, again.data("type")), (200, "aes256-gcm96"), "it is what it was");
    assert!(again.json["warnings"][0].as_str().expect("a warning").contains("already existed"));
    world.done("POST", "/v1/transit/keys/passing/config", json!({ "deletion_allowed": "true" }));
    assert_eq!(world.ask("DELETE", "/v1/transit/keys/passing", Value::Null).status, 204);
    assert_eq!(ask("decrypt", json!({ "ciphertext": old })).errors(), "encryption key not found");
    assert_eq!(world.ask("GET", "/v1/transit/keys/passing", Value::Null).status, 404);
    let gone = world.ask("DELETE", "/v1/transit/keys/passing", Value::Null);
    assert!(gone.status == 400 && gone.errors().contains("not found"), "{gone:?}");
    world.done("POST", "/v1/transit/keys/passing", Value::Null);
    let other = ask("decrypt", json!({ "ciphertext": old }));
    assert_eq!((other.status, other.errors().as_str()), (400, "invalid ciphertext: unable to decrypt"));
    let new = ask("encrypt", json!({ "plaintext": "BBBB" })).data("ciphertext").to_owned();
    assert_eq!(ask("decrypt", json!({ "ciphertext": new })).data("plaintext"), "BBBB");
}

#[test]
fn only_keys_of_the_api_are_shown_and_listed() {
    let world = World::shared();
    let client = world.client();
    for (name, cipher, mode) in [("listed-mac", "aes-128", Mode::Cmac), ("listed-192", "aes-192", Mode::Gcm)]
    {
        client.generate(NewKey::for_modes(name, cipher, &[mode], 1 << 20)).expect("a key");
    }
    world.done("POST", "/v1/transit/keys/listed-gcm", Value::Null);
    let token = world.add_token("lister", &[Right::List], &["listed-*"]);
    for (method, path) in [("LIST", "/v1/transit/keys"), ("GET", "/v1/transit/keys?list=true")] {
        let listed = world.ask_as(&token, method, path, Value::Null);
        assert_eq!(listed.json["data"]["keys"], json!(["listed-gcm"]), "{listed:?}");
    }
    for name in ["listed-mac", "listed-192", "nothing"] {
        assert_eq!(world.ask("GET", &format!("/v1/transit/keys/{name}"), Value::Null).status, 404);
    }
    let none = world.add_token("lister-of-none", &[Right::List], &["none-*"]);
    let listed = world.ask_as(&none, "LIST", "/v1/transit/keys", Value::Null);
    assert_eq!((listed.status, listed.errors().as_str()), (404, ""));
}

/// The example "abc" of FIPS 180-4.
#[test]
fn hashes_are_those_of_the_standard_in_hexadecimal_and_base64() {
    let world = World::shared();
    for (algorithm, expected) in [
        ("sha2-224", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
        ("sha2-256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "sha2-384",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            "sha2-512",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
    ] {
        let body = json!({ "input": STANDARD.encode("abc") });
        let in_path = world.ask("POST", &format!("/v1/transit/hash/{algorithm}"), body);
        assert_eq!(in_path.data("sum"), expected, "{algorithm}");
        let body = json!({ "input": STANDARD.encode("abc"), "algorithm": algorithm, "format": "base64" });
        let in_body = world.ask("POST", "/v1/transit/hash", body);
        assert_eq!(
            in_body.data("sum"),
            STANDARD.encode(hex::decode(expected).expect("digits")),
            "{algorithm}"
        );
    }
}

//! A key that is made by the first encryption under its name; and versions that are trimmed.

use std::collections::BTreeSet;

use polyclave_api::Right;
use serde_json::{Value, json};

use crate::common::World;

#[test]
fn the_first_encryption_makes_the_key_if_the_token_may_create() {
    let world = World::shared();
    let may = world.add_token("upserts", &[Right::Encrypt, Right::Decrypt, Right::Generate], &["upsert-*"]);
    let may_not = world.add_token("upserts-not", &[Right::Encrypt, Right::Decrypt], &["upsert-*"]);
    let ask = |token: &str, path: &str, body: Value| {
        world.ask_as(token, "POST", &format!("/v1/transit/{path}"), body)
    };
    let is_there =
        |key: &str| world.ask("GET", &format!("/v1/transit/keys/{key}"), Value::Null).status == 200;

    // Nothing is made for a token without the right, and by a request that cannot be answered.
    let refused = ask(&may_not, "encrypt/upsert-never", json!({ "plaintext": "AAAA" }));
    assert_eq!((refused.status, refused.errors().contains("permission denied")), (403, true), "{refused:?}");
    for (body, why) in [
        (json!({}), "missing plaintext"),
        (json!({ "plaintext": "A" }), "base64-decode plaintext"),
        (json!({ "plaintext": "AAAA", "context": "A" }), "base64-decode context"),
        (json!({ "plaintext": "AAAA", "key_version": 2 }), "higher than the latest"),
        (json!({ "plaintext": "AAAA", "type": "gold" }), "unknown key type gold"),
        (json!({ "plaintext": "AAAA", "type": "hmac" }), "not supported for this operation"),
        (json!({ "plaintext": "AAAA", "convergent_encryption": true }), "so context is required"),
        (json!({ "batch_input": [{ "plaintext": "AAAA", "context": "A" }] }), "base64-decode context"),
    ] {
        let answer = ask(&may, "encrypt/upsert-never", body);
        assert!(answer.status == 400 && answer.errors().contains(why), "{why}: {answer:?}");
    }
    for (path, body) in [
        ("decrypt", json!({ "ciphertext": format!("vault:v1:{}", "A".repeat(40)) })),
        ("rewrap", json!({ "ciphertext": format!("vault:v1:{}", "A".repeat(40)) })),
        ("datakey/plaintext", json!({})),
    ] {
        let answer = world.ask("POST", &format!("/v1/transit/{path}/upsert-never"), body);
        assert_eq!(answer.errors(), "encryption key not found", "{path}");
    }
    assert!(!is_there("upsert-never"));

    // The request says which key it is to be.
    for (key, more, kind) in [
        ("upsert-plain", json!({}), ("aes256-gcm96", false, false)),
        ("upsert-short", json!({ "type": "aes128-gcm96" }), ("aes128-gcm96", false, false)),
        ("upsert-derived", json!({ "context": "AAAA" }), ("aes256-gcm96", true, false)),
        (
            "upsert-convergent",
            json!({ "context": "AAAA", "convergent_encryption": true, "type": "aes128-gcm96" }),
            ("aes128-gcm96", true, true),
        ),
    ] {
        let mut body = json!({ "plaintext": "AAAA" });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let encrypted = ask(&may, &format!("encrypt/{key}"), body);
        assert_eq!((encrypted.status, &encrypted.json["warnings"]), (200, &Value::Null), "{encrypted:?}");
        let asked = json!({ "ciphertext": encrypted.data("ciphertext"), "context": more["context"] });
        assert_eq!(ask(&may_not, &format!("decrypt/{key}"), asked).data("plaintext"), "AAAA");
        let data = &world.ask("GET", &format!("/v1/transit/keys/{key}"), Value::Null).json["data"];
        let (name, derived, convergent) = kind;
        assert_eq!(data["type"], name);
        assert_eq!((&data["derived"], &data["convergent_encryption"]), (&json!(derived), &json!(convergent)));
        assert_eq!(data["deletion_allowed"], json!(false));
    }
}

#[test]
fn requests_at_once_make_one_key() {
    let world = World::shared();
    let asked = json!({ "batch_input": [{ "plaintext": "AAAA" }, { "plaintext": "BBBB" }] });
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = || world.ask("POST", "/v1/transit/encrypt/upsert-at-once", asked.clone());
        let all: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().expect("it ends")).collect()
    });
    for answer in &answers {
        assert_eq!(answer.status, 200, "{answer:?}");
        let results = json!({ "batch_input": answer.json["data"]["batch_results"] });
        let decrypted = world.done("POST", "/v1/transit/decrypt/upsert-at-once", results);
        assert_eq!(
            decrypted["data"]["batch_results"],
            json!([{ "plaintext": "AAAA" }, { "plaintext": "BBBB" }])
        );
    }
    let data = &world.ask("GET", "/v1/transit/keys/upsert-at-once", Value::Null).json["data"];
    assert_eq!(data["latest_version"], 1);
}

#[test]
fn trimming_deletes_versions_that_no_longer_decrypt() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/trimmed", Value::Null);
    let old = world.done("POST", "/v1/transit/encrypt/trimmed", json!({ "plaintext": "AAAA" }));
    for _ in 0..3 {
        world.done("POST", "/v1/transit/keys/trimmed/rotate", Value::Null);
    }
    let trim = |version: Value| {
        world.ask("POST", "/v1/transit/keys/trimmed/trim", json!({ "min_available_version": version }))
    };
    let config = |body: Value| world.ask("POST", "/v1/transit/keys/trimmed/config", body);
    let refused = |version: Value, why: &str| {
        let answer = trim(version);
        assert!(answer.status == 400 && answer.errors().contains(why), "{why}: {answer:?}");
    };
    refused(json!(2), "greater than minimum decryption version");
    // As programs do it that know Vault's conditions.
    assert_eq!(config(json!({ "min_decryption_version": 3, "min_encryption_version": 3 })).status, 200);
    assert!(
        config(json!({ "min_encryption_version": 4 })).errors().contains("min_decryption_version (3) only")
    );
    refused(json!(3), "set deletion_allowed to true first");
    assert_eq!(config(json!({ "deletion_allowed": true })).status, 200);
    refused(Value::Null, "missing min_available_version");
    refused(json!(-1), "cannot be negative");
    refused(json!(0), "should be positive");
    refused(json!(4), "greater than minimum decryption version");
    let numbers = |client: &polyclave_client::Client| -> BTreeSet<u32> {
        client.versions("trimmed").expect("shown").iter().map(|info| info.version).collect()
    };
    assert_eq!(numbers(&world.client()).len(), 4, "nothing was deleted");
    let token = world.add_token("trims-not", &[Right::Generate, Right::Configure], &["trimmed"]);
    let path = "/v1/transit/keys/trimmed/trim";
    let denied = world.ask_as(&token, "POST", path, json!({ "min_available_version": 3 }));
    assert_eq!(denied.status, 403);
    let trimmed = trim(json!("3"));
    assert_eq!(trimmed.json["data"]["min_available_version"], 3, "{trimmed:?}");
    assert_eq!(numbers(&world.client()), [3, 4].into(), "the nodes have the others no more");
    refused(json!(2), "cannot be decremented");
    assert_eq!(trim(json!(3)).status, 200, "again");
    let lower = config(json!({ "min_decryption_version": 2 }));
    assert!(lower.errors().contains("less then min available version"), "{lower:?}");
    let gone = json!({ "ciphertext": old["data"]["ciphertext"] });
    let gone = world.ask("POST", "/v1/transit/decrypt/trimmed", gone);
    assert!(gone.status == 400 && gone.errors().contains("too old"), "{gone:?}");
    let missing =
        world.ask("POST", "/v1/transit/keys/trimmed-not/trim", json!({ "min_available_version": 1 }));
    assert!(missing.status == 400 && missing.errors().contains("invalid key name"), "{missing:?}");
}

//! The form of each answer, as it is in `golden/`. What differs from one run to the next has a placeholder
//! there. `POLYCLAVE_WRITE_GOLDEN=1` writes the files anew; then read what has changed.

use std::path::{Path, PathBuf};

use polyclave_api::Right;
use serde_json::{Value, json};

use crate::common::{Ask, World};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(format!("{name}.json"))
}

/// Replaces what differs from one run to the next.
fn settled(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| settled(value, name)),
        Value::Array(all) => all.iter_mut().for_each(|one| settled(one, name)),
        Value::String(text) => match name {
            "request_id" | "random_bytes" | "id" | "client_token" | "accessor" | "cluster_id" | "version" => {
                *text = format!("<{name}>");
            }
            "ciphertext" => *text = format!("{}<base64>", text.get(..9).unwrap_or_default()),
            "plaintext" if text.len() == 44 => *text = "<32 bytes>".into(),
            _ => {}
        },
        // Times of versions of a key.
        Value::Number(number) if name.parse::<u32>().is_ok() || name == "server_time_utc" => {
            assert!(number.as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "{number}");
            *value = json!("<seconds>");
        }
        _ => {}
    }
}

/// Compares an answer with its file.
fn compare(name: &str, (method, path): (&str, &str), body: &Value, status: u16, answered: &Value) {
    let mut whole =
        json!({ "method": method, "path": path, "body": body, "status": status, "answer": answered });
    settled(&mut whole, "");
    let text = serde_json::to_string_pretty(&whole).expect("JSON") + "\n";
    if std::env::var_os("POLYCLAVE_WRITE_GOLDEN").is_some() {
        std::fs::write(file(name), &text).expect("written");
    }
    let kept = std::fs::read_to_string(file(name)).unwrap_or_else(|_| panic!("there is no file for {name}"));
    assert_eq!(text, kept, "{name}");
}

#[test]
fn answers_have_the_form_that_is_written_down() {
    let world = World::start();
    let ciphertext = |plaintext: &str| {
        let encrypted = world.done("POST", "/v1/transit/encrypt/gold", json!({ "plaintext": plaintext }));
        encrypted["data"]["ciphertext"].as_str().expect("text").to_owned()
    };
    let ask = |name: &str, method: &str, path: &str, body: Value| {
        let answer = world.ask(method, path, body.clone());
        compare(name, (method, path), &body, answer.status, &answer.json);
    };
    let value = json!({ "value": "0123456789", "tweak": "OTg3NjU0MzIxMA==" });
    ask("encoded", "POST", "/v1/transform/encode/accounts", value);
    let token = json!({ "value": "6124200773", "tweak": "OTg3NjU0MzIxMA==", "ttl": "1h" });
    ask("decoded", "PUT", "/v1/transform/decode/accounts", token);
    let items =
        json!([{ "value": "0123456789", "tweak": "", "reference": "a" }, { "value": "12", "tweak": "eA==" }]);
    ask("encoded-batch-partly", "POST", "/v1/transform/encode/accounts", json!({ "batch_input": items }));
    ask("encoded-unknown-role", "POST", "/v1/transform/encode/nobody", json!({ "value": "0123456789" }));
    ask("key-created", "POST", "/v1/transit/keys/gold", json!({}));
    ask("key-created-again", "PUT", "/v1/transit/keys/gold", json!({}));
    ask("key-of-128-bits", "POST", "/v1/transit/keys/silver", json!({ "type": "aes128-gcm96" }));
    ask("key-of-another-type", "POST", "/v1/transit/keys/lead", json!({ "type": "rsa-2048" }));
    let convergent = json!({ "derived": true, "convergent_encryption": "true" });
    ask("key-derived", "POST", "/v1/transit/keys/copper", convergent);
    ask("key-exportable", "POST", "/v1/transit/keys/lead", json!({ "exportable": true }));
    ask("key-convergent", "POST", "/v1/transit/keys/lead", json!({ "convergent_encryption": "true" }));
    ask("key-rotated-by-itself", "POST", "/v1/transit/keys/lead", json!({ "auto_rotate_period": "24h" }));
    ask("key-read", "GET", "/v1/transit/keys/gold", Value::Null);
    ask("key-read-missing", "GET", "/v1/transit/keys/lead", Value::Null);
    ask("keys-listed", "LIST", "/v1/transit/keys", Value::Null);
    ask("encrypted", "POST", "/v1/transit/encrypt/gold", json!({ "plaintext": "aGVsbG8=" }));
    let for_copper = json!({ "plaintext": "aGVsbG8=", "context": "Y2l0eQ==" });
    ask("encrypted-with-context", "POST", "/v1/transit/encrypt/copper", for_copper);
    let without = json!({ "plaintext": "aGVsbG8=" });
    ask("encrypted-without-context", "POST", "/v1/transit/encrypt/copper", without);
    ask("encrypted-with-a-new-key", "POST", "/v1/transit/encrypt/tin", json!({ "plaintext": "aGVsbG8=" }));
    let narrow = world.add_token("encrypts", &[Right::Encrypt], &["*"]);
    let (path, body) = ("/v1/transit/encrypt/lead", json!({ "plaintext": "aGVsbG8=" }));
    let refused = world.ask_as(&narrow, "POST", path, body.clone());
    compare("encrypted-with-a-missing-key", ("POST", path), &body, refused.status, &refused.json);
    ask("encrypted-without-plaintext", "POST", "/v1/transit/encrypt/gold", json!({}));
    ask("encrypted-no-base64", "POST", "/v1/transit/encrypt/gold", json!({ "plaintext": "hello" }));
    let batch =
        json!({ "batch_input": [{ "plaintext": "aGVsbG8=", "reference": "a" }, { "plaintext": "hello" }] });
    ask("encrypted-batch-partly", "POST", "/v1/transit/encrypt/gold", batch);
    let hello = ciphertext("aGVsbG8=");
    ask("decrypted", "POST", "/v1/transit/decrypt/gold", json!({ "ciphertext": hello }));
    ask(
        "decrypted-batch",
        "POST",
        "/v1/transit/decrypt/gold",
        json!({ "batch_input": [{ "ciphertext": hello }] }),
    );
    ask("decrypted-with-another-key", "POST", "/v1/transit/decrypt/silver", json!({ "ciphertext": hello }));
    ask("decrypted-with-a-missing-key", "POST", "/v1/transit/decrypt/lead", json!({ "ciphertext": hello }));
    ask("decrypted-without-prefix", "POST", "/v1/transit/decrypt/gold", json!({ "ciphertext": "hello" }));
    let newer = hello.replace("vault:v1", "vault:v7");
    ask("decrypted-too-new", "POST", "/v1/transit/decrypt/gold", json!({ "ciphertext": newer }));
    ask("key-rotated", "POST", "/v1/transit/keys/gold/rotate", Value::Null);
    ask("key-rotated-missing", "POST", "/v1/transit/keys/lead/rotate", Value::Null);
    ask("rewrapped", "POST", "/v1/transit/rewrap/gold", json!({ "ciphertext": hello }));
    ask("key-configured", "POST", "/v1/transit/keys/gold/config", json!({ "min_decryption_version": 2 }));
    ask(
        "key-configured-too-high",
        "POST",
        "/v1/transit/keys/gold/config",
        json!({ "min_decryption_version": 3 }),
    );
    ask("decrypted-too-old", "POST", "/v1/transit/decrypt/gold", json!({ "ciphertext": hello }));
    let oldest = json!({ "min_available_version": 2 });
    ask("key-trimmed-forbidden", "POST", "/v1/transit/keys/gold/trim", oldest.clone());
    ask("data-key", "POST", "/v1/transit/datakey/plaintext/gold", json!({}));
    ask("data-key-wrapped", "POST", "/v1/transit/datakey/wrapped/gold", json!({ "bits": 128 }));
    ask("data-key-of-other-bits", "POST", "/v1/transit/datakey/wrapped/gold", json!({ "bits": 192 }));
    ask("random", "POST", "/v1/transit/random/16", json!({ "format": "hex" }));
    ask("hash", "POST", "/v1/transit/hash/sha2-256", json!({ "input": "aGVsbG8=" }));
    ask("hash-of-another-kind", "POST", "/v1/transit/hash/sha3-256", json!({ "input": "aGVsbG8=" }));
    ask("key-deleted-forbidden", "DELETE", "/v1/transit/keys/gold", Value::Null);
    ask("key-may-be-deleted", "POST", "/v1/transit/keys/gold/config", json!({ "deletion_allowed": true }));
    ask("key-trimmed", "POST", "/v1/transit/keys/gold/trim", oldest);
    ask("key-deleted", "DELETE", "/v1/transit/keys/gold", Value::Null);
    ask("key-exported", "GET", "/v1/transit/export/encryption-key/gold", Value::Null);
    ask("key-backed-up", "GET", "/v1/transit/backup/gold", Value::Null);
    ask("unknown-path", "POST", "/v1/transit/sign/gold", json!({}));
    ask("unknown-mount", "GET", "/v1/secret/data/gold", Value::Null);
    ask("unknown-method", "GET", "/v1/transit/encrypt/gold", Value::Null);
    ask("unknown-field", "POST", "/v1/transit/random/16", json!({ "colour": "gold" }));
    ask("token-looked-up", "GET", "/v1/auth/token/lookup-self", Value::Null);
    ask("token-renewed", "POST", "/v1/auth/token/renew-self", json!({}));
    let ask_as = |name: &str, token: &str| {
        let (method, path) = ("DELETE", "/v1/transit/keys/silver");
        let answer = world.ask_as(token, method, path, Value::Null);
        compare(name, (method, path), &Value::Null, answer.status, &answer.json);
    };
    ask_as("unknown-token", "nobody");
    ask_as("token-without-the-right", &world.add_token("narrow", &[Right::List], &["*"]));
    let health = Ask::new("GET", "/v1/sys/health").of(world.address());
    compare("healthy", ("GET", "/v1/sys/health"), &Value::Null, health.status, &health.json);
}

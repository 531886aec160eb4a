//! The errors of the specification, and the health of nodes that are not there.

use polyclave_api::Right;
use serde_json::{Value, json};

use super::{STORE, ask, done, name, of_request, plaintext, start, unsigned, world};
use crate::common::Ask;

const VALIDATION: (u16, &str) = (400, "ValidationException");

/// A request with a whole body.
fn with_body(path: &str, body: &Value) -> crate::common::Unsigned {
    crate::common::Unsigned { body: body.to_string().into_bytes(), ..unsigned(path, json!({})) }
}

#[test]
fn members_that_are_missing_or_wrong_are_named_without_what_they_say() {
    let (world, key) = world();
    let refused = |operation: &str, body: &Value| {
        let answer = with_body(&format!("{STORE}/{operation}"), body).ask(&key).of(world.address());
        assert_eq!(name(&answer), VALIDATION, "{operation} {body}: {answer:?}");
        assert!(!answer.text.contains("hush"), "{answer:?}");
    };
    let of = || of_request("hush");
    for operation in ["health", "keys/a/metadata", "keys/a/encrypt", "keys/a/decrypt"] {
        for body in [json!({}), json!({ "requestMetadata": {} }), json!([of()]), json!("hush")] {
            refused(operation, &body);
        }
        let mut numbered = json!({ "requestMetadata": of() });
        numbered["requestMetadata"]["kmsRequestId"] = 7.into();
        refused(operation, &numbered);
    }
    for member in ["awsPrincipalArn", "kmsKeyArn", "kmsOperation", "kmsRequestId"] {
        let mut body = plaintext(b"a", b"");
        body["requestMetadata"] = of();
        body["requestMetadata"].as_object_mut().expect("members").remove(member);
        refused("keys/a/encrypt", &body);
    }
    for (member, value) in [
        ("plaintext", Value::Null),
        ("plaintext", "hush!".into()),
        ("plaintext", "AAA".into()),
        ("plaintext", json!(["hush"])),
        ("encryptionAlgorithm", Value::Null),
        ("encryptionAlgorithm", "hush".into()),
        ("ciphertextDataIntegrityValueAlgorithm", "hush".into()),
        ("additionalAuthenticatedData", "hush!".into()),
    ] {
        let mut body = plaintext(b"a", b"");
        body["requestMetadata"] = of();
        body[member] = value;
        refused("keys/a/encrypt", &body);
    }
    // What a later version of KMS may say is no error.
    let mut body = plaintext(b"a", b"");
    body["requestMetadata"] = of_request("BulkEncrypt");
    body["somethingNew"] = json!({ "of": ["AWS"] });
    done((&*world, &key), "keys/a/encrypt", body);
}

#[test]
fn each_error_of_the_specification_has_its_status() {
    let (world, key) = world();
    let of = (&*world, &key);
    let refused = |path: &str, more: Value, expected: (u16, &str)| {
        let answer = ask(of, path, more);
        assert_eq!(name(&answer), expected, "{path}: {answer:?}");
    };
    let store = |operation: &str| format!("{STORE}/{operation}");
    let encrypt = || plaintext(b"a", b"");
    let usage = (400, "InvalidKeyUsageException");
    for id in ["decrypts", "short", "ecb"] {
        refused(&store(&format!("keys/{id}/encrypt")), encrypt(), usage);
    }
    let mut with_value = encrypt();
    with_value["ciphertextDataIntegrityValueAlgorithm"] = "SHA_256".into();
    refused(&store("keys/encrypts/encrypt"), with_value, usage);
    let sealed = done(of, "keys/encrypts/encrypt", encrypt());
    refused(&store("keys/encrypts/decrypt"), super::ciphertext(&sealed, b""), usage);
    // An id that the store does not have, and a key that the nodes do not have.
    let no_key = (404, "KeyNotFoundException");
    for operation in ["metadata", "encrypt"] {
        refused(&store(&format!("keys/nobody/{operation}")), encrypt(), no_key);
        refused(&store(&format!("keys/lost/{operation}")), encrypt(), no_key);
    }
    refused(&store("keys/nobody/decrypt"), encrypt(), no_key);
    refused(&store("keys/lost/decrypt"), super::ciphertext(&sealed, b""), no_key);
    refused("/us/kms/xks/v1/keys/a/encrypt", encrypt(), (404, "InvalidUriPathException"));
    refused(&store("keys/a/sign"), encrypt(), (404, "InvalidUriPathException"));
    let long = (501, "UnsupportedOperationException");
    refused(&store("keys/a/encrypt"), plaintext(&[0; 4301], b""), long);
    refused(&store("keys/a/encrypt"), plaintext(b"a", &[0; 8193]), long);
    refused(&store("keys/a/encrypt"), plaintext(&[0; 60 << 10], b""), long);
    refused("/late/kms/xks/v1/keys/a/encrypt", encrypt(), (503, "DependencyTimeoutException"));
    let encrypts = world.add_access_key("encrypts-a", &[Right::Encrypt], &["xks-a"]);
    let denied = (403, "AccessDeniedException");
    let as_it = |path: String, more: Value| ask((&*world, &encrypts), &path, more);
    assert_eq!(as_it(store("keys/a/encrypt"), encrypt()).status, 200);
    assert_eq!(as_it(store("keys/a/metadata"), json!({})).status, 200);
    let of_a = done(of, "keys/a/encrypt", encrypt());
    assert_eq!(name(&as_it(store("keys/a/decrypt"), super::ciphertext(&of_a, b""))), denied);
    assert_eq!(name(&as_it(store("keys/b/metadata"), json!({}))), denied);
    assert_eq!(name(&as_it(store("keys/b/encrypt"), encrypt())), denied);
    let mut with_value = encrypt();
    with_value["ciphertextDataIntegrityValueAlgorithm"] = "SHA_256".into();
    assert_eq!(name(&as_it(store("keys/a/encrypt"), with_value)), denied);
    for method in ["GET", "PUT", "HEAD"] {
        let answer = Ask::new(method, &store("health")).of(world.address());
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{answer:?}");
    }
    // Vault's API is where it was.
    assert_eq!(Ask::new("GET", "/v1/sys/health").of(world.address()).status, 200);
}

#[test]
fn a_key_encrypts_and_decrypts_for_the_principals_and_keys_that_its_entry_names() {
    let (world, key) = world();
    let asked = |operation: &str, body: &Value, principal: &str, kms_key: &str| {
        let mut body = body.clone();
        body["requestMetadata"] = of_request("Encrypt");
        body["requestMetadata"]["awsPrincipalArn"] = principal.into();
        body["requestMetadata"]["kmsKeyArn"] = kms_key.into();
        ask((&*world, &key), &format!("/ruled/kms/xks/v1/keys/{operation}"), body)
    };
    let (role, kms_key) = ("arn:aws:iam::1122:role/orders", "arn:aws:kms:eu-central-1:1122:key/orders");
    let denied = (403, "AccessDeniedException");
    let text = plaintext(b"a", b"");
    let sealed = asked("a/encrypt", &text, role, "any");
    assert_eq!(sealed.status, 200, "{sealed:?}");
    let sealed = super::ciphertext(&sealed.json, b"");
    assert_eq!(asked("a/decrypt", &sealed, role, "any").status, 200);
    assert_eq!(name(&asked("a/encrypt", &text, "arn:aws:iam::1122:user/orders", "any")), denied);
    assert_eq!(name(&asked("a/decrypt", &sealed, "arn:aws:iam::1123:role/orders", "any")), denied);
    assert_eq!(asked("b/encrypt", &text, "any", kms_key).status, 200);
    assert_eq!(name(&asked("b/encrypt", &text, role, &format!("{kms_key}2"))), denied);
    // Whoever makes the key of KMS looks at it first, and is another one.
    assert_eq!(asked("a/metadata", &json!({}), "any", "any").status, 200);
}

#[test]
fn the_health_tells_of_each_node_and_is_an_error_without_them() {
    let (mut world, key) = start();
    let health = |world: &crate::common::World| ask((world, &key), &format!("{STORE}/health"), json!({}));
    let all = health(&world);
    assert_eq!(all.status, 200, "{all:?}");
    assert_eq!((&all.json["xksProxyFleetSize"], &all.json["ekmVendor"]), (&json!(1), &json!("Polyclave")));
    let states = |answer: &crate::common::Answer| -> Vec<String> {
        let nodes = answer.json["ekmFleetDetails"].as_array().cloned().unwrap_or_default();
        nodes.iter().map(|node| node["healthStatus"].as_str().expect("a state").to_owned()).collect()
    };
    assert_eq!(states(&all), ["ACTIVE"; 3]);
    // It takes all three.
    world.stop_node(2);
    world.wait_until("the health is an error", |world| health(world).status == 500);
    assert_eq!(name(&health(&world)), (500, "InternalException"));
    let refused = ask((&world, &key), &format!("{STORE}/keys/a/encrypt"), plaintext(b"a", b""));
    assert_eq!(name(&refused), (500, "InternalException"), "{refused:?}");
    assert!(!refused.text.contains("node-"), "{refused:?}");
}

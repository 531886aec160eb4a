//! What is encrypted, and what it is bound to.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::VersionState;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::{KNOWN, STORE, ask, bytes, ciphertext, done, name, plaintext, start, world};
use crate::common::logged;

#[test]
fn what_was_encrypted_decrypts_with_the_same_additional_data() {
    let (world, key) = world();
    let of = (&*world, &key);
    for (length, additional) in [(0, 0), (1, 33), (32, 0), (32, 8192), (4300, 0), (4300, 8192)] {
        let (message, additional) = (vec![7; length], vec![9; additional]);
        let sealed = done(of, "keys/a/encrypt", plaintext(&message, &additional));
        assert_eq!(sealed.get("ciphertextDataIntegrityValue"), None, "it was not asked for");
        let lengths = ["ciphertext", "initializationVector", "authenticationTag", "ciphertextMetadata"]
            .map(|member| bytes(&sealed, member).len());
        assert_eq!(lengths, [length, 12, 16, 17]);
        let opened = done(of, "keys/a/decrypt", ciphertext(&sealed, &additional));
        assert_eq!(bytes(&opened, "plaintext"), message);
    }
}

/// By another implementation of GCM, with the key: the additional data are those of the specification.
#[test]
fn a_ciphertext_is_that_of_aes_gcm_with_the_lengths_of_the_specification() {
    let (world, key) = world();
    let additional = b"project=nile,department=marketing";
    let sealed = done((&*world, &key), "keys/known/encrypt", plaintext(b"Hello World!", additional));
    let of = |member: &str| bytes(&sealed, member);
    let (iv, metadata) = (of("initializationVector"), of("ciphertextMetadata"));
    let message = [of("ciphertext"), of("authenticationTag")].concat();
    let bound = [&[0, 33], &additional[..], &[17], &metadata].concat();
    let cipher = Aes256Gcm::new_from_slice(&KNOWN).expect("a key");
    let nonce = Nonce::try_from(&iv[..]).expect("12 bytes");
    let opened = cipher.decrypt(&nonce, Payload { msg: &message, aad: &bound });
    assert_eq!(opened.as_deref(), Ok(&b"Hello World!"[..]));
    // What KMS says of the one who asks may be another one later.
    let mut asked = ciphertext(&sealed, additional);
    asked["requestMetadata"] = super::of_request("ReEncrypt");
    asked["requestMetadata"]["awsPrincipalArn"] = "AWS Internal".into();
    asked["requestMetadata"]["kmsKeyArn"] = "another".into();
    done((&*world, &key), "keys/known/decrypt", asked);
}

#[test]
fn the_value_of_integrity_is_of_what_was_sent() {
    let (world, key) = world();
    for additional in [&b""[..], b"project=nile"] {
        let mut asked = plaintext(b"a data key", additional);
        asked["ciphertextDataIntegrityValueAlgorithm"] = "SHA_256".into();
        let sealed = done((&*world, &key), "keys/a/encrypt", asked);
        let of = |member: &str| bytes(&sealed, member);
        let whole = [
            additional.to_vec(),
            of("ciphertextMetadata"),
            of("initializationVector"),
            of("ciphertext"),
            of("authenticationTag"),
        ];
        assert_eq!(of("ciphertextDataIntegrityValue"), digest(&SHA256, &whole.concat()).as_ref());
        let opened = done((&*world, &key), "keys/a/decrypt", ciphertext(&sealed, additional));
        assert_eq!(bytes(&opened, "plaintext"), b"a data key");
    }
}

#[test]
fn whatever_is_changed_of_a_ciphertext_or_missing_is_one_error() {
    let (world, key) = world();
    let of = (&*world, &key);
    let sealed = done(of, "keys/a/encrypt", plaintext(b"a data key", b"project=nile"));
    let right = ciphertext(&sealed, b"project=nile");
    let mut texts = Vec::new();
    let mut refused = |key: &str, asked: &Value| {
        let answer = ask(of, &format!("{STORE}/keys/{key}/decrypt"), asked.clone());
        assert_eq!(name(&answer), (400, "InvalidCiphertextException"), "{asked}: {answer:?}");
        texts.push(answer.json["errorMessage"].clone());
    };
    let members = [
        "ciphertext",
        "ciphertextMetadata",
        "initializationVector",
        "authenticationTag",
        "additionalAuthenticatedData",
    ];
    for member in members {
        let was = bytes(&right, member);
        let change = |changed: Value| {
            let mut asked = right.clone();
            asked[member] = changed;
            asked
        };
        for at in [0, was.len() / 2, was.len() - 1] {
            let mut bytes = was.clone();
            bytes[at] ^= 1;
            refused("a", &change(STANDARD.encode(bytes).into()));
        }
        refused("a", &change(STANDARD.encode(&was[1..]).into()));
        refused("a", &change(STANDARD.encode([&was[..], &[0]].concat()).into()));
        refused("a", &change("no Base64".into()));
        refused("a", &change(Value::Null));
    }
    // Of another key, and with the metadata as a part of the additional data.
    refused("b", &right);
    let bare = done(of, "keys/a/encrypt", plaintext(b"a data key", b""));
    let mut moved = ciphertext(&bare, &bytes(&bare, "ciphertextMetadata"));
    moved.as_object_mut().expect("members").remove("ciphertextMetadata");
    refused("a", &moved);
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    done(of, "keys/a/decrypt", right);
}

#[test]
fn versions_follow_each_other_and_old_ciphertexts_stay() {
    let (world, key) = start();
    let of = (&world, &key);
    let old = done(of, "keys/rotated/encrypt", plaintext(b"old", b""));
    let status = |expected: &str| {
        let told = done(of, "keys/rotated/metadata", json!({}));
        let expected =
            json!({ "keySpec": "AES_256", "keyUsage": ["ENCRYPT", "DECRYPT"], "keyStatus": expected });
        assert_eq!(told, expected);
    };
    status("ENABLED");
    world.client().rotate("xks-rotated").expect("rotated");
    // The metadata of a key are those of now, and the gateway takes its version from them.
    status("ENABLED");
    let new = done(of, "keys/rotated/encrypt", plaintext(b"new", b""));
    assert_ne!(old["ciphertextMetadata"], new["ciphertextMetadata"]);
    for (sealed, message) in [(&old, "old"), (&new, "new")] {
        let opened = done(of, "keys/rotated/decrypt", ciphertext(sealed, b""));
        assert_eq!(bytes(&opened, "plaintext"), message.as_bytes());
    }
    // A version that is retired a moment later encrypts nothing any more, and decrypts until it is
    // compromised.
    let asked = |operation: &str, more: Value| {
        let answer = ask(of, &format!("{STORE}/keys/rotated/{operation}"), more);
        name(&answer).1.to_owned()
    };
    let client = world.client();
    client.retire("xks-rotated", 2, VersionState::Deactivated).expect("retired");
    assert_eq!(asked("encrypt", plaintext(b"new", b"")), "InvalidStateException");
    status("DISABLED");
    done(of, "keys/rotated/decrypt", ciphertext(&new, b""));
    client.retire("xks-rotated", 2, VersionState::Compromised).expect("retired");
    client.configure("xks-rotated", 2, false).expect("configured");
    assert_eq!(asked("decrypt", ciphertext(&old, b"")), "InvalidStateException");
}

#[test]
fn no_log_has_a_plaintext_and_requests_of_kms_are_found_in_it() {
    let (world, key) = world();
    let of = (&*world, &key);
    let message = b"a message that nobody logs";
    let mut asked = plaintext(message, b"");
    asked["requestMetadata"] = super::of_request("Encrypt");
    asked["requestMetadata"]["kmsRequestId"] = "4112f4d6-of-the-log\nforged line".into();
    let sealed = done(of, "keys/a/encrypt", asked);
    done(of, "keys/a/decrypt", ciphertext(&sealed, b""));
    let mut broken = plaintext(message, b"");
    broken["plaintext"] = format!("{}!", STANDARD.encode(message)).into();
    assert_eq!(ask(of, &format!("{STORE}/keys/a/encrypt"), broken).status, 400);
    let log = logged();
    assert!(log.contains("4112f4d6-of-the-log\\nforged line") && log.contains("user/Alice"), "{log}");
    for secret in ["a message that", &STANDARD.encode(message), &key.secret] {
        assert!(!log.contains(secret), "{secret} is logged");
    }
    // The nodes log the name of the access key.
    assert!(world.audit_log(0).contains("for=kms"));
}

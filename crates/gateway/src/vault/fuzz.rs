//! Fuzz target: bodies of requests with messages, and of requests that make or change keys.

use axum::http::{Method, Uri};
use polyclave_api::MAX_ADDITIONAL_DATA;
use polyclave_harness::fuzz;
use serde_json::json;
use zeroize::Zeroizing;

use super::ciphertext;
use super::fields::Fields;
use super::item::{bound_to, has_context, version_of};
use super::keys::type_wanted;
use super::route::Call;
use super::types::Form;

const WORDS: [&str; 12] = [
    "\"batch_input\":[{",
    "\"context\":\"",
    "\"associated_data\":\"",
    "\"ciphertext\":\"vault:v1:",
    "\"key_version\":",
    "\"derived\":true",
    "\"convergent_encryption\":\"1\"",
    "\"type\":\"aes128-gcm96\"",
    "\"min_available_version\":",
    "AAAA",
    "\\u0041",
    "null",
];

fn valid() -> Vec<Vec<u8>> {
    let item = json!({ "ciphertext": "vault:v2:AAAA", "context": "Y2l0eQ==", "associated_data": "cm93", "key_version": 2 });
    let key = json!({ "type": "aes256-gcm96", "derived": true, "convergent_encryption": "true" });
    [
        json!({ "batch_input": [item, { "context": "AAAA" }] }),
        item,
        key,
        json!({ "min_available_version": "3" }),
    ]
    .map(|body| body.to_string().into_bytes())
    .into()
}

/// What is read is within the limits. A context that is missing or wrong binds no message of a derived key,
/// and what is bound has both parts.
#[test]
fn fuzz_bodies() {
    fuzz!("vault-bodies", &WORDS, valid(), |bytes: &[u8]| {
        for path in ["encrypt/k", "decrypt/k", "keys/k", "keys/k/trim"] {
            let uri: Uri = format!("/v1/transit/{path}").parse().expect("a path");
            let call = Call::of(&Method::POST, &uri).expect("it is served");
            let Ok(fields) = Fields::parse(Zeroizing::new(bytes.to_vec()), call.fields()) else { continue };
            let _ = (type_wanted(&fields, true), type_wanted(&fields, false));
            let _ = fields.number("min_available_version");
            let items = fields.batch().ok().flatten().unwrap_or_default();
            for item in items.iter().chain([&fields]) {
                let _ = version_of(item);
                if let Ok(Some(text)) = item.text("ciphertext") {
                    let _ = ciphertext::parse(text);
                }
                for form in [Form::Plain, Form::Derived, Form::Convergent] {
                    let Ok(bound) = bound_to(item, form) else { continue };
                    assert!(bound.len() <= MAX_ADDITIONAL_DATA);
                    if form.is_derived() {
                        assert_eq!(has_context(item), Ok(true));
                        let at = usize::from(u16::from_be_bytes([bound[0], bound[1]]));
                        let behind = usize::from(u16::from_be_bytes([bound[2 + at], bound[3 + at]]));
                        assert!(at > 0 && bound.len() == 4 + at + behind);
                    }
                }
            }
        }
    });
}

//! Fuzz targets: tokens of strangers, and documents of issuers.

use polyclave_harness::{fuzz, within_memory};

use super::compact::Compact;
use super::public_keys::PublicKeys;
use super::source::keys_url;
use super::tests::EXAMPLES;

/// What tokens and keys are made of.
const WORDS: [&str; 24] = [
    ".",
    "=",
    "-_",
    "eyJhbGciOiJub25lIn0",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\u0061",
    "null",
    "1e999",
    "\"alg\":",
    "\"kid\":",
    "\"crit\":",
    "\"keys\":",
    "\"kty\":",
    "\"n\":",
    "\"x\":",
    "\"issuer\":",
    "\"jwks_uri\":\"https://",
    "-----BEGIN PUBLIC KEY-----\n",
];

/// No bytes panic or take much memory, and nothing is signed but what the issuer has signed.
#[test]
fn fuzz_identity_tokens() {
    let keys = EXAMPLES.map(|(_, keys)| PublicKeys::parse(keys.as_bytes()).expect("keys"));
    let valid = EXAMPLES.map(|(token, _)| token.as_bytes().to_vec());
    fuzz!("identity-tokens", &WORDS, valid.to_vec(), |bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        within_memory((1 << 20) + 64 * text.len(), || {
            let Ok(token) = Compact::parse(text) else { return };
            let claims = token.claims().map(|claims| super::strict::object(&claims));
            for keys in &keys {
                if keys.verify(&token).is_ok() {
                    assert!(EXAMPLES.iter().any(|(known, _)| *known == text), "forged: {text}");
                    assert!(claims.is_ok());
                }
            }
        });
    });
}

#[test]
fn fuzz_keys_of_issuers() {
    let pem = rcgen::KeyPair::generate().expect("a key").public_key_pem();
    let discovery = r#"{"issuer": "https://a", "jwks_uri": "https://a/keys"}"#;
    let mut valid: Vec<Vec<u8>> = EXAMPLES.map(|(_, keys)| keys.into()).into();
    valid.extend([pem.into_bytes(), discovery.into()]);
    fuzz!("keys-of-issuers", &WORDS, valid, |bytes: &[u8]| {
        within_memory((1 << 20) + 64 * bytes.len(), || {
            if let Ok(keys) = PublicKeys::parse(bytes) {
                assert!(keys.usable() > 0);
            }
            if let Ok(url) = keys_url(bytes, "https://a") {
                assert!(url.starts_with("https://"));
            }
        });
    });
}

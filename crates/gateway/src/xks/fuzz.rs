//! Fuzz targets: paths, and the bodies of all requests.

use polyclave_harness::fuzz;
use serde_json::json;

use super::requests::{Decrypt, Encrypt, Metadata, read_health, read_metadata};
use super::route::{Route, is_of_a_store};
use super::sealed::version_of;

/// Members, values and signs of requests.
const WORDS: [&str; 17] = [
    "\"requestMetadata\":{",
    "\"awsPrincipalArn\":",
    "\"kmsKeyArn\":",
    "\"kmsOperation\":",
    "\"kmsRequestId\":",
    "\"plaintext\":",
    "\"ciphertext\":",
    "\"ciphertextMetadata\":",
    "\"additionalAuthenticatedData\":",
    "\"initializationVector\":",
    "\"authenticationTag\":",
    "\"ciphertextDataIntegrityValueAlgorithm\":\"SHA_256\"",
    "\"AES_GCM\"",
    "\"AAAA\"",
    "\\u0000",
    "null",
    "1e999",
];

fn valid() -> Vec<Vec<u8>> {
    let of = json!({
        "awsPrincipalArn": "arn:aws:iam::123456789012:user/Alice",
        "kmsKeyArn": "arn:aws:kms:us-east-2:123456789012:/key/1",
        "kmsOperation": "Encrypt",
        "kmsRequestId": "4112f4d6",
    });
    let encrypt = json!({
        "requestMetadata": of,
        "plaintext": "SGVsbG8gV29ybGQh",
        "encryptionAlgorithm": "AES_GCM",
        "additionalAuthenticatedData": "AAAA",
        "ciphertextDataIntegrityValueAlgorithm": "SHA_256",
    });
    let decrypt = json!({
        "requestMetadata": of,
        "ciphertext": "ghxkK1txeDNn3q8Y",
        "ciphertextMetadata": "AQcHBwcHBwcHBwcHBwcHBwc=",
        "initializationVector": "HMrlRw85cAJUd5Ax",
        "authenticationTag": "vBxN2ncH1oEkR8WVXpmyYQ==",
        "encryptionAlgorithm": "AES_GCM",
    });
    [encrypt, decrypt, json!({ "requestMetadata": of })].map(|body| body.to_string().into_bytes()).into()
}

/// What is read is within the limits, and an error says nothing of what was sent.
#[test]
fn fuzz_requests() {
    fuzz!("xks-requests", &WORDS, valid(), |bytes: &[u8]| {
        let mut noted = Metadata::default();
        if let Ok(read) = Encrypt::read(bytes, &mut noted) {
            assert!(read.plaintext.len() <= 4300 && read.additional.len() <= 8192);
        }
        if let Ok(read) = Decrypt::read(bytes, &mut noted) {
            assert!(matches!(read.iv, 12 | 16) && read.message.len() <= 16 + 4300 + 16);
            assert!(read.message.len() >= read.iv + 16 && read.additional.len() <= 8192);
            assert!(version_of(&read.metadata).is_none_or(|id| read.metadata[1..] == id));
        }
        let read = [read_health(bytes), read_metadata(bytes)];
        read.iter().for_each(|outcome| {
            let _ = outcome.as_ref().map_err(|e| e.response());
        });
    });
}

/// Every path is one of a store or of another API, and what is read of it is in it.
#[test]
fn fuzz_paths() {
    let valid = ["/kms/xks/v1/health", "/eu/kms/xks/v1/keys/a/encrypt", "/kms/xks/v1/keys/a-b/metadata"];
    let valid = valid.map(|path| path.as_bytes().to_vec()).into();
    let words = ["/kms/xks/v1", "/keys/", "/encrypt", "/eu", "%2f", "/../"];
    fuzz!("xks-paths", &words, valid, |bytes: &[u8]| {
        let Ok(path) = std::str::from_utf8(bytes) else { return };
        let stores = ["/kms/xks/v1", "/eu/kms/xks/v1"];
        if let Ok(route) = Route::of("POST", path, stores.into_iter()) {
            assert!(is_of_a_store(path), "{path}");
            let rest = path.strip_prefix(stores[route.store]).expect("it begins with it");
            assert!(rest.starts_with('/') && !rest.contains("//"), "{path}");
            assert!(Route::of("GET", path, stores.into_iter()).is_err());
        }
    });
}

//! A fuzz target: the headers of a signed request.

use axum::http::HeaderValue;
use polyclave_harness::fuzz;
use time::Duration;

use super::*;

/// What is read of headers can be judged: no header that they name is missing, and nobody's signature is
/// taken.
#[test]
fn fuzz_headers() {
    let signature = "0".repeat(64);
    let valid = format!(
        "AWS4-HMAC-SHA256 Credential=POLYABCDEFGHIJKLMNOP/20150830/eu-central-1/kms-xks-proxy/aws4_request, \
         SignedHeaders=host;x-amz-date, Signature={signature}\n20150830T123600Z"
    );
    let words =
        ["Credential=", "SignedHeaders=", "Signature=", ", ", "/", ";", "host", "x-amz-", "\n", "T", "Z"];
    fuzz!("signatures", &words, vec![valid.into_bytes()], |bytes: &[u8]| {
        let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_static("gateway"));
        for (name, line) in [AUTHORIZATION.as_str(), DATE].into_iter().zip(&mut lines) {
            if let Ok(value) = HeaderValue::from_bytes(line) {
                headers.insert(name, value);
            }
        }
        let Ok(claim) = Claim::of(&headers) else { return };
        assert!(claim.signed.iter().all(|name| headers.contains_key(*name)));
        let at = read_time("20150830T123600Z").expect("a time");
        let _ = claim.check_time(at, Duration::minutes(5));
        let signed = Signed { method: "POST", path: "/", query: "", headers: &headers, body: b"" };
        assert_eq!(claim.verify("polyclave/secret", &signed), Err(Unsigned::Wrong));
    });
}

//! Fuzz target: answers of a gateway.

use hyper::StatusCode;
use polyclave_harness::fuzz;

use super::{NotRewrapped, read};

/// There is a result for each ciphertext or an error, and each is one line, so that a file of lines stays
/// one.
#[test]
fn fuzz_answers() {
    let valid = [
        r#"{"data":{"batch_results":[{"ciphertext":"vault:v2:AAAA","key_version":2},{"error":"no prefix"}]}}"#,
        r#"{"errors":["1 error occurred:\n\t* permission denied\n\n"]}"#,
    ];
    let words =
        ["\"batch_results\":[", "{\"ciphertext\":\"vault:v1:\"}", "\\n", "\\u000a", "null", "\"error\":"];
    let valid = valid.map(|answer| answer.as_bytes().to_vec()).into();
    fuzz!("rewrap-answers", &words, valid, |bytes: &[u8]| {
        for (status, is_later) in [(200, false), (400, false), (429, true), (503, true)] {
            let status = StatusCode::from_u16(status).expect("a status");
            match read(status, bytes, 2) {
                Ok(results) => {
                    assert!(!is_later && results.len() == 2);
                    for line in results.iter().map(|one| one.as_ref().unwrap_or_else(|error| error)) {
                        assert!(!line.contains(['\n', '\r']), "{line}");
                    }
                }
                Err(NotRewrapped::Later(_)) => assert!(is_later),
                Err(NotRewrapped::Never(_)) => assert!(!is_later),
            }
        }
    });
}

#[test]
fn an_answer_is_read_as_it_was_meant() {
    let whole = |status: StatusCode, answer: &str| read(status, answer.as_bytes(), 2);
    let both = r#"{"data":{"batch_results":[{"ciphertext":"vault:v2:AAAA"},{"error":"no\n prefix"}]}}"#;
    let expected = Ok(vec![Ok("vault:v2:AAAA".into()), Err("no prefix".into())]);
    assert_eq!(whole(StatusCode::BAD_REQUEST, both), expected, "some failed");
    let denied = whole(StatusCode::FORBIDDEN, r#"{"errors":["permission denied"]}"#);
    let why = "the gateway answered 403: permission denied".to_owned();
    assert_eq!(denied, Err(NotRewrapped::Never(why)));
    assert!(matches!(whole(StatusCode::SERVICE_UNAVAILABLE, both), Err(NotRewrapped::Later(_))));
    assert!(matches!(whole(StatusCode::BAD_GATEWAY, "<html>"), Err(NotRewrapped::Later(_))));
    let fewer = r#"{"data":{"batch_results":[{"ciphertext":"vault:v2:AAAA"}]}}"#;
    assert!(matches!(whole(StatusCode::OK, fewer), Err(NotRewrapped::Never(_))));
}

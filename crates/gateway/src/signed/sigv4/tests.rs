use axum::http::{HeaderName, HeaderValue};

use super::*;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

type Headers = Vec<(&'static str, String)>;

fn map(headers: &Headers) -> HeaderMap {
    let pair = |(name, value): &(&'static str, String)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
    };
    headers.iter().map(pair).collect()
}

/// A request of AWS's suite of examples: its headers beside host and date.
fn of_suite(more: &[(&'static str, &str)], signed: &str, signature: &str) -> Headers {
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
         SignedHeaders={signed}, Signature={signature}"
    );
    let mut headers = vec![
        ("host", "example.amazonaws.com".to_owned()),
        ("x-amz-date", "20150830T123600Z".to_owned()),
        ("authorization", authorization),
    ];
    headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    headers
}

fn verified(
    secret: &str,
    headers: &Headers,
    (method, uri): (&str, &str),
    body: &str,
) -> Result<(), Unsigned> {
    let headers = map(headers);
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let body = body.as_bytes();
    Claim::of(&headers)?.verify(secret, &Signed { method, path, query, headers: &headers, body })
}

/// "Signature Version 4 test suite" of AWS: get-vanilla, post-vanilla, get-vanilla-query-order-key-case,
/// post-x-www-form-urlencoded, get-header-value-trim.
#[test]
fn the_published_examples_of_aws_are_verified() {
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let spaces = [("my-header1", " value1"), ("my-header2", " \"a   b   c\"")];
    for (what, body, more, signed, signature) in [
        (
            ("GET", "/"),
            "",
            &[][..],
            "host;x-amz-date",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            ("POST", "/"),
            "",
            &[],
            "host;x-amz-date",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            ("GET", "/?Param2=value2&Param1=value1"),
            "",
            &[],
            "host;x-amz-date",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            ("POST", "/"),
            "Param1=value1",
            &form,
            "content-type;host;x-amz-date",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            ("GET", "/"),
            "",
            &spaces,
            "host;my-header1;my-header2;x-amz-date",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
    ] {
        let headers = of_suite(more, signed, signature);
        assert_eq!(verified(SECRET, &headers, what, body), Ok(()), "{what:?}");
        assert_eq!(verified(&SECRET[1..], &headers, what, body), Err(Unsigned::Wrong), "{what:?}");
        let body = format!("{body} ");
        assert_eq!(verified(SECRET, &headers, what, &body), Err(Unsigned::Wrong), "{what:?}");
    }
}

/// Signatures of botocore 1.44.8 for its client `payment-cryptography-data`.
#[test]
fn what_botocore_signs_is_verified_and_no_byte_of_it_can_be_changed() {
    let secret = "polyclave.wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY00";
    let pin = r#"{"VerificationKeyIdentifier": "alias/pvk", "EncryptionKeyIdentifier": "alias/pek", "#
        .to_owned()
        + r#""PrimaryAccountNumber": "1122334455667788", "PinBlockFormat": "ISO_FORMAT_0", "#
        + r#""EncryptedPinBlock": "AC17DC148BDA645E", "VerificationAttributes": "#
        + r#"{"VisaPin": {"PinVerificationKeyIndex": 3, "VerificationValue": "4021"}}}"#;
    let data = r#"{"CipherText": "00112233445566778899aabbccddeeff", "#.to_owned()
        + r#""DecryptionAttributes": {"Symmetric": {"Mode": "ECB"}}}"#;
    let arn = "/keys/arn%3Aaws%3Apayment-cryptography%3Aeu-central-1%3A111122223333%3Akey%2F\
               00112233445566778899aabbccddeeff/decrypt";
    for (path, body, signature) in [
        ("/pindata/verify", &pin, "a3a9447b864c3b3d1dc441f7e820f2c8852ba3ce21cdd148b980654acc32da98"),
        (arn, &data, "2e7f41f695795088707c27e0c06d5a7d97c0426165b3bd9e16ef9cb44f48d7f8"),
    ] {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=POLYABCDEFGHIJKLMNOP/20261127/eu-central-1/payment-cryptography/\
             aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature={signature}"
        );
        let headers: Headers = vec![
            ("host", "127.0.0.1:8200".into()),
            ("content-type", "application/json".into()),
            ("x-amz-date", "20261127T130840Z".into()),
            ("authorization", authorization),
        ];
        assert_eq!(verified(secret, &headers, ("POST", path), body), Ok(()), "{path}");
        let of_map = map(&headers);
        let claim = Claim::of(&of_map).expect("a claim");
        assert_eq!((claim.id, claim.region), ("POLYABCDEFGHIJKLMNOP", "eu-central-1"));
        assert_eq!(claim.service, "payment-cryptography");

        let wrong = |headers: &Headers, what: (&str, &str), body: &str| {
            assert_eq!(verified(secret, headers, what, body), Err(Unsigned::Wrong), "{what:?}");
        };
        wrong(&headers, ("PUT", path), body);
        wrong(&headers, ("POST", &path.replace('d', "e")), body);
        wrong(&headers, ("POST", &format!("{path}?a=b")), body);
        wrong(&headers, ("POST", path), &body.replacen('1', "2", 1));
        for at in [0, 1] {
            let mut other = headers.clone();
            other[at].1.push('x');
            wrong(&other, ("POST", path), body);
        }
        // A header that is not signed changes nothing; a second one of a name that is signed does.
        let mut more = headers.clone();
        more.push(("accept", "*/*".into()));
        assert_eq!(verified(secret, &more, ("POST", path), body), Ok(()));
        more.push(("content-type", "text/plain".into()));
        wrong(&more, ("POST", path), body);
    }
}

#[test]
fn what_a_signature_does_not_cover_is_refused() {
    let signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    let of = |headers: Headers| match Claim::of(&map(&headers)) {
        Ok(_) => panic!("it is taken: {headers:?}"),
        Err(Unsigned::Incomplete(_)) => {}
        Err(other) => panic!("{other:?}: {headers:?}"),
    };
    for signed in
        ["host", "x-amz-date", "x-amz-date;host", "host;host;x-amz-date", "host;other;x-amz-date", ""]
    {
        of(of_suite(&[], signed, signature));
    }
    of(of_suite(&[("x-amz-target", "Other.Operation")], "host;x-amz-date", signature));
    of(of_suite(&[("x-amz-content-sha256", "UNSIGNED-PAYLOAD")], "host;x-amz-date", signature));
    for (name, value) in [
        ("host", "other"),
        ("x-amz-date", "20150830T123601Z"),
        ("authorization", "AWS4-HMAC-SHA256 Credential=a"),
        ("content-encoding", "gzip"),
    ] {
        of(of_suite(&[(name, value)], "host;x-amz-date", signature));
    }
    for signature in ["", "5fa0", &signature.to_ascii_uppercase(), &"g".repeat(64)] {
        of(of_suite(&[], "host;x-amz-date", signature));
    }
    let with = |authorization: &str| {
        let mut headers = of_suite(&[], "host;x-amz-date", signature);
        headers[2].1 = authorization.into();
        headers
    };
    let whole = with("").remove(0).1;
    assert_eq!(whole, "example.amazonaws.com");
    let right = of_suite(&[], "host;x-amz-date", signature).remove(2).1;
    for wrong in [
        "Bearer abc".to_owned(),
        "AWS4-HMAC-SHA256".to_owned(),
        right.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
        right.replace("20150830", "20150831"),
        right.replace("/aws4_request", "/aws4"),
        right.replace("us-east-1", "US East"),
        right.replace("us-east-1", ""),
        format!("{right}, Signature={signature}"),
        format!("{right}, Other=1"),
        right.replace("SignedHeaders=host;x-amz-date, ", ""),
    ] {
        of(with(&wrong));
    }
    let mut without = of_suite(&[], "host;x-amz-date", signature);
    without.remove(1);
    of(without);
    assert_eq!(Claim::of(&HeaderMap::new()).err(), Some(Unsigned::Missing));
}

#[test]
fn the_hash_that_a_caller_announces_counts_for_nothing() {
    let hash = hex::encode(digest(&SHA256, b"Param1=value1"));
    let secret = SECRET;
    for announced in ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", &hash] {
        let headers = of_suite(
            &[("x-amz-content-sha256", announced)],
            "host;x-amz-content-sha256;x-amz-date",
            &"0".repeat(64),
        );
        assert_eq!(verified(secret, &headers, ("POST", "/"), "other"), Err(Unsigned::Wrong));
    }
}

#[test]
fn a_signature_is_good_for_some_time_before_and_after() {
    let headers = map(&of_suite(&[], "host;x-amz-date", &"0".repeat(64)));
    let claim = Claim::of(&headers).expect("a claim");
    let at = read_time("20150830T123600Z").expect("a time");
    for (minutes, expected) in [
        (0, Ok(at)),
        (15, Ok(at)),
        (-15, Ok(at)),
        (16, Err(Unsigned::Expired)),
        (-16, Err(Unsigned::Expired)),
    ] {
        assert_eq!(
            claim.check_time(at + Duration::minutes(minutes), Duration::minutes(15)),
            expected,
            "{minutes}"
        );
    }
    for wrong in [
        "20150830T123600",
        "20150830 123600Z",
        "20151330T123600Z",
        "20150230T123600Z",
        "20150830T243600Z",
        "2015+830T123600Z",
        "20150830T12360ÄZ",
        "",
    ] {
        assert_eq!(read_time(wrong), None, "{wrong}");
    }
}

//! Examples of the RFCs, keys in PEM, and what makes a signature wrong.

use serde_json::json;

use super::compact::Compact;
use super::public_keys::PublicKeys;
use super::refused::Refused;

/// RFC 7515, appendices A.2 and A.3; RFC 8037, appendix A.4: the token, and the key.
pub(super) const EXAMPLES: [(&str, &str); 3] = [
    (
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetd\
         gtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLg\
         rnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYE\
         UipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
        r#"{"keys": [{"kty": "RSA", "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ", "e": "AQAB"}]}"#,
    ),
    (
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L3\
         8VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        r#"{"keys": [{"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#,
    ),
    (
        "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sV\
         vpAr_MuM0KAg",
        r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
    ),
];

fn verify(token: &str, keys: &str) -> Result<(), Refused> {
    let token = Compact::parse(token)?;
    PublicKeys::parse(keys.as_bytes()).expect("keys").verify(&token)
}

#[test]
fn the_examples_of_the_rfcs_are_signed_with_their_keys_and_with_no_other() {
    for (number, (token, keys)) in EXAMPLES.iter().enumerate() {
        assert_eq!(verify(token, keys), Ok(()), "{number}");
        for (other, (_, others)) in EXAMPLES.iter().enumerate().filter(|(other, _)| *other != number) {
            assert_eq!(verify(token, others), Err(Refused::OtherKind), "{number} with {other}");
        }
    }
}

#[test]
fn a_token_of_which_one_character_differs_is_not_what_was_signed() {
    for (token, keys) in EXAMPLES {
        for at in 0..token.len() {
            let mut altered = token.as_bytes().to_vec();
            altered[at] = if altered[at] == b'A' { b'E' } else { b'A' };
            let altered = String::from_utf8(altered).expect("text");
            assert!(verify(&altered, keys).is_err(), "{at}: {altered}");
        }
    }
}

#[test]
fn keys_in_pem_have_no_names_and_fit_any() {
    let pem = |algorithm: &'static rcgen::SignatureAlgorithm| {
        rcgen::KeyPair::generate_for(algorithm).expect("a key").public_key_pem()
    };
    let three = [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519]
        .map(pem)
        .concat();
    let keys = PublicKeys::parse(three.as_bytes()).expect("keys");
    assert_eq!(keys.usable(), 3);
    assert!(keys.knows(None) && keys.knows(Some("any")));
    for (token, _) in &EXAMPLES[1..] {
        let token = Compact::parse(token).expect("a token");
        assert_eq!(keys.verify(&token), Err(Refused::Signature));
    }
    assert_eq!(keys.verify(&Compact::parse(EXAMPLES[0].0).expect("a token")), Err(Refused::OtherKind));
}

#[test]
fn documents_without_a_key_that_can_be_used_say_what_they_lack() {
    let private = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let damaged = "-----BEGIN PUBLIC KEY-----\nMEgCQQ==\n-----END PUBLIC KEY-----\n";
    for (document, part) in [
        ("", "no public key in PEM"),
        (&private, "no public key in PEM"),
        (damaged, "it is damaged"),
        ("{", "is no JSON object"),
        (r#"{"keys": {}}"#, "no list \"keys\""),
        (r#"{"keys": [1, {"use": "enc"}, {"key_ops": ["sign"], "kty": "RSA"}]}"#, "no key for signatures"),
        (r#"{"keys": [{"kty": "RSA", "n": "AQAB"}]}"#, "a number of it is missing"),
        (r#"{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA==", "y": "AA"}]}"#, "no base64url"),
        (r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}"#, "has 32 bytes"),
    ] {
        let error = PublicKeys::parse(document.as_bytes()).expect_err("refused");
        assert!(error.contains(part), "{document}: {error}");
    }
    let long = [EXAMPLES[0].1, &" ".repeat(256 << 10)].concat();
    assert!(PublicKeys::parse(long.as_bytes()).expect_err("refused").contains("longer than 256 KiB"));
}

#[test]
fn an_exponent_with_which_every_signature_is_right_is_no_exponent() {
    let keys = EXAMPLES[0].1;
    for (exponent, is_one) in [
        ("AQ", false),
        ("AA", false),
        ("Ag", false),
        ("", false),
        ("Aw", true),
        ("AAEAAQ", true),
        // 2^33 - 1, the last that ring takes, and 2^33 + 1.
        ("Af____8", true),
        ("AgAAAAE", false),
        ("_____w", true),
        ("AQAAAAAB", false),
    ] {
        let changed = keys.replace("AQAB\"}", &format!("{exponent}\"}}"));
        assert_eq!(PublicKeys::parse(changed.as_bytes()).is_ok(), is_one, "{exponent}");
    }
}

#[test]
fn a_token_without_the_name_of_a_key_is_not_tried_with_every_key() {
    let key: serde_json::Value = serde_json::from_str(EXAMPLES[1].1).expect("JSON");
    let keys = |number: usize| {
        let named = (0..number).map(|kid| {
            let mut key = key["keys"][0].clone();
            key["kid"] = json!(kid.to_string());
            key
        });
        PublicKeys::parse(json!({ "keys": named.collect::<Vec<_>>() }).to_string().as_bytes()).expect("keys")
    };
    let token = Compact::parse(EXAMPLES[1].0).expect("a token");
    assert_eq!(keys(8).verify(&token), Ok(()));
    assert_eq!(keys(9).verify(&token), Err(Refused::TooManyKeys(8)));
}

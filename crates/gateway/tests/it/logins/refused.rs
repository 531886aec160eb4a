//! What is wrong with tokens of issuers: each is refused, with a message that says what it was.

use ring::hmac;
use serde_json::{Value, json};

use super::{Files, ISSUER, alone, ask, caller, claims, log_in, login, token_of, with};
use crate::common::{Signer, World, encode, jwks, now};

/// What is refused of one login: each token with a part of the message. Each caller is wrong some times only.
fn assert_refused(world: &World, cases: &[(String, &str)]) {
    for (number, (token, part)) in cases.iter().enumerate() {
        let body = json!({ "role": "ci", "jwt": token });
        let refused = ask("/v1/auth/jwt/login", &body).from(caller(number / 10), world.address());
        let shown: String = token.chars().take(60).collect();
        assert_eq!(refused.status, 400, "{part}: {shown}: {refused:?}");
        let errors = refused.errors();
        assert!(errors.starts_with("error validating token: ") && errors.contains(part), "{part}: {errors}");
        let parts = token.split('.').filter(|part| part.len() > 8);
        parts.for_each(|part| assert!(!errors.contains(part), "it shows the token: {errors}"));
    }
}

#[test]
fn the_claims_of_a_token_have_to_be_right() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let world = alone(&files.login(&[&signer], "leeway_seconds = 20", ""));
    let token = |name: &str, value: Value| signer.token(&with(name, value));
    let names = ["iss", "sub", "aud", "exp"];
    let mut cases: Vec<(String, &str)> =
        names.map(|name| (token(name, Value::Null), "it has no claim")).into();
    cases.extend([
        (token("exp", json!(now() - 30)), "it has expired"),
        (token("exp", json!(now() - 100_000)), "it has expired 100"),
        (token("exp", json!("2030-01-01")), "\"exp\" is not what it has to be"),
        (token("exp", json!((now() + 300) * 1000)), "\"exp\" is not what it has to be"),
        (token("exp", json!(-1)), "\"exp\" is not what it has to be"),
        (token("exp", json!(1e300)), "\"exp\" is not what it has to be"),
        (token("nbf", json!(now() + 60)), "(\"nbf\")"),
        (token("nbf", json!([])), "\"nbf\" is not what it has to be"),
        (token("iat", json!(now() + 60)), "(\"iat\")"),
        (token("iss", json!("https://issuer.example/")), "another issuer (\"iss\")"),
        (token("iss", json!([ISSUER])), "\"iss\" is not what it has to be"),
        (token("aud", json!("other")), "other services (\"aud\")"),
        (token("aud", json!(["polyclave2", "Polyclave"])), "other services (\"aud\")"),
        (token("aud", json!([])), "other services (\"aud\")"),
        (token("aud", json!(["polyclave", 1])), "\"aud\" is not what it has to be"),
        (token("aud", json!({ "polyclave": true })), "\"aud\" is not what it has to be"),
        (token("sub", json!("service:orders")), "subject (\"sub\") is none of this role"),
        (token("sub", json!("")), "\"sub\" is not what it has to be"),
        (token("sub", json!("project:".repeat(100))), "\"sub\" is not what it has to be"),
    ]);
    assert_refused(&world, &cases);
    // Clocks may differ by the leeway, and numbers may have fractions.
    for (name, value) in [
        ("exp", json!(now() - 5)),
        ("nbf", json!(now() + 15)),
        ("iat", json!(now() + 15)),
        ("exp", json!(now() as f64 + 100.5)),
        ("aud", json!("polyclave")),
        ("iat", Value::Null),
        ("nbf", Value::Null),
    ] {
        token_of(&log_in(&world, &token(name, value)));
    }
}

#[test]
fn claims_that_a_role_asks_for_have_to_be_there() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let of_role = "claims = { groups = ['dev', 'op?'], protected = ['true'], '/a~1b/x' = ['1'] }\n";
    let world = alone(&files.login(&[&signer], "", of_role));
    let token = |groups: Value, protected: Value, nested: Value| {
        let mut own = claims();
        (own["groups"], own["protected"], own["a/b"]) = (groups, protected, nested);
        signer.token(&own)
    };
    let nested = || json!({ "x": 1 });
    assert_refused(
        &world,
        &[
            (signer.token(&claims()), "its claim \"/a~1b/x\" is missing"),
            (token(json!(["ops2"]), json!(true), nested()), "its claim \"groups\""),
            (token(json!({ "dev": "dev" }), json!(true), nested()), "its claim \"groups\""),
            (token(json!(["dev"]), json!(false), nested()), "its claim \"protected\""),
            (token(json!(["dev"]), json!(true), json!(1)), "its claim \"/a~1b/x\""),
        ],
    );
    for groups in [json!("dev"), json!(["all", "ops"])] {
        token_of(&log_in(&world, &token(groups, json!("true"), nested())));
    }
}

#[test]
fn what_is_no_signed_token_is_refused() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let world = alone(&files.login(&[&signer], "algorithms = ['ES256', 'RS256']", ""));
    let good = signer.token(&claims());
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let (header, body) = signed.split_once('.').expect("three parts");
    let with_header = |more: Value| {
        let mut header = json!({ "alg": "ES256", "kid": "one" });
        more.as_object().expect("an object").iter().for_each(|(k, v)| header[k] = v.clone());
        signer.token_of("ES256", header.to_string(), claims().to_string())
    };
    let other = Signer::p256("one");
    let twice = claims().to_string().replacen('{', "{\"sub\":\"project:admin\",", 1);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    // Somebody computes a code with what everybody knows: the public key.
    let code = |key: &[u8]| {
        let header = encode(json!({ "alg": "HS256", "kid": "one" }).to_string());
        let signed = format!("{header}.{body}");
        let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), signed.as_bytes());
        format!("{signed}.{}", encode(code))
    };
    let unsigned = |alg: &str| format!("{}.{body}.", encode(json!({ "alg": alg }).to_string()));
    let cases = [
        (unsigned("none"), "is not signed"),
        (unsigned("NoNe"), "is not signed"),
        (code(jwks(&[&signer]).as_bytes()), "shared secret"),
        (code(signer.jwk().to_string().as_bytes()), "shared secret"),
        (with_header(json!({ "alg": "hs512" })), "shared secret"),
        (with_header(json!({ "alg": "ES256K" })), "none that this gateway knows"),
        (with_header(json!({ "alg": "es256" })), "none that this gateway knows"),
        (with_header(json!({ "alg": 256 })), "\"alg\" is no text"),
        (with_header(json!({ "alg": "EdDSA" })), "EdDSA, which `algorithms`"),
        (with_header(json!({ "alg": "RS256" })), "is not for its \"alg\""),
        (with_header(json!({ "crit": ["b64"], "b64": false })), "\"crit\""),
        (with_header(json!({ "crit": [] })), "\"crit\""),
        (with_header(json!({ "cty": "JWT" })), "token within a token"),
        (with_header(json!({ "kid": "two" })), "no key with its \"kid\""),
        (with_header(json!({ "kid": 1 })), "\"kid\" is no text"),
        (other.token(&claims()), "signature is not one of the issuer"),
        // The sender's own key, in the header.
        (
            other.token_with(&json!({ "alg": "ES256", "kid": "one", "jwk": other.jwk() }), &claims()),
            "signature is not one of the issuer",
        ),
        (format!("{signed}.{}", encode([0; 64])), "signature is not one of the issuer"),
        (format!("{signed}."), "signature is not one of the issuer"),
        (format!("{signed}.{signature}="), "its signature is not base64url"),
        (format!("{header}.{body}A.{signature}"), "signature"),
        (signer.token_of("ES256", "{}", claims().to_string()), "no \"alg\""),
        (signer.token_of("ES256", "[]", claims().to_string()), "its header is no JSON object"),
        (signer.token_of("ES256", r#"{"alg":"ES256","alg":"none"}"#, "{}"), "its header has two members"),
        (signer.token_of("ES256", r#"{"alg":"ES256"}"#, &twice), "its claims has two members"),
        (signer.token_of("ES256", r#"{"alg":"ES256"}"#, &deep), "within each other"),
        (signer.token_of("ES256", r#"{"alg":"ES256"}"#, "no JSON"), "its claims is no JSON object"),
        (signed.to_owned(), "is no JWT"),
        (format!("{good}.{body}.{body}"), "encrypted (JWE)"),
        (format!("{good}.{body}"), "is no JWT"),
        ("a b c".into(), "is no JWT"),
        ("..".into(), "its header is no JSON object"),
        ("!.e30.e30".into(), "its header is not base64url"),
        (signer.token(&with("more", json!("x".repeat(16 << 10)))), "longer than 16384 bytes"),
    ];
    assert_refused(&world, &cases);
    token_of(&log_in(&world, &good));
    token_of(&log_in(&world, &signer.token_of("ES256", r#"{"alg":"ES256"}"#, claims().to_string())));
}

#[test]
fn tokens_of_all_algorithms_are_taken_with_their_own_keys_only() {
    let files = Files::new();
    let signers = [Signer::rsa("r", 2048), Signer::p256("p2"), Signer::p384("p3"), Signer::ed25519("e")];
    let all: Vec<&Signer> = signers.iter().collect();
    let world = alone(&files.login(&all, "", ""));
    let of_rsa = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
    for (signer, algorithms) in all.iter().zip([&of_rsa[..], &["ES256"], &["ES384"], &["EdDSA"]]) {
        for algorithm in algorithms {
            let header = json!({ "alg": algorithm, "kid": signer.kid });
            token_of(&log_in(&world, &signer.token_with(&header, &claims())));
            token_of(&log_in(&world, &signer.token_with(&json!({ "alg": algorithm }), &claims())));
        }
    }
    // A signature with one padding or hash is none with another.
    let header = |alg: &str| json!({ "alg": alg, "kid": "r" }).to_string();
    let cases = [("RS256", "PS256"), ("PS256", "RS256"), ("RS256", "RS384"), ("PS512", "PS256")];
    let cases = cases.map(|(with, says)| {
        (signers[0].token_of(with, header(says), claims().to_string()), "signature is not one of the issuer")
    });
    assert_refused(&world, &cases);
}

#[test]
fn a_key_that_the_issuer_uses_with_one_algorithm_is_good_for_no_other() {
    let (files, signer) = (Files::new(), Signer::rsa("r", 2048));
    let mut jwk = signer.jwk();
    jwk["alg"] = json!("PS256");
    let path = files.write("issuer.jwks", &json!({ "keys": [jwk] }).to_string());
    let world = alone(&login(&format!("keys_file = {path:?}"), ""));
    let token = |alg: &str| signer.token_with(&json!({ "alg": alg, "kid": "r" }), &claims());
    assert_refused(&world, &["RS256", "PS512"].map(|alg| (token(alg), "is not for its \"alg\"")));
    token_of(&log_in(&world, &token("PS256")));
}

#[test]
fn keys_of_an_issuer_that_are_no_good_are_named_and_the_others_serve() {
    let (files, good) = (Files::new(), Signer::p256("good"));
    let rsa = |kid: &str, bits: usize| {
        let mut n = vec![0xff; bits / 8];
        n[0] = 0x80;
        json!({ "kid": kid, "kty": "RSA", "n": encode(n), "e": "AQAB" })
    };
    let mut elsewhere = Signer::p256("elsewhere").jwk();
    elsewhere["alg"] = json!("ES512");
    let (mut short, mut sealing) = (Signer::p256("short").jwk(), Signer::p256("sealing").jwk());
    short["x"] = json!("AAAA");
    sealing["use"] = json!("enc");
    let secret = json!({ "kid": "secret", "kty": "oct", "k": encode([7; 32]) });
    let curve = json!({ "kid": "curve", "kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA" });
    let keys = [rsa("small", 1024), rsa("huge", 16384), elsewhere, short, sealing, secret, curve, good.jwk()];
    let path = files.write("issuer.jwks", &json!({ "keys": keys }).to_string());
    let world = alone(&login(&format!("keys_file = {path:?}"), ""));
    let with_kid = |kid: &str, alg: &str| {
        let header = json!({ "alg": alg, "kid": kid });
        good.token_of("ES256", header.to_string(), claims().to_string())
    };
    assert_refused(
        &world,
        &[
            (
                with_kid("small", "RS256"),
                "cannot be used: an RSA key has to have a modulus of 2048 to 8192 bits",
            ),
            (
                with_kid("huge", "RS256"),
                "cannot be used: an RSA key has to have a modulus of 2048 to 8192 bits",
            ),
            (with_kid("elsewhere", "ES256"), "cannot be used: it is for an algorithm"),
            (with_kid("short", "ES256"), "cannot be used: the coordinates"),
            (with_kid("secret", "ES256"), "cannot be used: it is a shared secret"),
            (with_kid("curve", "ES256"), "cannot be used: keys are of"),
            (with_kid("sealing", "ES256"), "no key with its \"kid\""),
        ],
    );
    token_of(&log_in(&world, &good.token(&claims())));
}

#[test]
fn a_token_for_single_use_is_good_once() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let before = now();
    let world = alone(&files.login(&[&signer], "leeway_seconds = 0", "single_use = true\n"));
    let early = signer.token(&with("iat", json!(before)));
    // What is issued in the second of its start is refused, too.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let token = signer.token(&claims());
    token_of(&log_in(&world, &token));
    let mut another = claims();
    another["jti"] = json!("another");
    token_of(&log_in(&world, &signer.token(&another)));
    another["exp"] = json!(now() + 200);
    assert_refused(
        &world,
        &[
            (token, "was used before"),
            (signer.token(&another), "was used before"),
            (signer.token(&with("jti", Value::Null)), "no claim \"jti\""),
            (signer.token(&with("jti", json!(""))), "\"jti\" is not what it has to be"),
            (signer.token(&with("iat", Value::Null)), "no claim \"iat\""),
            (signer.token(&with("iat", json!(now() - 3600))), "before this gateway started"),
            (early, "before this gateway started"),
            (signer.token(&with("exp", json!(now() + 100_000))), "and may be for 86400 s"),
        ],
    );
}

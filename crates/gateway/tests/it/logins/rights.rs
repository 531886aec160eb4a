//! What a login gives: a token that may do what the role says, and ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Files, ask, claims, log_in, token_of, with};
use crate::common::{Ask, PATIENCE, Signer, World, logged, replace};

#[test]
fn a_program_that_has_logged_in_may_do_what_its_role_says_and_nothing_else() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let other_role = "[[login.role]]\nname = 'watch'\naudiences = ['polyclave']\nclaims = { groups = ['op*'], '/at/site' = ['7'] }\n\
                      rights = ['list']\nkeys = ['*']\n";
    let world = World::start_with(&files.login(&[&signer], "default_role = 'ci'", other_role));
    world.done("POST", "/v1/transit/keys/ci-1", Value::Null);
    world.done("POST", "/v1/transit/keys/other", Value::Null);
    let jwt = signer.token(&claims());
    // As Vault's program asks: with PUT, and with a token of before.
    let body = json!({ "jwt": jwt }).to_string();
    let put = Ask::new("PUT", "/v1/auth/jwt/login").token("old").body(body.as_bytes()).of(world.address());
    let token = token_of(&put);
    let auth = &put.json["auth"];
    assert_eq!((&auth["lease_duration"], &auth["renewable"]), (&json!(900), &json!(true)));
    assert_eq!((&auth["policies"], &auth["metadata"]), (&json!(["ci"]), &json!({ "role": "ci" })));

    let ask_with = |method: &str, path: &str, body: Value| world.ask_as(&token, method, path, body);
    let encrypted = ask_with("POST", "/v1/transit/encrypt/ci-1", json!({ "plaintext": "AAAA" }));
    assert_eq!(encrypted.status, 200, "{encrypted:?}");
    let ciphertext = json!({ "ciphertext": encrypted.data("ciphertext") });
    assert_eq!(ask_with("POST", "/v1/transit/decrypt/ci-1", ciphertext).data("plaintext"), "AAAA");
    for (method, path) in [
        ("POST", "/v1/transit/encrypt/other"),
        ("POST", "/v1/transit/keys/ci-2"),
        ("LIST", "/v1/transit/keys"),
        ("POST", "/v1/transit/random/8"),
    ] {
        let refused = ask_with(method, path, json!({ "plaintext": "AAAA" }));
        assert_eq!(refused.status, 403, "{method} {path}: {refused:?}");
    }
    let audited = world.audit_log(0);
    assert!(audited.contains("for=ci"), "the nodes are told the role: {audited}");

    let mut of_operator = claims();
    of_operator["groups"] = json!(["all", "operators"]);
    of_operator["at"] = json!({ "site": 7 });
    let watch = ask("/v1/auth/jwt/login", &json!({ "role": "watch", "jwt": signer.token(&of_operator) }));
    let watch = token_of(&watch.of(world.address()));
    assert_eq!(world.ask_as(&watch, "LIST", "/v1/transit/keys", Value::Null).status, 200);
    let refused = world.ask_as(&watch, "POST", "/v1/transit/encrypt/ci-1", json!({ "plaintext": "AAAA" }));
    assert_eq!(refused.status, 403);

    let log = logged();
    assert!(!log.contains(&token) && !log.contains(&jwt), "tokens are in no log");
    assert!(log.contains("logged in") && log.contains("subject=\"project:orders\""), "{log}");
}

#[test]
fn a_token_looks_itself_up_lives_on_if_it_is_renewed_and_can_be_ended() {
    let (files, signer) = (Files::new(), Signer::ed25519("one"));
    let world = super::alone(&files.login(&[&signer], "", "life_seconds = 600\nmost_life_seconds = 1000\n"));
    let given = log_in(&world, &signer.token(&claims()));
    let token = token_of(&given);
    let own = |method: &str, of: &str, body: Value| {
        world.ask_as(&token, method, &format!("/v1/auth/token/{of}-self"), body)
    };
    let found = own("GET", "lookup", Value::Null).json["data"].clone();
    assert_eq!((found["id"].as_str(), &found["path"]), (Some(token.as_str()), &json!("auth/jwt/login")));
    assert_eq!(found["accessor"], given.json["auth"]["accessor"]);
    assert_eq!((&found["creation_ttl"], &found["explicit_max_ttl"]), (&json!(600), &json!(1000)));
    assert_eq!(found["display_name"], "jwt-project:orders");
    let left = |found: &Value| found["ttl"].as_u64().expect("a number");
    assert!((500..=600).contains(&left(&found)), "{found}");
    assert!(found["expire_time"].as_str().is_some_and(|time| time.starts_with("20")), "{found}");

    for (increment, expected) in [
        (json!(100), 40..=100),
        (json!("5m"), 240..=300),
        (json!("30"), 1..=30),
        (json!(0), 540..=600),
        (json!("1h"), 700..=1000),
    ] {
        let renewed = own("POST", "renew", json!({ "increment": increment }));
        assert_eq!(renewed.json["auth"]["renewable"], json!(true), "{renewed:?}");
        let lease = renewed.json["auth"]["lease_duration"].as_u64().expect("a number");
        assert!(expected.contains(&lease), "{increment}: {lease}");
        assert!(expected.contains(&left(&own("GET", "lookup", Value::Null).json["data"])), "{increment}");
    }
    assert_eq!(own("POST", "renew", json!({ "increment": "soon" })).status, 400);
    assert_eq!(own("GET", "revoke", Value::Null).status, 405);
    assert_eq!(own("POST", "revoke", Value::Null).status, 204);
    for of in ["lookup", "renew", "revoke"] {
        let refused = own(if of == "lookup" { "GET" } else { "POST" }, of, Value::Null);
        assert_eq!((refused.status, refused.errors().as_str()), (403, "permission denied"), "{of}");
    }
    let of_file = world.ask("POST", "/v1/auth/token/revoke-self", Value::Null);
    assert!(of_file.status == 400 && of_file.errors().contains("gateway.toml"), "{of_file:?}");
    assert_eq!(world.ask("GET", "/v1/auth/token/lookup-self", Value::Null).status, 200);
}

#[test]
fn a_token_that_is_not_renewed_ends_by_itself() {
    let (files, signer) = (Files::new(), Signer::ed25519("one"));
    let world = super::alone(&files.login(&[&signer], "", "life_seconds = 10\n"));
    let began = Instant::now();
    let token = token_of(&log_in(&world, &signer.token(&claims())));
    let status = || world.ask_as(&token, "GET", "/v1/auth/token/lookup-self", Value::Null).status;
    while status() == 200 {
        assert!(began.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(began.elapsed() >= Duration::from_secs(10), "it ended too early");
    assert_eq!(status(), 403);
    let renewed = world.ask_as(&token, "POST", "/v1/auth/token/renew-self", Value::Null);
    assert_eq!(renewed.status, 403, "nor can it be renewed");
}

#[test]
fn a_change_of_whom_a_role_lets_in_ends_its_tokens_and_a_change_of_its_rights_does_not() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let world = super::alone(&files.login(&[&signer], "", ""));
    let text = std::fs::read_to_string(world.file()).expect("read");
    let set = |from: &str, to: &str| replace(&world.file(), &text.replace(from, to));
    let new = || token_of(&log_in(&world, &signer.token(&claims())));
    let status = |token: &str, path: &str| world.ask_as(token, "POST", path, json!({ "paths": [] })).status;
    let (look, random) = ("/v1/auth/token/lookup-self", "/v1/transit/random/8");
    let token = new();
    assert_eq!(status(&token, random), 403);
    set("rights = ['encrypt', 'decrypt']", "rights = ['random']");
    assert_eq!(status(&token, random), 200, "it has the rights of its role as they are now");
    for (from, to) in [
        ("subjects = ['project:*']", "subjects = ['project:orders']"),
        ("audiences = ['polyclave']", "audiences = ['polyclave', 'more']"),
        ("issuer = 'https://issuer.example'", "issuer = 'https://other.example'"),
        ("path = 'jwt'", "path = 'team/jwt'"),
        ("name = 'ci'", "name = 'cd'"),
        ("[[login]]", "[[login]]\nalgorithms = ['ES256']"),
    ] {
        replace(&world.file(), &text);
        let token = new();
        assert_eq!(status(&token, look), 200);
        set(from, to);
        assert_eq!(status(&token, look), 403, "{to}");
        replace(&world.file(), &text);
        assert_eq!(status(&token, look), 403, "{to}: it does not come back");
    }
    let token = new();
    replace(&world.file(), &text.replace("[[login]]", "[[login"));
    assert_eq!(status(&token, look), 200, "a file with an error changes nothing");
    let start = text.find("[[login]]").expect("it is there");
    let end = text.find("[[listener]]").expect("it is there");
    replace(&world.file(), &[&text[..start], &text[end..]].concat());
    assert_eq!(status(&token, look), 403, "the login is gone");
    assert_eq!(log_in(&world, &signer.token(&claims())).status, 403, "and nobody logs in");
}

#[test]
fn shorter_lives_in_the_file_reach_tokens_that_are_there() {
    let (files, signer) = (Files::new(), Signer::ed25519("one"));
    let world = super::alone(&files.login(&[&signer], "", "life_seconds = 600\nmost_life_seconds = 1000\n"));
    let token = token_of(&log_in(&world, &signer.token(&claims())));
    let ask = |method: &str, of: &str| {
        let answer = world.ask_as(&token, method, &format!("/v1/auth/token/{of}-self"), Value::Null);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json
    };
    let text = std::fs::read_to_string(world.file()).expect("read");
    replace(&world.file(), &text.replace("= 600", "= 200").replace("= 1000", "= 300"));
    let found = &ask("GET", "lookup")["data"];
    assert!(found["ttl"].as_u64().is_some_and(|left| left <= 200), "{found}");
    assert_eq!(found["explicit_max_ttl"], json!(300));
    let renewed = &ask("POST", "renew")["auth"];
    assert!(renewed["lease_duration"].as_u64().is_some_and(|left| left <= 200), "{renewed}");
}

#[test]
fn a_file_that_names_one_that_is_not_there_yet_is_taken_once_it_is() {
    let (files, signer) = (Files::new(), Signer::ed25519("one"));
    let world = super::alone("");
    let text = std::fs::read_to_string(world.file()).expect("read");
    let login = files.login(&[&signer], "", "");
    let keys = files.0.path().join("issuer.jwks");
    let elsewhere = keys.with_extension("later");
    std::fs::rename(&keys, &elsewhere).expect("renamed");
    replace(&world.file(), &text.replace("[[listener]]", &format!("{login}\n[[listener]]")));
    let log_in = || log_in(&world, &signer.token(&claims())).status;
    assert_eq!(log_in(), 403);
    std::fs::rename(elsewhere, keys).expect("renamed");
    let until = Instant::now() + PATIENCE;
    while log_in() != 200 {
        assert!(Instant::now() < until, "the file is not read again");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_flood_of_logins_takes_no_more_tokens_than_the_file_says_and_none_of_others() {
    let (files, signer) = (Files::new(), Signer::ed25519("one"));
    let limits = "[limits]\ntokens_of_logins = 50\n";
    let world = super::alone(&format!("{limits}{}", files.login(&[&signer], "", "")));
    let of = |subject: &str| token_of(&log_in(&world, &signer.token(&with("sub", json!(subject)))));
    let quiet = of("project:quiet");
    let loud: Vec<String> = (0..200).map(|_| of("project:loud")).collect();
    let is_good =
        |token: &String| world.ask_as(token, "GET", "/v1/auth/token/lookup-self", Value::Null).status == 200;
    assert!(is_good(&quiet) && is_good(&loud[199]) && !is_good(&loud[0]));
    assert_eq!(loud.iter().filter(|token| is_good(token)).count(), 49);
}

//! Tokens: what each may do, when a change of the file takes effect, and what the nodes are told of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::Right;
use serde_json::{Value, json};

use crate::common::{Ask, World, replace};

#[test]
fn a_token_may_do_what_its_entry_says_and_nothing_else() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/billing-1", Value::Null);
    world.done("POST", "/v1/transit/keys/payroll", Value::Null);
    let token = world.add_token("narrow", &[Right::Encrypt], &["billing-*"]);
    let ask = |method: &str, path: &str, body: Value| world.ask_as(&token, method, path, body);
    let plain = json!({ "plaintext": "AAAA" });
    let encrypted = ask("POST", "/v1/transit/encrypt/billing-1", plain.clone());
    assert_eq!(encrypted.status, 200);
    let ciphertext = json!({ "ciphertext": encrypted.data("ciphertext") });
    for (method, path, body) in [
        ("POST", "/v1/transit/encrypt/payroll", &plain),
        ("POST", "/v1/transit/encrypt/nothing", &plain),
        ("POST", "/v1/transit/datakey/wrapped/payroll", &Value::Null),
        ("POST", "/v1/transit/decrypt/billing-1", &ciphertext),
        ("POST", "/v1/transit/rewrap/billing-1", &ciphertext),
        ("GET", "/v1/transit/keys/billing-1", &Value::Null),
        ("LIST", "/v1/transit/keys", &Value::Null),
        ("POST", "/v1/transit/keys/billing-2", &Value::Null),
        ("POST", "/v1/transit/keys/billing-1/rotate", &Value::Null),
        ("POST", "/v1/transit/keys/billing-1/config", &Value::Null),
        ("DELETE", "/v1/transit/keys/billing-1", &Value::Null),
        ("POST", "/v1/transit/random/8", &Value::Null),
    ] {
        let refused = ask(method, path, body.clone());
        assert_eq!(refused.status, 403, "{method} {path}: {refused:?}");
        assert!(refused.errors().contains("permission denied"));
    }
    assert_eq!(ask("POST", "/v1/transit/hash", json!({ "input": "AAAA" })).status, 200, "it takes no right");
    for stranger in ["", "nobody", "s.0123456789"] {
        let refused = world.ask_as(stranger, "POST", "/v1/transit/encrypt/billing-1", plain.clone());
        assert_eq!((refused.status, refused.errors().as_str()), (403, "permission denied"));
    }
    let bearer =
        Ask::new("POST", "/v1/transit/encrypt/billing-1").header("Authorization", &format!("Bearer {token}"));
    assert_eq!(bearer.body(plain.to_string().as_bytes()).of(world.address()).status, 200);
}

#[test]
fn a_token_that_is_revoked_stops_at_once_and_a_broken_file_changes_nothing() {
    let world = World::start();
    let path = "/v1/auth/token/lookup-self";
    let token = world.add_token("passing-by", &[Right::Random], &[]);
    let looked_up = world.ask_as(&token, "GET", path, Value::Null);
    assert_eq!((looked_up.data("display_name"), looked_up.data("id")), ("passing-by", token.as_str()));
    let text = std::fs::read_to_string(world.file()).expect("read");
    replace(&world.file(), &format!("{text}\n[[token]]\nname = 'half"));
    assert_eq!(world.ask_as(&token, "GET", path, Value::Null).status, 200);
    replace(&world.file(), &text);
    world.revoke("passing-by");
    assert_eq!(world.ask_as(&token, "GET", path, Value::Null).status, 403);
    assert_eq!(world.ask("GET", path, Value::Null).status, 200, "others stay");
}

/// The file changes while a long batch is computed: what was computed by then is not given away.
#[test]
fn a_token_that_is_revoked_in_the_middle_of_a_batch_gets_nothing_of_it() {
    let world = World::start();
    world.done("POST", "/v1/transit/keys/long", Value::Null);
    let token = world.add_token("in-the-middle", &[Right::Encrypt], &["long"]);
    let items = vec![json!({ "plaintext": STANDARD.encode([7; 32]) }); 2_000];
    let body = json!({ "batch_input": items });
    let refused = std::thread::scope(|scope| {
        let asked = scope.spawn(|| world.ask_as(&token, "POST", "/v1/transit/encrypt/long", body));
        // Once the nodes have begun with it.
        world.wait_until("the batch has begun", |world| world.audit_log(0).contains("for=in-the-middle"));
        world.revoke("in-the-middle");
        asked.join().expect("answered")
    });
    assert_eq!((refused.status, refused.errors().as_str()), (403, "permission denied"));
    let lines = world.audit_log(0).matches("for=in-the-middle").count();
    assert!(lines < 2 * 2_000, "it went on to the end: {lines} lines");
}

#[test]
fn the_nodes_log_the_name_of_the_token_with_each_request() {
    let world = World::shared();
    let token = world.add_token("named", &[Right::Generate, Right::Encrypt], &["named-*"]);
    assert_eq!(world.ask_as(&token, "POST", "/v1/transit/keys/named-1", Value::Null).status, 200);
    let plain = json!({ "plaintext": "AAAA" });
    assert_eq!(world.ask_as(&token, "POST", "/v1/transit/encrypt/named-1", plain).status, 200);
    for node in 0..3 {
        let line_of = |operation: &str| {
            let log = world.audit_log(node);
            let parts = [format!("\"operation\":\"{operation}\""), "named-1".into(), "for=named".into()];
            log.lines().any(|line| parts.iter().all(|part| line.contains(part)))
        };
        assert!(line_of("generate") && line_of("encrypt"), "node {node}");
    }
}

#[test]
fn a_token_learns_who_it_is_and_that_it_may_go_on() {
    let world = World::shared();
    let renewed = world.ask("POST", "/v1/auth/token/renew-self", json!({ "increment": "1h" }));
    assert_eq!(renewed.json["auth"]["client_token"], world.root.as_str());
    assert_eq!((&renewed.json["auth"]["renewable"], &renewed.json["data"]), (&json!(false), &Value::Null));
    let looked_up = world.ask("POST", "/v1/auth/token/lookup-self", Value::Null);
    assert_eq!(looked_up.json["data"]["policies"], json!(["root"]));
}

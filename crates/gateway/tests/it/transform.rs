//! Tokens through Vault's transform paths.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::Right;
use polyclave_gateway::Running as Gateway;
use serde_json::{Value, json};

use crate::common::World;

fn encode(world: &World, body: Value) -> Value {
    world.done("POST", "/v1/transform/encode/shop", body)["data"].clone()
}

fn decode(world: &World, body: Value) -> Value {
    world.done("PUT", "/v1/transform/decode/shop", body)["data"].clone()
}

fn there_and_back(world: &World, transformation: &str, value: &str) -> String {
    let encoded = encode(world, json!({ "transformation": transformation, "value": value }));
    let token = encoded["encoded_value"].as_str().expect("a token").to_owned();
    let decoded = decode(world, json!({ "transformation": transformation, "value": token }));
    assert_eq!(decoded, json!({ "decoded_value": value }));
    assert_ne!(token, value);
    token
}

#[test]
fn values_are_exchanged_for_tokens_of_their_format_and_back() {
    let world = World::shared();
    // Sample 2 of FF1-AES128; a role with one transformation takes no name.
    let tweak = STANDARD.encode([0x39, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x30]);
    let sample = json!({ "value": "0123456789", "tweak": tweak });
    let encoded = world.done("POST", "/v1/transform/encode/accounts", sample);
    assert_eq!(encoded["data"], json!({ "encoded_value": "6124200773" }));

    let email = there_and_back(&world, "email", "jane.doe@example.org");
    assert!(email.ends_with("@example.org") && email.as_bytes()[4] == b'.' && email.len() == 20, "{email}");
    let card = there_and_back(&world, "card", "4111-1111-1111-1111");
    assert!(card.starts_with("4111-11") && card.ends_with("111"), "{card}");
    let digits = card.bytes().filter(u8::is_ascii_digit).rev().map(|digit| u32::from(digit - b'0'));
    let doubled =
        |(at, digit): (usize, u32)| if at % 2 == 1 { digit * 2 / 10 + digit * 2 % 10 } else { digit };
    assert_eq!(digits.enumerate().map(doubled).sum::<u32>() % 10, 0, "{card}");
    let plate = there_and_back(&world, "plate", "HH-AB1234");
    assert!(plate.starts_with("HH-") && !plate.contains(['O', 'I', 'Q']), "{plate}");
    assert!(
        world.audit_log(0).contains("\"operation\":\"tokenize\"") && world.audit_log(0).contains("for=root")
    );
}

#[test]
fn tokens_are_decoded_after_the_key_was_rotated() {
    let world = World::start();
    let token = there_and_back(&world, "email", "jane.doe@example.org");
    world.client().rotate("token-key").expect("a second version");
    let asked = json!({ "transformation": "email", "value": token });
    assert_eq!(decode(&world, asked), json!({ "decoded_value": "jane.doe@example.org" }));
    assert_eq!(there_and_back(&world, "email", "jane.doe@example.org"), token);
}

#[test]
fn a_batch_is_answered_in_its_order_and_what_is_wrong_with_one_is_told_of_that_one() {
    let world = World::shared();
    let tweak = STANDARD.encode("row");
    let items = json!([
        { "transformation": "ssn", "value": "123-45-6789", "tweak": tweak, "reference": "a" },
        { "transformation": "email", "value": "someone@example.org" },
        { "transformation": "ssn", "value": "123-45-678", "tweak": tweak, "reference": "c" },
        { "transformation": "ssn", "value": "987 65 4321", "tweak": tweak },
        { "transformation": "ssn", "value": "987654321" },
        { "transformation": "other", "value": "987654321" },
        { "transformation": "email", "value": "me@example.org" },
    ]);
    let answer = world.ask("POST", "/v1/transform/encode/shop", json!({ "batch_input": items }));
    assert_eq!(answer.status, 400);
    let results = answer.json["data"]["batch_results"].as_array().expect("results").clone();
    let token = |at: usize| results[at]["encoded_value"].as_str().map(str::to_owned);
    let error = |at: usize| results[at]["error"].as_str().unwrap_or_default();
    assert_eq!((&results[0]["reference"], &results[2]["reference"]), (&json!("a"), &json!("c")));
    assert!(token(1).is_some_and(|token| token.ends_with("@example.org")));
    assert!(error(2).contains("does not match the template"), "{}", error(2));
    assert!(token(3).is_some_and(|token| token.as_bytes()[3] == b' ' && token.len() == 11));
    assert!(error(4).contains("missing tweak") && error(5).contains("not one of the role"));
    // Two letters: 1,296 strings.
    assert!(!error(6).is_empty() && token(6).is_none());
    let back = json!({ "batch_input": [{ "transformation": "ssn", "value": token(0), "tweak": tweak }] });
    assert_eq!(decode(&world, back)["batch_results"][0]["decoded_value"], "123-45-6789");

    let many: Vec<Value> = (0..1000)
        .map(|n| json!({ "transformation": "email", "value": format!("user{n:04}@example.org") }))
        .collect();
    let tokens = encode(&world, json!({ "batch_input": many }))["batch_results"].clone();
    let asked: Vec<Value> = tokens
        .as_array()
        .expect("results")
        .iter()
        .map(|one| json!({ "transformation": "email", "value": one["encoded_value"] }))
        .collect();
    let values = decode(&world, json!({ "batch_input": asked }))["batch_results"].clone();
    for (n, one) in values.as_array().expect("results").iter().enumerate() {
        assert_eq!(one["decoded_value"], format!("user{n:04}@example.org"));
    }
}

#[test]
fn who_may_not_and_what_cannot_be_meant_is_refused() {
    let world = World::start();
    let good = json!({ "transformation": "email", "value": "someone@example.org" });
    let other_key = world.add_token("other-key", &[Right::Tokenize], &["billing-*"]);
    let other_right = world.add_token("other-right", &[Right::Encrypt], &["*"]);
    let allowed = world.add_token("allowed", &[Right::Tokenize], &["token-key"]);
    for (token, status) in [(&other_key, 403), (&other_right, 403), (&allowed, 200)] {
        assert_eq!(world.ask_as(token, "POST", "/v1/transform/encode/shop", good.clone()).status, status);
    }
    world.revoke("allowed");
    assert_eq!(world.ask_as(&allowed, "POST", "/v1/transform/encode/shop", good.clone()).status, 403);
    for (path, body, message) in [
        ("encode/nobody", good.clone(), "unknown role"),
        ("encode/shop", json!({ "value": "x@y.z" }), "missing transformation"),
        ("encode/shop", json!({ "transformation": "account", "value": "1234567" }), "missing tweak"),
        (
            "encode/shop",
            json!({ "transformation": "account", "value": "1234567", "tweak": "!" }),
            "base64-decode tweak",
        ),
        (
            "encode/shop",
            json!({ "transformation": "email", "value": "a@b", "tweak": "eA==" }),
            "a tweak of its own",
        ),
        ("encode/shop", json!({ "transformation": "email" }), "missing value"),
        ("encode/shop", json!({ "transformation": "email", "value": 7 }), "no text"),
        ("encode/shop", json!({ "batch_input": [] }), "missing batch input"),
        ("decode/shop", json!({ "transformation": "card", "value": "4111 1111 1111 1112" }), "check digit"),
        ("decode/shop", json!({ "transformation": "email", "value": "abc@example.org" }), "1000000"),
    ] {
        let answer = world.ask("POST", &format!("/v1/transform/{path}"), body);
        assert!(
            answer.status == 400 && answer.errors().replace(',', "").contains(message),
            "{message}: {answer:?}"
        );
    }
    // Fields beside a batch are ignored. Its items do not get them.
    let beside = |item: Value| json!({ "value": "a", "tweak": "eA==", "transformation": "ssn", "batch_input": [item] });
    assert_eq!(world.ask("POST", "/v1/transform/encode/shop", beside(good)).status, 200);
    let none = world.ask("POST", "/v1/transform/encode/shop", beside(json!({ "value": "x@y.z" })));
    assert!(none.status == 400 && none.text.contains("missing transformation"), "{none:?}");
    assert_eq!(world.ask("GET", "/v1/transform/encode/shop", Value::Null).status, 405);
    assert_eq!(world.ask("POST", "/v1/transform/tokenize/shop", Value::Null).status, 404);
}

#[test]
fn settings_that_cannot_be_meant_are_refused_at_the_start_by_the_name_of_the_entry() {
    let world = World::define();
    let text = std::fs::read_to_string(world.file()).expect("read");
    for (old, new, message) in [
        ("transformations = [\"account\"]", "transformations = [\"acount\"]", "\"accounts\""),
        ("template = \"plate\"", "template = \"plates\"", "there is no template"),
        ("alphabet = \"plate\"", "alphabet = \"plates\"", "there is no alphabet"),
        ("pattern = \"([0-9]+)\"", "pattern = \"[0-9]+\"", "no group"),
        ("pattern = \"([0-9]+)\"", "pattern = \"([0-9])+\"", "repeats a group"),
        ("tweak = \"6d61696c\"", "tweak = \"mail\"", "hexadecimal"),
        ("template = \"account\"", "template = \"account\"\ntweak = \"00\"", "tweak_source"),
        ("name = \"ssn\"", "name = \"email\"", "two of this name"),
        ("keep_last = 3", "keep_last = 30", "fewer digits"),
    ] {
        assert!(text.contains(old), "{old}");
        std::fs::write(world.file(), text.replace(old, new)).expect("written");
        let refused = Gateway::start(&world.file()).err().expect("refused").to_string();
        assert!(refused.contains(message), "{message}: {refused}");
    }
}

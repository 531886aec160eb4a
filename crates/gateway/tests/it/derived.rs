//! Keys that are derived or convergent: messages belong to a context, which takes the place of Vault's own
//! key for each context.

use aes_siv::aead::KeyInit;
use aes_siv::siv::Aes256Siv;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::{Mode, NewKey};
use polyclave_gateway::Running as Gateway;
use serde_json::{Value, json};

use crate::common::{Answer, Ask, World};

/// What asks for something with a key.
fn with_key<'w>(world: &'w World, name: &'w str, properties: Value) -> impl Fn(&str, Value) -> Answer + 'w {
    world.done("POST", &format!("/v1/transit/keys/{name}"), properties);
    move |what, body| world.ask("POST", &format!("/v1/transit/{what}/{name}"), body)
}

fn refused(answer: &Answer, why: &str) {
    assert!(answer.status == 400 && answer.errors().contains(why), "{why}: {answer:?}");
}

/// Each of the forms, with the same requests.
#[test]
fn messages_of_a_derived_key_belong_to_their_context() {
    let world = World::shared();
    for convergent in [false, true] {
        let name = if convergent { "derived-convergent" } else { "derived-only" };
        let ask = with_key(&world, name, json!({ "derived": true, "convergent_encryption": convergent }));
        let key = world.ask("GET", &format!("/v1/transit/keys/{name}"), Value::Null);
        let told =
            ["derived", "convergent_encryption", "supports_derivation"].map(|field| &key.json["data"][field]);
        assert_eq!(told, [&json!(true), &json!(convergent), &json!(true)], "{key:?}");
        let plaintext = STANDARD.encode("to be found again");
        let asked = json!({ "plaintext": plaintext, "context": "Y2l0eQ==", "associated_data": "cm93" });
        let encrypted = ask("encrypt", asked.clone());
        let ciphertext = encrypted.data("ciphertext").to_owned();
        assert_eq!(ask("encrypt", asked).data("ciphertext") == ciphertext, convergent);
        let decrypt = |context: Value, associated: &str| {
            ask(
                "decrypt",
                json!({ "ciphertext": ciphertext, "context": context, "associated_data": associated }),
            )
        };
        assert_eq!(decrypt(json!("Y2l0eQ=="), "cm93").data("plaintext"), plaintext);
        // Another context; none of the associated data; a byte that moved from one to the other.
        for (context, associated) in [("dG93bg==", "cm93"), ("Y2l0eQ==", ""), ("Y2l0eXI=", "b3c=")] {
            refused(&decrypt(json!(context), associated), "unable to decrypt");
        }
        refused(&decrypt(json!("no base64"), "cm93"), "failed to base64-decode context");
        for missing in [json!(""), Value::Null] {
            refused(&decrypt(missing.clone(), "cm93"), "missing 'context' for key derivation");
            let asked = json!({ "plaintext": plaintext, "context": missing });
            refused(&ask("encrypt", asked), "missing 'context' for key derivation");
            let asked = json!({ "ciphertext": ciphertext, "context": missing });
            refused(&ask("rewrap", asked), "missing 'context' for key derivation");
            let asked = json!({ "context": missing });
            refused(&ask("datakey/plaintext", asked), "missing 'context' for key derivation");
        }
        refused(&ask("decrypt", json!({ "ciphertext": "vault:v1:AAAA", "context": "AAAA" })), "shorter than");
        let nonce = json!({ "plaintext": "AAAA", "context": "AAAA", "nonce": "AAAA" });
        refused(&ask("encrypt", nonce), "nonce not allowed");

        let items: Vec<Value> =
            ["AA==", "AQ==", "AA=="].map(|context| json!({ "plaintext": "BBBB", "context": context })).into();
        let batch = ask("encrypt", json!({ "batch_input": items }));
        let of = |i: usize| batch.json["data"]["batch_results"][i]["ciphertext"].clone();
        assert_eq!((of(0) == of(2), of(0) == of(1)), (convergent, false), "{batch:?}");
        let items =
            json!([{ "ciphertext": of(1), "context": "AQ==" }, { "ciphertext": of(1), "context": "AA==" }]);
        let batch = ask("decrypt", json!({ "batch_input": items }));
        let results = &batch.json["data"]["batch_results"];
        assert_eq!((batch.status, &results[0]["plaintext"]), (400, &json!("BBBB")), "{batch:?}");
        assert!(results[1]["error"].as_str().is_some_and(|error| error.contains("unable to decrypt")));

        world.done("POST", &format!("/v1/transit/keys/{name}/rotate"), Value::Null);
        let context = json!({ "ciphertext": ciphertext, "context": "Y2l0eQ==", "associated_data": "cm93" });
        let rewrapped = ask("rewrap", context.clone());
        assert_eq!(rewrapped.json["data"]["key_version"], 2);
        assert_eq!(ask("rewrap", context).data("ciphertext") == rewrapped.data("ciphertext"), convergent);
        let asked = json!({
            "ciphertext": rewrapped.data("ciphertext"), "context": "Y2l0eQ==", "associated_data": "cm93"
        });
        assert_eq!(ask("decrypt", asked).data("plaintext"), plaintext);
        let made = ask("datakey/plaintext", json!({ "context": "AA==" }));
        let asked = json!({ "ciphertext": made.data("ciphertext"), "context": "AA==" });
        assert_eq!(ask("decrypt", asked).data("plaintext"), made.data("plaintext"));
    }
}

#[test]
fn a_context_is_ignored_by_other_keys_and_what_cannot_be_derived_is_refused() {
    let world = World::shared();
    let ask = with_key(&world, "derived-not", Value::Null);
    let asked = json!({ "plaintext": "AAAA", "context": "AAAA" });
    let ciphertext = ask("encrypt", asked).data("ciphertext").to_owned();
    for context in [Value::Null, json!("BBBB")] {
        let asked = json!({ "ciphertext": ciphertext, "context": context });
        assert_eq!(ask("decrypt", asked).data("plaintext"), "AAAA");
    }
    refused(&ask("encrypt", json!({ "plaintext": "AAAA", "context": "A" })), "base64-decode context");
    for (properties, why) in [
        (json!({ "convergent_encryption": true }), "requires derivation to be enabled"),
        (json!({ "type": "hmac", "derived": true }), "not supported for keys of type hmac"),
        (json!({ "type": "aes128-gcm96", "derived": true }), "has to be convergent"),
        (json!({ "type": "gold", "derived": true }), "unknown key type gold"),
    ] {
        refused(&world.ask("POST", "/v1/transit/keys/derived-never", properties), why);
    }
    assert_eq!(world.ask("GET", "/v1/transit/keys/derived-never", Value::Null).status, 404);
}

/// Against another implementation, with a key that was imported.
#[test]
fn a_convergent_ciphertext_is_tag_and_ciphertext_of_siv_over_both_with_their_lengths() {
    let world = World::shared();
    let key: [u8; 64] = std::array::from_fn(|i| i as u8);
    world
        .client()
        .import(NewKey::for_modes("derived-siv", "aes-256", &[Mode::Siv], 1 << 20), &key)
        .expect("imported");
    let asked = json!({
        "plaintext": STANDARD.encode("Ada"), "context": STANDARD.encode("ab"), "associated_data": STANDARD.encode("c")
    });
    let encrypted = world.ask("POST", "/v1/transit/encrypt/derived-siv", asked);
    let text = encrypted.data("ciphertext").strip_prefix("vault:v1:").expect("the version is in front");
    let mut oracle = Aes256Siv::new_from_slice(&key).expect("a key");
    let expected = oracle.encrypt([b"\0\x02ab\0\x01c"], b"Ada").expect("encrypted");
    assert_eq!(STANDARD.decode(text).expect("base64"), expected);
}

/// A gateway that was not there when the key was made, such as one that was started again, learns it from the
/// nodes; and one that remembers another key of the name learns it from what the nodes refuse.
#[test]
fn every_gateway_knows_from_the_nodes_which_key_is_derived() {
    let world = World::shared();
    let file = world.dir.path().join("second-gateway.toml");
    let text = std::fs::read_to_string(world.file()).expect("read");
    let token = text.split("[[").find(|entry| entry.contains("name = \"root\"")).expect("the token");
    let text =
        format!("client = {:?}\n\n[[listener]]\naddress = \"127.0.0.1:0\"\n\n[[{token}", world.local.client);
    std::fs::write(&file, text).expect("written");
    let other = Gateway::start(&file).expect("it starts");
    let ask_other = |what: &str, body: Value| {
        let path = format!("/v1/transit/{what}/derived-again");
        Ask::new("POST", &path).token(&world.root).body(body.to_string().as_bytes()).of(other.addresses()[0])
    };
    let properties = [
        json!({ "derived": true }),
        json!({}),
        json!({ "derived": true, "convergent_encryption": true }),
        json!({ "derived": true }),
    ];
    for properties in properties {
        let ask = with_key(&world, "derived-again", properties.clone());
        let asked = json!({ "plaintext": "AAAA", "context": "AAAA" });
        let of_other = ask_other("encrypt", asked);
        assert_eq!(of_other.status, 200, "{properties}: {of_other:?}");
        let asked = json!({ "ciphertext": of_other.data("ciphertext"), "context": "AAAA" });
        assert_eq!(ask("decrypt", asked).data("plaintext"), "AAAA", "{properties}");
        let without = ask_other("encrypt", json!({ "plaintext": "AAAA" }));
        assert_eq!(without.status == 200, properties["derived"].is_null(), "{properties}: {without:?}");
        world.done("POST", "/v1/transit/keys/derived-again/config", json!({ "deletion_allowed": true }));
        world.done("DELETE", "/v1/transit/keys/derived-again", Value::Null);
    }
}

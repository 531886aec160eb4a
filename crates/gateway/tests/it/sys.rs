//! `sys`: programs ask Vault who it is and what they may do.

use polyclave_api::Right;
use serde_json::{Value, json};

use crate::common::{Ask, World};

#[test]
fn the_seal_status_takes_no_token_and_the_mounts_take_one() {
    let world = World::shared();
    let ask = |method: &str, path: &str| Ask::new(method, path).of(world.address());
    let status = ask("GET", "/v1/sys/seal-status");
    assert_eq!(status.status, 200);
    let message = |name: &str| &status.json[name];
    assert_eq!((message("sealed"), message("initialized")), (&json!(false), &json!(true)));
    assert_eq!((message("t"), message("n"), message("type")), (&json!(3), &json!(3), &json!("shamir")));
    assert_eq!(ask("GET", "/v1/sys/init").json, json!({ "initialized": true }));
    let again = ask("PUT", "/v1/sys/init");
    assert_eq!((again.status, again.errors().as_str()), (400, "Vault is already initialized"));
    assert_eq!(ask("GET", "/v1/sys/leader").json["ha_enabled"], json!(false));
    for (method, path) in [("POST", "seal-status"), ("DELETE", "init"), ("HEAD", "leader")] {
        assert_eq!(ask(method, &format!("/v1/sys/{path}")).status, 405, "{path}");
    }
    assert_eq!(ask("GET", "/v1/sys/mounts").status, 403);
    let mounts = world.ask("GET", "/v1/sys/mounts", Value::Null);
    assert_eq!(mounts.json["data"]["transit/"]["type"], "transit");
    assert_eq!(mounts.json["transform/"], mounts.json["data"]["transform/"]);
}

#[test]
fn a_token_is_told_what_it_may_do_with_each_path() {
    let world = World::shared();
    let token = world.add_token("capable", &[Right::Encrypt, Right::List, Right::Tokenize], &["capable-*"]);
    let ask = |body: Value| world.ask_as(&token, "POST", "/v1/sys/capabilities-self", body);
    let paths = [
        ("transit/encrypt/capable-1", json!(["update"])),
        ("transit/encrypt/other", json!(["deny"])),
        ("transit/decrypt/capable-1", json!(["deny"])),
        ("transit/keys/capable-1", json!(["read"])),
        ("transit/keys", json!(["list"])),
        ("transit/keys/", json!(["list"])),
        ("transform/encode/shop", json!(["create", "update"])),
        ("transit/backup/capable-1", json!(["deny"])),
        ("secret/foo", json!(["deny"])),
        ("auth/token/lookup-self", json!(["create", "read", "update"])),
    ];
    let names: Vec<&str> = paths.iter().map(|(path, _)| *path).collect();
    let message = ask(json!({ "paths": names }));
    for (path, wanted) in &paths {
        assert_eq!(&message.json["data"][path], wanted, "{path}: {message:?}");
        assert_eq!(&message.json[path], wanted, "{path}");
    }
    assert!(message.json["data"]["capabilities"].is_null(), "for one path only");
    let of_root = json!({ "path": "transit/encrypt/capable-1" });
    let of_root = world.ask("POST", "/v1/sys/capabilities-self", of_root);
    assert_eq!(of_root.json["data"]["capabilities"], json!(["create", "update"]), "it may make the key");
    let one = ask(json!({ "path": "transit/keys/capable-1" }));
    assert_eq!(one.json["data"]["capabilities"], json!(["read"]));
    let none = ask(json!({}));
    assert!(none.status == 400 && none.errors().contains("paths must be supplied"), "{none:?}");
    let many = ask(json!({ "paths": vec!["transit/keys"; 1000] }));
    assert_eq!(many.status, 400);
}

//! `polyclave gateway` as docs/use/vault.md has it: a file, a token, and a program that asks over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::common::{Place, free_range};

/// A request with a token, and the status and document of its answer.
fn ask(port: u16, token: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    write!(
        stream,
        "POST /v1/transit/{path} HTTP/1.1\r\nHost: localhost\r\nX-Vault-Token: {token}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).expect("one JSON document"))
}

#[test]
fn a_gateway_serves_whoever_has_a_token_until_the_token_is_removed() {
    let place = Place::new();
    let _nodes = place.cluster();
    let port = free_range(1);
    let settings = format!("client = \"try/client\"\n\n[[listener]]\naddress = \"127.0.0.1:{port}\"\n\n");
    let entry = place.run("gateway token billing --rights all --keys billing-* --out billing.token");
    place.write("gateway.toml", format!("{settings}{entry}").as_bytes());
    let token = String::from_utf8(place.read("billing.token")).expect("text");
    let token = token.trim();
    assert!(!entry.contains(token), "the file has a hash");
    let message = place.run("gateway check gateway.toml");
    assert!(message.contains("billing may ") && message.contains("loopback"), "{message}");

    let gateway = place.start("gateway run gateway.toml");
    gateway.wait_for("the nodes can serve");
    let (status, _) = ask(port, token, "keys/billing-cards", "{}");
    assert_eq!(status, 200);
    let (status, encrypted) = ask(port, token, "encrypt/billing-cards", r#"{"plaintext": "aGVsbG8="}"#);
    let ciphertext = encrypted["data"]["ciphertext"].as_str().expect("a ciphertext");
    assert!(status == 200 && ciphertext.starts_with("vault:v1:"), "{encrypted}");
    let sent = format!(r#"{{"ciphertext": "{ciphertext}"}}"#);
    let (status, decrypted) = ask(port, token, "decrypt/billing-cards", &sent);
    assert_eq!((status, decrypted["data"]["plaintext"].as_str()), (200, Some("aGVsbG8=")));
    assert_eq!(ask(port, token, "keys/payroll", "{}").0, 403, "of another name");
    let log = place.run("node audit show try/node-1");
    assert!(log.contains("for=billing"), "{log}");

    place.write("gateway.toml", settings.as_bytes());
    assert_eq!(ask(port, token, "decrypt/billing-cards", &sent).0, 403, "it was revoked");
    assert!(
        !place.names().iter().any(|name| name.ends_with(".log")),
        "nothing is written but to standard error"
    );
    gateway.end();
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_line() {
    let place = Place::new();
    place.write("gateway.toml", b"client = \"try/client\"\nlisten = 1\n");
    for command in ["gateway check gateway.toml", "gateway run gateway.toml"] {
        let message = place.fails(command);
        assert!(message.contains("line 2") && message.contains("unknown field `listen`"), "{message}");
    }
}

#[test]
fn a_check_finds_files_and_keys_that_are_missing() {
    let place = Place::new();
    let nodes = place.cluster();
    place.run("key generate of-macs --modes cmac --budget 1000");
    place.run("key generate of-kms --modes gcm --budget 1000");
    place.run("gateway certificate localhost --out tls");
    let tls = "[[listener]]\naddress = \"127.0.0.1:8443\"\ncertificate = \"tls.crt\"\nkey = \"tls.key\"\n";
    let kms = "[[kms]]\nname = \"k\"\nsocket = \"kms.sock\"\nkey = \"of-kms\"\n";
    let check = |text: &str| {
        place.write("gateway.toml", format!("client = \"try/client\"\n{text}").as_bytes());
        "gateway check gateway.toml"
    };
    let message = place.run(check(&[tls, kms].concat()));
    assert!(message.contains("with TLS") && !message.contains("was not found out"), "{message}");
    for (text, wanted) in [
        (tls.replace("tls.crt", "other.crt"), "other.crt: cannot be read"),
        (tls.replace("tls.key", "other.key"), "other.key"),
        (tls.replace("tls.key", "tls.crt"), "tls.crt"),
        (kms.replace("kms.sock", "nowhere/kms.sock"), "its directory is not there"),
        (kms.replace("of-kms", "of-nobody"), "the nodes have no key \"of-nobody\""),
        (kms.replace("of-kms", "of-macs"), "\"of-macs\" is not for gcm"),
    ] {
        let message = place.fails(check(&text));
        assert!(message.contains(wanted), "{wanted}: {message}");
    }
    let of_callers = tls.replace("8443", "8444") + "client_authorities = \"tls.crt\"\n";
    let xks = "[[xks]]\npath = \"/kms/xks/v1\"\n[[xks.key]]\nid = \"1\"\nkey = \"of-kms\"\n";
    let message = place.run(check(&[tls, xks].concat()));
    assert!(message.contains("  with the external key stores"), "{message}");
    let message = place.run(check(&[tls, &of_callers, xks].concat()));
    let at = |part: &str| message.find(part).unwrap_or_else(|| panic!("{part}: {message}"));
    assert!(at(":8443") < at("  without the external key stores"), "{message}");
    assert!(at(":8444") < at("  with the external key stores"), "{message}");
    // A killed `cluster run` leaves nodes that answer for a moment longer.
    nodes.end();
    let message = place.run(check(kms));
    assert!(message.contains("the KMS k") && message.contains("was not found out"), "{message}");
}

#[test]
fn a_certificate_is_made_for_a_listener_and_never_over_another() {
    let place = Place::new();
    place.run("client init client --name gateway");
    let message = place.run("gateway certificate localhost 10.0.0.7 --out tls");
    assert!(message.contains("tls.crt") && message.contains("365 days"), "{message}");
    let text = |name: &str| String::from_utf8(place.read(name)).expect("text");
    assert!(text("tls.crt").starts_with("-----BEGIN CERTIFICATE-----"));
    place.write(
        "gateway.toml",
        b"client = \"client\"\n\n[[listener]]\naddress = \"0.0.0.0:8443\"\ncertificate = \"tls.crt\"\nkey = \"tls.key\"\n",
    );
    // The certificate fits the key, and what is missing is the client's.
    let message = place.fails("gateway check gateway.toml");
    assert!(message.contains("client has no cluster file yet"), "{message}");
    let key = text("tls.key");
    let refused = place.fails("gateway certificate localhost --out tls");
    assert!(refused.contains("is there already"), "{refused}");
    assert_eq!(text("tls.key"), key);
    assert!(place.fails("gateway certificate h\u{e4}user --out other").contains("certificate"));
}

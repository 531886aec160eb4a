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

#[test]
fn a_file_of_ciphertexts_is_rewrapped_and_an_interrupted_run_goes_on() {
    let place = Place::new();
    let _nodes = place.cluster();
    let port = free_range(1);
    let settings = format!("client = \"try/client\"\n\n[[listener]]\naddress = \"127.0.0.1:{port}\"\n\n");
    let entry = place.run("gateway token orders --rights all --keys orders --out token");
    place.write("gateway.toml", format!("{settings}{entry}").as_bytes());
    let token = String::from_utf8(place.read("token")).expect("text");
    let ask = |path: &str, body: &str| ask(port, token.trim(), path, body);
    let gateway = place.start("gateway run gateway.toml");
    gateway.wait_for("the nodes can serve");
    // Each plaintext is its number in base64, with a context: so the command has to send it.
    let plaintext = |i: usize| format!("{:04}", 1000 + i);
    let item = |i| format!(r#"{{"plaintext": "{}", "context": "AAAA"}}"#, plaintext(i));
    let items: Vec<String> = (0..12).map(item).collect();
    let (_, encrypted) = ask("encrypt/orders", &format!(r#"{{"batch_input": [{}]}}"#, items.join(",")));
    let results = encrypted["data"]["batch_results"].as_array().expect("results");
    let text = |result: &Value| result["ciphertext"].as_str().expect("a ciphertext").to_owned();
    let mut old: Vec<String> = results.iter().map(text).collect();
    (old[2], old[6]) = (String::new(), "vault:v1:AAAA".into());
    assert_eq!(ask("keys/orders/rotate", "").0, 200);
    let run = |more: &str| {
        format!(
            "gateway rewrap --key orders --context AAAA --address http://127.0.0.1:{port} --token-file token --batch 4 {more} \
             old.txt new.txt"
        )
    };
    let new = || String::from_utf8(place.read("new.txt.partial")).expect("text");

    // A line that is too long stops it in the third batch, after the second was written.
    place.write("old.txt", format!("{}\n{}", old[..9].join("\n"), "A".repeat(25 << 20)).as_bytes());
    let stopped = place.fails(&run(""));
    assert!(stopped.contains("line 10 has more than 24 MiB") && stopped.contains("line 7: "), "{stopped}");
    let before = new();
    assert_eq!(before.lines().count(), 8);
    // What was written of the next batch when a machine died.
    place.write("new.txt.partial", format!("{before}vault:v2:AA").as_bytes());
    let whole = old.join("\n");
    place.write("old.txt", whole.as_bytes());
    let refused = place.fails(&run(""));
    assert!(refused.contains("--resume goes on with it"), "{refused}");
    place.write("old.txt", whole.replacen("vault", "Vault", 1).as_bytes());
    let refused = place.fails(&run("--resume"));
    assert!(refused.contains("does not begin with the 8 lines"), "{refused}");
    place.write("old.txt", whole.as_bytes());
    let output = place.output(&run("--resume --json"));
    assert!(!output.status.success(), "a line failed");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!((&report["lines"], &report["rewrapped"]), (&12.into(), &10.into()), "{report}");
    let failed = report["failed"].as_array().expect("an array");
    assert_eq!((failed.len(), &failed[0]["line"]), (1, &7.into()), "{report}");

    let lines = String::from_utf8(place.read("new.txt")).expect("text");
    assert!(lines.starts_with(&before), "what was done was not done again");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!((lines.len(), lines[2], lines[6]), (12, "", &*old[6]));
    for (i, line) in lines.iter().enumerate().filter(|(i, _)| ![2, 6].contains(i)) {
        assert!(line.starts_with("vault:v2:"), "{line}");
        let (_, decrypted) =
            ask("decrypt/orders", &format!(r#"{{"ciphertext": "{line}", "context": "AAAA"}}"#));
        assert_eq!(decrypted["data"]["plaintext"], plaintext(i), "line {}", i + 1);
    }
    assert!(!place.names().iter().any(|name| name.contains("partial")), "{:?}", place.names());
    let refused = place.fails(&run("--resume"));
    assert!(refused.contains("is there already"), "{refused}");
    // What concerns all lines ends it at once.
    let refused = place.fails(&run("--force").replace("--key orders", "--key others"));
    assert!(refused.contains("permission denied") && refused.contains("0 lines are done"), "{refused}");
    assert_eq!(
        place.read("new.txt").len(),
        lines.join("\n").len() + 1,
        "it stays until the new one is complete"
    );
    for (address, why) in [("http://192.0.2.1:8200", "take https"), ("https://localhost:8200", "--ca")] {
        let refused = place.fails(&run("--force").replace(&format!("http://127.0.0.1:{port}"), address));
        assert!(refused.contains(why), "{refused}");
    }
    gateway.end();
}

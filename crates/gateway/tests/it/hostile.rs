//! What no program should send, and nodes that are not there.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::Right;
use serde_json::{Value, json};

use crate::common::{Ask, PATIENCE, World, answer, logged};

#[test]
fn ciphertexts_of_others_and_altered_ones_are_refused_in_one_way() {
    let world = World::shared();
    for key in ["mine", "yours"] {
        world.done("POST", &format!("/v1/transit/keys/{key}"), Value::Null);
    }
    let encrypted =
        world.ask("POST", "/v1/transit/encrypt/mine", json!({ "plaintext": STANDARD.encode("secret") }));
    let text = encrypted.data("ciphertext").to_owned();
    let decrypt = |key: &str, body: Value| world.ask("POST", &format!("/v1/transit/decrypt/{key}"), body);
    let refused = "invalid ciphertext: unable to decrypt";
    assert_eq!(decrypt("yours", json!({ "ciphertext": text })).errors(), refused, "of another key");
    let bound = json!({ "ciphertext": text, "associated_data": "AAAA" });
    assert_eq!(decrypt("mine", bound).errors(), refused, "with other data");
    let bytes = STANDARD.decode(text.strip_prefix("vault:v1:").expect("version 1")).expect("base64");
    for at in [0, 11, 12, bytes.len() - 17, bytes.len() - 16, bytes.len() - 1] {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        let altered = format!("vault:v1:{}", STANDARD.encode(altered));
        let answer = decrypt("mine", json!({ "ciphertext": altered }));
        assert_eq!((answer.status, answer.errors().as_str()), (400, refused), "byte {at}");
    }
    let short = format!("vault:v1:{}", STANDARD.encode(&bytes[..bytes.len() - 1]));
    assert_eq!(decrypt("mine", json!({ "ciphertext": short })).errors(), refused, "cut");
}

#[test]
fn bodies_that_are_too_long_are_refused_and_strangers_send_none() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/long-bodies", Value::Null);
    let path = "/v1/transit/encrypt/long-bodies";
    let body = vec![b' '; 33 << 20];
    let refused = Ask::new("POST", path).token(&world.root).body(&body).of(world.address());
    assert_eq!(refused.status, 413, "{refused:?}");
    let mut stream = TcpStream::connect(world.address()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-vault-token: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        world.root
    );
    stream.write_all(head.as_bytes()).expect("begun");
    let piece = vec![b' '; 1 << 20];
    for _ in 0..33 {
        // The answer may come before all of it was sent.
        let _ = stream
            .write_all(b"100000\r\n")
            .and_then(|()| stream.write_all(&piece))
            .and_then(|()| stream.write_all(b"\r\n"));
    }
    assert_eq!(answer(&mut stream).status, 413, "of unknown length");
    let stranger = Ask::new("POST", path).token("nobody").body(&body).of(world.address());
    assert_eq!(stranger.status, 403);
}

#[test]
fn slow_callers_hold_up_nobody() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/slow", Value::Null);
    let begin = || {
        let mut stream = TcpStream::connect(world.address()).expect("connected");
        let head = format!(
            "POST /v1/transit/encrypt/slow HTTP/1.1\r\nhost: a\r\nx-vault-token: {}\r\ncontent-length: 1000\r\n\r\n{{",
            world.root
        );
        stream.write_all(head.as_bytes()).expect("begun");
        stream
    };
    // More than there are places with the nodes, and connections that say nothing, more than there may be.
    let _slow: Vec<TcpStream> = (0..32).map(|_| begin()).collect();
    let mut silent: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(world.address()).expect("connected")).collect();
    let encrypted = world.ask("POST", "/v1/transit/encrypt/slow", json!({ "plaintext": "AAAA" }));
    assert_eq!(encrypted.status, 200);
    let first = &mut silent[0];
    first.set_read_timeout(Some(PATIENCE)).expect("set");
    assert!(
        matches!(first.read(&mut [0; 1]), Ok(0) | Err(_)),
        "the one that was silent for longest was closed"
    );
}

#[test]
fn headers_that_would_change_the_meaning_are_refused() {
    let world = World::shared();
    for (name, value) in [("X-Vault-Wrap-TTL", "60s"), ("X-Vault-Namespace", "team-a/")] {
        let ask = Ask::new("POST", "/v1/transit/random/8").token(&world.root).header(name, value);
        let refused = ask.of(world.address());
        assert!(refused.status == 400 && refused.errors().contains(name), "{refused:?}");
    }
    let ask =
        || Ask::new("POST", "/v1/transit/random/8").token(&world.root).header("X-Vault-Namespace", "root");
    assert_eq!(ask().of(world.address()).status, 200);
    // Each of several headers of a name counts.
    for (name, value) in [("X-Vault-Wrap-TTL", "60s"), ("X-Vault-Namespace", "team-a/")] {
        let refused = ask().header(name, "").header(name, value).of(world.address());
        assert!(refused.status == 400 && refused.errors().contains(name), "{refused:?}");
    }
    let bearer = format!("Bearer {}", world.root);
    let twice = ask().token("nobody").of(world.address());
    assert_eq!(twice.status, 403, "it has two tokens");
    let bare = |name: &str| Ask::new("POST", "/v1/transit/random/8").header(name, &bearer);
    assert_eq!(bare("Authorization").header("Authorization", "Basic x").of(world.address()).status, 200);
    assert_eq!(bare("Authorization").header("Authorization", "Bearer x").of(world.address()).status, 403);
}

#[test]
fn bodies_and_fields_that_make_no_sense_are_told_without_what_they_say() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/nonsense", Value::Null);
    let path = "/v1/transit/encrypt/nonsense";
    for body in [
        "{\"plaintext\": \"hush\"",
        "[\"hush\"]",
        "hush",
        "{\"plaintext\": \"hush!\"}",
        "{\"plaintext\": [\"hush\"]}",
        "{\"plaintext\": \"AAAA\", \"associated_data\": \"hush!\"}",
        "{\"plaintext\": \"AAAA\", \"key_version\": \"hush\"}",
        "{\"plaintext\": \"AAAA\", \"key_version\": -1}",
        "{\"plaintext\": \"AAAA\", \"nonce\": \"AAAAAAAAAAAAAAAA\"}",
        "{\"batch_input\": \"hush\"}",
        "{\"batch_input\": [\"hush\"]}",
        "{}",
    ] {
        let refused = Ask::new("POST", path).token(&world.root).body(body.as_bytes()).of(world.address());
        assert_eq!(refused.status, 400, "{body}: {refused:?}");
        assert!(!refused.text.contains("hush") && !refused.errors().is_empty(), "{refused:?}");
    }
    let unknown = json!({ "plaintext": "AAAA", "whatever": 1 });
    let answered = world.ask("POST", path, unknown);
    assert!(answered.json["warnings"][0].as_str().expect("a warning").contains("[whatever]"), "{answered:?}");
}

#[test]
fn a_gateway_that_starts_before_its_nodes_says_so_and_serves_when_they_are_there() {
    let mut world = World::define();
    world.start_gateway();
    let health = || Ask::new("GET", "/v1/sys/health").of(world.address());
    let sealed = health();
    assert_eq!((sealed.status, &sealed.json["sealed"]), (503, &json!(true)));
    let refused = world.ask("POST", "/v1/transit/keys/early", Value::Null);
    assert!(refused.status == 503 && refused.errors().contains("cannot be reached"), "{refused:?}");
    let page = |path: &str| Ask::new("GET", path).of(world.http_address());
    let unwell = page("/healthz");
    assert!(unwell.status == 503 && unwell.text.contains("node-1 does not answer"), "{unwell:?}");
    world.start_nodes();
    world.wait_until("the gateway sees the nodes", |world| {
        Ask::new("GET", "/v1/sys/health").of(world.address()).status == 200
    });
    world.done("POST", "/v1/transit/keys/early", Value::Null);
    let page = |path: &str| Ask::new("GET", path).of(world.http_address());
    let well = page("/healthz");
    assert!(well.status == 200 && well.text.starts_with("ok\n"), "{well:?}");
    let counts = page("/metrics").text;
    for part in [
        "polyclave_gateway_requests_total{api=\"transit\",operation=\"create-key\",outcome=\"200\"} 1",
        "polyclave_gateway_requests_total{api=\"transit\",operation=\"create-key\",outcome=\"503\"} 1",
        "polyclave_gateway_nodes_ready 1",
    ] {
        assert!(counts.contains(part), "{part}:\n{counts}");
    }
    assert!(!counts.contains("early"), "no name of a key");
}

/// Every result is right or an error, and the gateway serves again when the node is back.
#[test]
fn a_node_that_dies_in_the_middle_changes_no_result() {
    let mut world = World::start();
    world.done("POST", "/v1/transit/keys/stormy", Value::Null);
    let (address, root) = (world.address(), world.root.clone());
    let ask = |what: &str, body: Value| {
        let path = format!("/v1/transit/{what}/stormy");
        Ask::new("POST", &path).token(&root).body(body.to_string().as_bytes()).of(address)
    };
    let (stop, good) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    let work = |worker: usize| {
        for round in 0.. {
            if stop.load(Relaxed) {
                return;
            }
            let plaintext = STANDARD.encode(format!("{worker} {round}"));
            let encrypted = ask("encrypt", json!({ "plaintext": plaintext }));
            if encrypted.status != 200 {
                assert_eq!(encrypted.status, 503, "{encrypted:?}");
                continue;
            }
            let decrypted = ask("decrypt", json!({ "ciphertext": encrypted.data("ciphertext") }));
            if decrypted.status == 200 {
                assert_eq!(decrypted.data("plaintext"), plaintext);
                good.fetch_add(1, Relaxed);
            } else {
                assert_eq!(decrypted.status, 503, "{decrypted:?}");
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || work(worker))).collect();
        let more = |world: &World| {
            let before = good.load(Relaxed);
            let is_over = |_: &World| {
                good.load(Relaxed) > before + 4 || workers.iter().any(|worker| worker.is_finished())
            };
            world.wait_until("some are served", is_over);
        };
        more(&world);
        world.stop_node(1);
        world.start_node(1);
        more(&world);
        stop.store(true, Relaxed);
        workers.into_iter().for_each(|worker| worker.join().expect("no wrong answer"));
    });
}

/// What is logged at the most talkative level of the gateway.
#[test]
fn no_log_has_a_token_or_a_message() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/discreet", Value::Null);
    let token = world.add_token("discreet", &[Right::Encrypt, Right::Decrypt], &["discreet"]);
    let plaintext = STANDARD.encode("a message that nobody logs");
    let ask =
        |what: &str, body: Value| world.ask_as(&token, "POST", &format!("/v1/transit/{what}/discreet"), body);
    let ciphertext = ask("encrypt", json!({ "plaintext": plaintext })).data("ciphertext").to_owned();
    assert_eq!(ask("decrypt", json!({ "ciphertext": ciphertext })).data("plaintext"), plaintext);
    ask("encrypt", json!({ "plaintext": format!("{plaintext}!") }));
    ask("decrypt", json!({ "ciphertext": format!("{ciphertext}!") }));
    ask("rewrap", json!({ "ciphertext": ciphertext }));
    let wrong = "s.a-token-with-a-typing-error";
    world.ask_as(wrong, "POST", "/v1/transit/encrypt/discreet", json!({ "plaintext": plaintext }));
    let log = logged();
    assert!(log.contains("discreet") && log.contains("operation=\"encrypt\""), "{log}");
    for secret in [token.as_str(), wrong, &plaintext, &ciphertext["vault:v1:".len()..], "a message that"] {
        assert!(!log.contains(secret), "{secret} is logged");
    }
}

/// A token with many requests delays another one, but does not keep it out.
#[test]
fn one_token_with_many_requests_leaves_turns_to_another() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/shared-turns", Value::Null);
    let greedy = world.add_token("greedy", &[Right::Encrypt], &["shared-turns"]);
    let modest = world.add_token("modest", &[Right::Encrypt], &["shared-turns"]);
    let path = "/v1/transit/encrypt/shared-turns";
    let items = vec![json!({ "plaintext": "AAAA" }); 1_000];
    std::thread::scope(|scope| {
        let batches: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| world.ask_as(&greedy, "POST", path, json!({ "batch_input": items }))))
            .collect();
        world.wait_until("the batches have begun", |world| world.audit_log(0).contains("for=greedy"));
        assert_eq!(world.ask_as(&modest, "POST", path, json!({ "plaintext": "AAAA" })).status, 200);
        assert!(batches.iter().all(|batch| !batch.is_finished()), "the batches were still under way");
        assert!(batches.into_iter().all(|batch| batch.join().expect("answered").status == 200));
    });
}

//! Keys from an issuer's server: rotation, and servers that do what they should not.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use polyclave_config::GatewaySettings;
use serde_json::json;

use super::{Files, alone, ask, caller, claims, log_in, login, token_of};
use crate::common::{Answer, Behaviour, KeyServer, PATIENCE, Signer, World, answered, jwks, now, replace};

/// A login with the keys of a server, at its `/keys`.
fn of_server(files: &Files, server: &KeyServer) -> String {
    let authorities = files.write("authority.pem", &server.certificate);
    login(&format!("keys_url = '{}'\nauthorities = {authorities:?}", server.url("/keys")), "")
}

/// Logs in as one of many callers.
fn try_as(world: &World, number: usize, token: &str) -> Answer {
    ask("/v1/auth/jwt/login", &json!({ "role": "ci", "jwt": token })).from(caller(number), world.address())
}

/// Why the gateway has no keys: callers are told only that it is so, and `gateway check` tells why.
fn trouble(world: &World, token: &str) -> String {
    let refused = log_in(world, token);
    assert_eq!(refused.status, 503, "{refused:?}");
    let errors = refused.errors();
    assert!(errors.ends_with("cannot be had; the gateway's log says why"), "{errors}");
    let settings = GatewaySettings::load(&world.file()).expect("read");
    let mut logins = polyclave_gateway::check(&settings).expect("checked").logins;
    logins.remove(0).expect_err("no keys")
}

#[test]
fn a_caller_that_goes_away_while_keys_are_fetched_stops_nobody() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let server = KeyServer::start("localhost");
    let behaviour = Behaviour::default().with("/keys", &jwks(&[&signer]));
    server.behave(Behaviour { silence: Duration::from_secs(2), ..behaviour });
    let world = alone(&of_server(&files, &server));
    let token = signer.token(&claims());
    let body = json!({ "role": "ci", "jwt": token }).to_string();
    let mut stream = TcpStream::connect(world.address()).expect("connected");
    let head =
        format!("POST /v1/auth/jwt/login HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all([head, body].concat().as_bytes()).expect("sent");
    let until = Instant::now() + PATIENCE;
    while server.times_asked() < 1 {
        assert!(Instant::now() < until, "the issuer is not asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stream);
    // The gateway has noticed that it is closed.
    std::thread::sleep(Duration::from_millis(500));
    token_of(&log_in(&world, &token));
    assert_eq!(server.times_asked(), 1);
}

#[test]
fn keys_that_rotate_at_the_issuer_work_soon_and_it_is_not_asked_for_every_token() {
    let (files, old, new) = (Files::new(), Signer::p256("old"), Signer::p256("new"));
    let server = KeyServer::start("localhost");
    server.behave(Behaviour::default().with("/keys", &jwks(&[&old])));
    let world = alone(&of_server(&files, &server));
    assert_eq!(server.times_asked(), 0, "nobody has logged in");
    (0..5).for_each(|_| drop(token_of(&log_in(&world, &old.token(&claims())))));
    assert_eq!(server.times_asked(), 1);

    // Before the issuer shows the new key, and so often that it would be a flood.
    let began = Instant::now();
    for number in 0..100 {
        let refused = try_as(&world, number, &new.token(&claims()));
        assert!(refused.errors().contains("no key with its \"kid\""), "{refused:?}");
    }
    let most = 2 + began.elapsed().as_secs() as usize / 5;
    assert!(server.times_asked() <= most, "{} times", server.times_asked());

    server.behave(Behaviour::default().with("/keys", &jwks(&[&old, &new])));
    let until = Instant::now() + PATIENCE;
    let mut number = 100;
    while try_as(&world, number, &new.token(&claims())).status != 200 {
        assert!(Instant::now() < until, "the new key does not work");
        number += 1;
        std::thread::sleep(Duration::from_millis(500));
    }
    token_of(&log_in(&world, &old.token(&claims())));

    // The old one is withdrawn: the next question finds that out.
    server.behave(Behaviour::default().with("/keys", &jwks(&[&new])));
    let third = Signer::p256("third").token(&claims());
    while try_as(&world, number, &old.token(&claims())).status == 200 {
        assert!(Instant::now() < until + PATIENCE, "the old key works for ever");
        number += 1;
        assert_eq!(try_as(&world, number, &third).status, 400);
        std::thread::sleep(Duration::from_millis(500));
    }
    token_of(&log_in(&world, &new.token(&claims())));
}

#[test]
fn an_issuer_that_does_not_answer_any_more_stops_nobody_whose_key_is_known() {
    let (files, known, other) = (Files::new(), Signer::p256("known"), Signer::p256("other"));
    let server = KeyServer::start("localhost");
    server.behave(Behaviour::default().with("/keys", &jwks(&[&known])));
    let world = alone(&of_server(&files, &server));
    token_of(&log_in(&world, &known.token(&claims())));
    server.behave(Behaviour { silence: PATIENCE, ..Behaviour::default() });
    std::thread::sleep(Duration::from_secs(5));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| try_as(&world, 1, &other.token(&claims())));
        let until = Instant::now() + PATIENCE;
        while server.times_asked() < 2 {
            assert!(Instant::now() < until, "it is not asked for the other key");
            std::thread::sleep(Duration::from_millis(10));
        }
        let began = Instant::now();
        token_of(&log_in(&world, &known.token(&claims())));
        assert!(began.elapsed() < Duration::from_secs(4), "it waited for the server");
        let refused = waits.join().expect("it ends");
        assert!(refused.errors().contains("no key with its \"kid\""), "{refused:?}");
    });
}

#[test]
fn an_issuer_says_where_its_keys_are() {
    let (files, signer) = (Files::new(), Signer::ed25519("one"));
    let server = KeyServer::start("localhost");
    let issuer = server.url("");
    let at = "/.well-known/openid-configuration";
    let document = |issuer: &str, keys: &str| json!({ "issuer": issuer, "jwks_uri": keys }).to_string();
    let authorities = files.write("authority.pem", &server.certificate);
    let settings = login(&format!("discovery = true\nauthorities = {authorities:?}"), "")
        .replace(super::ISSUER, &issuer);
    let token = signer.token(&super::with("iss", json!(issuer)));
    for (document, part) in [
        (document(&format!("{issuer}/"), &server.url("/keys")), "another issuer"),
        (document(&issuer, "http://localhost/keys"), "no address of keys with https"),
        (document(&issuer, &server.url("/elsewhere")), "it answered 404"),
        ("{\"issuer\": 1}".into(), "another issuer"),
        ("no JSON".into(), "its answer is no JSON object"),
    ] {
        let behaviour = Behaviour::default().with(at, &document).with("/keys", &jwks(&[&signer]));
        server.behave(behaviour);
        let why = trouble(&alone(&settings), &token);
        assert!(why.contains(part), "{part}: {why}");
    }
    let right = document(&issuer, &server.url("/keys?all=1"));
    server.behave(Behaviour::default().with(at, &right).with("/keys?all=1", &jwks(&[&signer])));
    token_of(&log_in(&alone(&settings), &token));
}

#[test]
fn a_server_that_does_what_it_should_not_gives_no_keys_and_an_error_says_what_it_did() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let (server, elsewhere) = (KeyServer::start("localhost"), KeyServer::start("localhost"));
    elsewhere.behave(Behaviour::default().with("/keys", &jwks(&[&signer])));
    let (settings, token) = (of_server(&files, &server), signer.token(&claims()));
    let world = alone(&settings);
    let text = std::fs::read_to_string(world.file()).expect("read");
    let redirect =
        format!("HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", elsewhere.url("/keys"));
    let huge = [b"HTTP/1.1 200 OK\r\n\r\n{\"keys\":[".to_vec(), vec![b' '; 1 << 20]].concat();
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{".to_vec();
    let headers = [b"HTTP/1.1 200 OK\r\n".to_vec(), b"a: b\r\n".repeat(100_000)].concat();
    let too_many = json!({ "keys": vec![signer.jwk(); 65] }).to_string();
    let cases = [
        (redirect.into_bytes(), "it answered 302, and redirects are not followed"),
        (answered("500 Internal Server Error", "{}"), "it answered 500"),
        (huge, "its answer is longer than 256 KiB"),
        (announced, "it broke off"),
        (headers, "it broke off"),
        (b"hello".to_vec(), "it broke off"),
        (Vec::new(), "it broke off"),
        (answered("200 OK", "[]"), "has no public key in PEM"),
        (answered("200 OK", "{}"), "it has no list \"keys\""),
        (answered("200 OK", "{\"keys\":[]}"), "it has no key for signatures"),
        (answered("200 OK", "{\"keys\":[],\"keys\":[]}"), "two members of one name"),
        (answered("200 OK", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\"}]}"), "it is a shared secret"),
        (answered("200 OK", &too_many), "it has 65 keys, and may have 64"),
    ];
    for (number, (bytes, part)) in cases.into_iter().enumerate() {
        let path = format!("/keys?{number}");
        server.behave(Behaviour { answers: [(path.clone(), bytes)].into(), ..Behaviour::default() });
        // At another address, so that the gateway asks at once.
        replace(&world.file(), &text.replace("/keys", &path));
        let why = trouble(&world, &token);
        assert!(why.contains(part) && why.contains(&server.url(&path)), "{part}: {why}");
    }
    assert_eq!(elsewhere.times_asked(), 0, "where it was redirected to");

    server.behave(Behaviour { silence: PATIENCE, ..Behaviour::default() });
    let began = now();
    let why = trouble(&alone(&settings), &token);
    assert!(why.contains("it did not answer within 5 s"), "{why}");
    assert!(now() - began < 60);
}

#[test]
fn a_server_with_another_certificate_or_none_gives_no_keys() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let (own, stranger) = (KeyServer::start("localhost"), KeyServer::start("localhost"));
    let of_other_name = KeyServer::start("issuer.example");
    let plain = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let world = |server: &KeyServer, url: &str| {
        server.behave(Behaviour::default().with("/keys", &jwks(&[&signer])));
        let authorities = files.write("authority.pem", &server.certificate);
        let settings = login(&format!("keys_url = '{url}'\nauthorities = {authorities:?}"), "");
        alone(&settings)
    };
    let token = signer.token(&claims());
    token_of(&log_in(&world(&own, &own.url("/keys")), &token));
    for (server, url) in [(&own, stranger.url("/keys")), (&of_other_name, of_other_name.url("/keys"))] {
        let why = trouble(&world(server, &url), &token);
        assert!(why.contains("no TLS 1.3 with it"), "{why}");
    }
    let port = plain.local_addr().expect("an address").port();
    drop(plain);
    let why = trouble(&world(&own, &format!("https://localhost:{port}/keys")), &token);
    assert!(why.contains("cannot connect"), "{why}");
    assert_eq!((stranger.times_asked(), of_other_name.times_asked()), (0, 0), "they were told nothing");
}

#[test]
fn keys_of_a_server_whose_authority_was_removed_end_at_once() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let (server, stranger) = (KeyServer::start("localhost"), KeyServer::start("localhost"));
    server.behave(Behaviour::default().with("/keys", &jwks(&[&signer])));
    let world = alone(&of_server(&files, &server));
    let log_in = || log_in(&world, &signer.token(&claims()));
    token_of(&log_in());
    files.write("authority.pem", "no certificate");
    token_of(&log_in());
    files.write("authority.pem", &[&stranger.certificate[..], &server.certificate].concat());
    token_of(&log_in());
    assert_eq!(server.times_asked(), 2, "other authorities, and keys that they know");
    files.write("authority.pem", &stranger.certificate);
    let refused = log_in();
    assert_eq!(refused.status, 503, "{refused:?}");
    files.write("authority.pem", &server.certificate);
    token_of(&log_in());
}

#[test]
fn a_file_of_keys_is_read_again_when_it_has_changed() {
    let (files, old, new) = (Files::new(), Signer::p256("old"), Signer::p256("new"));
    let world = alone(&files.login(&[&old], "", ""));
    token_of(&log_in(&world, &old.token(&claims())));
    files.write("issuer.jwks", "half a fi");
    token_of(&log_in(&world, &old.token(&claims())));
    std::fs::remove_file(files.0.path().join("issuer.jwks")).expect("removed");
    token_of(&log_in(&world, &old.token(&claims())));
    files.write("issuer.jwks", &jwks(&[&new]));
    token_of(&log_in(&world, &new.token(&claims())));
    assert_eq!(log_in(&world, &old.token(&claims())).status, 400, "it was withdrawn");
    let pem = rcgen::KeyPair::generate().expect("a key");
    files.write("issuer.jwks", &pem.public_key_pem());
    assert_eq!(log_in(&world, &new.token(&claims())).status, 400);
}

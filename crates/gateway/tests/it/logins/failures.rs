//! Requests that are no logins, callers that are wrong too often, and bodies that do not arrive.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Files, alone, ask, caller, claims, log_in, token_of, with};
use crate::common::{Ask, PATIENCE, Signer, answer, logged, now};

#[test]
fn what_a_login_lacks_is_told_as_vault_tells_it() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let world = alone(&files.login(&[&signer], "", ""));
    let jwt = signer.token(&claims());
    let refused = |path: &str, body: &Value| {
        let answer = ask(&format!("/v1/auth/{path}/login"), body).of(world.address());
        (answer.status, answer.errors())
    };
    assert_eq!(refused("jwt", &json!({ "jwt": jwt })), (400, "missing role".into()));
    assert_eq!(refused("jwt", &json!({ "role": "", "jwt": jwt })), (400, "missing role".into()));
    assert_eq!(refused("jwt", &json!({ "role": "ci" })), (400, "missing token".into()));
    let other = json!({ "role": "no\n", "jwt": jwt });
    assert_eq!(refused("jwt", &other), (400, "role \"no\\n\" could not be found".into()));
    assert_eq!(refused("jwt", &json!([])).0, 400);
    assert_eq!(refused("jwt", &json!({ "role": 1, "jwt": jwt })).0, 400);
    assert_eq!(refused("other", &json!({ "role": "ci", "jwt": jwt })).0, 403, "as any path without a token");
    let at_path = |path: &str| world.ask("POST", path, json!({ "role": "ci", "jwt": jwt })).status;
    assert_eq!((at_path("/v1/auth/other/login"), at_path("/v1/auth/login")), (404, 404));
    assert_eq!(Ask::new("GET", "/v1/auth/jwt/login").of(world.address()).status, 405);
    let body = json!({ "role": "ci", "jwt": jwt });
    let wrapped = ask("/v1/auth/jwt/login", &body).header("X-Vault-Wrap-TTL", "60s").of(world.address());
    assert_eq!(wrapped.status, 400);
    let long = json!({ "role": "ci", "jwt": jwt, "more": "x".repeat(40 << 10) });
    assert_eq!(ask("/v1/auth/jwt/login", &long).of(world.address()).status, 413);
    // They would take the memory of others' long requests.
    let many = json!({ "role": "ci", "jwt": jwt, "more": vec![json!({}); 100] });
    assert_eq!(refused("jwt", &many), (400, "the body has more than 16 objects".into()));
}

#[test]
fn the_log_has_no_role_that_a_stranger_has_only_named() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let world = alone(&files.login(&[&signer], "", "").replace("name = 'ci'", "name = 'watchman'"));
    let log_in = |token: &str| {
        ask("/v1/auth/jwt/login", &json!({ "role": "watchman", "jwt": token })).of(world.address())
    };
    let named = "token=\"watchman\"";
    assert_eq!(log_in(&Signer::p256("one").token(&claims())).status, 400);
    assert!(logged().contains("operation=\"log-in\"") && !logged().contains(named));
    token_of(&log_in(&signer.token(&claims())));
    assert!(logged().contains(named));
}

#[test]
fn a_caller_that_is_wrong_too_often_has_to_wait_and_others_do_not() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let world = alone(&files.login(&[&signer], "", ""));
    let good = signer.token(&claims());
    let status = |from: usize, token: &str| {
        let body = json!({ "role": "ci", "jwt": token });
        ask("/v1/auth/jwt/login", &body).from(caller(from), world.address())
    };
    let is_told = |_: usize| status(1, "wrong").status == 400;
    let wrong = (0..2000).take_while(|number| is_told(*number)).count();
    assert!((20..2000).contains(&wrong), "{wrong} times");
    // Others may be behind the same load balancer.
    assert_eq!(status(1, &good).status, 200, "a good token of the same address");
    assert_eq!(status(2, &good).status, 200, "another address");
    let refused = (0..2000).map(|_| status(1, "wrong")).find(|answer| answer.status != 400);
    let refused = refused.expect("it is refused again");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.errors().starts_with("too many logins from this address failed"), "{refused:?}");
    let until = Instant::now() + PATIENCE;
    while status(1, "wrong").status != 400 {
        assert!(Instant::now() < until, "it is told again what is wrong after a while");
        std::thread::sleep(Duration::from_millis(3500));
    }
    // Good logins do not count.
    (0..40).for_each(|_| drop(token_of(&log_in(&world, &signer.token(&claims())))));
}

#[test]
fn a_subject_that_logs_in_too_often_has_to_wait_and_its_token_is_not_used_up() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let world = alone(&files.login(&[&signer], "leeway_seconds = 0", "single_use = true\n"));
    // What was issued in the second of the start is not taken.
    std::thread::sleep(Duration::from_secs(2));
    // Several at a time, so that they are faster than it is forgotten.
    let (good, refused) = (AtomicUsize::new(0), Mutex::new(None));
    let log_in_often = || {
        while refused.lock().is_none() {
            let token = signer.token(&claims());
            let answer = log_in(&world, &token);
            match answer.status {
                200 => assert!(good.fetch_add(1, Relaxed) < 20_000, "nothing stops it"),
                _ => *refused.lock() = Some((token, answer)),
            }
        }
    };
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(log_in_often))));
    let (token, answer) = refused.into_inner().expect("one was refused");
    let good = good.into_inner();
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(answer.errors().contains("too many logins of its subject") && good >= 500, "{good}: {answer:?}");
    token_of(&log_in(&world, &signer.token(&with("sub", json!("project:other")))));
    let until = Instant::now() + PATIENCE;
    while log_in(&world, &token).status != 200 {
        assert!(Instant::now() < until, "it can log in after a while");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_login_whose_body_does_not_arrive_ends_and_holds_up_nobody() {
    let (files, signer) = (Files::new(), Signer::p256("one"));
    let world = alone(&files.login(&[&signer], "", ""));
    let begin = || {
        let mut stream = TcpStream::connect(world.address()).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let head = "POST /v1/auth/jwt/login HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n{";
        stream.write_all(head.as_bytes()).expect("begun");
        stream
    };
    let mut slow: Vec<TcpStream> = (0..10).map(|_| begin()).collect();
    let began = now();
    let other = ask("/v1/auth/jwt/login", &json!({ "role": "ci", "jwt": signer.token(&claims()) }));
    token_of(&other.from(caller(1), world.address()));
    assert!(now() - began < 9, "nobody waits for them");
    // One that sends a byte now and then has no more time than one that is silent.
    let mut dripping = slow.pop().expect("one of them");
    let ended = dripping.try_clone().expect("another handle");
    ended.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
    while matches!(ended.peek(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock) {
        assert!(now() - began < PATIENCE.as_secs() as i64, "it is waited for");
        let _ = dripping.write_all(b" ");
        std::thread::sleep(Duration::from_millis(500));
    }
    ended.set_read_timeout(Some(PATIENCE)).expect("set");
    let refused = answer(dripping);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.errors().contains("may take 10 s to arrive"), "{refused:?}");
}

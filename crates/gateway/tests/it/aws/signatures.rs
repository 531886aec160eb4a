//! Who has signed, and what.

use std::io::Write;
use std::net::TcpStream;

use serde_json::json;
use time::Duration;

use super::{OF_4524, VERIFY_PIN, by_pvv, world};
use crate::common::{AccessKey, Answer, Ask, PATIENCE, Unsigned, answer};

fn kind(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.header("x-amzn-errortype").unwrap_or_default())
}

const WRONG: (u16, &str) = (403, "SignatureDoesNotMatch");
const INCOMPLETE: (u16, &str) = (403, "IncompleteSignature");

#[test]
fn a_request_is_answered_if_all_of_it_was_signed() {
    let (world, key) = world();
    let request = Unsigned::new(VERIFY_PIN, &by_pvv(OF_4524, "4021"));
    let right = request.ask(&key).of(world.address());
    assert_eq!(right.status, 200, "{right:?}");
    assert!(right.header("x-amzn-requestid").is_some());
    // Headers beside may be there.
    let beside = vec![("amz-sdk-request", "attempt=1; max=3".to_owned())];
    let request = Unsigned { beside, ..Unsigned::new(VERIFY_PIN, &by_pvv(OF_4524, "4021")) };
    assert_eq!(request.ask(&key).of(world.address()).status, 200);
}

#[test]
fn whatever_is_wrong_with_the_secret_gets_the_same_answer() {
    let (world, key) = world();
    let request = Unsigned::new(VERIFY_PIN, &by_pvv(OF_4524, "4021"));
    let mut texts = Vec::new();
    for secret in ["", "x", &key.secret[1..], &format!("{}x", key.secret), &key.secret.to_uppercase()] {
        let of = AccessKey { id: key.id.clone(), secret: (*secret).into() };
        let refused = request.ask(&of).of(world.address());
        assert_eq!(kind(&refused), WRONG, "{refused:?}");
        assert_eq!(refused.header("connection"), Some("close"));
        texts.push(refused.text);
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    let nobody = AccessKey { id: "POLYAAAAAAAAAAAAAAAA".into(), ..key.clone() };
    let refused = request.ask(&nobody).of(world.address());
    assert_eq!(kind(&refused), (403, "UnrecognizedClientException"));
    // A token of Vault's API is none here.
    let token = Ask::new("POST", VERIFY_PIN).token(&world.root).body(b"{}").of(world.address());
    assert_eq!(kind(&token), (403, "MissingAuthenticationToken"));
    let bearer = Ask::new("POST", VERIFY_PIN).header("authorization", &format!("Bearer {}", world.root));
    assert_eq!(kind(&bearer.body(b"{}").of(world.address())), INCOMPLETE);
}

#[test]
fn signatures_of_other_times_services_and_requests_are_refused() {
    let (world, key) = world();
    let new = || Unsigned::new(VERIFY_PIN, &by_pvv(OF_4524, "4021"));
    let ask = |request: &Unsigned| request.ask(&key).of(world.address());
    for minutes in [-16, 16] {
        let request = new();
        let refused = ask(&Unsigned { at: request.at + Duration::minutes(minutes), ..request });
        assert_eq!(kind(&refused), WRONG, "{minutes}: {refused:?}");
    }
    let request = new();
    assert_eq!(ask(&Unsigned { at: request.at - Duration::minutes(14), ..request }).status, 200);
    assert_eq!(kind(&ask(&Unsigned { service: "kms", ..new() })), WRONG);

    // Another body, path or header than was signed.
    let request = new();
    let other = Unsigned { body: by_pvv(OF_4524, "4022").to_string().into(), ..new() };
    let swapped = |line: &Unsigned| {
        Ask::new("POST", &line.path)
            .header("authorization", &request.authorization(&key))
            .header("content-type", "application/json")
    };
    let time = String::from_utf8(request.ask(&key).head()).expect("text");
    let time = time.lines().find_map(|line| line.strip_prefix("x-amz-date: ")).expect("a date").to_owned();
    let swapped = |line: &Unsigned| swapped(line).header("x-amz-date", &time);
    assert_eq!(swapped(&request).body(&request.body).of(world.address()).status, 200, "it is the same");
    assert_eq!(kind(&swapped(&request).body(&other.body).of(world.address())), WRONG);
    let path = Unsigned::new("/pindata/generate", &json!({}));
    assert_eq!(kind(&swapped(&path).body(&request.body).of(world.address())), WRONG);
    let named = swapped(&request).host("another").body(&request.body).of(world.address());
    assert_eq!(kind(&named), WRONG);
    let unsigned = swapped(&request).header("x-amz-target", "Other").body(&request.body);
    assert_eq!(kind(&unsigned.of(world.address())), INCOMPLETE);
    let twice = swapped(&request).header("x-amz-date", &time).body(&request.body);
    assert_eq!(kind(&twice.of(world.address())), INCOMPLETE);
    let both = swapped(&request).header("authorization", "AWS4-HMAC-SHA256 a=b").body(&request.body);
    assert_eq!(kind(&both.of(world.address())), INCOMPLETE);
    let queried = Ask::new("POST", &format!("{VERIFY_PIN}?X-Amz-Signature=0")).body(&request.body);
    assert_eq!(kind(&queried.of(world.address())), (403, "MissingAuthenticationToken"));

    // An announced hash counts for nothing.
    for hash in ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"] {
        let mut request = new();
        request.signed.push(("x-amz-content-sha256", hash.into()));
        assert_eq!(kind(&ask(&request)), WRONG, "{hash}");
    }
    let mut packed = new();
    packed.signed.push(("content-encoding", "gzip".into()));
    assert_eq!(kind(&ask(&packed)), INCOMPLETE);
}

#[test]
fn strangers_send_no_body_and_nobody_a_long_one() {
    let (world, key) = world();
    let long = Unsigned { body: vec![b' '; 65 << 10], ..Unsigned::new(VERIFY_PIN, &json!({})) };
    let refused = long.ask(&key).of(world.address());
    assert_eq!(kind(&refused), (413, "ValidationException"), "{refused:?}");
    // In pieces, without an announced length.
    let request = Unsigned::new(VERIFY_PIN, &json!({}));
    let head = String::from_utf8(request.ask(&key).head()).expect("text");
    let begin = |head: &str| {
        let mut stream = TcpStream::connect(world.address()).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.write_all(head.as_bytes()).expect("begun");
        stream
    };
    let length = head.lines().find(|line| line.starts_with("content-length")).expect("a length");
    let mut stream = begin(&head.replace(length, "transfer-encoding: chunked"));
    for _ in 0..66 {
        let piece = [b"400\r\n", vec![b' '; 1024].as_slice(), b"\r\n"].concat();
        // The answer may come before all of it was sent.
        let _ = stream.write_all(&piece);
    }
    assert_eq!(answer(&mut stream).status, 413);
    // A stranger gets an answer before it has sent anything.
    let nobody = AccessKey { id: "POLYAAAAAAAAAAAAAAAA".into(), ..key };
    let head = String::from_utf8(request.ask(&nobody).head()).expect("text");
    let mut stream = begin(&head.replace(length, "content-length: 60000"));
    assert_eq!(answer(&mut stream).status, 403);
}

#[test]
fn many_headers_are_refused() {
    let (world, key) = world();
    let mut request = Unsigned::new(VERIFY_PIN, &json!({}));
    request.beside = (0..200).map(|_| ("accept", "*/*".to_owned())).collect();
    assert_eq!(request.ask(&key).of(world.address()).status, 431);
}

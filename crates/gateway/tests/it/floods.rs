//! Small floods, by strangers and by tokens. They keep nobody else out. The example `gateway-flood` has the
//! full ones, with figures.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::Right;
use serde_json::{Value, json};

use crate::common::{Ask, PATIENCE, World, answer};

/// The head of a request for an encryption, which announces a body.
fn head(key: &str, token: &str, bytes: usize) -> String {
    let token = if token.is_empty() { String::new() } else { format!("x-vault-token: {token}\r\n") };
    format!("POST /v1/transit/encrypt/{key} HTTP/1.1\r\nhost: a\r\n{token}content-length: {bytes}\r\n\r\n")
}

/// A connection on which something was sent. The gateway may have closed it already.
fn begun(world: &World, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(world.address()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let _ = stream.write_all(sent);
    stream
}

/// Whether a connection is open and has no answer yet.
fn waits(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    matches!(stream.read(&mut [0; 1]), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn callers_without_a_token_keep_nobody_out_and_have_no_body_read() {
    let world = World::start_with("[limits]\nconnections = 8");
    world.done("POST", "/v1/transit/keys/besieged", Value::Null);
    let is_served = || {
        let answer = world.ask("POST", "/v1/transit/encrypt/besieged", json!({ "plaintext": "AAAA" }));
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    // Callers send a head without a token, or half a head, or nothing at all, and hold the connection.
    let announced = head("besieged", "", 1000);
    for sent in [&announced[..], &announced[..60], ""] {
        let mut held: Vec<TcpStream> = (0..40).map(|_| begun(&world, sent.as_bytes())).collect();
        (0..10).for_each(|_| is_served());
        if sent == announced {
            // The answer comes at once. The gateway does not wait for the body.
            let mut answer = String::new();
            let _ = held[39].read_to_string(&mut answer);
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("connection: close"), "{answer:?}");
        }
    }
    // Callers make new connections all the time.
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    drop((0..16).map(|_| begun(&world, announced.as_bytes())).collect::<Vec<_>>());
                }
            });
        }
        let served =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (0..20).for_each(|_| is_served())));
        stop.store(true, Relaxed);
        served.expect("all are served");
    });
    let page = |path: &str| Ask::new("GET", path).of(world.http_address()).text;
    let message = page("/healthz");
    let transit = message.lines().find_map(|line| line.strip_prefix("transit: ")).expect("it is told");
    let numbers: Vec<u64> = transit.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [known, 8, strangers, 2, refused] = numbers[..] else { panic!("{transit}") };
    assert!(known <= 8 && strangers <= 2 && refused > 40, "{transit}");
    let counts = page("/metrics");
    for part in ["connections{api=\"transit\",of=\"strangers\"} ", "connections{api=\"kms\",of=\"tokens\"} 0"]
    {
        assert!(counts.contains(&format!("polyclave_gateway_{part}")), "{part}:\n{counts}");
    }
    assert!(!counts.contains("connections_refused_total{api=\"transit\"} 0\n"), "{counts}");
}

/// How much memory the gateway says that long requests hold.
fn memory_held(world: &World) -> f64 {
    let page = Ask::new("GET", "/metrics").of(world.http_address()).text;
    let message = page.lines().find_map(|line| line.strip_prefix("polyclave_gateway_memory_bytes "));
    message.and_then(|number| number.parse().ok()).unwrap_or_default()
}

#[test]
fn a_token_that_announces_much_and_one_that_sends_much_leave_memory_to_others() {
    let world = World::start();
    world.done("POST", "/v1/transit/keys/roomy", Value::Null);
    let [idle, greedy, modest] = ["idle", "greedy-bodies", "modest-bodies"]
        .map(|name| world.add_token(name, &[Right::Encrypt], &["roomy"]));
    // To hash takes no right, and neither does announcing a body.
    let hash = head("roomy", &idle, 32 << 20).replace("encrypt/roomy", "hash");
    let mut silent: Vec<TcpStream> = (0..4).map(|_| begun(&world, hash.as_bytes())).collect();
    let mut sent = head("roomy", &greedy, 32 << 20).into_bytes();
    sent.extend_from_slice(b"{\"plaintext\": \"");
    sent.resize(sent.len() + (24 << 20), b'A');
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut stream = TcpStream::connect(world.address()).expect("connected");
                stream.set_write_timeout(Some(Duration::from_millis(200))).expect("set");
                // The gateway reads only a part for now, and holds the rest back.
                let mut rest = &sent[..];
                while !stop.load(Relaxed) {
                    match stream.write(&rest[..rest.len().min(1 << 20)]) {
                        Ok(bytes) if rest.len() > bytes => rest = &rest[bytes..],
                        _ => std::thread::sleep(Duration::from_millis(200)),
                    }
                    if rest.len() < 100 {
                        let _ = stream.write(b"A");
                    }
                }
            });
        }
        let trickle = scope.spawn(|| {
            let mut still_wait = true;
            while !stop.load(Relaxed) {
                for stream in &mut silent {
                    still_wait &= waits(stream);
                    let _ = stream.write(b" ");
                }
                std::thread::sleep(Duration::from_millis(500));
            }
            still_wait
        });
        let plaintext = STANDARD.encode(vec![7; 1 << 20]);
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let counted = |world: &World| memory_held(world) >= f64::from(5 * (20 << 20));
            world.wait_until("five times of what has arrived is counted", counted);
            (0..3)
                .map(|_| {
                    world
                        .ask_as(
                            &modest,
                            "POST",
                            "/v1/transit/encrypt/roomy",
                            json!({ "plaintext": plaintext }),
                        )
                        .status
                })
                .collect::<Vec<_>>()
        }));
        stop.store(true, Relaxed);
        assert_eq!(served.expect("answered"), [200; 3]);
        assert!(trickle.join().expect("it ends"), "the others held what they had announced all the time");
    });
}

#[test]
fn requests_for_little_have_no_long_bodies() {
    let world = World::shared();
    let body = vec![b' '; (64 << 10) + 1];
    for path in ["/v1/auth/token/lookup-self", "/v1/transit/random/8", "/v1/transit/keys/of-little"] {
        let refused = Ask::new("POST", path).token(&world.root).body(&body).of(world.address());
        assert!(refused.status == 413 && refused.errors().contains("64 KiB"), "{path}: {refused:?}");
    }
}

#[test]
fn bodies_of_another_shape_than_requests_are_refused_before_they_have_arrived() {
    let world = World::shared();
    world.done("POST", "/v1/transit/keys/shapely", Value::Null);
    let values = "0,".repeat(1 << 20);
    for (begin, message) in [("[".repeat(1000), "within each other"), (format!("[{values}"), "values")] {
        let mut sent = head("shapely", &world.root, 32 << 20).into_bytes();
        sent.extend_from_slice(b"{\"a\": ");
        sent.extend_from_slice(begin.as_bytes());
        // The rest never comes.
        let refused = answer(begun(&world, &sent));
        assert!(refused.status == 400 && refused.errors().contains(message), "{refused:?}");
    }
}

#[test]
fn long_requests_and_batches_have_threads_of_their_own() {
    let world = World::start();
    world.done("POST", "/v1/transit/keys/longish", Value::Null);
    let long = || {
        let text = Ask::new("GET", "/metrics").of(world.http_address()).text;
        let line = text.lines().find_map(|line| line.strip_prefix("polyclave_gateway_long_requests_total "));
        line.expect("it is counted").parse::<u64>().expect("a number")
    };
    let hash = |bytes: usize| {
        let input = STANDARD.encode(vec![7; bytes]);
        assert_eq!(world.ask("POST", "/v1/transit/hash", json!({ "input": input })).status, 200);
    };
    let batch = |items: usize| {
        let items = vec![json!({}); items];
        let answered = world.ask("POST", "/v1/transit/encrypt/longish", json!({ "batch_input": items }));
        assert_eq!(answered.status, 400, "no item has a plaintext");
    };
    hash(1000);
    batch(64);
    assert_eq!(long(), 0);
    hash(100 << 10);
    assert_eq!(long(), 1);
    batch(65);
    assert_eq!(long(), 2);
}

//! The operator's page: who may see it, what it is told, and how it looks in a browser.

mod alerts;
mod grafana;
mod in_browser;
mod many_keys;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Right};
use polyclave_client::Client;
use polyclave_config::{ClientDir, Consent, NodeDir};
use polyclave_gateway::Dashboard;
use polyclave_harness::postgres::Postgres;
use polyclave_node::Running as Node;
use polyclave_node::local::{Shared, create_shared};
use polyclave_transport::Identity;
use serde_json::Value;

use crate::common::{Answer, Ask, PATIENCE, World};

/// The most that fit into the limit on viewers.
const VIEWERS: usize = 16;

/// A stream of snapshots.
struct Stream(BufReader<TcpStream>);

impl Stream {
    /// Opens one; the status of the answer if it is refused.
    fn open(address: SocketAddr, token: &str) -> Result<Stream, u16> {
        let mut socket = TcpStream::connect(address).expect("connected");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        let asked = format!(
            "GET /ui/stream HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        socket.write_all(asked.as_bytes()).expect("asked");
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        if status == 200 { Ok(Stream(reader)) } else { Err(status) }
    }

    /// The next snapshot; `None` at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.0.read_line(&mut line) {
                Ok(0) => return None,
                // Chunks of HTTP have lines of their own.
                Ok(_) => {
                    if let Some(text) = line.strip_prefix("data: ") {
                        return Some(serde_json::from_str(text).expect("JSON"));
                    }
                }
                Err(e) => panic!("nothing came: {e}"),
            }
        }
    }

    /// The first snapshot for which something is so.
    fn until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let message = self.next().expect("the stream goes on");
            if is_so(&message) {
                return message;
            }
            assert!(Instant::now() < until, "{what}: {message}");
        }
    }
}

fn dashboard(world: &World) -> (Dashboard, String) {
    let dashboard = Dashboard::start(world.client(), 0).expect("it starts");
    let token = dashboard.url().split_once("#token=").expect("a token").1.to_owned();
    (dashboard, token)
}

fn get(address: SocketAddr, host: &str, path: &str) -> (String, Answer) {
    let mut socket = TcpStream::connect(address).expect("connected");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    let asked = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    socket.write_all(asked.as_bytes()).expect("asked");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut socket, &mut bytes).expect("an answer");
    let whole = String::from_utf8(bytes).expect("text");
    let (head, text) = whole.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let answer = Answer { status, text: text.into(), head: head.into(), json: Value::Null };
    (head.to_lowercase(), answer)
}

/// Whether an alarm says something, or has it listed under itself.
fn says(message: &Value, part: &str) -> bool {
    let rows = message["alarms"]["rows"].as_array().expect("alarms");
    let has = |text: &Value| text.as_str().is_some_and(|text| text.contains(part));
    rows.iter().any(|row| has(&row["what"]) || row["under"].as_array().expect("a list").iter().any(has))
}

#[test]
fn the_page_is_small_takes_nothing_from_elsewhere_and_is_for_its_own_names_only() {
    let world = World::shared();
    let (dashboard, _) = dashboard(&world);
    let address = dashboard.address();
    assert!(address.ip().is_loopback());
    let (own, mut bytes) = (address.to_string(), 0);
    for path in ["/ui", "/ui/page.css", "/ui/page.js", "/ui/icon.svg"] {
        let (head, answer) = get(address, &own, path);
        assert_eq!(answer.status, 200, "{path}");
        bytes += answer.text.len();
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(head.contains(header), "{path}: {head}");
        }
        assert!(!head.contains("set-cookie") && !head.contains("access-control"), "{head}");
        for elsewhere in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "style=\"",
            "onclick=",
        ] {
            assert!(!answer.text.contains(elsewhere), "{path} has {elsewhere}");
        }
    }
    println!("the page has {bytes} bytes");
    assert!(bytes < 100_000, "{bytes} bytes");
    let port = address.port();
    for (host, status) in [
        (format!("localhost:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("127.0.0.1".into(), 421),
        (format!("evil.example:{port}"), 421),
        (format!("127.0.0.1.evil.example:{port}"), 421),
        (String::new(), 421),
    ] {
        for path in ["/ui", "/ui/stream", "/ui/keys"] {
            let wanted = if status == 200 && path != "/ui" { 401 } else { status };
            assert_eq!(get(address, &host, path).1.status, wanted, "{host:?} {path}");
        }
    }
}

#[test]
fn only_a_token_with_the_right_looks_and_it_stops_when_it_is_revoked() {
    let world = World::start();
    let address = world.address();
    let looking = world.add_token("looking", &[Right::Observe, Right::List], &["pay-*"]);
    let other = world.add_token("other", &[Right::List], &["*"]);
    for (token, status) in [("", 401), ("nobody", 401), (other.as_str(), 403)] {
        assert_eq!(Stream::open(address, token).err(), Some(status));
        let asked = Ask::new("GET", "/ui/keys").header("Authorization", &format!("Bearer {token}"));
        assert_eq!(asked.of(address).status, status);
    }
    let in_address = Ask::new("GET", &format!("/ui/stream?token={looking}")).of(address);
    assert_eq!(in_address.status, 401, "a token in an address ends up in logs");
    let mut stream = Stream::open(address, &looking).expect("admitted");
    let message = stream.until("all nodes answer", |message| message["nodes"][2]["ready"] == true);
    assert!(message["gateway"].is_object() && message["cluster"]["needed"] == 3);
    assert!(!message.to_string().contains(&looking));
    world.revoke("looking");
    let until = Instant::now() + PATIENCE;
    while stream.next().is_some() {
        assert!(Instant::now() < until, "the stream goes on");
    }
    assert_eq!(Stream::open(address, &looking).err(), Some(401));
}

#[test]
fn a_search_shows_what_the_token_may_list_and_a_page_at_a_time() {
    let world = World::start();
    let client = world.client();
    for name in ["pay-1", "pay-2", "other"] {
        client.generate(NewKey::for_modes(name, "aes-128", &[Mode::Gcm], 1 << 20)).expect("made");
    }
    let token = world.add_token("searching", &[Right::Observe, Right::List], &["pay-*"]);
    let find = |query: &str| {
        let asked = Ask::new("GET", &format!("/ui/keys{query}"));
        asked.header("Authorization", &format!("Bearer {token}")).of(world.address())
    };
    let all = find("");
    let names: Vec<_> = all.json["rows"].as_array().expect("rows").iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["pay-1", "pay-2"]);
    assert_eq!(all.json["rows"][0]["at"], serde_json::json!(["node-1", "node-2", "node-3"]));
    assert_eq!(find("?part=2&page=0").json["found"], 1);
    assert_eq!(find("?part=2&page=9").json["rows"], serde_json::json!([]));
    assert_eq!(find("?part=%00").status, 400);
    assert_eq!(find("?page=18446744073709551616").status, 400);
}

#[test]
fn the_page_tells_what_happens_and_a_node_that_is_gone() {
    let mut world = World::start();
    let (dashboard, token) = dashboard(&world);
    let client = world.client();
    client.generate(NewKey::for_modes("tight", "aes-128", &[Mode::Cmac], 100)).expect("made");
    client.key("tight").and_then(|key| key.cmac(&[7; 95 * 16])).expect("computed");
    client.key("tight").and_then(|key| key.cmac(&[7; 95 * 16])).expect_err("the budget is spent");
    let mut stream = Stream::open(dashboard.address(), &token).expect("admitted");
    let message = stream.until("what happened is told", |message| {
        says(message, "The key tight (version 1) has less than a tenth of its budget left")
            && message["nodes"].as_array().is_some_and(|nodes| nodes.iter().all(|node| node["ready"] == true))
    });
    let spent = message["refusals"].as_array().expect("refusals").iter().find(|row| row["reason"] == "spent");
    assert!(spent.is_some_and(|row| row["by"]["node-1"].as_u64() >= Some(1)), "{}", message["refusals"]);
    assert!(spent.is_some_and(|row| row["words"] == "budget of the key is spent"), "{}", message["refusals"]);
    let operations: Vec<_> = message["requests"]["rows"].as_array().expect("rows").iter().collect();
    assert!(
        operations.iter().any(|row| row["operation"] == "mac" && row["total"].as_u64() >= Some(2)),
        "{operations:?}"
    );
    assert_eq!(message["cluster"]["correction"], "none");
    assert_eq!(message["keys"]["least"][0]["name"], "tight");
    assert!(
        message["certificates"]["rows"].as_array().is_some_and(|rows| rows.len() == 4),
        "three nodes and a client"
    );
    // The store learns from time to time where the log ends.
    stream.until("where the audit log ends", |message| {
        message["nodes"][0]["audit"]["number"].as_u64() > Some(0)
    });
    world.stop_node(1);
    let message = stream.until("node-2 is gone", |message| says(message, "node-2 is not reached since"));
    assert!(message["nodes"][1]["gone"]["seconds"].is_u64() && message["nodes"][0]["gone"].is_null());
    // The node's two peers miss it and cannot serve, so the cluster serves nothing. This one cause is one
    // alarm. The other alarm is that of the key.
    let message = stream.until("the others miss it", |message| {
        let sees = |at: usize| message["nodes"][at]["sees"] == serde_json::json!(["node-1", "node-3"]);
        sees(0) && sees(2) && says(message, "node-1 and node-3 cannot serve")
    });
    assert!(says(&message, "Requests cannot be served: 2 of 3 nodes answer"), "{}", message["alarms"]);
    assert!(says(&message, "and node-2 is not connected"), "{}", message["alarms"]);
    let rows = message["alarms"]["rows"].as_array().expect("alarms");
    let whats: Vec<_> = rows.iter().filter_map(|row| row["what"].as_str()).collect();
    assert!(whats.len() == 2 && whats[0].starts_with("node-2 is not reached"), "{whats:?}");
    world.start_node(1);
    stream.until("it is back", |message| {
        message["nodes"][1]["ready"] == true && !says(message, "node-2 is not reached")
    });
    drop(dashboard);
    assert!(std::iter::from_fn(|| stream.next()).count() < 10, "the stream ends with the dashboard");
}

#[test]
fn each_worker_is_a_line_and_one_that_is_gone_is_told_with_what_follows() {
    let Some(server) = Postgres::start("the page of nodes with workers", &[]) else { return };
    let files = tempfile::tempdir().expect("a directory");
    let url = server.url();
    let shared = Shared { workers: 2, store: &url, password: None, roles: None };
    let local = create_shared(&files.path().join("cluster"), ("shamir", 3, 1), shared).expect("a cluster");
    let start = |path| Node::start(NodeDir::open(path).expect("its directory")).expect("it starts");
    let mut running: Vec<Node> = local.nodes.iter().map(|path| start(path)).collect();
    let wait = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait("the first workers are ready", &mut || running.iter().all(Node::is_ready));
    running.extend(local.workers.iter().map(|path| start(path)));
    wait("all are ready", &mut || running.iter().all(Node::is_ready));
    let client = || Client::open(&ClientDir::open(&local.client).expect("its directory")).expect("a client");
    let asks = client();
    asks.generate(NewKey::for_modes("k", "aes-128", &[Mode::Cmac], 1 << 20)).expect("made");
    for _ in 0..8 {
        asks.key("k").and_then(|key| key.cmac(b"twelve boxes")).expect("an answer");
    }
    let dashboard = Dashboard::start(client(), 0).expect("it starts");
    let token = dashboard.url().split_once("#token=").expect("a token").1.to_owned();
    let mut stream = Stream::open(dashboard.address(), &token).expect("open");
    let message = stream.until("all are ready", |message| {
        message["nodes"].as_array().expect("rows").iter().filter(|row| row["ready"] == true).count() == 6
    });
    let names: Vec<&str> =
        message["nodes"].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect();
    let expected = ["node-1", "node-2", "node-3", "node-1 worker 1", "node-2 worker 1", "node-3 worker 1"];
    assert_eq!(names, expected);
    assert_eq!(message["nodes"][4]["sees"], serde_json::json!(["node-1", "node-2", "node-3"]));
    assert_ne!(message["nodes"][4]["address"], message["nodes"][1]["address"]);
    let of_operation = |message: &Value| {
        let rows = message["requests"]["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["operation"] == "mac").map(|row| row["total"].clone())
    };
    assert_eq!(
        of_operation(&message),
        Some(8.into()),
        "of both worker groups together: {}",
        message["requests"]
    );
    running.remove(4).stop();
    let message = stream.until("the worker is gone", |message| message["nodes"][4]["gone"].is_object());
    assert!(
        message["alarms"].to_string().contains("node-2 worker 1 is not reached"),
        "{}",
        message["alarms"]
    );
    assert!(
        message["alarms"].to_string().contains("Workers 1 serve nothing: 2 of 3 answer"),
        "{}",
        message["alarms"]
    );
    assert!(!message["alarms"].to_string().contains("Requests cannot be served"), "{}", message["alarms"]);
    asks.key("k").and_then(|key| key.cmac(b"twelve boxes")).expect("the others serve");
}

#[test]
fn a_client_that_may_not_watch_is_told_what_it_may_know_and_why_not_the_rest() {
    let world = World::start();
    let dir = world.dir.path().join("plain");
    let identity = Identity::generate_named("plain", 1).expect("an identity");
    let card = ClientDir::init(&dir, "plain", &identity.certificate(), &identity.reveal_private_key());
    let card = card.expect("made");
    let client = ClientDir::open(&dir).expect("its directory");
    client.set_cluster(world.client().cluster(), Consent::None).expect("saved");
    for node in &world.local.nodes {
        let node = NodeDir::open(node).expect("its directory");
        let mut policy = node.policy().expect("read");
        policy.allow(&card, &[Right::Encrypt], &["*".into()]).expect("it fits");
        node.save_policy(&policy).expect("saved");
    }
    let client = Client::open(&client).expect("a client");
    let dashboard = Dashboard::start(client, 0).expect("it starts");
    let token = dashboard.url().split_once("#token=").expect("a token").1.to_owned();
    let mut stream = Stream::open(dashboard.address(), &token).expect("admitted");
    let message = stream.until("the nodes answer", |message| message["nodes"][0]["sees"].is_array());
    assert!(message["nodes"][0]["not_told"].as_str().is_some_and(|why| why.contains("observe")), "{message}");
    assert!(
        message["keys"].is_null()
            && message["nodes"][0]["audit"].is_null()
            && message["refusals"] == serde_json::json!([])
    );
}

#[test]
fn so_many_look_at_once_and_a_watcher_is_two_lines_in_the_audit_log() {
    let world = World::start();
    let (dashboard, token) = dashboard(&world);
    let open = || Stream::open(dashboard.address(), &token);
    let mut streams: Vec<Stream> = (0..VIEWERS).map(|_| open().expect("there is room")).collect();
    assert_eq!(open().err(), Some(503));
    for stream in &mut streams {
        assert!((0..3).all(|_| stream.next().is_some()));
    }
    // One begun and one done for the connection, however many look and however long.
    let lines = || world.audit_log(0).matches("\"operation\":\"report\"").count();
    assert_eq!(lines(), 2);
    streams.pop();
    let until = Instant::now() + PATIENCE;
    while open().is_err() {
        assert!(Instant::now() < until, "a place became free");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_token_that_looks_at_many_pages_keeps_no_other_from_looking() {
    let world = World::start();
    let address = world.address();
    let [greedy, modest] =
        ["greedy-pages", "modest-pages"].map(|name| world.add_token(name, &[Right::Observe], &["*"]));
    let mut streams: Vec<Stream> =
        (0..VIEWERS).map(|_| Stream::open(address, &greedy).expect("there is room")).collect();
    assert_eq!(Stream::open(address, &greedy).err(), Some(503), "its own streams make no room for it");
    let mut other = Stream::open(address, &modest).expect("one of the others makes room");
    assert!((0..3).all(|_| other.next().is_some()));
    while streams[0].next().is_some() {}
    assert!(streams[1..].iter_mut().all(|stream| stream.next().is_some()));
}

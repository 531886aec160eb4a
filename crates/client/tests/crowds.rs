//! Crowds: connections of HTTP that do nothing, and clients that hold as many channels as they can. Others
//! are served all the same.
//!
//! What is claimed is an order, never a speed: who is served before whom.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use common::messages::gcm;
use common::raw::{Raw, request};
use common::{TestCluster, key};
use polyclave_api::{Mode, Operation, Reply, Right, Step, Use, operations};
use polyclave_client::Client;
use polyclave_config::NodeDir;
use polyclave_transport::Identity;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The longest that anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// Files that the process of this test may have: less than idle connections and a node that keeps them all
/// would take.
const FILES: u64 = 2000;
const IDLE: usize = 1100;

fn cluster() -> TestCluster {
    let cluster = TestCluster::start(3, 1);
    cluster.client().generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    cluster
}

/// A client that the nodes know.
fn known(cluster: &TestCluster, name: &str) -> (Client, Identity) {
    let identity = Identity::generate_named(name, 1).expect("an identity");
    let client = cluster.client_of(name, &identity);
    cluster.allow(name, &[Right::Encrypt], &["k"]);
    cluster.wait_until(|| client.status().iter().all(|(_, status)| status.is_ok()));
    (client, identity)
}

/// A request that has begun at all nodes, or waits to begin.
fn begin(cluster: &TestCluster, identity: &Identity) -> Raw {
    let mut raw = Raw::call_as(cluster, identity);
    let how = Use::GcmEncrypt { additional: vec![], nonce: None };
    raw.tell_all(&request(Operation::Use(operations::UseKey { key: "k".into(), id: None, how }), None));
    raw
}

fn accepted(raw: &mut Raw) {
    assert!(raw.replies().iter().all(|reply| matches!(reply, Reply::Accepted { .. })));
}

/// A request that goes on until it is told to stop; whether it went on till then.
fn go_on(raw: &mut Raw, is_done: &AtomicBool) -> bool {
    let until = Instant::now() + PATIENCE;
    while !is_done.load(Relaxed) && Instant::now() < until {
        raw.tell_all(&Step::Keystream { bytes: 16 });
        if raw.reply(0).is_none_or(|reply| matches!(reply, Reply::Refused(_))) {
            return false;
        }
        (1..raw.nodes()).for_each(|node| drop(raw.reply(node)));
        thread::sleep(Duration::from_millis(200));
    }
    is_done.load(Relaxed)
}

/// On the code before, the two held all sixteen channels for as long as they went on, and the third was
/// refused as busy.
#[test]
fn a_third_client_is_served_before_any_request_of_two_others_with_eight_each_has_ended() {
    let cluster = cluster();
    let (_, alice) = known(&cluster, "alice");
    let (_, bob) = known(&cluster, "bob");
    let (carol, _) = known(&cluster, "carol");
    let mut of_alice: Vec<Raw> = (0..8).map(|_| begin(&cluster, &alice)).collect();
    of_alice.iter_mut().for_each(accepted);
    let of_bob: Vec<Raw> = (0..8).map(|_| begin(&cluster, &bob)).collect();
    let is_done = AtomicBool::new(false);
    let of_alice_ended = thread::scope(|scope| {
        let is_done = &is_done;
        let of_alice: Vec<_> =
            of_alice.into_iter().map(|mut raw| scope.spawn(move || go_on(&mut raw, is_done))).collect();
        for mut raw in of_bob {
            scope.spawn(move || {
                // Those that begin: the others wait, and are refused in the end.
                if matches!(raw.reply(0), Some(Reply::Accepted { .. })) {
                    (1..raw.nodes()).for_each(|node| drop(raw.reply(node)));
                    go_on(&mut raw, is_done);
                }
            });
        }
        let served = thread::scope(|scope| {
            let one = || gcm(&carol, "k", b"", b"short").is_ok();
            let requests: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            requests.into_iter().map(|one| one.join().expect("no panic")).filter(|served| *served).count()
        });
        is_done.store(true, Relaxed);
        assert_eq!(served, 8, "of Carol's");
        of_alice.into_iter().map(|one| one.join().expect("no panic")).filter(|went_on| !went_on).count()
    });
    assert_eq!(of_alice_ended, 0, "all eight of Carol's were served while all of Alice's went on");
}

/// Bob waits for more than the four that he has while Alice's eight do nothing.
#[test]
fn idle_requests_end_for_a_client_that_holds_fewer_and_no_more_of_them_than_it_takes() {
    let cluster = cluster();
    let (_, alice) = known(&cluster, "alice");
    let (_, bob) = known(&cluster, "bob");
    let mut of_alice: Vec<Raw> = (0..8).map(|_| begin(&cluster, &alice)).collect();
    of_alice.iter_mut().for_each(accepted);
    let mut of_bob: Vec<Raw> = (0..8).map(|_| begin(&cluster, &bob)).collect();
    let until = Instant::now() + PATIENCE;
    let mut begun = Vec::new();
    while begun.len() < 6 {
        assert!(Instant::now() < until, "{} of Bob's requests have begun", begun.len());
        match of_bob.iter_mut().position(|raw| !raw.is_quiet()) {
            Some(at) => {
                let mut raw = of_bob.swap_remove(at);
                accepted(&mut raw);
                // It goes on.
                begun.push(raw);
            }
            None => thread::sleep(Duration::from_millis(50)),
        }
    }
    let mut left = 0;
    for raw in &mut of_alice {
        if raw.is_quiet() {
            left += 1;
            continue;
        }
        let endings = raw.endings();
        let message: Vec<String> = endings.iter().map(|ending| ending.message()).collect();
        assert!(message[0].contains("while a client waited"), "{message:?}");
        assert!(
            message[1..].iter().all(|message| message.contains("node-1 did not accept this step")),
            "{message:?}"
        );
    }
    assert!((1..8).contains(&left), "{left} of Alice's are left");
}

#[test]
fn a_thousand_idle_connections_of_http_keep_nobody_from_being_served() {
    let before = getrlimit(Resource::Nofile);
    let files = before.maximum.map_or(FILES, |most| most.min(FILES));
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: Some(files) }).expect("lowered");
    let cluster = cluster();
    let node = NodeDir::open(&cluster.local.nodes[0]).expect("its directory");
    let address = node.settings().http_listen.clone().expect("it answers HTTP");
    let idle: Vec<TcpStream> =
        (0..IDLE).map(|_| TcpStream::connect(&address).expect("there are files for this side")).collect();
    let mut stream = TcpStream::connect(&address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ready\n"), "{answer}");
    // Clients that come now, and nodes that need new channels, find files.
    for _ in 0..4 {
        gcm(&cluster.client(), "k", b"", b"meanwhile").expect("served");
    }
    drop(idle);
}

#[test]
fn a_request_that_comes_while_a_node_returns_is_served() {
    let mut cluster = cluster();
    for _ in 0..6 {
        cluster.nodes[2] = None;
        cluster.restart(2);
        // The node that leads has not yet heard of it again.
        let mut raw = begin(&cluster, &cluster.identity());
        accepted(&mut raw);
    }
}

/// Not a claim about speed, but the measurement that is quoted:
/// `cargo test -p polyclave-client --release --test crowds -- --ignored --nocapture waits`.
#[test]
#[ignore = "a measurement"]
fn waits_of_three_clients_with_eight_requests_each() {
    let cluster = cluster();
    let clients: Vec<Client> = ["alice", "bob", "carol"].map(|name| known(&cluster, name).0).into();
    let eight = |client: &Client| -> Duration {
        let one = || {
            let began = Instant::now();
            gcm(client, "k", b"", &common::data(64 << 10)).expect("served");
            began.elapsed()
        };
        thread::scope(|scope| {
            let requests: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            requests.into_iter().map(|request| request.join().expect("no panic")).max().unwrap_or_default()
        })
    };
    for _ in 0..5 {
        let alone = eight(&clients[0]);
        let together: Vec<Duration> = thread::scope(|scope| {
            let all: Vec<_> = clients.iter().map(|client| scope.spawn(|| eight(client))).collect();
            all.into_iter().map(|one| one.join().expect("no panic")).collect()
        });
        println!("alone {alone:?}, together {together:?}");
    }
}

//! Clients at the doors of nodes.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::common::cluster::{CLUSTER, LONG, set};
use crate::common::{HASTY, PATIENT, message};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, Result};
use polyclave_transport::{
    Caller, CertificateDer, Halt, Identity, Limits, Line, Node, Reception, TlsNet, call,
};

/// Doors of a cluster that admit everyone on a list.
struct Doors {
    receptions: Vec<Reception>,
    nodes: Vec<Node>,
    admitted: Arc<Mutex<Vec<CertificateDer<'static>>>>,
}

fn doors(n: usize, limits: Limits) -> (Doors, Identity) {
    let client = Identity::generate_named("a client", 30).expect("identity");
    let admitted = Arc::new(Mutex::new(vec![client.certificate()]));
    let (mut receptions, mut nodes) = (Vec::new(), Vec::new());
    for me in Party::all(n) {
        let identity = Identity::generate().expect("identity");
        let certificates = vec![identity.certificate()];
        let list = admitted.clone();
        let admits = Arc::new(move |shown: &[CertificateDer<'_>]| list.lock().iter().any(|c| *c == shown[0]));
        let door = Reception::start("127.0.0.1:0", identity, limits, me, n, CLUSTER, admits).expect("door");
        nodes.push(Node { address: door.local_addr().to_string(), certificates });
        receptions.push(door);
    }
    (Doors { receptions, nodes, admitted }, client)
}

impl Doors {
    fn call(&self, client: &Identity, which: &[u8]) -> Vec<(Party, Result<Line>)> {
        call(client, PATIENT, &self.nodes, (CLUSTER, None), set(which), &Halt::default())
    }

    fn net(&self, client: &Identity, which: &[u8]) -> TlsNet {
        let lines = self.call(client, which).into_iter().map(|(party, line)| (party, line.expect("line")));
        TlsNet::of_lines(self.nodes.len(), PATIENT, lines.collect())
    }

    fn caller(&self, node: usize) -> Caller {
        self.receptions[node].next(LONG).expect("a caller")
    }
}

/// What goes wrong with a call of one node.
fn refusal(mut ends: Vec<(Party, Result<Line>)>) -> Error {
    ends.pop().expect("one").1.err().expect("it must fail")
}

#[test]
fn a_client_exchanges_different_sizes_with_three_of_four_nodes_at_once() {
    let (doors, client) = doors(4, PATIENT);
    let sizes = [(100_000, 3), (0, 0), (5, 2_000_000), (0, 16)];
    let (me, serving) = (Party(4), [0, 2, 3]);
    std::thread::scope(|scope| {
        for node in serving {
            let doors = &doors;
            scope.spawn(move || {
                let Caller { mut net, certificates, .. } = doors.caller(usize::from(node));
                assert_eq!((net.me(), net.parties(), net.members()), (Party(node), 5, set(&[node, 4])));
                assert!(certificates == doors.admitted.lock()[..1]);
                for _ in 0..3 {
                    let (there, back) = sizes[usize::from(node)];
                    let mut out = [&[][..]; 5];
                    let reply = message(net.me(), me, back);
                    out[4] = &reply;
                    let mut request = vec![0; there];
                    let [a, b, c, d] = [&mut [][..], &mut [], &mut [], &mut []];
                    net.exchange(&out, &mut [a, b, c, d, &mut request]).expect("exchange");
                    assert!(request == message(me, net.me(), there));
                }
            });
        }
        let mut net = doors.net(&client, &serving);
        assert_eq!((net.me(), net.parties(), net.members()), (me, 5, set(&[0, 2, 3, 4])));
        for _ in 0..3 {
            let out: Vec<_> =
                (0..5).map(|p| message(me, Party(p), sizes.get(usize::from(p)).map_or(0, |s| s.0))).collect();
            let mut into: Vec<_> = (0..5).map(|p| vec![0; sizes.get(p).map_or(0, |s| s.1)]).collect();
            let out: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
            net.exchange(&out, &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())
                .expect("exchange");
            for node in serving {
                assert!(into[usize::from(node)] == message(Party(node), me, sizes[usize::from(node)].1));
            }
            // Between two messages a network can be taken apart and put together again.
            net = TlsNet::of_lines(4, PATIENT, net.into_lines().expect("lines"));
        }
    });
}

#[test]
fn a_client_that_is_not_admitted_is_told_and_counted_until_it_is() {
    let (doors, _) = doors(1, PATIENT);
    let stranger = Identity::generate().expect("identity");
    let message = refusal(doors.call(&stranger, &[0]));
    assert!(
        matches!(&message, Error::Peer { peer: Party(0), detail } if detail.contains("refused this party's certificate")),
        "{message:?}"
    );
    assert!(doors.receptions[0].next(HASTY).is_none());
    assert_eq!(doors.receptions[0].turned_away(), 1);
    doors.admitted.lock().push(stranger.certificate());
    let mut net = doors.net(&stranger, &[0]);
    let mut caller = doors.caller(0);
    assert!(caller.certificates == [stranger.certificate()]);
    net.send(Party(0), b"hello").expect("send");
    caller.net.recv(Party(1), &mut [0; 5]).expect("recv");
    assert_eq!(doors.receptions[0].turned_away(), 1);
}

#[test]
fn a_node_with_another_certificate_or_cluster_is_refused() {
    let (mut doors, client) = doors(1, PATIENT);
    let message = refusal(call(&client, PATIENT, &doors.nodes, ([9; 16], None), set(&[0]), &Halt::default()));
    assert_eq!(message, Error::Disagreement { peer: Party(0), field: "cluster" });
    doors.nodes[0].certificates = vec![client.certificate()];
    let message = refusal(doors.call(&client, &[0]));
    assert!(
        matches!(&message, Error::Peer { peer: Party(0), detail } if detail.contains("not the one")),
        "{message:?}"
    );
}

#[test]
fn a_node_that_is_not_there_fails_soon_and_the_others_do_not_wait() {
    let (mut doors, client) = doors(3, PATIENT);
    drop(doors.receptions.remove(1));
    let start = Instant::now();
    let ends = doors.call(&client, &[0, 1, 2]);
    assert!(start.elapsed() < PATIENT.connect / 4, "it waited as long as a mesh");
    let parties: Vec<_> = ends.iter().map(|(party, line)| (party.0, line.is_ok())).collect();
    assert_eq!(parties, [(0, true), (1, false), (2, true)]);
}

#[test]
fn a_frame_that_lies_hurts_its_sender_only() {
    let (doors, client) = doors(1, PATIENT);
    let [mut liar, mut honest] = [(); 2].map(|()| doors.net(&client, &[0]));
    let [mut of_liar, mut of_honest] = [(); 2].map(|()| doors.caller(0).net);
    liar.send(Party(0), &[1; 10]).expect("send");
    let end = of_liar.recv(Party(1), &mut [0; 11]);
    assert!(
        matches!(&end, Err(Error::Peer { peer: Party(1), detail }) if detail.contains("10 bytes")),
        "{end:?}"
    );
    assert!(!of_liar.is_alive() && of_liar.into_lines().is_err());
    honest.send(Party(0), &[1; 10]).expect("send");
    of_honest.recv(Party(1), &mut [0; 10]).expect("recv");
}

#[test]
fn strangers_do_not_hold_up_clients() {
    let (doors, client) = doors(2, PATIENT);
    let start = Instant::now();
    let mut strangers = Vec::new();
    for i in 0..300 {
        let mut tcp = TcpStream::connect(&doors.nodes[i % 2].address).expect("connect");
        tcp.set_nonblocking(true).expect("non-blocking");
        let _ = match i / 2 % 3 {
            0 => Ok(0),
            1 => tcp.write(b"GET / HTTP/1.1\r\n\r\n"),
            _ => tcp.write(&[0x16, 3, 1, 2, 0, 1, 0]),
        };
        strangers.push(tcp);
    }
    let mut net = doors.net(&client, &[0, 1]);
    for node in [0, 1] {
        net.send(Party(node), b"hello").expect("send");
        doors.caller(usize::from(node)).net.recv(Party(2), &mut [0; 5]).expect("recv");
    }
    assert!(start.elapsed() < PATIENT.handshake, "the client had to wait for strangers");
}

#[test]
fn a_closed_connection_is_not_alive_at_either_end() {
    let (doors, client) = doors(2, PATIENT);
    let [mut stays, mut left] = [(); 2].map(|()| doors.net(&client, &[0, 1]));
    let callers = [0, 1].map(|node| [doors.caller(node), doors.caller(node)]);
    assert!(stays.is_alive() && left.is_alive());
    // Which of the two is whose is found out by talking.
    left.send(Party(0), b"l").expect("send");
    stays.send(Party(0), b"s").expect("send");
    let [at_first, at_second] = callers;
    let mut kept = Vec::new();
    for mut caller in at_first {
        let mut who = [0];
        caller.net.recv(Party(2), &mut who).expect("recv");
        if who == *b"s" {
            kept.push(caller);
        }
    }
    until(|| !left.is_alive());
    assert!(stays.is_alive(), "one node of the other network has not left");
    let mut lines = stays.into_lines().expect("between two messages");
    assert!(lines.iter_mut().all(|(_, line)| line.is_alive()));
    drop((kept, at_second));
    until(|| lines.iter_mut().all(|(_, line)| !line.is_alive()));
    // And the other way round.
    let net = doors.net(&client, &[0]);
    let mut caller = doors.caller(0);
    assert!(caller.net.is_alive());
    drop(net);
    until(|| !caller.net.is_alive());
}

fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "it never came to be");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_idle_limit_holds_for_its_network() {
    let (doors, client) = doors(1, PATIENT);
    let _net = doors.net(&client, &[0]);
    let mut caller = doors.caller(0);
    caller.net.set_idle_limit(HASTY);
    assert_eq!(caller.net.recv(Party(1), &mut [0]), Err(Error::Timeout { peer: Party(1), waited: HASTY }));
}

#[test]
fn callers_that_nobody_takes_are_bounded_and_those_that_left_are_skipped() {
    let (doors, client) = doors(1, PATIENT);
    let calls = |count: usize| -> Vec<Line> {
        let lines = (0..count).flat_map(|_| doors.call(&client, &[0]));
        lines.map(|(_, line)| line.expect("line")).collect()
    };
    drop(calls(3));
    let mut lines = calls(260);
    until(|| lines.iter_mut().map(|line| usize::from(!line.is_alive())).sum::<usize>() == 7);
    let taken = std::iter::from_fn(|| doors.receptions[0].next(HASTY)).count();
    assert_eq!(taken, 253);
}

#[test]
fn mistakes_of_the_caller_are_misuse() {
    let (doors, client) = doors(2, PATIENT);
    let mut net = doors.net(&client, &[0]);
    let mut caller = doors.caller(0);
    let misuses = [
        net.fork().err(),
        net.stream("x").err(),
        caller.net.fork().err(),
        caller.net.stream("x").err(),
        net.send(Party(1), b"x").err(),
        caller.net.send(Party(1), b"x").err(),
        net.send(Party(2), b"myself").err(),
        Some(refusal(doors.call(&client, &[2]))),
        TlsNet::of_lines(0, PATIENT, net.into_lines().expect("lines")).recv(Party(0), &mut [0]).err(),
        Reception::start("127.0.0.1:0", client.clone(), PATIENT, Party(2), 2, CLUSTER, Arc::new(|_| true))
            .err(),
        Reception::start("127.0.0.1:0", client.clone(), PATIENT, Party(2), 99, CLUSTER, Arc::new(|_| true))
            .err(),
    ];
    for misuse in misuses {
        assert!(matches!(misuse, Some(Error::Misuse(_))), "{misuse:?}");
    }
    assert!(call(&client, PATIENT, &doors.nodes, (CLUSTER, None), set(&[]), &Halt::default()).is_empty());
}

#[test]
fn several_threads_may_wait_at_one_door_and_its_port_is_free_afterwards() {
    let (mut doors, client) = doors(1, PATIENT);
    let served = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut caller = doors.caller(0);
                caller.net.recv(Party(1), &mut [0]).expect("recv");
                served.store(true, Relaxed);
            });
        }
        for _ in 0..2 {
            doors.net(&client, &[0]).send(Party(0), &[1]).expect("send");
        }
    });
    assert!(served.load(Relaxed));
    doors.receptions.clear();
    std::net::TcpListener::bind(&doors.nodes[0].address).expect("the port is free");
}

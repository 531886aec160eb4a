//! Who may join, who may not, and that those who may not disturb nobody.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::common::{HASTY, PATIENT, address_of, bind, endpoints, exchange, join_with, run};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party};
use polyclave_transport::{Endpoint, Identity, Limits, TlsNet};

/// Peers that do not come are not waited for long.
const IMPATIENT: Limits = Limits { connect: HASTY, ..PATIENT };

fn error_of(joined: &polyclave_protocol::Result<TlsNet>) -> &Error {
    joined.as_ref().err().expect("this join must fail")
}

#[test]
fn a_port_in_use_is_an_error_that_names_it() {
    let first = bind(PATIENT);
    let address = first.local_addr();
    let second = Endpoint::bind(address, Identity::generate().expect("identity"), PATIENT);
    let message = second.err().expect("in use").to_string();
    assert!(message.contains(&address.to_string()) && message.contains("choose another port"), "{message}");
}

#[test]
fn limits_that_allow_nothing_are_misuse() {
    for limits in [Limits { max_frame: 0, ..PATIENT }, Limits { idle: Duration::ZERO, ..PATIENT }] {
        let bound = Endpoint::bind("127.0.0.1:0", Identity::generate().expect("identity"), limits);
        assert!(matches!(bound.err(), Some(Error::Misuse(_))));
    }
}

#[test]
fn an_address_that_cannot_be_is_misuse_at_once() {
    for address in ["127.0.0.1", "no port:x", "host.invalid:1"] {
        let (mut endpoints, mut list) = endpoints(2, PATIENT);
        list[1].address = address.into();
        let message = error_of(&endpoints.remove(0).join(Party(0), &list)).to_string();
        assert!(message.contains("party 2") && message.contains(address), "{message}");
    }
}

#[test]
fn a_refused_connection_names_peer_and_address() {
    let (mut endpoints, list) = endpoints(2, IMPATIENT);
    drop(endpoints.pop());
    let joined = endpoints.remove(0).join(Party(0), &list);
    let message = error_of(&joined).to_string();
    assert!(matches!(error_of(&joined), Error::Closed { peer: Party(1), .. }), "{message}");
    assert!(message.contains(&list[1].address) && message.contains("refused"), "{message}");
}

#[test]
fn a_peer_that_never_calls_is_a_timeout() {
    let (mut endpoints, list) = endpoints(2, IMPATIENT);
    let joined = endpoints.remove(1).join(Party(1), &list);
    assert_eq!(error_of(&joined), &Error::Timeout { peer: Party(0), waited: HASTY });
}

#[test]
fn an_impostor_who_answers_is_refused() {
    let (endpoints, mut list) = endpoints(2, IMPATIENT);
    let impostors_list = list.clone();
    list[1].certificate = Identity::generate().expect("identity").certificate();
    let joined =
        join_with(endpoints, |me| if me == Party(0) { list.clone() } else { impostors_list.clone() });
    assert!(
        matches!(error_of(&joined[0]), Error::Peer { peer: Party(1), detail } if detail.contains("certificate")),
        "{:?}",
        error_of(&joined[0])
    );
    assert!(joined[1].is_err());
}

#[test]
fn an_impostor_who_calls_is_refused_and_told() {
    let (endpoints, mut list) = endpoints(2, IMPATIENT);
    let impostors_list = list.clone();
    list[0].certificate = Identity::generate().expect("identity").certificate();
    let joined =
        join_with(endpoints, |me| if me == Party(1) { list.clone() } else { impostors_list.clone() });
    assert!(
        matches!(error_of(&joined[0]), Error::Peer { peer: Party(1), detail } if detail.contains("refused this party's")),
        "{:?}",
        error_of(&joined[0])
    );
    let message = error_of(&joined[1]).to_string();
    assert!(
        message.contains("party 1") && message.contains("turned away") && message.contains("certificate"),
        "{message}"
    );
}

#[test]
fn a_party_cannot_take_the_place_of_another() {
    // Party 2 claims to be party 1: its certificate tells otherwise.
    let (mut endpoints, list) = endpoints(3, IMPATIENT);
    let joined = endpoints.remove(1).join(Party(0), &list);
    assert!(matches!(error_of(&joined), Error::Misuse(_)), "{:?}", error_of(&joined));
}

#[test]
fn different_lists_of_parties_are_a_disagreement_on_both_sides() {
    let (mut endpoints, list) = endpoints(3, PATIENT);
    endpoints.truncate(2);
    let mut other = list.clone();
    other[2].certificate = Identity::generate().expect("identity").certificate();
    let start = Instant::now();
    let joined = join_with(endpoints, |me| if me == Party(0) { list.clone() } else { other.clone() });
    let differs = |peer| Error::Disagreement { peer, field: "list of certificates" };
    assert_eq!(error_of(&joined[0]), &differs(Party(1)));
    assert_eq!(error_of(&joined[1]), &differs(Party(0)));
    assert!(start.elapsed() < PATIENT.connect, "nobody need wait for party 3, which never comes");
}

#[test]
fn different_frame_limits_are_a_disagreement_on_both_sides() {
    let endpoints = vec![bind(PATIENT), bind(Limits { max_frame: 1000, ..PATIENT })];
    let list: Vec<_> = endpoints.iter().map(address_of).collect();
    let joined = join_with(endpoints, |_| list.clone());
    let differs = |peer| Error::Disagreement { peer, field: "frame limit" };
    assert_eq!(error_of(&joined[0]), &differs(Party(1)));
    assert_eq!(error_of(&joined[1]), &differs(Party(0)));
}

#[test]
fn one_certificate_for_two_parties_is_misuse() {
    let (mut endpoints, mut list) = endpoints(3, IMPATIENT);
    list[2].certificate = list[1].certificate.clone();
    assert!(matches!(error_of(&endpoints.remove(0).join(Party(0), &list)), Error::Misuse(_)));
}

#[test]
fn garbage_in_place_of_tls_is_the_peers_fault() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (mut endpoints, mut list) = endpoints(2, PATIENT);
    list[1].address = server.local_addr().expect("address").to_string();
    std::thread::spawn(move || {
        let (mut tcp, _) = server.accept().expect("accept");
        let _ = tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = tcp.read(&mut [0; 1024]);
    });
    let joined = endpoints.remove(0).join(Party(0), &list);
    assert!(
        matches!(error_of(&joined), Error::Peer { peer: Party(1), detail } if detail.contains("not TLS")),
        "{:?}",
        error_of(&joined)
    );
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (mut endpoints, mut list) = endpoints(2, IMPATIENT);
    list[1].address = server.local_addr().expect("address").to_string();
    let start = Instant::now();
    let joined = endpoints.remove(0).join(Party(0), &list);
    assert!(matches!(error_of(&joined), Error::Closed { peer: Party(1), .. }), "{:?}", error_of(&joined));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn strangers_disturb_nobody() {
    let (endpoints, list) = endpoints(3, PATIENT);
    let start = Instant::now();
    let mut strangers = Vec::new();
    for address in list.iter().map(|peer| peer.address.as_str()).cycle().take(60) {
        let mut tcp = TcpStream::connect(address).expect("connect");
        tcp.set_nonblocking(true).expect("non-blocking");
        // A third says nothing, a third says what is not TLS, a third begins a TLS record and stops.
        let _ = match strangers.len() / 3 % 3 {
            0 => Ok(0),
            1 => tcp.write(&[0xa5; 5000]),
            _ => tcp.write(&[0x16, 3, 1, 2, 0, 1, 0]),
        };
        strangers.push(tcp);
    }
    let nets = join_with(endpoints, |_| list.clone()).into_iter().map(|net| net.expect("join")).collect();
    run(nets, |mut net| {
        exchange(&mut net, |_, _| 1000).expect("exchange");
        exchange(&mut *net.fork().expect("fork"), |_, _| 1000).expect("exchange");
    });
    assert!(start.elapsed() < PATIENT.handshake, "the parties had to wait for strangers");
}

#[test]
fn a_crowd_of_silent_strangers_does_not_keep_a_party_out() {
    let (endpoints, list) = endpoints(2, PATIENT);
    let nets: Vec<_> =
        join_with(endpoints, |_| list.clone()).into_iter().map(|net| net.expect("join")).collect();
    let start = Instant::now();
    let crowd: Vec<_> = (0..400).filter_map(|_| TcpStream::connect(&list[1].address).ok()).collect();
    run(nets, |mut net| exchange(&mut *net.fork().expect("fork"), |_, _| 1000).expect("exchange"));
    assert!(crowd.len() > 256 && start.elapsed() < PATIENT.handshake);
}

#[test]
fn a_stranger_who_stalls_is_dropped_when_its_time_is_up() {
    let (endpoints, list) = endpoints(2, Limits { handshake: HASTY, ..PATIENT });
    let nets =
        join_with(endpoints, |_| list.clone()).into_iter().map(|net| net.expect("join")).collect::<Vec<_>>();
    let mut stranger = TcpStream::connect(&list[1].address).expect("connect");
    stranger.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    assert!(matches!(stranger.read(&mut [0; 1]), Ok(0)), "closed by the party");
    assert_eq!(nets[0].parties(), 2);
}

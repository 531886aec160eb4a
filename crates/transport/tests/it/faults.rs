//! What the network must do when a peer does not do its part.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::common::{HASTY, PATIENT, exchange, run, session};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, Result};
use polyclave_transport::{Limits, TlsNet};

/// Waits run out quickly, once the session stands.
const IMPATIENT: Limits = Limits { idle: HASTY, ..PATIENT };

fn pair(limits: Limits) -> (TlsNet, TlsNet) {
    let mut nets = session(2, limits).into_iter();
    (nets.next().expect("two"), nets.next().expect("two"))
}

/// As with a stopped process (SIGSTOP): connections stand, the kernel acknowledges, nothing comes.
#[test]
fn a_silent_peer_is_a_timeout_that_names_it() {
    let mut nets = session(3, IMPATIENT);
    let silent = nets.remove(1);
    let errors = run(nets, |mut net| {
        let start = Instant::now();
        (exchange(&mut net, |_, _| 100), start.elapsed(), net)
    });
    for (error, took, _) in errors {
        assert_eq!(error, Err(Error::Timeout { peer: silent.me(), waited: HASTY }));
        assert!(took >= HASTY && took < HASTY + Duration::from_secs(20), "{took:?}");
    }
}

#[test]
fn a_peer_that_takes_nothing_is_a_timeout() {
    let (mut a, _silent) = pair(IMPATIENT);
    assert_eq!(a.send(Party(1), &vec![0; 64 << 20]), Err(Error::Timeout { peer: Party(1), waited: HASTY }));
}

#[test]
fn a_slow_peer_that_moves_is_waited_for_beyond_the_limit() {
    let (mut a, mut b) = pair(Limits { idle: Duration::from_secs(2), ..PATIENT });
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..6 {
                std::thread::sleep(Duration::from_millis(500));
                b.send(Party(0), &[1; 10]).expect("send");
            }
        });
        for _ in 0..6 {
            a.recv(Party(1), &mut [0; 10]).expect("each part comes in time");
        }
    });
}

#[test]
fn a_peer_that_leaves_is_reported_as_closed() {
    let mut nets = session(3, PATIENT);
    drop(nets.remove(2));
    for error in run(nets, |mut net| net.recv(Party(2), &mut [0; 1])) {
        assert!(
            matches!(&error, Err(Error::Closed { peer: Party(2), detail }) if detail.contains("goodbye")),
            "{error:?}"
        );
    }
}

#[test]
fn what_was_sent_before_leaving_still_arrives() {
    let (mut a, mut b) = pair(PATIENT);
    let message = crate::common::message(Party(0), Party(1), 1 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            a.send(Party(1), &message).expect("send");
            drop(a);
        });
        std::thread::sleep(Duration::from_millis(50));
        let mut into = vec![0; 1 << 20];
        b.recv(Party(0), &mut into).expect("recv");
        assert!(into == message);
    });
    assert!(matches!(b.recv(Party(0), &mut [0; 1]), Err(Error::Closed { peer: Party(0), .. })));
}

#[test]
fn sending_to_a_peer_that_left_is_an_error() {
    let (mut a, b) = pair(PATIENT);
    drop(b);
    let error = a.send(Party(1), &vec![0; 64 << 20]);
    assert!(matches!(error, Err(Error::Closed { peer: Party(1), .. })), "{error:?}");
}

#[test]
fn a_message_of_another_length_is_an_error_that_tells_both() {
    for (sent, due) in [(5, 10), (10, 5), (0, 1), (100_000, 50_000)] {
        let (mut a, mut b) = pair(PATIENT);
        a.send(Party(1), &vec![0; sent]).expect("send");
        let detail = format!("a message of {sent} bytes where {due} were due");
        assert_eq!(b.recv(Party(0), &mut vec![0; due]), Err(Error::Peer { peer: Party(0), detail }));
    }
}

#[test]
fn the_first_error_is_final() {
    let (mut a, mut b) = pair(PATIENT);
    a.send(Party(1), &[0; 5]).expect("send");
    let first = b.recv(Party(0), &mut [0; 6]);
    a.send(Party(1), &[0; 6]).expect("send");
    assert!(first.is_err());
    assert_eq!(b.recv(Party(0), &mut [0; 6]), first);
}

#[test]
fn an_error_on_one_stream_leaves_the_others_alone() {
    let errors = run(session(2, PATIENT), |mut net| -> Result<()> {
        let mut fork = net.fork()?;
        match net.me() {
            Party(0) => drop(fork),
            // Having hung up before this party asked for the fork, or after, makes no difference.
            _ => assert!(fork.recv(Party(0), &mut [0; 1]).is_err()),
        }
        exchange(&mut net, |_, _| 1000)
    });
    assert_eq!(errors, [Ok(()), Ok(())]);
}

#[test]
fn mistakes_of_the_caller_are_misuse() {
    let (mut a, _b) = pair(PATIENT);
    let misuses = [
        a.send(Party(0), b"myself"),
        a.send(Party(2), b"nobody"),
        a.recv(Party(9), &mut [0; 1]),
        a.exchange(&[b"", b"x", b"y"], &mut [&mut [], &mut []]),
        a.exchange(&[b"myself", b"x"], &mut [&mut [], &mut []]),
    ];
    for misuse in misuses {
        assert!(matches!(misuse, Err(Error::Misuse(_))), "{misuse:?}");
    }
}

/// A way in the middle that breaks in the middle of a message.
#[test]
fn a_broken_connection_is_told_from_a_goodbye() {
    let (endpoints, mut list) = crate::common::endpoints(2, PATIENT);
    let (wire, target) = (TcpListener::bind("127.0.0.1:0").expect("a free port"), list[1].address.clone());
    list[1].address = wire.local_addr().expect("address").to_string();
    let relay = std::thread::spawn(move || {
        let (client, _) = wire.accept().expect("accept");
        let server = TcpStream::connect(target).expect("connect");
        for (mut from, to) in
            [(&client, &server), (&server, &client)].map(|(a, b)| (a.try_clone().expect("fd"), b))
        {
            let mut to = to.try_clone().expect("fd");
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
        (client, server)
    });
    let mut nets =
        crate::common::join_with(endpoints, |_| list.clone()).into_iter().map(|net| net.expect("join"));
    let (mut a, mut b) = (nets.next().expect("two"), nets.next().expect("two"));
    a.send(Party(1), &[0; 10]).expect("send");
    b.recv(Party(0), &mut [0; 10]).expect("recv");
    for tcp in <[TcpStream; 2]>::from(relay.join().expect("relay")) {
        tcp.shutdown(std::net::Shutdown::Both).expect("shutdown");
    }
    let error = b.recv(Party(0), &mut [0; 10]);
    assert!(
        matches!(&error, Err(Error::Closed { peer: Party(0), detail }) if !detail.contains("said goodbye")),
        "{error:?}"
    );
}

//! What the network must do when everybody behaves.

use crate::common::{PATIENT, endpoints, exchange, join_with, message, run, session};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, Result};
use polyclave_transport::{Limits, Shape, Shaped};

const SIZES: [usize; 5] = [0, 1, 16 << 20, 16_380, 100_000];

/// All of `SIZES` occur in both directions.
fn wild(from: Party, to: Party) -> usize {
    SIZES[(from.index() * 2 + to.index()) % SIZES.len()]
}

#[test]
fn three_parties_exchange_wildly_different_sizes() {
    run(session(3, PATIENT), |mut net| {
        for round in 0..5 {
            exchange(&mut net, |from, to| wild(from, Party(to.0 + round))).expect("exchange");
        }
    });
}

#[test]
fn five_parties_exchange_wildly_different_sizes() {
    run(session(5, PATIENT), |mut net| exchange(&mut net, wild).expect("exchange"));
}

#[test]
fn everybody_can_send_64_mib_at_once() {
    run(session(3, PATIENT), |mut net| exchange(&mut net, |_, _| 64 << 20).expect("exchange"));
}

#[test]
fn many_small_exchanges_stay_in_step() {
    run(session(3, PATIENT), |mut net| {
        for round in 0..500 {
            exchange(&mut net, |from, to| (round + from.index() * 3 + to.index()) % 40).expect("exchange");
        }
    });
}

#[test]
fn both_can_send_much_before_either_receives() {
    run(session(2, PATIENT), |mut net| -> Result<()> {
        let (me, peer) = (net.me(), Party(1 - net.me().0));
        net.send(peer, &message(me, peer, 12 << 20))?;
        let mut into = vec![0; 12 << 20];
        net.recv(peer, &mut into)?;
        assert!(into == message(peer, me, 12 << 20));
        exchange(&mut net, |_, _| 100)
    })
    .into_iter()
    .for_each(|done| done.expect("no deadlock"));
}

#[test]
fn a_party_may_be_several_messages_ahead() {
    let mut nets = session(2, PATIENT).into_iter();
    let (mut a, mut b) = (nets.next().expect("two"), nets.next().expect("two"));
    let messages: Vec<Vec<u8>> = (0..50).map(|i| message(Party(i), Party(1), usize::from(i) * 50)).collect();
    for message in &messages {
        a.send(Party(1), message).expect("send");
    }
    for message in &messages {
        let mut into = vec![0; message.len()];
        b.recv(Party(0), &mut into).expect("recv");
        assert!(&into == message);
    }
}

#[test]
fn messages_longer_than_a_frame_arrive_whole() {
    for max_frame in [1, 7, 1000] {
        run(session(2, Limits { max_frame, ..PATIENT }), |mut net| {
            exchange(&mut net, |from, _| [2000, 2001][from.index()]).expect("exchange");
        });
    }
}

#[test]
fn forks_are_independent_and_work_in_threads() {
    run(session(3, PATIENT), |mut net| {
        let mut forks: Vec<_> = (0..3).map(|_| net.fork().expect("fork")).collect();
        std::thread::scope(|scope| {
            // The last stream is not held up by the first, on which nothing happens yet.
            let mut last = forks.pop().expect("three");
            scope
                .spawn(move || exchange(&mut *last, |_, _| 1 << 20).expect("exchange"))
                .join()
                .expect("last");
            for (mut fork, i) in forks.into_iter().zip(1..) {
                scope.spawn(move || {
                    let mut grandchild = fork.fork().expect("fork of a fork");
                    for round in 0..20 {
                        exchange(&mut *fork, |_, _| i * 1000 + round).expect("exchange");
                        exchange(&mut *grandchild, |_, _| i * 10 + round).expect("exchange");
                    }
                });
            }
            exchange(&mut net, |_, _| 10).expect("exchange");
        });
    });
}

#[test]
fn named_streams_meet_whatever_the_order() {
    run(session(3, PATIENT), |net| {
        let mut names = ["request 1", "request 2", "request 3"];
        names.rotate_left(net.me().index());
        let net = &net;
        std::thread::scope(|scope| {
            for name in names {
                scope.spawn(move || {
                    let mut stream = net.stream(name).expect("stream");
                    exchange(&mut stream, |_, _| name.len() * 100).expect("exchange");
                });
            }
        });
    });
}

#[test]
fn a_late_party_is_waited_for() {
    let (endpoints, list) = endpoints(3, PATIENT);
    std::thread::scope(|scope| {
        for (me, endpoint) in Party::all(3).zip(endpoints) {
            let list = &list;
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(100) * u32::from(2 - me.0));
                exchange(&mut endpoint.join(me, list).expect("join"), |_, _| 10).expect("exchange");
            });
        }
    });
}

#[test]
fn the_wire_meter_counts_all_streams_and_more_than_the_payload() {
    let (endpoints, list) = endpoints(2, PATIENT);
    let meters: Vec<_> = endpoints.iter().map(|endpoint| endpoint.wire_meter()).collect();
    let nets = join_with(endpoints, |_| list.clone()).into_iter().map(|net| net.expect("join")).collect();
    run(nets, |mut net| {
        exchange(&mut net, |_, _| 1_000_000).expect("exchange");
        exchange(&mut *net.fork().expect("fork"), |_, _| 1_000_000).expect("exchange");
        // So that nobody has left while others count.
        exchange(&mut net, |_, _| 1).expect("exchange");
    });
    for meter in meters {
        // Two handshakes and the records' 22 bytes in 16384.
        assert!((2_002_000..2_020_000).contains(&meter.sent()), "{} bytes sent", meter.sent());
        assert!((2_002_000..2_020_000).contains(&meter.received()), "{} bytes received", meter.received());
    }
}

#[test]
fn wrappers_wrap_the_real_network_and_its_forks() {
    let shape = Shape { rtt: std::time::Duration::from_millis(2), bytes_per_second: None };
    let nets = session(3, PATIENT).into_iter().map(|net| Metered::new(Shaped::new(net, shape))).collect();
    run(nets, |mut net| {
        exchange(&mut net, |_, _| 500).expect("exchange");
        exchange(&mut *net.fork().expect("fork"), |_, _| 500).expect("exchange");
        let traffic = net.meter().snapshot();
        assert_eq!((traffic.payload_sent, traffic.messages_sent, traffic.exchanges), (2000, 4, 2));
    });
}

#[test]
fn the_port_is_free_again_when_all_streams_are_gone() {
    let (endpoints, list) = endpoints(2, PATIENT);
    let address = endpoints[1].local_addr();
    let nets =
        join_with(endpoints, |_| list.clone()).into_iter().map(|net| net.expect("join")).collect::<Vec<_>>();
    run(nets, |mut net| {
        let mut fork = net.fork().expect("fork");
        drop(net);
        exchange(&mut *fork, |_, _| 1).expect("a fork outlives its parent");
    });
    std::net::TcpListener::bind(address).expect("the port is free");
}

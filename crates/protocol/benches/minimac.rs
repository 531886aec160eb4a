//! Two parties on threads of one process, no network: what an opening of a committed string costs for each of its bits, by length of the
//! string and by code. A quarter of the bits is selected, as a table of two bits has it.

use std::time::{Duration, Instant};

use polyclave_protocol::Party;
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::minimac::{Code, Opener};
use polyclave_protocol::net::Net;
use polyclave_protocol::testkit::insecure_minimac::InsecureMiniMac;

const REPETITIONS: usize = 7;

/// Of one party: what it keeps, what it sends, and the least time of some openings.
#[derive(Clone, Copy)]
struct Cost {
    kept: usize,
    sent: u64,
    time: Duration,
}

fn measure(code: Code, len: usize) -> Cost {
    let costs = std::thread::scope(|scope| {
        let threads: Vec<_> =
            mesh(2).into_iter().map(|end| scope.spawn(move || party(code, len, Metered::new(end)))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    Cost { time: costs[0].time.max(costs[1].time), ..costs[0] }
}

fn party(code: Code, len: usize, mut net: Metered<Mesh>) -> Cost {
    let mut dealer = InsecureMiniMac::new(&[1; 32], code, net.me());
    let mut opener = Opener::new(dealer.key(), b"bench");
    let string: Vec<u8> = (0..len).map(|i| (i * i / 3 % 2) as u8).collect();
    let selection: Vec<u8> = (0..len).map(|i| u8::from(i % 4 == i / 4 % 4)).collect();
    let mut cost = Cost { kept: 0, sent: 0, time: Duration::MAX };
    for _ in 0..REPETITIONS {
        let committed = if net.me().0 == 0 { dealer.commit(&string) } else { dealer.commit_peer(len) };
        cost.kept = committed.bytes();
        // Both begin together.
        let peer = Party(1 - net.me().0);
        net.send(peer, &[0]).expect("send");
        net.recv(peer, &mut [0]).expect("receive");
        let (before, began) = (net.meter().snapshot(), Instant::now());
        let opened = opener.open(vec![committed], &[&selection], &mut net).expect("honest parties finish");
        cost.time = cost.time.min(began.elapsed());
        cost.sent = (net.meter().snapshot() - before).payload_sent;
        let selected = string.iter().zip(&selection).filter(|(_, is)| **is == 1).map(|(bit, _)| bit);
        assert!(opened[0].iter().eq(selected));
    }
    cost
}

fn main() {
    let code = Code::STANDARD;
    println!(
        "messages of {} symbols, {} places, error 2^-{}",
        code.message(),
        code.places(),
        code.security_bits()
    );
    println!("{:>8} {:>12} {:>12} {:>10} {:>10}", "bits", "kept, B/bit", "sent, B/bit", "ns/bit", "ms");
    for len in (12..=20).map(|log| 1 << log) {
        print(&len.to_string(), len, measure(code, len));
    }
    let len = 1 << 18;
    println!("\n{len} bits, by symbols of a message / places beyond the square's dimension");
    for (message, extra) in [(16, 4), (64, 16), (64, 64), (256, 64), (1024, 256), (4096, 1024)] {
        let code = Code::new(message, extra).expect("fits");
        print(&format!("{message}/{extra}"), len, measure(code, len));
    }
}

fn print(what: &str, len: usize, cost: Cost) {
    let each = |total: f64| total / len as f64;
    let (kept, sent) = (each(cost.kept as f64), each(cost.sent as f64));
    let nanoseconds = cost.time.as_secs_f64() * 1e9;
    println!("{what:>9} {kept:>11.2} {sent:>12.2} {:>10.1} {:>10.2}", each(nanoseconds), nanoseconds / 1e6);
}

//! Two parties on threads of one process, no network: what an opening of a committed string costs for each of
//! its bits, by length of the string and by code. A quarter of the bits is selected, as a table of two bits
//! has it. Time is a thread's time on a processor, by Linux's accounts, and on the clock: on a machine with
//! other work the two differ.

use std::time::{Duration, Instant};

use polyclave_protocol::Party;
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol_lab::minimac::insecure_minimac::InsecureMiniMac;
use polyclave_protocol_lab::minimac::{Code, Opener};

/// Bits that are opened for a measurement, in openings of the length in question.
const BITS: usize = 1 << 21;

/// Of one party: what it keeps, what it sends, and how long openings take on average.
#[derive(Clone, Copy)]
struct Cost {
    kept: usize,
    sent: u64,
    processor: Duration,
    clock: Duration,
}

fn measure(code: Code, len: usize) -> Cost {
    let costs = std::thread::scope(|scope| {
        let threads: Vec<_> =
            mesh(2).into_iter().map(|end| scope.spawn(move || party(code, len, Metered::new(end)))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    let slower = |time: fn(&Cost) -> Duration| costs.iter().map(time).max().unwrap_or_default();
    Cost { processor: slower(|cost| cost.processor), clock: slower(|cost| cost.clock), ..costs[0] }
}

/// How long this thread has been running; nothing where the system does not tell.
fn on_processor() -> Duration {
    let accounts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = accounts.split_whitespace().next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

fn party(code: Code, len: usize, mut net: Metered<Mesh>) -> Cost {
    let mut dealer = InsecureMiniMac::new(&[1; 32], code, net.me());
    let mut opener = Opener::new(dealer.key(), b"bench");
    let string: Vec<u8> = (0..len).map(|i| (i * i / 3 % 2) as u8).collect();
    let selection: Vec<u8> = (0..len).map(|i| u8::from(i % 4 == i / 4 % 4)).collect();
    let mut cost = Cost { kept: 0, sent: 0, processor: Duration::ZERO, clock: Duration::ZERO };
    let openings = BITS / len;
    for _ in 0..openings {
        let committed = if net.me().0 == 0 { dealer.commit(&string) } else { dealer.commit_peer(len) };
        cost.kept = committed.bytes();
        // Both begin together.
        let peer = Party(1 - net.me().0);
        net.send(peer, &[0]).expect("send");
        net.recv(peer, &mut [0]).expect("receive");
        let (before, began) = (net.meter().snapshot(), (Instant::now(), on_processor()));
        let opened = opener.open(vec![committed], &[&selection], &mut net).expect("honest parties finish");
        cost.clock += began.0.elapsed() / openings as u32;
        cost.processor += (on_processor() - began.1) / openings as u32;
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
    println!(
        "{:>9} {:>11} {:>11} {:>15} {:>13}",
        "bits", "kept, B/bit", "sent, B/bit", "processor, ns/b", "clock, ns/bit"
    );
    for len in (12..=20).map(|log| 1usize << log) {
        print(&len.to_string(), len, measure(code, len));
    }
    let len = 1usize << 18;
    println!("\n{len} bits, by symbols of a message / places beyond the square's dimension");
    for (message, extra) in [(16, 4), (64, 16), (64, 64), (256, 64), (1024, 256), (4096, 1024)] {
        let code = Code::new(message, extra).expect("fits");
        print(&format!("{message}/{extra}"), len, measure(code, len));
    }
}

fn print(what: &str, len: usize, cost: Cost) {
    let each = |total: f64| total / len as f64;
    let (kept, sent) = (each(cost.kept as f64), each(cost.sent as f64));
    let [processor, clock] = [cost.processor, cost.clock].map(|time| each(time.as_secs_f64() * 1e9));
    println!("{what:>9} {kept:>11.2} {sent:>11.2} {processor:>15.1} {clock:>13.1}");
}

//! What TinyOT sends: exactly what its documentation says, beside what the rounds of a call cost once.

use parking_lot::Mutex;

use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::tinyot::{Kappa, Key, Source, TinyOt};
use polyclave_protocol::{Party, Result};

/// What the first party sends for so many.
fn traffic(
    kappa: Kappa,
    expansion: usize,
    make: impl Fn(&mut TinyOt, &mut dyn Net) -> Result<()> + Sync,
) -> Traffic {
    let sent = Mutex::new(Traffic::default());
    std::thread::scope(|scope| {
        for end in mesh(2) {
            let (sent, make) = (&sent, &make);
            scope.spawn(move || {
                let mut net = Metered::new(end);
                let key = Key::generate(&net).expect("randomness");
                let mut source = TinyOt::set_up(b"bytes", &key, kappa, expansion, &mut net).expect("honest");
                let before = net.meter().snapshot();
                make(&mut source, &mut net).expect("honest");
                if net.me() == Party(0) {
                    *sent.lock() = net.meter().snapshot() - before;
                }
            });
        }
    });
    sent.into_inner()
}

/// Buckets of four, all in one piece.
#[test]
fn a_triple_costs_its_transfers_a_block_and_a_bit_for_each_of_its_bucket() {
    for expansion in [1, 2, 4, 8] {
        let [some, more] = [3_072, 4_096].map(|count| {
            traffic(Kappa::Bits40, expansion, move |source, net| source.triples(count, net).map(drop))
        });
        let bits = 4 * (3 * 128 / expansion as u64 + 128 + 1) + 3;
        assert_eq!((more.payload_sent - some.payload_sent) * 8, 1_024 * bits, "expansion {expansion}");
        assert_eq!((some.exchanges, more.exchanges), (12, 12));
    }
}

#[test]
fn a_higher_kappa_costs_larger_buckets() {
    let [low, high] = [Kappa::Bits40, Kappa::Bits64].map(|kappa| {
        traffic(kappa, 4, |source, net| source.triples(1_000, net).map(drop)).payload_sent as f64
    });
    // Seven for 5.
    assert!((1.35..1.45).contains(&(high / low)), "{low} and {high} bytes");
}

#[test]
fn a_bit_costs_one_transfer() {
    for expansion in [1, 4] {
        let [some, more] = [1_024, 2_048].map(|count| {
            traffic(Kappa::Bits40, expansion, move |source, net| source.bits(count, net).map(drop))
        });
        assert_eq!((more.payload_sent - some.payload_sent) * 8, 1_024 * 128 / expansion as u64);
        assert_eq!(some.exchanges, 4);
    }
}

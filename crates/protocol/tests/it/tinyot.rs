//! What TinyOT sends: exactly what its documentation says, beside what the rounds of a call cost once.

use parking_lot::Mutex;

use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::tinyot::{Kappa, Key, Source, TinyOt};
use polyclave_protocol::{Party, Result};

/// What the first of some parties sends for so many.
fn traffic(
    parties: usize,
    kappa: Kappa,
    expansion: usize,
    make: impl Fn(&mut TinyOt, &mut dyn Net) -> Result<()> + Sync,
) -> Traffic {
    let sent = Mutex::new(Traffic::default());
    std::thread::scope(|scope| {
        for end in mesh(parties) {
            let (sent, make) = (&sent, &make);
            scope.spawn(move || {
                let mut net = Metered::new(end);
                let key = Key::generate(&net).expect("randomness");
                let mut source = TinyOt::setup(b"bytes", &key, kappa, expansion, &mut net).expect("honest");
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

/// What more of the same costs, in bits, and the exchanges of both.
fn growth(
    counts: [usize; 2],
    expansion: usize,
    make: fn(&mut TinyOt, usize, &mut dyn Net) -> Result<()>,
) -> (u64, [u64; 2]) {
    growth_among(2, counts, expansion, make)
}

fn growth_among(
    parties: usize,
    counts: [usize; 2],
    expansion: usize,
    make: fn(&mut TinyOt, usize, &mut dyn Net) -> Result<()>,
) -> (u64, [u64; 2]) {
    let make = |count| move |source: &mut TinyOt, net: &mut dyn Net| make(source, count, net);
    let [some, more] = counts.map(|count| traffic(parties, Kappa::Bits40, expansion, make(count)));
    let bits = 8 * (more.payload_sent - some.payload_sent);
    (bits / (counts[1] - counts[0]) as u64, [some.exchanges, more.exchanges])
}

/// Buckets of four, all in one tile of transfers.
#[test]
fn a_triple_costs_wide_and_narrow_bits_offers_and_a_bit_for_each_of_its_bucket() {
    for expansion in [1, 2, 4, 5, 6, 8] {
        let make = |source: &mut TinyOt, count, net: &mut dyn Net| source.triples(count, net).map(drop);
        let (bits, exchanges) = growth([4_096, 8_192], expansion, make);
        let [wide, narrow] = [128, 64_u64].map(|columns| columns.div_ceil(expansion as u64));
        assert_eq!(bits, 4 * (wide + narrow + 65) + narrow + 4, "expansion {expansion}");
        // Four for each list, and 23, and four for products for zero tests.
        assert_eq!(exchanges, [4 * 4 + 27; 2]);
    }
}

/// To every other party what it is between two, and six rounds for the bits of the results' masks.
#[test]
fn a_record_costs_the_same_for_every_peer() {
    let (b, c, parties) = (4, 4, 3);
    let make = |source: &mut TinyOt, count, net: &mut dyn Net| source.inverses(count, net).map(drop);
    let (bits, exchanges) = growth_among(parties, [4_096, 8_192], 4, make);
    let transfers = (8 * b + 4 * c) * 32 + (12 * b + 6 * c - 4) * 16;
    let offers = 4 * b * (68 + 72) + 2 * c * (66 + 68);
    let to_a_peer = transfers + offers + 12 * (b - 1) + 6 * (c - 1);
    assert_eq!(bits, (parties as u64 - 1) * to_a_peer);
    assert_eq!(exchanges, [4 * 2 * (b + c) + 45 + 6; 2]);
}

/// Four lists of each kind.
#[test]
fn a_record_costs_wide_and_narrow_bits_offers_and_differences() {
    let (b, c) = (4, 4);
    for expansion in [1, 4, 6] {
        let make = |source: &mut TinyOt, count, net: &mut dyn Net| source.inverses(count, net).map(drop);
        let (bits, exchanges) = growth([4_096, 8_192], expansion, make);
        let [wide, narrow] = [128, 64_u64].map(|columns| columns.div_ceil(expansion as u64));
        let transfers = (8 * b + 4 * c) * wide + (12 * b + 6 * c - 4) * narrow;
        let offers = 4 * b * (68 + 72) + 2 * c * (66 + 68);
        assert_eq!(bits, transfers + offers + 12 * (b - 1) + 6 * (c - 1), "expansion {expansion}");
        // Four for each list of both phases, and 41, and four for products for zero tests.
        assert_eq!(exchanges, [4 * 2 * (b + c) + 45; 2]);
    }
}

#[test]
fn a_higher_kappa_costs_more_lists() {
    let [low, high] = [Kappa::Bits40, Kappa::Bits64].map(|kappa| {
        traffic(2, kappa, 4, |source, net| source.triples(1_000, net).map(drop)).payload_sent as f64
    });
    // Seven for five.
    assert!((1.3..1.45).contains(&(high / low)), "{low} and {high} bytes");
}

#[test]
fn a_bit_costs_one_transfer_of_half_a_block() {
    for expansion in [1, 4] {
        let make = |source: &mut TinyOt, count, net: &mut dyn Net| source.bits(count, net).map(drop);
        let (bits, exchanges) = growth([1_024, 2_048], expansion, make);
        assert_eq!(bits, 64 / expansion as u64);
        assert_eq!(exchanges, [3; 2]);
    }
}

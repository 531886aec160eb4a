//! What TinyOT sends: exactly what its documentation says, beside what the rounds of a call cost once.

use parking_lot::Mutex;

use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::Means;
use polyclave_protocol::tinyot::{Kappa, Key, Source, TinyOt};
use polyclave_protocol::{Party, Result};

/// What the first of some parties sends for so many.
fn traffic(
    parties: usize,
    kappa: Kappa,
    means: Means,
    make: impl Fn(&mut TinyOt, &mut dyn Net) -> Result<()> + Sync,
) -> Traffic {
    let sent = Mutex::new(Traffic::default());
    std::thread::scope(|scope| {
        for end in mesh(parties) {
            let (sent, make) = (&sent, &make);
            scope.spawn(move || {
                let mut net = Metered::new(end);
                let key = Key::generate(&net).expect("randomness");
                let mut source = TinyOt::setup(b"bytes", &key, kappa, means, &mut net).expect("honest");
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
    let [some, more] = counts.map(|count| traffic(parties, Kappa::Bits40, expansion.into(), make(count)));
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

/// Batches in which eight products share lists, four of products in GF(16) and six of pairs in GF(4).
const RECORDS: [usize; 2] = [5_120, 6_144];
const SHARED: [u64; 2] = [4, 6];

/// What a record of these batches costs towards a peer, with so many bits for a narrow transfer.
fn bits_of_a_record(trees: u64) -> u64 {
    let [of_16, of_4] = SHARED;
    // Of each kind an element of its own and an eighth of the shared ones.
    let wide_of_shared = (2 * 4 * of_16 + 2 * 2 * of_4) / 8;
    let wide = 2 * 4 + 2 * 2 + wide_of_shared;
    // y, but where it is given; the MACs of the products; the mask of the result.
    let narrow = 4 + 2 + of_16 * (4 + 8) + of_4 * (2 + 4) + (4 + 8 + 2 + 4) + 8;
    let offers = 4 * (68 + 72) + 2 * (66 + 68) + 64 * wide_of_shared;
    // Shared offers have the values of eight products, or of eight pairs.
    let values = of_16 * 4 * (4 + 8) + of_4 * 2 * 2 * (2 + 4);
    let opened = of_16 * (4 + 8) + of_4 * (2 + 4) + (4 + 8 + 2 + 4);
    2 * trees * wide + trees * narrow + offers + values + opened
}

/// Of each phase: four for each of two lists, seven for each shared one, three for MACs of each kind. Beside
/// that 49, four of them for products for zero tests.
fn exchanges_of_a_batch() -> u64 {
    2 * (2 * 4 + 7 * (SHARED[0] + SHARED[1]) + 2 * 3) + 49
}

/// To every other party what it is between two, and six rounds for the bits of the results' masks.
#[test]
fn a_record_costs_the_same_for_every_peer() {
    let parties = 3;
    let make = |source: &mut TinyOt, count, net: &mut dyn Net| source.inverses(count, net).map(drop);
    let (bits, exchanges) = growth_among(parties, RECORDS, 4, make);
    assert_eq!(bits, (parties as u64 - 1) * bits_of_a_record(16));
    assert_eq!(exchanges, [exchanges_of_a_batch() + 6; 2]);
}

#[test]
fn a_record_costs_wide_and_narrow_bits_offers_and_what_is_opened() {
    for (expansion, trees) in [(1, 64), (4, 16), (6, 11), (8, 8)] {
        let make = |source: &mut TinyOt, count, net: &mut dyn Net| source.inverses(count, net).map(drop);
        let (bits, exchanges) = growth(RECORDS, expansion, make);
        assert_eq!(bits, bits_of_a_record(trees), "expansion {expansion}");
        assert_eq!(exchanges, [exchanges_of_a_batch(); 2]);
    }
}

#[test]
fn a_higher_kappa_costs_more_lists() {
    let [low, high] = [Kappa::Bits40, Kappa::Bits64].map(|kappa| {
        traffic(2, kappa, 4.into(), |source, net| source.triples(1_000, net).map(drop)).payload_sent as f64
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

/// A batch of 2^22 silent transfers: what it takes from extension, its trees, its check. A transfer then
/// costs one bit and an exchange for each call. Until the bits that were asked for are more than a batch
/// takes, they are extended.
#[test]
fn a_bit_of_silent_transfers_costs_a_bit_and_a_part_of_a_batch() {
    let taken = (1 << 18) + 2048 * 11 + 128;
    let silent = Means { expansion: 8, silent: true };
    let of_calls = |calls: u64| {
        traffic(2, Kappa::Bits40, silent, |source, net| {
            (0..calls).try_for_each(|_| source.bits(AT_ONCE, net).map(drop))
        })
    };
    // Calls until a batch is worth it, one that makes it, and one that takes from the same batch.
    let extended = (taken * 5 / AT_ONCE) as u64;
    let [one, two, three] = [extended, extended + 1, extended + 2].map(of_calls);
    let bits = AT_ONCE as u64 / 8;
    assert_eq!([three.payload_sent - two.payload_sent, three.exchanges - two.exchanges], [bits, 1]);
    // 16 trees of 8 levels, and the mask, coin and answer of their check.
    let extended = (16 * (taken / 8) + 16 * 16 + 32 + 32 + 129 * 16) as u64;
    let trees = 2048 * (11 * 32 + 16);
    let check = 32 + 32 + 16 + 32;
    let batch = two.payload_sent - one.payload_sent - bits;
    assert!(batch.abs_diff(extended + trees + check) < 200, "{batch}, not {}", extended + trees + check);
    assert_eq!(two.exchanges - one.exchanges, 8 + 1);
}

/// As many bits as are made with one exchange.
const AT_ONCE: usize = 3 << 15;

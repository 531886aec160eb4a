//! What MASCOT sends: exactly what the paper and the notes say, beside what the rounds of a call cost once.

use parking_lot::Mutex;

use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, MacField};
use polyclave_protocol::authenticated::{MacKey, Source};
use polyclave_protocol::mascot::Mascot;
use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, Result};

/// What the first of two parties sends for so many.
fn traffic<F: MacField>(
    expansion: usize,
    count: usize,
    make: fn(&mut Mascot<F>, usize, &mut dyn Net) -> Result<()>,
) -> Traffic {
    let sent = Mutex::new(Traffic::default());
    std::thread::scope(|scope| {
        for end in mesh(2) {
            let sent = &sent;
            scope.spawn(move || {
                let mut net = Metered::new(end);
                let key = MacKey::<F>::generate(&net).expect("randomness");
                let mut mascot = Mascot::setup(b"bytes", &key, expansion, &mut net).expect("honest");
                let before = net.meter().snapshot();
                make(&mut mascot, count, &mut net).expect("honest");
                if net.me() == Party(0) {
                    *sent.lock() = net.meter().snapshot() - before;
                }
            });
        }
    });
    sent.into_inner()
}

/// Bits that one more costs, and the rounds of a call, which do not depend on how many there are.
fn each<F: MacField>(
    expansion: usize,
    make: fn(&mut Mascot<F>, usize, &mut dyn Net) -> Result<()>,
) -> (u64, u64) {
    let [some, more] = [128, 256].map(|count| traffic::<F>(expansion, count, make));
    assert_eq!(some.exchanges, more.exchanges);
    ((more.payload_sent - some.payload_sent) * 8 / 128, some.exchanges)
}

fn triple<F: MacField>(expansion: usize) -> (u64, u64) {
    each::<F>(expansion, |mascot, count, net| mascot.triples(count, net).map(drop))
}

fn bit<F: MacField>(expansion: usize) -> (u64, u64) {
    each::<F>(expansion, |mascot, count, net| mascot.bits(count, net).map(drop))
}

/// Keller et al. 2017, table 4, plus one opening of k bits for the sacrifice.
#[test]
fn a_triple_costs_what_table_4_says_and_one_opening() {
    assert_eq!(triple::<Gf2_40>(1).0, 34_880 + 40);
    assert_eq!(triple::<Gf2_64>(1).0, 69_632 + 64);
    assert_eq!(triple::<Gf2_128>(1).0, 180_224 + 128);
    // An element of 42 bits takes 48 on the wire.
    assert_eq!(triple::<Gf2_42>(1).0, 4 * 42 * (128 + 48) + 5 * 42 * 48 + 48);
}

#[test]
fn expansion_divides_the_bits_of_a_transfer() {
    assert_eq!(triple::<Gf2_40>(2).0, 160 * (64 + 40) + 5 * 40 * 40 + 40);
    assert_eq!(triple::<Gf2_40>(4).0, 160 * (32 + 40) + 5 * 40 * 40 + 40);
}

#[test]
fn a_bit_costs_one_transfer_as_wide_as_the_field() {
    for expansion in [1, 2, 4] {
        assert_eq!(bit::<Gf2_40>(expansion).0, 40 / expansion as u64);
        assert_eq!(bit::<Gf2_64>(expansion).0, 64 / expansion as u64);
        assert_eq!(bit::<Gf2_128>(expansion).0, 128 / expansion as u64);
    }
}

#[test]
fn rounds_do_not_depend_on_the_field() {
    // Each with five rounds for the products of the first checks.
    assert_eq!([triple::<Gf2_40>(1).1, triple::<Gf2_128>(2).1], [34, 34]);
    assert_eq!([bit::<Gf2_40>(1).1, bit::<Gf2_128>(2).1], [22, 22]);
}

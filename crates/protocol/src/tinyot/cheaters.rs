//! Parties that cheat in leaky triples and know exactly where they cheat, because a dealer made the authenticated bits.

use super::abit::WideBits;
use super::leaky_and::{Leaky, LeakyAnd};
use super::*;
use crate::Party;
use crate::mesh::mesh;
use crate::session::random_bytes;
use crate::testkit::tamper::{Fault, Tamper};

const COUNT: usize = 8;
const CHEATER: usize = 0;
const HONEST: usize = 1;

/// Messages that a party sends: G, lowest bits, commitment, opening.
const MESSAGES: [u64; 4] = [0, 1, 2, 3];

struct Run {
    keys: [Key; 2],
    dealt: [WideBits; 2],
    outcomes: Vec<Result<Vec<Leaky>>>,
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    random_bytes(&mut bytes).expect("randomness");
    bytes
}

fn dealt(deltas: [u128; 2], count: usize) -> [WideBits; 2] {
    let block = || u128::from_le_bytes(random());
    let values = [0, 1].map(|_| (0..count).map(|_| random::<1>()[0] & 1).collect::<Vec<_>>());
    let keys = [0, 1].map(|_| (0..count).map(|_| block()).collect::<Vec<_>>());
    [0, 1].map(|me: usize| {
        let peer = 1 - me;
        let tag = |(bit, key): (&u8, &u128)| key ^ (u128::from(*bit) * deltas[peer]);
        WideBits {
            tags: values[me].iter().zip(&keys[peer]).map(tag).collect(),
            values: Zeroizing::new(values[me].clone()),
            keys: keys[me].iter().copied().collect(),
        }
    })
}

/// Makes and compares triples while party 0 commits a fault on one message. Its Delta's lowest bit can be another.
fn run(at: u64, fault: Fault, lowest: u128) -> Run {
    let deltas = [u128::from_le_bytes(random()) & !1 | lowest, u128::from_le_bytes(random()) & !1];
    let keys = [0, 1].map(|p: u8| Key::of_share(Party(p), 2, upper(deltas[usize::from(p)])));
    let dealt = dealt(deltas, 3 * COUNT);
    let outcomes = std::thread::scope(|scope| {
        let threads: Vec<_> = mesh(2)
            .into_iter()
            .zip(&dealt)
            .zip(&keys)
            .map(|((net, bits), key)| {
                let me = net.me();
                let at = if me.index() == CHEATER { at } else { u64::MAX };
                let mut net = Tamper::new(net, at, fault);
                scope.spawn(move || {
                    let mut products = LeakyAnd::new(b"cheaters", me, Zeroizing::new(deltas[me.index()]));
                    let mut made = Vec::new();
                    let outcome = products.multiply(bits, key, &mut net, &mut made);
                    let outcome = outcome.and_then(|()| products.compare(key, &mut net));
                    // As a source does.
                    outcome.inspect_err(|e| key.retire_after(e)).map(|()| made)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    Run { keys, dealt, outcomes }
}

impl Run {
    /// Whether the honest party finished. Then both did, and every product and tag must be right; otherwise the key is gone.
    fn passed(&self) -> bool {
        let [Ok(first), Ok(second)] = &self.outcomes[..] else {
            assert!(self.outcomes[HONEST].is_err());
            assert!(self.keys[HONEST].refuse_retired().is_err());
            return false;
        };
        for (a, b) in first.iter().zip(second) {
            for (own, peer, key) in [(a, b, &self.keys[1]), (b, a, &self.keys[0])] {
                for part in 0..3 {
                    let offset = u64::from(own.values[part]) * key.reveal_own_share();
                    assert_eq!(own.tags[part], peer.keys[part] ^ offset);
                }
            }
            let [x, y, z] = [0, 1, 2].map(|part| a.values[part] ^ b.values[part]);
            assert_eq!(x & y, z);
        }
        assert_eq!(first.len(), COUNT);
        true
    }

    /// The honest party's x.
    fn x(&self, triple: usize) -> u8 {
        self.dealt[HONEST].values[triple]
    }
}

#[test]
fn honest_triples_are_right() {
    assert!((0..20).all(|_| run(u64::MAX, Fault::Drop, 1).passed()));
}

/// A wrong G is a guess that the peer's x is 0.
#[test]
fn a_wrong_offset_passes_exactly_if_x_is_guessed() {
    let runs = 128;
    let mut caught = 0;
    for i in 0..runs {
        let triple = i % COUNT;
        // Offsets with the lowest bit and without.
        let (byte, bit) = [(0, 0), (0, 1), (7, 3), (15, 7)][i / COUNT % 4];
        let run = run(MESSAGES[0], Fault::FlipBit { byte: 16 * triple + byte, bit }, 1);
        let passed = run.passed();
        assert_eq!(passed, run.x(triple) == 0, "triple {triple}, byte {byte}");
        caught += usize::from(!passed);
    }
    assert!((32..96).contains(&caught), "{caught} of {runs} were caught");
}

#[test]
fn a_wrong_correction_is_always_caught() {
    for triple in 0..COUNT {
        assert!(!run(MESSAGES[1], Fault::FlipBit { byte: 0, bit: triple as u32 }, 1).passed());
    }
}

#[test]
fn a_wrong_comparison_is_always_caught() {
    for (at, byte) in [(2, 0), (2, 31), (3, 0), (3, 32), (3, 63), (3, 64)] {
        assert!(!run(MESSAGES[at], Fault::FlipBit { byte, bit: 5 }, 1).passed());
    }
}

/// Eight triples pass with 2^-8.
#[test]
fn another_lowest_bit_of_delta_spoils_half_of_the_triples() {
    let passed = (0..64).filter(|_| run(u64::MAX, Fault::Drop, 0).passed()).count();
    assert!(passed <= 6, "{passed} of 64");
}

//! TinyOT with a party that cheats once, in any message: an error, or right material; never a hang or a panic.

use std::time::Duration;

use polyclave_protocol::mesh::{Mesh, mesh_with_timeout};
use polyclave_protocol::net::Net;
use polyclave_protocol::testkit::faults::{LATE, SOON, run_over};
use polyclave_protocol::testkit::tamper::{Fault, Tamper, Tampering};
use polyclave_protocol::tinyot::{Bits, Kappa, Key, Source, TinyOt};
use polyclave_protocol::{Error, Party, Result};

const TRIPLES: usize = 8;
const BITS: usize = 9;

/// Messages of a party, in order: two of set-up, then those of triples and of bits.
const OF_SET_UP: u64 = 2;
/// G: after an extension and its check.
const OF_PRODUCTS: u64 = OF_SET_UP + 4;
/// Lowest bits, commitment and opening of the comparison.
const OF_COMPARISON: std::ops::Range<u64> = OF_PRODUCTS + 1..OF_PRODUCTS + 4;
/// Those, and a coin, the opening and its check; then an extension and its check.
const ALL: u64 = OF_COMPARISON.end + 4 + 4;

/// x, y, z and bits.
type Made = [Bits; 4];

struct Run {
    keys: [Key; 2],
    outcomes: Vec<Result<Made>>,
    tampering: Tampering,
}

fn party(key: &Key, net: &mut dyn Net) -> Result<Made> {
    let mut source = TinyOt::set_up(b"faults", key, Kappa::Bits40, 4, net)?;
    let triples = source.triples(TRIPLES, net)?;
    Ok([triples.x.clone(), triples.y.clone(), triples.z.clone(), source.bits(BITS, net)?])
}

fn run(cheater: Party, at: u64, fault: Fault, timeout: Duration) -> Run {
    let ends = mesh_with_timeout(2, timeout);
    let keys = [0, 1].map(|p: usize| Key::generate(&ends[p]).expect("randomness"));
    let wrap = |net: Mesh| {
        let at = if net.me() == cheater { at } else { u64::MAX };
        Tamper::new(net, at, fault)
    };
    let ends: Vec<_> = ends.into_iter().map(wrap).collect();
    let tampering = ends[cheater.index()].tampering();
    let of_parties = keys.clone();
    let outcomes = run_over(ends, move |net| party(&of_parties[net.me().index()], net));
    Run { keys, outcomes, tampering }
}

impl Run {
    /// Whether both finished. Then everything must be right. Otherwise a key is given up by who found something wrong, and
    /// by nobody else.
    fn finished(&self, what: &str) -> bool {
        for (key, outcome) in self.keys.iter().zip(&self.outcomes) {
            let found = outcome.as_ref().is_err_and(Error::may_be_a_wrong_guess);
            assert_eq!(
                key.refuse_retired().is_err(),
                found,
                "{what}: {outcome:?}",
                outcome = outcome.as_ref().err()
            );
        }
        let [Ok(first), Ok(second)] = &self.outcomes[..] else { return false };
        let [x, y, z, bits] = [0, 1, 2, 3].map(|i: usize| self.opened(&first[i], &second[i], what));
        assert_eq!((x.len(), y.len(), z.len(), bits.len()), (TRIPLES, TRIPLES, TRIPLES, BITS));
        assert!(x.iter().zip(&y).zip(&z).all(|((x, y), z)| x & y == *z), "{what}: a product");
        true
    }

    fn opened(&self, first: &Bits, second: &Bits, what: &str) -> Vec<u8> {
        for (own, peer, key) in [(first, second, &self.keys[1]), (second, first, &self.keys[0])] {
            for ((bit, tag), beta) in own.values.iter().zip(&own.tags).zip(&peer.keys) {
                assert!(*bit <= 1, "{what}: a bit");
                assert_eq!(*tag, beta ^ (u64::from(*bit) * key.reveal_own_share()), "{what}: a tag");
            }
        }
        first.values.iter().zip(&second.values).map(|(x, y)| x ^ y).collect()
    }
}

fn sweep(cheater: Party) {
    let honest = run(cheater, u64::MAX, Fault::Drop, LATE);
    assert!(honest.finished("no fault"));
    assert_eq!(honest.tampering.messages(), ALL);
    let (mut fired, mut found) = (0, 0);
    for at in 0..ALL {
        let flip = |nth: usize| Fault::FlipBit {
            byte: (at as usize + nth).wrapping_mul(0x9e37_79b9),
            bit: at as u32,
        };
        for fault in
            [flip(0), flip(7), Fault::Replay, Fault::Truncate, Fault::Garbage { seed: at }, Fault::Drop]
        {
            let what = format!("{cheater}, message {at}, {fault:?}");
            let run = run(cheater, at, fault, if fault == Fault::Drop { SOON } else { LATE / 6 });
            let finished = run.finished(&what);
            let honest = &run.outcomes[1 - cheater.index()];
            fired += u64::from(run.tampering.fired());
            found += u64::from(run.tampering.fired() && !finished);
            if matches!(fault, Fault::Truncate | Fault::Drop) {
                assert!(honest.is_err(), "{what}: nobody noticed");
            }
            if OF_COMPARISON.contains(&at) && run.tampering.fired() {
                assert!(honest.is_err(), "{what}: another product or comparison was accepted");
            }
        }
    }
    assert!(found > fired * 3 / 4, "{found} of {fired} faults were found");
}

#[test]
fn no_fault_of_the_first_party_gives_wrong_material_or_hangs() {
    sweep(Party(0));
}

#[test]
fn nor_one_of_the_second() {
    sweep(Party(1));
}

/// A party that hears what its peer says in one round, and then says nothing any more.
struct Leaver {
    net: Mesh,
    left: u64,
}

impl Net for Leaver {
    fn me(&self) -> Party {
        self.net.me()
    }

    fn parties(&self) -> usize {
        self.net.parties()
    }

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.net.send(to, message)
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.net.recv(from, into)
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        if self.left == 0 {
            self.net.exchange(&[&[][..]; 2], into)?;
            return Err(Error::misuse("it leaves"));
        }
        self.left -= 1;
        self.net.exchange(out, into)
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        self.net.fork()
    }
}

/// But where it leaves a check of transfers without an answer: when it is to open the coins, or to answer.
#[test]
fn silence_costs_the_session_and_the_key_only_where_a_check_of_transfers_is_left_without_an_answer() {
    for leaver in [0, 1] {
        let mut unanswered = 0;
        for at in 0..ALL {
            let ends = mesh_with_timeout(2, LATE).into_iter();
            let left = |net: &Mesh| if net.me() == Party(leaver) { at } else { u64::MAX };
            let ends: Vec<_> = ends.map(|net| Leaver { left: left(&net), net }).collect();
            let keys = [0, 1].map(|p: usize| Key::generate(&ends[p]).expect("randomness"));
            let of_parties = keys.clone();
            let outcomes = run_over(ends, move |net| party(&of_parties[net.me().index()], net));
            let honest = outcomes[1 - usize::from(leaver)].as_ref().err();
            let in_a_check = matches!(honest, Some(Error::Unanswered { .. }));
            unanswered += u64::from(in_a_check);
            assert!(in_a_check || matches!(honest, Some(Error::Closed { .. })), "message {at}: {honest:?}");
            let retired = keys.each_ref().map(|key| key.refuse_retired().is_err());
            assert!(!retired[leaver as usize], "message {at}");
            assert_eq!(retired[1 - leaver as usize], in_a_check, "message {at}");
        }
        // Bits for leaky triples, and bits.
        assert_eq!(unanswered, 2 * 2);
    }
}

/// A wrong offset in one G: found if the peer's bit of x is one, and without effect on the triple if it is zero.
#[test]
fn who_guesses_a_bit_is_caught_half_of_the_time_and_triples_are_right() {
    let runs = 24;
    let mut caught = 0;
    for i in 0..runs {
        let fault = Fault::FlipBit { byte: 37 * i, bit: i as u32 };
        let run = run(Party(i as u8 % 2), OF_PRODUCTS, fault, LATE);
        assert!(run.tampering.fired());
        caught += u32::from(!run.finished("a wrong offset"));
    }
    assert!((3..22).contains(&caught), "{caught} of {runs} were caught");
}

//! TinyOT with a party that cheats once, in any message: an error, or right material; never a hang or a
//! panic.

use std::ops::Range;
use std::time::Duration;

use polyclave_field::{Gf2_64, Gf256, MacField};
use polyclave_protocol::authenticated::{Element, Inverses};
use polyclave_protocol::mesh::{Mesh, mesh_with_timeout};
use polyclave_protocol::net::Net;
use polyclave_protocol::tinyot::{Bits, Kappa, Key, Source, TinyOt};
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, SOON, run_over};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper, Tampering};

const TRIPLES: usize = 500;
const BITS: usize = 9;
const RECORDS: usize = 160;
/// Lists of leaky products of so many triples; shared lists of a phase of so many records.
const LISTS: u64 = 5;
const SHARED_LISTS: u64 = 6 + 9;

/// Messages of a party, in order. First those of setup.
const OF_SET_UP: u64 = 2;
/// Of transfers with their check.
const OF_TRANSFERS: u64 = 3;
/// Transfers and offers: of a list, and of products for zero tests.
const OF_LIST: u64 = OF_TRANSFERS + 1;
/// Of a check of leaky products: coins, what is opened, zero test.
const OF_CHECK: u64 = 2 + 1 + 4;
/// Of coins and a zero test.
const OF_ZERO_TEST: u64 = 2 + 4;

/// The check of triples: after the random element and products for zero tests. Then shifts and differences.
const CHECK: u64 = OF_SET_UP + LISTS * OF_LIST + OF_TRANSFERS + OF_LIST;
const CHECKED: u64 = CHECK + OF_CHECK + 2 + 1;
/// Corrections and the zero test, and bits.
const CORRECTION: u64 = CHECKED + OF_TRANSFERS;
const OF_TRIPLES: u64 = CORRECTION + 1 + OF_ZERO_TEST;
const ALL: u64 = OF_TRIPLES + OF_TRANSFERS;

/// The lists of a phase of records: of each of two kinds a list of its own, shared ones with bits for y
/// before, and bits for MACs.
const OF_LISTS: u64 = 2 * (OF_LIST + OF_TRANSFERS) + SHARED_LISTS * (OF_TRANSFERS + OF_LIST);
/// What a phase opens of both kinds: differences, and sums for MACs.
const OPENINGS: u64 = 4;
/// The check of phase 1 of records and what follows: shifts, what is opened, coins.
const FIRST_CHECK: u64 = OF_SET_UP + OF_LISTS + OF_TRANSFERS + OF_LIST;
const FIRST_CHECKED: u64 = FIRST_CHECK + OF_CHECK + 2 + OPENINGS + 2;
/// The same of phase 2.
const SECOND_CHECK: u64 = FIRST_CHECKED + OF_LISTS + OF_TRANSFERS;
const SECOND_CHECKED: u64 = SECOND_CHECK + OF_CHECK + 2 + OPENINGS + 2;
/// Bits and the zero test.
const LAST_TEST: u64 = SECOND_CHECKED + OF_TRANSFERS;
const ALL_OF_RECORDS: u64 = LAST_TEST + OF_ZERO_TEST;

/// What parties make in a sweep, and what has to be right if both finish.
trait Material: Sized + Send + 'static {
    /// Messages of a party.
    const MESSAGES: u64;
    /// Those that are wrong in any case if they are changed.
    const ALWAYS_FOUND: &'static [Range<u64>];

    fn make(source: &mut TinyOt, net: &mut dyn Net) -> Result<Self>;

    fn assert_right(keys: &[Key; 2], parts: [&Self; 2], what: &str);
}

/// x, y, z and bits.
struct TriplesAndBits([Bits; 4]);

impl Material for TriplesAndBits {
    const MESSAGES: u64 = ALL;
    const ALWAYS_FOUND: &'static [Range<u64>] = &[CHECK..CHECKED, CORRECTION..OF_TRIPLES];

    fn make(source: &mut TinyOt, net: &mut dyn Net) -> Result<Self> {
        let triples = source.triples(TRIPLES, net)?;
        let [x, y, z] = [&triples.x, &triples.y, &triples.z].map(Bits::clone);
        Ok(TriplesAndBits([x, y, z, source.bits(BITS, net)?]))
    }

    fn assert_right(keys: &[Key; 2], [first, second]: [&Self; 2], what: &str) {
        let opened = |i: usize| opened_bits(keys, [&first.0[i], &second.0[i]], what);
        let [x, y, z, bits] = [0, 1, 2, 3].map(opened);
        assert_eq!((x.len(), y.len(), z.len(), bits.len()), (TRIPLES, TRIPLES, TRIPLES, BITS));
        assert!(x.iter().zip(&y).zip(&z).all(|((x, y), z)| x & y == *z), "{what}: a product");
    }
}

fn opened_bits(keys: &[Key; 2], [first, second]: [&Bits; 2], what: &str) -> Vec<u8> {
    for (own, peer, key) in [(first, second, &keys[1]), (second, first, &keys[0])] {
        for ((bit, tag), beta) in own.values.iter().zip(&own.tags).zip(&peer.keys) {
            assert!(*bit <= 1, "{what}: a bit");
            assert_eq!(*tag, beta ^ (u64::from(*bit) * key.reveal_own_share()), "{what}: a tag");
        }
    }
    first.values.iter().zip(&second.values).map(|(x, y)| x ^ y).collect()
}

impl Material for Inverses<Gf2_64> {
    const MESSAGES: u64 = ALL_OF_RECORDS;
    const ALWAYS_FOUND: &'static [Range<u64>] =
        &[FIRST_CHECK..FIRST_CHECKED, SECOND_CHECK..SECOND_CHECKED, LAST_TEST..ALL_OF_RECORDS];

    fn make(source: &mut TinyOt, net: &mut dyn Net) -> Result<Self> {
        source.inverses(RECORDS, net)
    }

    fn assert_right(keys: &[Key; 2], [first, second]: [&Self; 2], what: &str) {
        let alpha = keys[0].reveal_own_share() ^ keys[1].reveal_own_share();
        for i in 0..RECORDS {
            let of = |element: Element| {
                let e = element as usize;
                let value = first.values[e][i] ^ second.values[e][i];
                let mac = Gf2_64::multiply(alpha, Gf2_64::embed(value));
                assert_eq!(first.macs[e][i] ^ second.macs[e][i], mac, "{what}: a MAC");
                Gf256(value)
            };
            let (lx, ln, x, lv) = (of(Element::Lx), of(Element::Ln), of(Element::X), of(Element::Lv));
            let is_right = [
                of(Element::Lx16) == lx.pow(16) && of(Element::Lx17) == lx.pow(17),
                of(Element::Ln4) == ln.pow(4) && of(Element::Ln5) == ln.pow(5),
                of(Element::Lm) == x.pow(2) && of(Element::XLn4) == x * ln.pow(4),
                of(Element::LvLx16) == lv * lx.pow(16),
            ];
            assert_eq!(is_right, [true; 4], "{what}: record {i}");
            for (k, (a, b)) in first.bit_macs.iter().zip(&second.bit_macs).enumerate() {
                let bit = u64::from((first.bits[i] ^ second.bits[i]) >> k & 1);
                assert_eq!(a[i] ^ b[i], bit * alpha, "{what}: the MAC of a bit");
            }
        }
    }
}

struct Run<M> {
    keys: [Key; 2],
    outcomes: Vec<Result<M>>,
    tampering: Tampering,
}

fn party<M: Material>(key: &Key, net: &mut dyn Net) -> Result<M> {
    M::make(&mut TinyOt::setup(b"faults", key, Kappa::Bits40, 4, net)?, net)
}

fn run<M: Material>(cheater: Party, at: u64, fault: Fault, timeout: Duration) -> Run<M> {
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

impl<M: Material> Run<M> {
    /// Whether both finished. Then everything must be right. Otherwise a key is given up by who found
    /// something wrong, and by nobody else.
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
        M::assert_right(&self.keys, [first, second], what);
        true
    }
}

/// How many faults were committed and found.
#[derive(Default)]
struct Found {
    fired: u64,
    found: u64,
}

impl Found {
    fn try_fault<M: Material>(&mut self, cheater: Party, at: u64, fault: Fault) {
        let what = format!("{cheater}, message {at}, {fault:?}");
        let run = run::<M>(cheater, at, fault, if fault == Fault::Drop { SOON } else { LATE / 6 });
        let finished = run.finished(&what);
        let honest = &run.outcomes[1 - cheater.index()];
        let fired = run.tampering.fired();
        self.fired += u64::from(fired);
        self.found += u64::from(fired && !finished);
        if matches!(fault, Fault::Truncate | Fault::Drop) {
            assert!(honest.is_err(), "{what}: nobody noticed");
        }
        if M::ALWAYS_FOUND.iter().any(|range| range.contains(&at)) && fired {
            assert!(honest.is_err(), "{what}: another check, difference or correction was accepted");
        }
    }
}

fn assert_honest<M: Material>() {
    let honest = run::<M>(Party(0), u64::MAX, Fault::Drop, LATE);
    assert!(honest.finished("no fault"));
    assert_eq!(honest.tampering.messages(), M::MESSAGES);
}

/// A bit that is anywhere in the message.
fn flip(at: u64, nth: usize) -> Fault {
    Fault::FlipBit { byte: (at as usize + nth).wrapping_mul(0x9e37_79b9), bit: at as u32 }
}

fn sweep(cheater: Party) {
    assert_honest::<TriplesAndBits>();
    let mut all = Found::default();
    for at in 0..ALL {
        for fault in [
            flip(at, 0),
            flip(at, 7),
            Fault::Replay,
            Fault::Truncate,
            Fault::Garbage { seed: at },
            Fault::Drop,
        ] {
            all.try_fault::<TriplesAndBits>(cheater, at, fault);
        }
    }
    let Found { fired, found } = all;
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

/// Every message of records, at one party flipped, and at the other one changed in some other way.
#[test]
fn no_fault_gives_wrong_records_or_hangs() {
    assert_honest::<Inverses<Gf2_64>>();
    let mut all = Found::default();
    for at in OF_SET_UP..ALL_OF_RECORDS {
        let others = [Fault::Garbage { seed: at }, Fault::Truncate, Fault::Drop, Fault::Replay];
        // Messages of one kind come every fourth time.
        let number = (at + at / 4) as usize;
        all.try_fault::<Inverses<Gf2_64>>(Party(number as u8 / 4 % 2), at, flip(at, 3));
        all.try_fault::<Inverses<Gf2_64>>(Party(1 - number as u8 / 4 % 2), at, others[number % 4]);
    }
    let Found { fired, found } = all;
    assert!(found > fired * 3 / 4, "{found} of {fired} faults were found");
}

/// A party that hears what its peer says in one round, and then says nothing any more.
struct Leaver {
    net: Mesh,
    left: u64,
}

impl Net for Leaver {
    polyclave_protocol::forward_net!(self => self.net; me, parties, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        if self.left == 0 {
            self.net.exchange(&[&[][..]; 2], into)?;
            return Err(Error::misuse("it leaves"));
        }
        self.left -= 1;
        self.net.exchange(out, into)
    }
}

/// Runs parties of which one leaves in every message in turn. Its peer gives the key up exactly where it left
/// a check without an answer. Returns how often.
fn leave<M: Material>(leaver: Party) -> u64 {
    let mut unanswered = 0;
    for at in 0..M::MESSAGES {
        let ends = mesh_with_timeout(2, LATE).into_iter();
        let left = |net: &Mesh| if net.me() == leaver { at } else { u64::MAX };
        let ends: Vec<_> = ends.map(|net| Leaver { left: left(&net), net }).collect();
        let keys = [0, 1].map(|p: usize| Key::generate(&ends[p]).expect("randomness"));
        let of_parties = keys.clone();
        let outcomes = run_over(ends, move |net| party::<M>(&of_parties[net.me().index()], net));
        let honest = outcomes[1 - leaver.index()].as_ref().err();
        let in_a_check = matches!(honest, Some(Error::Unanswered { .. }));
        unanswered += u64::from(in_a_check);
        assert!(in_a_check || matches!(honest, Some(Error::Closed { .. })), "message {at}: {honest:?}");
        let retired = keys.each_ref().map(|key| key.refuse_retired().is_err());
        assert!(!retired[leaver.index()], "message {at}");
        assert_eq!(retired[1 - leaver.index()], in_a_check, "message {at}");
    }
    unanswered
}

/// A check of transfers is left without an answer when the leaver is to open the coins, or to answer. A check
/// of products, with everything after it that depends on its coins, is so from the opening of the coins on.
#[test]
fn silence_costs_the_session_and_the_key_only_where_a_check_is_left_without_an_answer() {
    let of_check = OF_CHECK - 1;
    for leaver in [Party(0), Party(1)] {
        // Lists, the random element, products for zero tests; bits.
        let transfers = 2 * (LISTS + 2 + 1);
        assert_eq!(leave::<TriplesAndBits>(leaver), transfers + of_check + OF_TRIPLES - (CHECK + OF_CHECK));
    }
    // Of two phases, the random element of their checks included; products for zero tests; bits.
    let transfers = 2 * (2 * (4 + 2 * SHARED_LISTS + 1) + 1 + 1);
    let of_phases = FIRST_CHECKED - FIRST_CHECK + SECOND_CHECKED - SECOND_CHECK - 2;
    assert_eq!(leave::<Inverses<Gf2_64>>(Party(1)), transfers + of_phases + OF_ZERO_TEST);
}

/// A wrong offer: found if the peer's bit of x is one, and without effect on the triple if it is zero.
#[test]
fn who_guesses_a_bit_is_caught_half_of_the_time_and_triples_are_right() {
    let runs = 24;
    let mut caught = 0;
    for i in 0..runs {
        let fault = Fault::FlipBit { byte: 37 * i, bit: i as u32 };
        let run = run::<TriplesAndBits>(Party(i as u8 % 2), OF_SET_UP + OF_TRANSFERS, fault, LATE);
        assert!(run.tampering.fired());
        caught += u32::from(!run.finished("a wrong offer"));
    }
    assert!((3..22).contains(&caught), "{caught} of {runs} were caught");
}

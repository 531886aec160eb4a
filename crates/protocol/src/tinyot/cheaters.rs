//! Parties that cheat in the code that makes leaky products, and what they guess. The test sees what both
//! parties have, so it knows when a guess is right.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use parking_lot::Mutex;
use polyclave_field::{Gf2_64, Gf256, MacField};

use super::coset_check::Products;
use super::edits::{Edited, Edits};
use super::lists::{Column, List};
use super::places::OFFERS;
use super::plan::{GatePlan, VectorPlan};
use super::products::{ElementsMut, Kind};
use super::records_tests::assert_vectors;
use super::subfield::{BIT, BYTE, GF4, GF16, Subfield};
use super::tests::made;
use super::*;
use crate::mesh::mesh;
use crate::pool::Pool;

pub(super) const COUNT: usize = 8;
const CHEATER: usize = 0;
const HONEST: usize = 1;

/// Of a check, after the list, a random element and products for zero tests: coins, rho, zero test.
const OF_CHECK: std::ops::Range<u64> = CHECK..CHECK + 2 + 1 + 4;
const CHECK: u64 = OFFERS + 1 + 3 + 4;
/// rho.
const RHO: u64 = CHECK + 2;

mod records;
mod shared;

/// Both parties' setups, from which every run takes forks under a key of its own, with the same shares.
struct Parties {
    sources: [TinyOt; 2],
    runs: AtomicU64,
}

/// What both parties have after a run.
struct Run<T> {
    keys: [Key; 2],
    outcomes: [Result<T>; 2],
    /// Messages of each party.
    messages: [u64; 2],
}

impl Parties {
    fn setup() -> Self {
        let (_, sources) = made(Kappa::Bits40, |source, _| Ok(source.fork(b"cheaters")));
        Parties { sources, runs: AtomicU64::new(0) }
    }

    /// Whether a run has made the transfers useless, so that every other run would fail whatever it does.
    fn are_spoiled(&self) -> bool {
        self.sources.iter().any(|source| source.maker.transfers.are_retired())
    }

    /// Sets up afresh if that is needed for another run.
    fn renew(&mut self) {
        if self.are_spoiled() {
            *self = Parties::setup();
        }
    }

    fn run<T: Send>(
        &self,
        edits: Edits,
        party: impl Fn(&mut TinyOt, &mut dyn Net) -> Result<T> + Sync,
    ) -> Run<T> {
        assert!(!self.are_spoiled(), "a test whose transfers are spoiled finds nothing");
        let label = self.runs.fetch_add(1, SeqCst).to_le_bytes();
        let keys = [0, 1].map(|p: usize| {
            let key = &self.sources[p].maker.key;
            Key::of_share(key.me(), 2, key.reveal_own_share())
        });
        let mut outcomes = std::thread::scope(|scope| {
            let threads: Vec<_> = mesh(2)
                .into_iter()
                .zip(&self.sources)
                .zip(&keys)
                .map(|((net, source), key)| {
                    let edits = if net.me().index() == CHEATER { edits.clone() } else { Edits::default() };
                    let mut net = Edited { net, edits, sent: 0 };
                    let transfers = source.maker.transfers.fork(&label);
                    let mut source = TinyOt::with(&label, key, Kappa::Bits40, transfers, false);
                    let party = &party;
                    scope.spawn(move || {
                        let outcome = source.guarded(|source| party(source, &mut net));
                        (outcome, net.sent)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>().into_iter()
        });
        let (first, messages) = outcomes.next().expect("two parties");
        let (second, of_second) = outcomes.next().expect("two parties");
        Run { keys, outcomes: [first, second], messages: [messages, of_second] }
    }
}

impl<T> Run<T> {
    /// Whether the honest party finished. If it did not, it says no more than that a check has failed, and
    /// has given its key up.
    fn passed(&self) -> bool {
        let given_up = self.keys[HONEST].refuse_retired().is_err();
        match &self.outcomes[HONEST] {
            Ok(_) => assert!(!given_up),
            Err(e) => {
                assert_eq!(*e, Error::CheckFailed { what: "the MACs of opened values" });
                assert!(given_up);
            }
        }
        self.outcomes[HONEST].is_ok()
    }
}

/// What a cheater's edits of offers are about: a kind of products, and one of [`COUNT`] products.
pub(super) struct Target {
    pub(super) kind: Kind,
    pub(super) product: usize,
}

impl Target {
    pub(super) fn new(x: &'static Subfield, y: &'static Subfield, product: usize) -> Self {
        Target { kind: Kind::new(x, y), product }
    }

    /// Adds to the MAC that is offered with bit k of x.
    pub(super) fn mac(&self, k: usize, error: u64) -> Vec<(usize, u8)> {
        let start = (k * COUNT + self.product) * size_of::<u64>();
        error.to_le_bytes().into_iter().enumerate().map(|(i, error)| (start + i, error)).collect()
    }

    /// Adds to the coordinates of the value that is offered with bit k of x.
    fn value(&self, k: usize, error: u8) -> Vec<(usize, u8)> {
        let (bits, field) = (self.product * self.kind.y.bits(), self.kind.y);
        let of_values = self.kind.x.bits() * COUNT * size_of::<u64>();
        vec![(of_values + k * field.packed_bytes(COUNT) + bits / 8, error << (bits % 8))]
    }

    /// Makes and checks a list while the cheater changes offers, and may change its own part of the products
    /// afterwards. Returns whether it passes, and the bits of the honest party's x. If it passes, every
    /// product must be right.
    fn run(
        &self,
        parties: &Parties,
        edits: &[Vec<(usize, u8)>],
        own: impl Fn(ElementsMut<'_>) + Sync,
    ) -> (bool, Vec<u8>) {
        let honest = Mutex::new(0);
        let edits = Edits { at: OFFERS, bytes: edits.concat(), ..Edits::default() };
        let run = parties.run(edits, |source, net| {
            let mut list = List::default();
            list.make_room(COUNT);
            source.maker.fill(&mut list, &self.kind, None, true, COUNT, net)?;
            match net.me().index() {
                CHEATER => own(list.z.part_mut(self.product, 1)),
                _ => *honest.lock() = list.x.part(self.product, 1).values[0],
            }
            source.maker.check(&products(&list, COUNT), net)?;
            Ok(list)
        });
        let mut coordinates = [0];
        self.kind.x.coordinates(&mut coordinates, &[*honest.lock()]);
        let bits = (0..self.kind.x.bits()).map(|k| coordinates[0] >> k & 1).collect();
        if let [Ok(first), Ok(second)] = &run.outcomes {
            assert_products(&run.keys, &[first, second]);
        }
        (run.passed(), bits)
    }

    /// The same for so many runs, each with another product. Passes exactly if the guess is right; returns
    /// how often.
    fn guessed(
        parties: &Parties,
        [x, y]: [&'static Subfield; 2],
        runs: usize,
        edits: impl Fn(&Target) -> Vec<Vec<(usize, u8)>>,
        is_right: impl Fn(&[u8]) -> bool,
    ) -> usize {
        let passes = |run: &usize| {
            let target = Target::new(x, y, run % COUNT);
            let (passed, bits) = target.run(parties, &edits(&target), |_| ());
            assert_eq!(passed, is_right(&bits), "run {run}: {bits:?}");
            passed
        };
        (0..runs).filter(passes).count()
    }
}

pub(super) fn products(list: &List, count: usize) -> Products<'_> {
    Products { elements: vec![list.z.part(0, count)], words: Vec::new() }
}

/// Products, and the MACs of all three elements.
pub(super) fn assert_products(keys: &[Key], lists: &[&List]) {
    let delta = keys.iter().fold(0, |sum, key| sum ^ key.reveal_own_share());
    let opened = |of: fn(&List) -> &Column| -> Vec<Gf256> {
        let parts: Vec<_> = lists.iter().map(|list| of(list).part(0, COUNT)).collect();
        let value = |i: usize| {
            let value = parts.iter().fold(0, |sum, part| sum ^ part.values[i]);
            let mac = parts.iter().fold(0, |sum, part| sum ^ part.macs[i]);
            assert_eq!(mac, Gf2_64::multiply(delta, Gf2_64::embed(value)));
            Gf256(value)
        };
        (0..COUNT).map(value).collect()
    };
    let [x, y, z] = [opened(|list| &list.x), opened(|list| &list.y), opened(|list| &list.z)];
    assert!((0..COUNT).all(|i| x[i] * y[i] == z[i]));
}

pub(super) fn kinds() -> [[&'static Subfield; 2]; 5] {
    [[&BIT, &BIT], [&GF4, &GF4], [&GF4, &GF16], [&GF16, &GF16], [&GF16, &BYTE]]
}

#[test]
fn honest_products_pass() {
    let parties = Parties::setup();
    for kind in kinds() {
        assert_eq!(Target::guessed(&parties, kind, 3, |_| Vec::new(), |_| true), 3);
    }
}

#[test]
fn a_wrong_mac_or_value_in_an_offer_passes_exactly_if_the_bit_is_zero() {
    let parties = Parties::setup();
    let (mut runs, mut passed) = (0, 0);
    for kind in kinds() {
        for k in 0..kind[0].bits() {
            for bit in [0, 63] {
                runs += COUNT;
                passed +=
                    Target::guessed(&parties, kind, COUNT, |of| vec![of.mac(k, 1 << bit)], |x| x[k] == 0);
            }
            let bit = kind[1].bits() - 1;
            runs += COUNT;
            passed += Target::guessed(&parties, kind, COUNT, |of| vec![of.value(k, 1 << bit)], |x| x[k] == 0);
        }
    }
    assert!((runs / 3..2 * runs / 3).contains(&passed), "{passed} of {runs}");
}

/// Whoever adds the error that it expects to its own part guesses one instead.
#[test]
fn a_cheater_can_guess_either_value_of_a_bit_and_pays_the_same() {
    let parties = Parties::setup();
    let error = 0x0123_4567_89ab_cdef;
    let mut passed = 0;
    for run in 0..24 {
        let target = Target::new(&GF16, &BYTE, run % COUNT);
        let expected = Gf2_64::multiply(error, GF16.words()[2]);
        let (pass, x) = target.run(&parties, &[target.mac(2, error)], |z| z.macs[0] ^= expected);
        assert_eq!(pass, x[2] == 1);
        passed += usize::from(pass);
    }
    assert!((3..=21).contains(&passed), "{passed} of 24");
}

#[test]
fn errors_with_c_bits_pass_exactly_if_all_of_them_are_zero() {
    let parties = Parties::setup();
    let kind: [&'static Subfield; 2] = [&GF16, &BYTE];
    for (bits, most) in [(&[1, 3][..], 22), (&[0, 1, 2], 16)] {
        let zero = |x: &[u8]| bits.iter().all(|k| x[*k] == 0);
        let macs = |of: &Target| bits.iter().map(|k| of.mac(*k, 5)).collect();
        let values = |of: &Target| bits.iter().map(|k| of.value(*k, 0x40)).collect();
        let passed = Target::guessed(&parties, kind, 20, macs, zero)
            + Target::guessed(&parties, kind, 20, values, zero);
        assert!(passed < most, "{passed} of 40 with {} bits", bits.len());
    }
}

/// Errors that cancel if two bits are equal: one function is guessed, not two bits.
#[test]
fn errors_can_guess_a_sum_of_bits() {
    let parties = Parties::setup();
    let first = 0xfedc_ba98_7654_3210;
    let inverse = Gf2_64::embed(Gf256(GF16.basis()[1]).pow(254).0);
    let second = Gf2_64::multiply(first, inverse);
    let passed = Target::guessed(
        &parties,
        [&GF16, &GF16],
        32,
        |of| vec![of.mac(0, first), of.mac(1, second)],
        |x| x[0] == x[1],
    );
    assert!((4..=28).contains(&passed), "{passed} of 32");
}

/// As if the cheater's y were another one, with a MAC that it made up: it must guess all of x.
#[test]
fn another_payload_passes_exactly_if_x_is_zero() {
    let parties = Parties::setup();
    for (kind, runs, most) in [([&*GF4, &*GF16], 32, 24), ([&*GF16, &*BYTE], 48, 16)] {
        let edits = |of: &Target| {
            let bits = 0..of.kind.x.bits();
            bits.flat_map(|k| [of.value(k, 1), of.mac(k, 0xdead_beef)]).collect()
        };
        let passed = Target::guessed(&parties, kind, runs, edits, |x| x.iter().all(|bit| *bit == 0));
        assert!(passed < most, "{passed} of {runs}");
    }
}

/// Its shares of MACs are then wrong by its own bits, in offers and in its part of the sum.
#[test]
fn another_alpha_than_that_of_the_transfers_is_always_caught() {
    let parties = Parties::setup();
    for kind in kinds() {
        let run = parties.run(Edits::default(), |source, net| {
            let maker = &mut source.maker;
            if net.me().index() == CHEATER {
                maker.key = Key::of_share(maker.key.me(), 2, maker.key.reveal_own_share() ^ 1 << 40);
            }
            let mut list = List::default();
            list.make_room(10 * COUNT);
            maker.fill(&mut list, &Kind::new(kind[0], kind[1]), None, true, 10 * COUNT, net)?;
            maker.check(&products(&list, 10 * COUNT), net)
        });
        assert!(!run.passed());
    }
}

/// Offers to a receiver with inconsistent choices would tell it bits of Delta.
#[test]
fn no_offer_leaves_after_a_failed_check_of_transfers() {
    for number in [0, 6] {
        // The transfers of all forks are given up together.
        let parties = Parties::setup();
        // Other choices in eight trees, for the check's mask: it passes if it guesses all of these parts of
        // Delta.
        let bytes = (0..8).map(|tree| (17 * tree, 1 << number)).collect();
        let run = parties.run(Edits { at: 0, bytes, ..Edits::default() }, |source, net| {
            let mut list = List::default();
            list.make_room(COUNT);
            source.maker.fill(&mut list, &Kind::new(&GF16, &BYTE), None, true, COUNT, net)
        });
        assert!(run.outcomes[HONEST].is_err() && run.keys[HONEST].refuse_retired().is_err());
        assert_eq!(run.messages[HONEST], OFFERS);
    }
}

/// Another sum of what is checked, or another answer in its zero test, or other coins.
#[test]
fn wrong_messages_of_the_check_are_always_caught() {
    let parties = Parties::setup();
    for at in OF_CHECK {
        for byte in [0, 7] {
            let edits = Edits { at, bytes: vec![(byte, 0x10)], ..Edits::default() };
            let run = parties.run(edits, |source, net| {
                let mut list = List::default();
                list.make_room(COUNT);
                source.maker.fill(&mut list, &Kind::new(&GF4, &GF4), None, false, COUNT, net)?;
                source.maker.check(&products(&list, COUNT), net)
            });
            let Err(error) = &run.outcomes[HONEST] else { panic!("message {at}, byte {byte}") };
            match at {
                // A word that is not under a commitment.
                RHO => assert!(!run.passed()),
                _ => assert!(matches!(error, Error::Peer { .. }), "message {at}: {error}"),
            }
            assert!(run.keys[HONEST].refuse_retired().is_err());
        }
    }
}

/// Differences and corrections are opened without commitments; the last six messages are coins and the zero
/// test.
#[test]
fn wrong_differences_and_corrections_of_triples_are_always_caught() {
    let (parties, triples) = (Parties::setup(), 13);
    let make_triples =
        |source: &mut TinyOt, net: &mut dyn Net| source.triples_in_batches(triples, net).map(drop);
    let honest = parties.run(Edits::default(), make_triples);
    assert!(honest.passed());
    let of_triples = honest.messages[CHEATER];

    let lists = GatePlan::of(triples, Kappa::Bits40).lists as u64;
    assert_eq!(of_triples, (OFFERS + 1) * lists + OF_CHECK.end - (OFFERS + 1) + 2 + 1 + 4 + 6);
    let correction = of_triples - 6 - 1;
    for at in [correction - OFFERS - 1, correction] {
        for bytes in [vec![(0, 1)], vec![(1, 1 << 4)], vec![(0, 0xff)]] {
            let edits = Edits { at, bytes, ..Edits::default() };
            assert!(!parties.run(edits, make_triples).passed(), "message {at}");
        }
    }
}

/// A bit of every message is wrong in turn: vectors are right if both parties finish. What is opened without
/// a commitment is always found.
#[test]
fn no_wrong_message_gives_wrong_unit_vectors() {
    let mut parties = Parties::setup();
    let (in_bits, count) = (3, 70);
    let make = |source: &mut TinyOt, net: &mut dyn Net| {
        Ok(source.unit_vectors(in_bits, count, &Pool::default(), net)?.write())
    };
    let mut passed = |edits: Edits| {
        parties.renew();
        let run = parties.run(edits, make);
        if let [Ok(first), Ok(second)] = &run.outcomes {
            assert_vectors(&run.keys, &[first, second], in_bits, count);
        }
        assert_eq!(run.outcomes[HONEST].is_err(), run.keys[HONEST].refuse_retired().is_err());
        (run.outcomes[HONEST].is_ok(), run.messages[CHEATER])
    };
    let (honest, messages) = passed(Edits::default());
    assert!(honest);
    // Coins and a zero test; coins, entries and bits for them; coins.
    let entries = messages - 6 - 2 - 1;
    let differences = entries - OFFERS - 2;
    let lists = VectorPlan::of(count, in_bits, Kappa::Bits40).lists as u64;
    let mut caught = 0;
    for at in 0..messages {
        for byte in [0, 12_345] {
            let (passed, _) = passed(Edits { at, bytes: vec![(byte, 1)], ..Edits::default() });
            caught += u64::from(!passed);
            if at == entries || (differences - (lists - 1)..differences).contains(&at) {
                assert!(!passed, "message {at}, byte {byte}");
            }
        }
    }
    assert!(caught > messages, "{caught} of {} were caught", 2 * messages);
}

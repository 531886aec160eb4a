//! One or two of three parties cheat in the code that makes records. The test sees what all parties have, so
//! it knows when a guess is right.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use parking_lot::Mutex;
use polyclave_field::{Gf2_64, MacField};

use super::abit::Lie;
use super::cheaters::{COUNT, Target, assert_products, kinds, products};
use super::edits::{Edited, Edits};
use super::lists::List;
use super::places::{OFFERS, OPENINGS, PLANS, Places};
use super::plan::RecordPlan;
use super::records_tests::{assert_records, batch};
use super::subfield::{BIT, BYTE, GF4, GF16};
use super::tests::made_by;
use super::*;
use crate::Party;
use crate::mesh::mesh;

/// What each party does otherwise.
#[derive(Clone, Default)]
struct Cheats {
    edits: [Edits; 3],
    lies: [Option<Lie>; 3],
}

impl Cheats {
    /// The first party changes a message.
    fn edits(edits: Edits) -> Self {
        Cheats { edits: [edits, Edits::default(), Edits::default()], ..Cheats::default() }
    }

    /// The first party changes the offers that it makes to some.
    fn offers(to: &[usize], bytes: Vec<(usize, u8)>) -> Self {
        Self::edits(Edits { at: OFFERS, bytes, to: to.to_vec(), ..Edits::default() })
    }

    /// The first party has other bits towards the last.
    fn lies(call: u64, wide: u8, narrow: u8) -> Self {
        let lie = Lie { towards: Party(2), call, wide, narrow };
        Cheats { lies: [Some(lie), None, None], ..Cheats::default() }
    }
}

/// All parties' setups, from which every run takes forks under keys of its own, with the same shares.
struct Parties {
    sources: [TinyOt; 3],
    runs: AtomicU64,
}

struct Run<T> {
    keys: [Key; 3],
    outcomes: [Result<T>; 3],
}

impl Parties {
    fn setup() -> Self {
        let (_, sources) = made_by::<3, _>(Kappa::Bits40, |source, _| Ok(source.fork(b"cheaters")));
        Parties { sources, runs: AtomicU64::new(0) }
    }

    /// Whether a run has made the transfers useless, so that every other run would fail whatever it does.
    fn are_spoiled(&self) -> bool {
        self.sources.iter().any(|source| source.maker.transfers.are_retired())
    }

    fn run<T: Send>(
        &self,
        cheats: &Cheats,
        party: impl Fn(&mut TinyOt, &mut dyn Net) -> Result<T> + Sync,
    ) -> Run<T> {
        assert!(!self.are_spoiled(), "a test whose transfers are spoiled finds nothing");
        let label = self.runs.fetch_add(1, SeqCst).to_le_bytes();
        let keys = [0, 1, 2].map(|p: usize| {
            let key = &self.sources[p].maker.key;
            Key::of_share(key.me(), 3, key.reveal_own_share())
        });
        let outcomes = std::thread::scope(|scope| {
            let threads = mesh(3).into_iter().map(|net| {
                let me = net.me().index();
                let mut net = Edited { net, edits: cheats.edits[me].clone(), sent: 0 };
                let transfers = self.sources[me].maker.transfers.fork(&label);
                let mut source = TinyOt::with(&label, &keys[me], Kappa::Bits40, transfers, false);
                source.maker.transfers.lies.0 = cheats.lies[me];
                let party = &party;
                scope.spawn(move || source.guarded(|source| party(source, &mut net)))
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        let Ok(outcomes) = outcomes.try_into() else { unreachable!("three parties") };
        Run { keys, outcomes }
    }
}

impl<T> Run<T> {
    /// Whether these honest parties finished. If one did not, none did, and all have given the key up.
    fn passed(&self, honest: &[usize]) -> bool {
        let finished = |p: &usize| self.outcomes[*p].is_ok();
        for p in honest {
            assert_eq!(self.keys[*p].refuse_retired().is_ok(), finished(p), "party {p}");
        }
        let all = honest.iter().all(finished);
        assert!(all || !honest.iter().any(finished), "some honest parties finished");
        all
    }

    /// The same if a check of MACs is what fails.
    fn passes_the_check(&self, honest: &[usize]) -> bool {
        for outcome in honest.iter().map(|p| &self.outcomes[*p]) {
            let failed = Error::CheckFailed { what: "the MACs of opened values" };
            assert!(outcome.as_ref().err().is_none_or(|e| *e == failed), "{:?}", outcome.as_ref().err());
        }
        self.passed(honest)
    }
}

/// Fills a list and checks it. `change` is what a party does to its own part in between.
fn fill_and_check(
    source: &mut TinyOt,
    target: &Target,
    net: &mut dyn Net,
    change: impl Fn(usize, &mut List),
) -> Result<List> {
    let mut list = List::default();
    list.make_room(COUNT);
    source.maker.fill(&mut list, &target.kind, None, true, COUNT, net)?;
    change(net.me().index(), &mut list);
    source.maker.check(&products(&list, COUNT), net)?;
    Ok(list)
}

/// Runs that, and returns whether it passes, and the bits of every party's x. If it passes, all products must
/// be right.
fn outcome(parties: &Parties, cheats: &Cheats, target: &Target, honest: &[usize]) -> (bool, [Vec<u8>; 3]) {
    let seen = Mutex::new([const { Vec::new() }; 3]);
    let run = parties.run(cheats, |source, net| {
        fill_and_check(source, target, net, |me, list| {
            let mut coordinates = [0];
            target.kind.x.coordinates(&mut coordinates, list.x.part(target.product, 1).values);
            seen.lock()[me] = (0..target.kind.x.bits()).map(|k| coordinates[0] >> k & 1).collect();
        })
    });
    if let [Ok(a), Ok(b), Ok(c)] = &run.outcomes {
        assert_products(&run.keys, &[a, b, c]);
    }
    (run.passes_the_check(honest), seen.into_inner())
}

const ERROR: u64 = 0x0123_4567_89ab_cdef;

#[test]
fn honest_products_of_three_pass() {
    let parties = Parties::setup();
    for [x, y] in kinds() {
        assert!(outcome(&parties, &Cheats::default(), &Target::new(x, y, 0), &[0, 1, 2]).0);
    }
}

#[test]
fn a_wrong_offer_to_one_of_two_honest_parties_passes_exactly_if_its_bit_is_zero() {
    let parties = Parties::setup();
    let mut passed = 0;
    for run in 0..32 {
        let (target, k, to) = (Target::new(&GF16, &BYTE, run % COUNT), run % 4, 1 + run / 4 % 2);
        let (passes, x) = outcome(&parties, &Cheats::offers(&[to], target.mac(k, ERROR)), &target, &[1, 2]);
        assert_eq!(passes, x[to][k] == 0, "run {run}");
        passed += usize::from(passes);
    }
    assert!((4..=28).contains(&passed), "{passed} of 32");
}

/// One function of the bits of both honest parties is guessed, not two.
#[test]
fn equal_errors_to_both_honest_parties_pass_exactly_if_their_bits_are_equal() {
    let parties = Parties::setup();
    let mut passed = 0;
    for run in 0..32 {
        let (target, k) = (Target::new(&GF4, &GF16, run % COUNT), run % 2);
        let (passes, x) = outcome(&parties, &Cheats::offers(&[], target.mac(k, ERROR)), &target, &[1, 2]);
        assert_eq!(passes, x[1][k] == x[2][k], "run {run}");
        passed += usize::from(passes);
    }
    assert!((4..=28).contains(&passed), "{passed} of 32");
}

#[test]
fn errors_of_two_cheaters_add_up_at_the_honest_party() {
    let parties = Parties::setup();
    let both = |bytes: [Vec<(usize, u8)>; 2]| {
        let edits = bytes.map(|bytes| Edits { at: OFFERS, bytes, to: vec![2], ..Edits::default() });
        let [first, second] = edits;
        Cheats { edits: [first, second, Edits::default()], ..Cheats::default() }
    };
    let mut passed = 0;
    for run in 0..32 {
        let target = Target::new(&GF16, &GF16, run % COUNT);
        let [same, other] = [0, 1].map(|k| both([target.mac(0, ERROR), target.mac(k, ERROR)]));
        assert!(outcome(&parties, &same, &target, &[2]).0, "they cancel");
        let (passes, x) = outcome(&parties, &other, &target, &[2]);
        assert_eq!(passes, x[2][..2] == [0, 0], "run {run}");
        passed += usize::from(passes);
    }
    assert!((1..=20).contains(&passed), "{passed} of 32");
}

/// As if the first party had chosen with another bit from the last party, and had used that bit for what it
/// takes from it: the product is wrong by the last party's share of y.
#[test]
fn another_factor_towards_one_honest_party_is_always_caught() {
    let parties = Parties::setup();
    for [x, y] in kinds() {
        for k in 0..x.bits() {
            let target = Target::new(x, y, k);
            let run = parties.run(&Cheats::default(), |source, net| {
                fill_and_check(source, &target, net, |me, list| {
                    if me == 2 {
                        let y = list.y.part(k, 1);
                        let (value, mac) = (y.values[0], Gf2_64::multiply(x.words()[k], y.macs[0]));
                        let z = list.z.part_mut(k, 1);
                        let product = polyclave_field::Gf256(value) * polyclave_field::Gf256(x.basis()[k]);
                        z.values[0] ^= product.0;
                        z.macs[0] ^= mac;
                    }
                })
            });
            assert!(!run.passes_the_check(&[0, 1, 2]), "bit {k}");
        }
    }
}

/// The MAC of y is then wrong by a share of the key, and that of z by x times that. The zero test at the end
/// finds y in any case.
#[test]
fn another_bit_of_y_towards_one_honest_party_passes_the_check_exactly_if_x_is_zero() {
    let parties = Parties::setup();
    for (kind, most) in [([&*BIT, &*BIT], 30), ([&*GF4, &*GF4], 24)] {
        let mut passed = 0;
        for _ in 0..32 {
            let (target, x) = (Target::new(kind[0], kind[1], 0), Mutex::new(0));
            let run = parties.run(&Cheats::lies(0, 0, 1), |source, net| {
                fill_and_check(source, &target, net, |_, list| *x.lock() ^= list.x.part(0, 1).values[0])
            });
            let passes = run.passes_the_check(&[1, 2]);
            assert_eq!(passes, x.into_inner() == 0);
            passed += usize::from(passes);
        }
        assert!((1..=most).contains(&passed), "{passed} of 32");
    }
}

/// Makes a batch.
fn records_of(plan: RecordPlan) -> impl Fn(&mut TinyOt, &mut dyn Net) -> Result<Inverses<Gf2_64>> + Sync {
    move |source, net| batch(source, plan, 0..plan.records, net)
}

#[test]
fn other_bits_towards_one_honest_party_never_give_records() {
    PLANS.into_iter().for_each(other_bits_never_give_records);
}

fn other_bits_never_give_records(plan: RecordPlan) {
    let (parties, make_records) = (Parties::setup(), records_of(plan));
    // Calls that make bits, wide and narrow: for each kind one for the list of its own, two for each shared
    // list, and one for MACs; then one for the random element of the check, and in phase 1 one for products.
    // At the end the bits, and a random element for them.
    let mut calls = Vec::new();
    for phase in 0..2 {
        for shared in [plan.shared_16, plan.shared_4] {
            // In phase 2 it has no y of its own.
            calls.push((true, phase == 0));
            (0..shared).for_each(|_| calls.extend([(false, true), (true, false)]));
            calls.push((false, true));
        }
        calls.push((false, true));
        if phase == 0 {
            calls.push((true, false));
        }
    }
    calls.extend([(false, true); 2]);
    for (call, (wide, narrow)) in (0..).zip(calls.iter().copied()) {
        if wide {
            // The last products of eight are used first.
            assert!(!parties.run(&Cheats::lies(call, 0xff, 0), &make_records).passed(&[1, 2]), "{call}");
        }
        if narrow {
            assert!(!parties.run(&Cheats::lies(call, 0, 1), &make_records).passed(&[1, 2]), "{call}");
        }
    }
    let calls = calls.len() as u64;
    assert!(parties.run(&Cheats::lies(calls, 1, 1), &make_records).passed(&[0, 1, 2]));
}

/// To one honest party, and to both, as a party that means what it says.
#[test]
fn wrong_openings_of_every_kind_are_always_caught() {
    PLANS.into_iter().for_each(wrong_openings_are_always_caught);
}

fn wrong_openings_are_always_caught(plan: RecordPlan) {
    let (parties, places, make_records) = (Parties::setup(), Places::of(plan), records_of(plan));
    let opened = [0, 1].map(|phase| places.differences(phase)..places.differences(phase) + OPENINGS);
    let words = [places.rho(0), places.rho(1), places.bits()];
    for at in opened.into_iter().flatten().chain(words) {
        for to in [1, 2] {
            let edits = Edits { at, bytes: vec![(0, 1)], to: vec![to], ..Edits::default() };
            let run = parties.run(&Cheats::edits(edits), &make_records);
            assert!(!run.passed(&[1, 2]), "message {at} to {to}");
            for outcome in &run.outcomes[1..] {
                assert!(matches!(outcome, Err(Error::Equivocation { .. })), "message {at} to {to}");
            }
        }
        let edits = Edits { at, bytes: vec![(0, 1)], knows: true, ..Edits::default() };
        assert!(!parties.run(&Cheats::edits(edits), &make_records).passes_the_check(&[1, 2]), "message {at}");
        // Two cheaters that say so to the third.
        let one = Edits { at, bytes: vec![(0, 1)], to: vec![2], ..Edits::default() };
        let cheats = Cheats { edits: [one, Edits::default(), Edits::default()], ..Cheats::default() };
        assert!(!parties.run(&cheats, &make_records).passed(&[2]), "message {at}");
    }
}

/// The cheater knows by how much either sum is wrong, apart from the key, and opens the bits so that the
/// second error is the first one.
#[test]
fn errors_of_both_sums_of_a_batch_that_cancel_are_caught() {
    let parties = Parties::setup();
    for (errors, passes) in
        [([0, 0], true), ([ERROR, ERROR], false), ([ERROR, 0], false), ([0, ERROR], false)]
    {
        let run = parties.run(&Cheats::default(), |source, net| {
            let sums = if net.me() == Party(0) { errors } else { [0, 0] };
            records::test_sums(&mut source.maker, 0, sums, net)
        });
        assert_eq!(run.passes_the_check(&[1, 2]), passes, "{errors:?}");
    }
}

#[test]
fn silence_counts_once_the_coins_of_a_check_are_known() {
    let [plan, _] = PLANS;
    let (parties, places, make_records) = (Parties::setup(), Places::of(plan), records_of(plan));
    let counts = [
        (OFFERS, false),
        (places.rho(0) - 2, false),
        (places.rho(0) - 1, true),
        (places.rho(0), true),
        (places.differences(0), true),
        (places.differences(0) + OPENINGS - 1, true),
        (places.second() + OFFERS, false),
        (places.rho(1), true),
        (places.bits(), true),
        (places.all() - 1, true),
    ];
    for (at, counts) in counts {
        let edits = Edits { at, leaves: true, ..Edits::default() };
        let run = parties.run(&Cheats::edits(edits), &make_records);
        for p in [1, 2] {
            let error = run.outcomes[p].as_ref().err();
            assert!(error.is_some(), "message {at}");
            assert_eq!(matches!(error, Some(Error::Unanswered { .. })), counts, "message {at}: {error:?}");
            assert_eq!(run.keys[p].refuse_retired().is_err(), counts, "message {at}");
        }
    }
}

/// A bit of every message is wrong in turn, towards either honest party: records are right if the parties
/// finish. Of the messages of transfers, of which all forks are given up if one fails, only the first three
/// are tried.
#[test]
fn no_wrong_message_gives_wrong_records() {
    let [first, second] = PLANS.map(no_wrong_message_gives_wrong_records_of);
    let [passed, caught] = [0, 1].map(|of| first[of] + second[of]);
    assert!(passed > 2 && caught > 60, "{passed} passed, {caught} were caught");
}

/// Returns how many wrong messages pass, and how many are caught.
fn no_wrong_message_gives_wrong_records_of(plan: RecordPlan) -> [usize; 2] {
    let (mut parties, places, make_records) = (Parties::setup(), Places::of(plan), records_of(plan));
    let ranges = [
        places.rho(0) - 2..places.second(),
        places.rho(1) - 2..places.differences(1) + OPENINGS + 2,
        places.bits() - 2..places.all(),
    ];
    let offers = [0, 1].map(|phase| places.offers(phase)).concat();
    let others = offers.into_iter().chain(ranges.into_iter().flatten());
    let (mut caught, mut passed) = (0, 0);
    for at in (0..OFFERS).chain(others) {
        let (to, byte) = (1 + at as usize % 2, 12_345 * at as usize);
        let edits = Edits { at, bytes: vec![(byte, 1)], to: vec![to], ..Edits::default() };
        let run = parties.run(&Cheats::edits(edits), &make_records);
        // A wrong choice in the first message passes if the bits of Delta of its tree are all zero.
        assert!(at == 0 || at >= OFFERS || run.outcomes[to].is_err(), "message {at}");
        if parties.are_spoiled() {
            parties = Parties::setup();
        }
        match run.outcomes {
            [Ok(a), Ok(b), Ok(c)] => {
                assert_records(&run.keys, &[a, b, c], plan.records);
                passed += 1;
            }
            _ => caught += 1,
        }
    }
    let edits = Edits { at: places.all(), leaves: true, ..Edits::default() };
    assert!(
        parties.run(&Cheats::edits(edits), &make_records).passed(&[0, 1, 2]),
        "there are no more messages"
    );
    [passed, caught]
}

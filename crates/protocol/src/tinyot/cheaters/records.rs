//! A party that cheats while a whole batch of records is made.

use super::*;
use crate::tinyot::places::{OPENINGS, PLANS, Places};
use crate::tinyot::plan::RecordPlan;
use crate::tinyot::records_tests::{assert_records, batch};

/// What is opened of a kind in a phase.
#[derive(Clone, Copy)]
struct Opened {
    plan: RecordPlan,
    phase: u64,
    /// 0 for x in GF(16), and 1 for x in GF(4).
    kind: usize,
}

impl Opened {
    fn of_all_kinds(plan: RecordPlan) -> impl Iterator<Item = Opened> {
        (0..2).flat_map(move |phase| (0..2).map(move |kind| Opened { plan, phase, kind }))
    }

    /// Rows of products of a bucket.
    fn rows(self) -> usize {
        self.plan.group * [1, 2][self.kind]
    }

    fn columns(self) -> usize {
        self.plan.records / self.rows()
    }

    fn shared(self) -> usize {
        [self.plan.shared_16, self.plan.shared_4][self.kind]
    }

    /// Bits of y.
    fn bits(self) -> usize {
        [[4, 2], [8, 4]][self.phase as usize][self.kind]
    }

    /// Where the lowest coordinate of a product is, in the differences of a shared list.
    fn place(self, list: usize, row: usize, column: usize) -> (usize, u8) {
        let bit = (list * self.plan.records + row * self.columns() + column) * self.bits();
        (bit / 8, 1 << (bit % 8))
    }

    /// The message with the differences.
    fn differences(self) -> u64 {
        Places::of(self.plan).differences(self.phase) + self.kind as u64
    }

    /// The message with the sums for MACs, which look like the differences of one list.
    fn sums(self) -> u64 {
        self.differences() + OPENINGS / 2
    }

    /// Whether records come out if the cheater opens something else, and goes on as if it was that.
    fn passes(self, parties: &Parties, at: u64, bytes: &[(usize, u8)]) -> bool {
        let edits = Edits { at, bytes: bytes.to_vec(), knows: true, ..Edits::default() };
        parties.run(edits, |source, net| batch(source, self.plan, 0..self.plan.records, net)).passed()
    }
}

#[test]
fn records_of_every_plan_have_the_messages_that_tests_count() {
    let parties = Parties::setup();
    for plan in PLANS {
        let run = parties.run(Edits::default(), |source, net| batch(source, plan, 0..plan.records, net));
        assert_eq!(run.messages, [Places::of(plan).all_of_two(); 2]);
        let [Ok(first), Ok(second)] = run.outcomes else { panic!("honest parties finish") };
        assert_records(&run.keys, &[first, second], plan.records);
    }
}

/// The zero test at the end would find a wrong product, too. But by then the cheater knows which elements are
/// in one bucket.
#[test]
fn all_lists_are_checked_before_shifts_are_drawn() {
    let parties = Parties::setup();
    for plan in PLANS {
        let places = Places::of(plan);
        for (phase, at) in
            (0..2).flat_map(|phase| places.offers(phase).into_iter().map(move |at| (phase, at)))
        {
            // The MAC of each of the first 32 bits: it passes if all of them are zero.
            let bytes = (0..32).map(|offer| (8 * offer, 1)).collect();
            let edits = Edits { at, bytes, ..Edits::default() };
            let run = parties.run(edits, |source, net| batch(source, plan, 0..plan.records, net));
            assert!(!run.passed(), "phase {phase}, message {at}");
            assert_eq!(run.messages[HONEST], places.checked(phase), "phase {phase}, message {at}");
        }
    }
}

/// In the first and the last list, row and column, and in all columns of a row: lists begin anew in one of
/// these.
#[test]
fn a_wrong_difference_in_any_place_is_caught() {
    let parties = Parties::setup();
    for of in PLANS.into_iter().flat_map(Opened::of_all_kinds) {
        let ends = |count: usize| [0, count - 1];
        let corners = ends(of.shared()).into_iter().flat_map(|list| {
            let rows = ends(of.rows()).into_iter();
            rows.flat_map(move |row| ends(of.columns()).map(|column| [list, row, column]))
        });
        let columns = (0..of.columns()).map(|column| [of.shared() - 1, of.rows() - 1, column]);
        for [list, row, column] in corners.chain(columns) {
            let passes = of.passes(&parties, of.differences(), &[of.place(list, row, column)]);
            assert!(!passes, "list {list}, row {row}, column {column}");
        }
    }
}

/// Equal errors in two buckets would cancel if buckets had the same coefficient, and those in both products
/// of a pair if rows had the same weight.
#[test]
fn wrong_sums_for_macs_are_caught_even_if_errors_are_equal() {
    let parties = Parties::setup();
    for of in PLANS.into_iter().flat_map(Opened::of_all_kinds) {
        let last = [of.rows() - 1, of.columns() - 1];
        let mut cases = vec![vec![[0, 0]], vec![last], vec![[0, 0], [0, 1]], vec![[last[0], 0], last]];
        if of.kind == 1 {
            cases.extend([vec![[0, 0], [1, 0]], vec![[last[0] - 1, last[1]], last]]);
        }
        for places in cases {
            let bytes: Vec<_> = places.iter().map(|[row, column]| of.place(0, *row, *column)).collect();
            assert!(!of.passes(&parties, of.sums(), &bytes), "{places:?}");
        }
    }
}

/// A party that does not go on as if it had meant it.
#[test]
fn wrong_openings_are_caught() {
    let parties = Parties::setup();
    for plan in PLANS {
        let places = Places::of(plan);
        let opened = [0, 1].map(|phase| places.differences(phase)..places.differences(phase) + OPENINGS);
        for at in opened.into_iter().flatten().chain([places.rho(0), places.rho(1)]) {
            for bytes in [vec![(0, 1)], vec![(0, 0x3f)]] {
                let edits = Edits { at, bytes, ..Edits::default() };
                let run = parties.run(edits, |source, net| batch(source, plan, 0..plan.records, net));
                assert!(!run.passed(), "message {at}");
            }
        }
    }
}

/// A bit of every message is wrong in turn: records are right if both parties finish. Of the messages of
/// transfers, of which all forks are given up if one fails, only the first three are tried.
#[test]
fn no_wrong_message_gives_wrong_records() {
    let mut parties = Parties::setup();
    let (mut caught, mut all) = (0, 0);
    for plan in PLANS {
        let places = Places::of(plan);
        let ranges = [
            0..OFFERS,
            places.rho(0) - 2..places.second(),
            places.rho(1) - 2..places.differences(1) + OPENINGS + 2,
            places.all_of_two() - 6..places.all_of_two(),
        ];
        let offers = [0, 1].map(|phase| places.offers(phase)).concat();
        for at in ranges.into_iter().flatten().chain(offers) {
            parties.renew();
            let edits = Edits { at, bytes: vec![(12_345 * at as usize, 1)], ..Edits::default() };
            let run = parties.run(edits, |source, net| batch(source, plan, 0..plan.records, net));
            let given_up = run.keys[HONEST].refuse_retired().is_err();
            assert_eq!(run.outcomes[HONEST].is_err(), given_up, "message {at}");
            (caught, all) = (caught + u64::from(given_up), all + 1);
            if let [Ok(first), Ok(second)] = run.outcomes {
                assert_records(&run.keys, &[first, second], plan.records);
            }
        }
    }
    assert!((all / 2..all).contains(&caught), "{caught} of {all} were caught");
}

//! Which kind of material is made next, of those that lack some, and whether other workers come first.
//!
//! A kind that a session waits for comes first. Nearly empty kinds come before fuller ones, since requests
//! find nothing of them soon. Among kinds that are about as empty, the one that was made longest ago is next.
//! So a kind that requests drain as fast as it is made does not keep the others from being made once they are
//! as empty.
//!
//! A kind of which a run has just failed comes after all others. Otherwise one whose runs always fail would
//! stay the emptiest, and nothing else would be made.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::material::stock::claiming::FULL;

/// Kinds whose levels lie in the same part of the whole are about as empty.
const PARTS: usize = 4;
/// How long a kind comes after the others once a run has failed.
const PUT_OFF: Duration = Duration::from_secs(5);

/// When each kind was made last, counted in runs.
#[derive(Default)]
pub(crate) struct FillingOrder(Mutex<Runs>);

#[derive(Default)]
struct Runs {
    begun: u64,
    /// By the number of the kind: its latest run, 0 if it has had none.
    latest: Vec<u64>,
    /// Kinds of which a run has failed, and when.
    failed: Vec<(usize, Instant)>,
}

/// A kind of which some items are missing.
#[derive(Clone, Copy)]
pub(super) struct Lacking {
    /// Its number.
    pub(super) kind: usize,
    /// Whether a session waits for such items.
    pub(super) is_waited_for: bool,
    /// What is there, in thousandths of what is to be there.
    pub(super) level: usize,
}

impl FillingOrder {
    /// Takes the next of these kinds.
    pub(super) fn next(&self, lacking: &[Lacking], now: Instant) -> Option<usize> {
        let mut runs = self.0.lock();
        let latest = |kind: &usize| runs.latest.get(*kind).copied().unwrap_or_default();
        let is_put_off = |kind: &usize| runs.failed.iter().any(|(of, at)| of == kind && now < *at + PUT_OFF);
        let order = |Lacking { kind, is_waited_for, level }: &&Lacking| {
            (is_put_off(kind), !is_waited_for, level * PARTS / FULL, latest(kind), *level, *kind)
        };
        let next = lacking.iter().min_by_key(order)?.kind;
        runs.begun += 1;
        let begun = runs.begun;
        if runs.latest.len() <= next {
            runs.latest.resize(next + 1, 0);
        }
        runs.latest[next] = begun;
        Some(next)
    }

    /// Notes that a run has failed.
    pub(super) fn note_failed(&self, kind: usize, now: Instant) {
        let mut runs = self.0.lock();
        runs.failed.retain(|(of, _)| *of != kind);
        runs.failed.push((kind, now));
    }
}

/// Whose turn it is: that of the own stock, or that of other workers. A worker whose stock is drained as fast
/// as it is made would otherwise make nothing for those that only serve.
#[derive(Default)]
pub(crate) struct Turns {
    /// The last run was for the own stock.
    was_own: AtomicBool,
}

impl Turns {
    pub(super) fn next<T>(
        &self,
        own: impl FnOnce() -> Option<T>,
        others: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let (next, is_own) = if self.was_own.load(Relaxed) {
            let of_others = others();
            let is_own = of_others.is_none();
            (of_others.or_else(own), is_own)
        } else {
            let own = own();
            let is_own = own.is_some();
            (own.or_else(others), is_own)
        };
        if next.is_some() {
            self.was_own.store(is_own, Relaxed);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacking<const N: usize>(kinds: [(usize, usize); N]) -> [Lacking; N] {
        kinds.map(|(kind, level)| Lacking { kind, is_waited_for: false, level })
    }

    #[test]
    fn a_nearly_empty_kind_comes_before_a_fuller_one() {
        let order = FillingOrder::default();
        assert_eq!(order.next(&[], Instant::now()), None);
        for _ in 0..3 {
            assert_eq!(order.next(&lacking([(0, 600), (5, 10), (2, 999)]), Instant::now()), Some(5));
        }
    }

    #[test]
    fn kinds_that_are_about_as_empty_take_turns_and_the_emptier_one_begins() {
        let order = FillingOrder::default();
        // The first is drained as fast as it is made.
        let made = |_| order.next(&lacking([(1, 0), (4, 200), (7, 240)]), Instant::now());
        assert_eq!((0..6).filter_map(made).collect::<Vec<_>>(), [1, 4, 7, 1, 4, 7]);
        assert_eq!(
            order.next(&lacking([(1, 0), (9, 100)]), Instant::now()),
            Some(9),
            "it has never been made"
        );
    }

    #[test]
    fn a_kind_for_which_a_session_waits_comes_first() {
        let order = FillingOrder::default();
        let mut kinds = lacking([(1, 0), (4, 900)]);
        kinds[1].is_waited_for = true;
        assert_eq!([(); 2].map(|()| order.next(&kinds, Instant::now())), [Some(4); 2]);
    }

    #[test]
    fn a_kind_whose_runs_fail_does_not_keep_the_others_from_being_made() {
        let (order, now) = (FillingOrder::default(), Instant::now());
        let mut kinds = lacking([(1, 0), (4, 900)]);
        kinds[0].is_waited_for = true;
        assert_eq!(order.next(&kinds, now), Some(1));
        order.note_failed(1, now);
        assert_eq!(order.next(&kinds, now), Some(4));
        assert_eq!(order.next(&kinds[..1], now), Some(1), "nothing else is to be made");
        assert_eq!(order.next(&kinds, now + PUT_OFF), Some(1), "it is tried again");
    }

    #[test]
    fn the_own_stock_and_other_workers_take_turns_if_both_lack_material() {
        let (turns, own, others) = (Turns::default(), || Some("own"), || Some("others"));
        assert_eq!(
            [(); 4].map(|()| turns.next(own, others).unwrap_or("")),
            ["own", "others", "own", "others"]
        );
        assert_eq!([(); 2].map(|()| turns.next(own, || None)), [Some("own"); 2]);
        assert_eq!([(); 2].map(|()| turns.next(|| None, others)), [Some("others"); 2]);
        assert_eq!(turns.next(own, others), Some("own"));
        assert_eq!(turns.next(|| None::<&str>, || None), None);
        assert_eq!(turns.next(own, others), Some("others"), "nothing was made meanwhile");
    }
}

//! Which kind of material is made next, of those that lack some.
//!
//! Nearly empty kinds come before fuller ones, since requests find nothing of them soon. Among kinds that are
//! about as empty, the one that was made longest ago is next. So a kind that requests drain as fast as it is
//! made does not keep the others from being made once they are as empty.

use parking_lot::Mutex;

use crate::material::stock::claiming::FULL;

/// Kinds whose levels lie in the same part of the whole are about as empty.
const PARTS: usize = 4;

/// When each kind was made last, counted in runs.
#[derive(Default)]
pub(crate) struct FillingOrder(Mutex<Runs>);

#[derive(Default)]
struct Runs {
    begun: u64,
    /// By the number of the kind: its latest run, 0 if it has had none.
    latest: Vec<u64>,
}

impl FillingOrder {
    /// Takes the next of these kinds: numbers, and levels in thousandths.
    pub(super) fn next(&self, lacking: &[(usize, usize)]) -> Option<usize> {
        let mut runs = self.0.lock();
        let latest = |kind: &usize| runs.latest.get(*kind).copied().unwrap_or_default();
        let order = |(kind, level): &&(usize, usize)| (level * PARTS / FULL, latest(kind), *level, *kind);
        let (next, _) = *lacking.iter().min_by_key(order)?;
        runs.begun += 1;
        let begun = runs.begun;
        if runs.latest.len() <= next {
            runs.latest.resize(next + 1, 0);
        }
        runs.latest[next] = begun;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nearly_empty_kind_comes_before_a_fuller_one() {
        let order = FillingOrder::default();
        assert_eq!(order.next(&[]), None);
        for _ in 0..3 {
            assert_eq!(order.next(&[(0, 600), (5, 10), (2, 999)]), Some(5));
        }
    }

    #[test]
    fn kinds_that_are_about_as_empty_take_turns_and_the_emptier_one_begins() {
        let order = FillingOrder::default();
        // The first is drained as fast as it is made.
        let made: Vec<usize> = (0..6).filter_map(|_| order.next(&[(1, 0), (4, 200), (7, 240)])).collect();
        assert_eq!(made, [1, 4, 7, 1, 4, 7]);
        assert_eq!(order.next(&[(1, 0), (9, 100)]), Some(9), "it has never been made");
    }
}

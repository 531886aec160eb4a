//! Runs in which workers that only serve wait for material, at the leading node. Several are under way at a
//! time, so that the makers of material need not wait for the next request.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long nothing is ordered after a run has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// The runs that are under way.
#[derive(Default)]
pub(crate) struct UnderWay(Mutex<Runs>);

#[derive(Default)]
struct Runs {
    /// The number of the kind, and how many items.
    under_way: Vec<(u8, u32)>,
    failed: Option<Instant>,
}

impl UnderWay {
    /// Whether another run may begin, if at most `most` may be under way.
    pub(super) fn has_place(&self, most: usize) -> bool {
        let runs = self.0.lock();
        runs.under_way.len() < most && runs.failed.is_none_or(|at| at.elapsed() >= PAUSE)
    }

    /// How many items of a kind are under way.
    pub(super) fn items(&self, kind: u8) -> usize {
        self.0.lock().under_way.iter().filter(|(of, _)| *of == kind).map(|(_, count)| *count as usize).sum()
    }

    pub(super) fn begin(&self, kind: u8, count: u32) {
        self.0.lock().under_way.push((kind, count));
    }

    pub(super) fn end(&self, kind: u8, count: u32, is_made: bool) {
        let mut runs = self.0.lock();
        let at = runs.under_way.iter().position(|run| *run == (kind, count));
        at.map(|at| runs.under_way.swap_remove(at));
        runs.failed = (!is_made).then(Instant::now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_places_and_a_failed_one_is_followed_by_a_pause() {
        let under_way = UnderWay::default();
        under_way.begin(3, 10);
        under_way.begin(4, 5);
        assert!(under_way.has_place(3) && !under_way.has_place(2));
        under_way.begin(3, 10);
        assert_eq!((under_way.items(3), under_way.items(4), under_way.items(5)), (20, 5, 0));
        under_way.end(3, 10, true);
        assert_eq!(under_way.items(3), 10);
        assert!(under_way.has_place(3));
        under_way.end(4, 5, false);
        assert!(!under_way.has_place(3));
    }
}

//! How far the other nodes are: what a request's first round trip takes, as the leading node sees it.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;

/// So many round trips are looked at. The shortest of them tells the distance: the others waited for a
/// processor or for a client, too.
const LATEST: usize = 8;

/// The latest round trips.
#[derive(Default)]
pub(crate) struct Delay(Mutex<VecDeque<Duration>>);

impl Delay {
    /// A round trip took so long.
    pub(crate) fn note(&self, took: Duration) {
        let mut latest = self.0.lock();
        if latest.len() == LATEST {
            latest.pop_front();
        }
        latest.push_back(took);
    }

    /// The time there and back; `None` before enough requests were seen.
    pub(crate) fn known(&self) -> Option<Duration> {
        let latest = self.0.lock();
        (latest.len() >= LATEST / 2).then(|| latest.iter().min().copied()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_the_latest_round_trips_counts() {
        let (delay, ms) = (Delay::default(), Duration::from_millis);
        for took in [3, 40, 50] {
            delay.note(ms(took));
        }
        assert_eq!(delay.known(), None, "too few to tell");
        delay.note(ms(60));
        assert_eq!(delay.known(), Some(ms(3)));
        (0..LATEST).for_each(|_| delay.note(ms(21)));
        assert_eq!(delay.known(), Some(ms(21)), "the nodes are further apart now");
    }
}

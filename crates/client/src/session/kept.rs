//! Connections that are kept while they are not in use.
//!
//! A request takes the connection that was given back last. So those that few requests need grow old at the
//! other end of the list: they are closed, down to a few, whenever the client takes or gives back another
//! one. A client that asks nothing any more has no thread that could close them; its nodes do so after two
//! minutes, or earlier if another process of the same client has no connection left.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The most that are kept.
const MAX: usize = 16;
/// How many are kept however long they were not in use: for the next request, and one beside it.
const FEW: usize = 2;
/// After this time the others are closed.
const OLD: Duration = Duration::from_secs(5);

/// The connections with one node, the one that was used last at the back.
pub(crate) struct Kept<L>(Mutex<VecDeque<(L, Instant)>>);

impl<L> Default for Kept<L> {
    fn default() -> Kept<L> {
        Kept(Mutex::default())
    }
}

impl<L> Kept<L> {
    /// The connection that was used last.
    pub(crate) fn take(&self, now: Instant) -> Option<L> {
        let (taken, _old) = {
            let mut kept = self.0.lock();
            let taken = kept.pop_back();
            (taken, old(&mut kept, now))
        };
        taken.map(|(line, _)| line)
    }

    /// Keeps a connection, unless there are many.
    pub(crate) fn put(&self, line: L, now: Instant) {
        let mut kept = self.0.lock();
        let beyond = if kept.len() < MAX {
            kept.push_back((line, now));
            None
        } else {
            Some(line)
        };
        let old = old(&mut kept, now);
        drop(kept);
        // Connections are closed here, while no other thread has to wait for that.
        drop((beyond, old));
    }

    /// In the child of a fork: closes the copies that it has of its parent's connections. If a thread of the
    /// parent was just changing the list, they stay open, because the list may be half changed.
    pub(crate) fn abandon(&self) {
        if let Some(mut kept) = self.0.try_lock() {
            kept.clear();
        }
    }

    /// Closes all.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}

/// Takes out what was not in use for long.
fn old<L>(kept: &mut VecDeque<(L, Instant)>, now: Instant) -> Vec<(L, Instant)> {
    let is_old = |(_, since): &&(L, Instant)| now.saturating_duration_since(*since) >= OLD;
    let old = kept.iter().take_while(is_old).count().min(kept.len().saturating_sub(FEW));
    kept.drain(..old).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len(kept: &Kept<u32>) -> usize {
        kept.0.lock().len()
    }

    #[test]
    fn what_few_requests_need_is_closed_down_to_a_few() {
        let (kept, began) = (Kept::default(), Instant::now());
        (0..8).for_each(|line| kept.put(line, began));
        assert_eq!(len(&kept), 8, "many threads use them again at once");
        for second in 1..5 {
            let now = began + Duration::from_secs(second);
            assert_eq!(kept.take(now), Some(7), "the one that was used last");
            kept.put(7, now);
            assert_eq!(len(&kept), 8);
        }
        let later = began + OLD;
        assert_eq!(kept.take(later), Some(7));
        assert_eq!(len(&kept), FEW);
        kept.put(7, later);
        // The one that was used a moment ago stays, and one of the others.
        assert_eq!(len(&kept), FEW);
        let much_later = later + Duration::from_secs(3600);
        assert_eq!((kept.take(much_later), len(&kept)), (Some(7), 1), "a few stay however old they are");
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let (kept, now) = (Kept::default(), Instant::now());
        (0..100).for_each(|line| kept.put(line, now));
        assert_eq!(len(&kept), MAX);
        kept.clear();
        assert_eq!(kept.take(now), None);
    }
}

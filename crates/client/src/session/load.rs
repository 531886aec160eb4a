//! How many requests are under way with the workers of one worker group.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The load of a worker group, as far as this client makes it.
#[derive(Debug, Default)]
pub(crate) struct Load {
    running: Arc<AtomicUsize>,
    turns: AtomicUsize,
}

/// A request that is under way until this is dropped.
pub(crate) struct Busy(Arc<AtomicUsize>);

impl Load {
    /// With the number of the first turn.
    pub(crate) fn begun_at(turn: usize) -> Load {
        Load { turns: turn.into(), ..Load::default() }
    }

    pub(crate) fn begin(&self) -> Busy {
        self.running.fetch_add(1, Relaxed);
        Busy(self.running.clone())
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// A number that is the next one each time.
    pub(crate) fn turn(&self) -> usize {
        self.turns.fetch_add(1, Relaxed)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_until_they_are_over() {
        let load = Load::default();
        let (first, second) = (load.begin(), load.begin());
        assert_eq!(load.running(), 2);
        drop(first);
        assert_eq!(load.running(), 1);
        drop(second);
        assert_eq!((load.running(), load.turn(), load.turn()), (0, 0, 1));
    }
}

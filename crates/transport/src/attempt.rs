//! One attempt to connect, often with several peers. It has a time limit, and a failure with one peer ends it
//! for all.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::halt::Halt;

/// How often threads that wait for something else check whether the attempt is over.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Shared by the threads that make the attempt.
pub(crate) struct Attempt {
    pub(crate) limit: Duration,
    pub(crate) began: Instant,
    failed: AtomicBool,
    halt: Halt,
}

impl Attempt {
    /// Begins now.
    pub(crate) fn new(limit: Duration) -> Self {
        Attempt::ended_by(Halt::default(), limit)
    }

    /// The same, unless it is ended before.
    pub(crate) fn ended_by(halt: Halt, limit: Duration) -> Self {
        Attempt { limit, began: Instant::now(), failed: AtomicBool::new(false), halt }
    }

    /// Time left; none when it has run out.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.limit.checked_sub(self.began.elapsed()).filter(|left| !left.is_zero())
    }

    /// To be called by a thread that cannot go on.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Relaxed);
    }

    /// Whether another thread cannot go on, or ended it.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed) || self.halt.is_halted()
    }
}

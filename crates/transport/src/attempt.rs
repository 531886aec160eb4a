//! One attempt to connect with all peers: it has a time limit, and when it fails for one peer it is over for all.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often those who wait otherwise look whether the attempt is over.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// Shared by the threads that make the attempt.
pub(crate) struct Attempt {
    pub(crate) limit: Duration,
    deadline: Instant,
    failed: AtomicBool,
}

impl Attempt {
    /// Begins now.
    pub(crate) fn new(limit: Duration) -> Self {
        Attempt { limit, deadline: Instant::now() + limit, failed: AtomicBool::new(false) }
    }

    /// Time left; none when it has run out.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// To be called by the one that cannot go on.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Relaxed);
    }

    /// Whether another one cannot go on.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }
}

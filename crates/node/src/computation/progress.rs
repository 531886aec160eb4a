//! How far a client's step has come, for the client that waits for it, and how many blocks a node has
//! computed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The progress of the current request.
pub(crate) struct Progress {
    done: AtomicU64,
    of: AtomicU64,
    /// The number of blocks of all requests of this node.
    computed: Arc<AtomicU64>,
}

impl Progress {
    pub(crate) fn new(computed: Arc<AtomicU64>) -> Progress {
        Progress { done: AtomicU64::new(0), of: AtomicU64::new(0), computed }
    }

    /// Adds blocks that are to be computed now.
    pub(crate) fn begin(&self, blocks: usize) {
        self.done.store(0, Relaxed);
        self.of.store(blocks as u64, Relaxed);
    }

    /// Adds blocks that have been computed.
    pub(crate) fn advance(&self, blocks: usize) {
        self.done.fetch_add(blocks as u64, Relaxed);
        self.computed.fetch_add(blocks as u64, Relaxed);
    }

    /// Blocks that have been computed, and blocks that are to be computed in total.
    pub(crate) fn now(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.of.load(Relaxed))
    }
}

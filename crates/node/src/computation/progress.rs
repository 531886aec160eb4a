//! How far a step of a client is, for those who wait for it, and how much a node has computed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Of one request.
pub(crate) struct Progress {
    done: AtomicU64,
    of: AtomicU64,
    /// Of all requests of this node.
    computed: Arc<AtomicU64>,
}

impl Progress {
    pub(crate) fn new(computed: Arc<AtomicU64>) -> Progress {
        Progress { done: AtomicU64::new(0), of: AtomicU64::new(0), computed }
    }

    /// So many blocks are to be computed now.
    pub(crate) fn begin(&self, blocks: usize) {
        self.done.store(0, Relaxed);
        self.of.store(blocks as u64, Relaxed);
    }

    /// So many more have been.
    pub(crate) fn advance(&self, blocks: usize) {
        self.done.fetch_add(blocks as u64, Relaxed);
        self.computed.fetch_add(blocks as u64, Relaxed);
    }

    /// Blocks that have been computed, and how many are to be.
    pub(crate) fn now(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.of.load(Relaxed))
    }
}

//! How far a client's step has come, for the client that waits for it, whether its request is to end early,
//! and how many blocks a node has computed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use polyclave_protocol::Error;

use crate::Result;

/// The progress of the current request.
pub(crate) struct Progress {
    done: AtomicU64,
    of: AtomicU64,
    /// Why the request is to end before it computes another piece.
    ended: OnceLock<String>,
    /// The number of blocks of all requests of this node.
    computed: Arc<AtomicU64>,
}

impl Progress {
    pub(crate) fn new(computed: Arc<AtomicU64>) -> Progress {
        Progress { done: AtomicU64::new(0), of: AtomicU64::new(0), ended: OnceLock::new(), computed }
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

    /// Has the request end before it computes another piece.
    pub(crate) fn end(&self, why: &str) {
        self.ended.get_or_init(|| why.to_owned());
    }

    /// An error if the request is to end. Asked when the material of a piece is there.
    pub(crate) fn refuse_ended(&self) -> Result<()> {
        self.ended.get().map_or(Ok(()), |why| Err(Error::System(why.clone())))
    }

    /// Blocks that have been computed, and blocks that are to be computed in total.
    pub(crate) fn now(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.of.load(Relaxed))
    }
}

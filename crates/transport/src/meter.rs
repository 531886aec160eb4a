//! Counts the bytes that cross the sockets, TLS included.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes on the wire of one endpoint: handshakes, records and goodbyes of all its streams. TCP/IP headers are
/// not counted.
#[derive(Debug, Default)]
pub struct WireMeter {
    sent: AtomicU64,
    received: AtomicU64,
}

impl WireMeter {
    /// Bytes handed to the sockets so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Bytes taken from the sockets so far.
    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
    }
}

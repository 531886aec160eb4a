//! The hash of one stream, and the number of the next gate. The number only grows, over all circuits, calls
//! and lanes.
//!
//! A gate takes a number for each of its lanes, and so does an output that is decoded. Both parties take the
//! same numbers in the same order. Under one root no number is used twice, and a root belongs to one stream.
//! So no tweak is used twice under one Delta.

use polyclave_kernels::label_hash::LabelHash;

/// The hash under a stream's own root.
pub(super) struct Hash {
    hash: LabelHash,
    next: u64,
}

impl Hash {
    /// With a root that no other stream has.
    pub(super) fn new(root: &[u8; 16]) -> Hash {
        Hash { hash: LabelHash::new(root), next: 0 }
    }

    /// Takes this many new numbers. Returns the hash for them, and the first number.
    pub(super) fn take(&mut self, count: usize) -> (&mut LabelHash, u64) {
        let first = self.next;
        self.next += count as u64;
        (&mut self.hash, first)
    }

    /// How many were taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.next
    }
}

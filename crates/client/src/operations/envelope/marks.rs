//! A mark of each chunk of an input that is read twice, so that a change between the two readings is noticed:
//! a hash of 64 bits under a random seed, at several times the speed of a cryptographic one. Whoever can
//! change the input on purpose can spoil the file in other ways as well. What goes unnoticed gives a file
//! that does not open, and never one with other content.

use polyclave_protocol::session::random_bytes;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use crate::Result;

/// The marks of all chunks.
pub(super) struct Marks {
    secrets: RapidSecrets,
    marks: Vec<u64>,
}

impl Marks {
    pub(super) fn new() -> Result<Marks> {
        let mut seed = [0; 8];
        random_bytes(&mut seed)?;
        Ok(Marks { secrets: RapidSecrets::seed(u64::from_le_bytes(seed)), marks: Vec::new() })
    }

    /// Notes the next chunk.
    pub(super) fn note(&mut self, chunk: &[u8]) {
        self.marks.push(self.mark(chunk));
    }

    /// Whether chunk number `index`, from 0 on, is the one that was noted.
    pub(super) fn fits(&self, index: usize, chunk: &[u8]) -> bool {
        self.marks.get(index) == Some(&self.mark(chunk))
    }

    fn mark(&self, chunk: &[u8]) -> u64 {
        rapidhash_v3_seeded(chunk, &self.secrets)
    }
}

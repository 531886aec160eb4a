//! From correlated to random transfers: the sender's messages are hashes of q and q + Delta, the receiver's of t.
//!
//! Roy 2022, section 5: with a tweakable correlation-robust hash this is secure against active adversaries. Each direction of
//! each pair in each session has a key of its own for [`AesHash`], so session and direction are in every hash, and the tweak
//! is the running index of the transfer. What the hash assumes and leaves is said there; it needs all 128 columns, since who
//! guesses Delta has both messages. Random means endemic: a party that cheats can influence its own messages.

use polyclave_kernels::aes_hash::AesHash;

use super::binding::Binding;
use super::extension::Blocks;

/// The hash of one direction.
pub(super) struct Hash(AesHash);

impl Hash {
    /// Bound to the session and the direction.
    pub(super) fn new(binding: &Binding) -> Hash {
        let mut key = [0; 16];
        binding.hasher("random: hash").finalize_xof().fill(&mut key);
        Hash(AesHash::new(&key))
    }

    /// Messages 0 and 1 of the transfers from number `first` on.
    pub(super) fn sent(&self, first: u64, q: &Blocks, delta: u128) -> [Blocks; 2] {
        let mut rows = [q.clone(), Blocks::new(q.iter().map(|q| q ^ delta).collect())];
        rows.iter_mut().for_each(|row| self.0.hash(first, row));
        rows
    }

    /// The messages chosen in the transfers from number `first` on.
    pub(super) fn received(&self, first: u64, t: &Blocks) -> Blocks {
        let mut row = t.clone();
        self.0.hash(first, &mut row);
        row
    }
}

//! Turns correlated transfers into random transfers: the sender's messages are hashes of q and q + Delta, the
//! receiver's message is the hash of t.
//!
//! Roy 2022, section 5: with a tweakable correlation-robust hash this is secure against active adversaries.
//! Each direction of each pair in each session has its own key for [`AesHash`]. So session and direction are
//! in every hash, and the tweak is the running index of the transfer. [`AesHash`] says what the hash assumes
//! and how much security is left. All 128 columns are needed, because a receiver that guesses Delta has both
//! messages. Random means endemic: a party that cheats can influence its own messages.

use polyclave_kernels::aes_hash::AesHash;

use super::binding::Binding;
use super::{Blocks, Correlated, Ends, Pairs};
use crate::{Error, Party, Result};

/// The hash of one direction.
pub(super) struct Hash(AesHash);

impl Hash {
    /// Bound to the session and the direction.
    pub(super) fn new(binding: &Binding) -> Hash {
        let mut key = [0; 16];
        binding.hasher("random: hash").finalize_xof().fill(&mut key);
        Hash(AesHash::new(&key))
    }

    /// Writes messages 0 and 1 of the transfers from number `first` on.
    pub(super) fn sent(&self, first: u64, q: &[u128], delta: u128, messages: [&mut [u128]; 2]) {
        let [zero, one] = messages;
        // In pieces that stay in the first-level cache between the two passes.
        let pieces = zero.chunks_mut(PIECE).zip(one.chunks_mut(PIECE));
        for (first, (q, (zero, one))) in (first..).step_by(PIECE).zip(q.chunks(PIECE).zip(pieces)) {
            zero.copy_from_slice(q);
            one.iter_mut().zip(q).for_each(|(one, q)| *one = q ^ delta);
            self.0.hash(first, zero);
            self.0.hash(first, one);
        }
    }

    /// Writes the messages chosen in the transfers from number `first` on.
    pub(super) fn received(&self, first: u64, t: &[u128], messages: &mut [u128]) {
        let pieces = t.chunks(PIECE).zip(messages.chunks_mut(PIECE));
        for (first, (t, message)) in (first..).step_by(PIECE).zip(pieces) {
            message.copy_from_slice(t);
            self.0.hash(first, message);
        }
    }
}

impl Pairs {
    /// Random messages 0 and 1 of this party's transfers to a peer, out of what one extension gave. All of it
    /// must be checked.
    pub fn random_sent(&self, correlated: &Correlated, to: Party) -> Result<[Blocks; 2]> {
        let count = correlated.sent.get(to.index()).map_or(0, |q| q.len());
        let [mut zero, mut one] = [self.pool.take(count), self.pool.take(count)];
        self.write_random_sent(correlated, to, 0, [&mut zero, &mut one])?;
        Ok([zero, one])
    }

    /// The messages that this party chose in transfers from a peer. As [`Pairs::random_sent`].
    pub fn random_received(&self, correlated: &Correlated, from: Party) -> Result<Blocks> {
        let mut messages = self.pool.take(correlated.received.get(from.index()).map_or(0, |t| t.len()));
        self.write_random_received(correlated, from, 0, &mut messages)?;
        Ok(messages)
    }

    /// The same as [`Pairs::random_sent`] for some transfers in a row, from number `at` of the extension on:
    /// as many as there is room for in both. So messages can be used up while they are in the cache.
    pub(crate) fn write_random_sent(
        &self,
        correlated: &Correlated,
        to: Party,
        at: usize,
        messages: [&mut [u128]; 2],
    ) -> Result<()> {
        let (ends, q) = self.hashable(correlated, &correlated.sent, to)?;
        let q = &q[at..at + messages[0].len()];
        ends.hash_sent.sent(correlated.first + at as u64, q, *self.delta, messages);
        Ok(())
    }

    /// The same as [`Pairs::random_received`] for some transfers in a row.
    pub(crate) fn write_random_received(
        &self,
        correlated: &Correlated,
        from: Party,
        at: usize,
        messages: &mut [u128],
    ) -> Result<()> {
        let (ends, t) = self.hashable(correlated, &correlated.received, from)?;
        let t = &t[at..at + messages.len()];
        ends.hash_received.received(correlated.first + at as u64, t, messages);
        Ok(())
    }

    /// The ends with a peer and the blocks to hash.
    fn hashable<'a>(
        &self,
        correlated: &Correlated,
        blocks: &'a [Blocks],
        peer: Party,
    ) -> Result<(&Ends, &'a Blocks)> {
        if self.shape.columns() < 128 {
            return Err(Error::misuse(
                "blocks of fewer than 128 bits must not be hashed to random transfers",
            ));
        }
        let (Some(Some(ends)), Some(blocks)) = (self.ends.get(peer.index()), blocks.get(peer.index())) else {
            return Err(Error::misuse(format!("{peer} is not a peer")));
        };
        self.refuse_retired()?;
        if self.failed || correlated.first + blocks.len() as u64 > self.checked {
            return Err(Error::misuse("transfers that are not checked must not be used"));
        }
        Ok((ends, blocks))
    }
}

/// Blocks that are hashed at a time.
const PIECE: usize = 512;

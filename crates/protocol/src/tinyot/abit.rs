//! Authenticated bits from correlated transfers (Nielsen, Nordholt, Orlandi, Burra 2012, section 4, where they are called aBit; the
//! transfers are those of Roy 2022, [`crate::ot`]).
//!
//! A party chooses with random bits x, and its peer's Delta is the offset: M = K + x Delta, where M is the receiver's block and K the
//! sender's. M is the tag of x, K the key of the tag. Both directions are extended at once, so each of `count` authenticated bits is the
//! sum of one bit of each party. A block has 128 bits. Its upper half is the tag that is kept, y = beta + x alpha (`share.rs`);
//! `leaky_and.rs` hashes the whole block.
//!
//! **Delta.** The upper 64 bits are alpha, the party's key, which is uniform. The lowest bit is 1 at the first party and 0 at the second,
//! so that the lowest bit of Delta_A + Delta_B is 1. The other 63 bits are random and never used elsewhere. The fixed bit has these
//! consequences:
//!
//! * *Forging a tag* takes alpha, all 64 bits of which are uniform, as before.
//! * *Hashes* are hidden by 127 unknown bits instead of 128.
//! * *Transfers.* A receiver may choose another bit in the one column whose bit of Delta it knows. That passes, but gains nothing: this
//!   column of K is t + u' Delta_0, which equals t + (u + u') Delta_0 with the choice u. So the receiver has only written its own t in
//!   another way. In a tree of f columns that contains this column, it has to guess f - 1 bits.
//! * *A party that has another lowest bit* spoils every triple with probability 1/2 (`leaky_and.rs`).
//!
//! **Why the check of the transfers is enough**: with two parties, a cheater has one peer. So it has one choice for each transfer and one
//! Delta, except for guesses of bits of Delta, which pass with probability 2^-c for c bits. The check comes before anything that is made
//! of the blocks is sent. The sender checks. Before the receiver hears of the outcome, it has nothing that tells whether a guess was
//! right, so it learns nothing by silence.

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret;
use zeroize::Zeroizing;

use super::Key;
use super::opening::peer_of;
use crate::Result;
use crate::net::Net;
use crate::ot::{Blocks, Correlated, Pairs, Shape};
use crate::session::random_bytes;

/// Transfers that are extended and checked at once: 64 bytes each in memory until the check, 6 MB. Fewer are no faster, and cost rounds.
pub(super) const AT_ONCE: usize = 3 << 15;

/// One party's part of authenticated bits, with whole blocks.
pub(super) struct WideBits {
    /// Its share of each bit: 0 or 1.
    pub(super) values: Zeroizing<Vec<u8>>,
    /// M.
    pub(super) tags: Blocks,
    /// K, of the peer's shares.
    pub(super) keys: Blocks,
}

/// Some of them.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) values: &'a [u8],
    pub(super) tags: &'a [u128],
    pub(super) keys: &'a [u128],
}

/// Transfers under both Deltas.
pub(super) struct Transfers(Pairs);

impl Transfers {
    /// With a fresh Delta for a key. Two rounds.
    pub(super) fn set_up(label: &[u8], key: &Key, expansion: usize, net: &mut dyn Net) -> Result<Self> {
        let mut low = Zeroizing::new([0; 8]);
        random_bytes(&mut *low)?;
        let low = Zeroizing::new(u64::from_le_bytes(*low) & !1 | u64::from(key.is_first()));
        let delta = Zeroizing::new(u128::from(key.reveal_own_share()) << 64 | u128::from(*low));
        Ok(Transfers(Pairs::set_up(label, *delta, Shape::new(128, expansion)?, net)?))
    }

    /// Others under the same Deltas. Local.
    pub(super) fn fork(&self, label: &[u8]) -> Self {
        Transfers(self.0.fork(label))
    }

    /// This party's.
    pub(super) fn delta(&self) -> Zeroizing<u128> {
        Zeroizing::new(self.0.delta())
    }

    /// Makes `count` bits, checked. Four rounds.
    pub(super) fn make(&mut self, count: usize, net: &mut dyn Net) -> Result<WideBits> {
        let peer = peer_of(net)?.index();
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        let mut choices = Zeroizing::new(vec![0; count.div_ceil(8)]);
        AesPrg::new(&seed, 0).fill(&mut choices);
        let mut towards = [&[][..]; 2];
        towards[peer] = choices.as_slice();
        let Correlated { mut sent, mut received, .. } = self.0.extend(&towards, count, net)?;
        self.0.check(net)?;
        let mut values = Zeroizing::new(vec![0; count]);
        for (eight, byte) in values.chunks_mut(8).zip(choices.iter()) {
            eight.iter_mut().enumerate().for_each(|(place, bit)| *bit = byte >> place & 1);
        }
        Ok(WideBits {
            values,
            tags: std::mem::take(&mut received[peer]),
            keys: std::mem::take(&mut sent[peer]),
        })
    }
}

impl WideBits {
    /// Three equal parts.
    pub(super) fn thirds(&self) -> [Part<'_>; 3] {
        let third = self.values.len() / 3;
        let all = Part { values: &self.values, tags: &self.tags, keys: &self.keys };
        [0, 1, 2].map(|i| all.range(i * third, third))
    }
}

impl<'a> Part<'a> {
    /// The `len` bits from `start` on.
    pub(super) fn range(self, start: usize, len: usize) -> Part<'a> {
        Part {
            values: &self.values[start..][..len],
            tags: &self.tags[start..][..len],
            keys: &self.keys[start..][..len],
        }
    }
}

/// The half of a block that is kept.
pub(super) fn upper(block: u128) -> u64 {
    (block >> 64) as u64
}

/// All ones for 1, and 0 for 0, in constant time.
pub(super) fn wide_mask(bit: u8) -> u128 {
    secret::mask(u128::from(bit))
}

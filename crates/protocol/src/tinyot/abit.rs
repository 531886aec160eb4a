//! Authenticated bits from correlated transfers (Nielsen, Nordholt, Orlandi, Burra 2012, section 4, where they are called aBit; the
//! transfers are those of Roy 2022, [`crate::ot`]).
//!
//! A party chooses with random bits x, and its peer's Delta is the offset: M = K + x Delta, where M is the receiver's block and K the
//! sender's. M is the tag of x, K the key of the tag. Both directions are extended at once, so each of `count` authenticated bits is the
//! sum of one bit of each party.
//!
//! There are two widths. **Wide** bits have blocks of 128 bits, which are hashed (`offers.rs`). **Narrow** bits have 64, enough for a tag,
//! at half the cost.
//!
//! **Delta.** The upper 64 bits are alpha, the party's key, which is uniform. The lower 64 are random and never used elsewhere. Narrow bits
//! come from the trees of the upper columns only ([`Pairs::fork_upper`]), so both widths have the same alpha by construction: a party
//! cannot take another one for either. The upper half of a wide block is a narrow one.
//!
//! **Why the check of the transfers is enough**: with two parties, a cheater has one peer. So it has one choice for each transfer and one
//! Delta, except for guesses of bits of Delta, which pass with probability 2^-c for c bits. The check comes before anything that is made
//! of the blocks is sent. The sender checks. Before the receiver hears of the outcome, it has nothing that tells whether a guess was
//! right, so it learns nothing by silence.

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret;
use zeroize::Zeroizing;

use super::{Bits, Key};
use super::opening::peer_of;
use crate::Result;
use crate::net::Net;
use crate::ot::{Blocks, Correlated, Pairs, Shape};
use crate::session::random_bytes;

/// Wide bits that are made at once: their blocks take 3 MB until they are used. Fewer are no faster, and cost rounds.
pub(super) const AT_ONCE: usize = 3 << 15;

/// One party's part of authenticated bits, with their blocks.
pub(super) struct BlockBits {
    /// Its share of each bit: 0 or 1.
    pub(super) values: Zeroizing<Vec<u8>>,
    /// M: the lower half is a narrow block, or the whole a wide one.
    pub(super) tags: Blocks,
    /// K, of the peer's shares.
    pub(super) keys: Blocks,
    /// Where alpha lies in a block.
    shift: u32,
}

/// Transfers under both Deltas.
pub(super) struct Transfers {
    wide: Pairs,
    narrow: Pairs,
}

impl Transfers {
    /// With a fresh Delta for a key. Two rounds.
    pub(super) fn set_up(label: &[u8], key: &Key, expansion: usize, net: &mut dyn Net) -> Result<Self> {
        let mut low = Zeroizing::new([0; 8]);
        random_bytes(&mut *low)?;
        let low = Zeroizing::new(u64::from_le_bytes(*low));
        let delta = Zeroizing::new(u128::from(key.reveal_own_share()) << 64 | u128::from(*low));
        let wide = Pairs::set_up(label, *delta, Shape::new(128, expansion)?, net)?;
        let narrow = wide.fork_upper(&[label, NARROW].concat())?;
        Ok(Transfers { wide, narrow })
    }

    /// Others under the same Deltas. Local.
    pub(super) fn fork(&self, label: &[u8]) -> Self {
        Transfers { wide: self.wide.fork(label), narrow: self.narrow.fork(&[label, NARROW].concat()) }
    }

    /// This party's.
    pub(super) fn delta(&self) -> Zeroizing<u128> {
        Zeroizing::new(self.wide.delta())
    }

    /// Makes so many wide and so many narrow bits, checked.
    pub(super) fn make(
        &mut self,
        wide: usize,
        narrow: usize,
        net: &mut dyn Net,
    ) -> Result<[BlockBits; 2]> {
        let wide = extended(&mut self.wide, wide, 64, net)?;
        let narrow = extended(&mut self.narrow, narrow, 0, net)?;
        self.wide.check(net)?;
        self.narrow.check(net)?;
        Ok([wide, narrow])
    }
}

const NARROW: &[u8] = b" narrow";

/// Bits that are not checked yet. One round.
fn extended(pairs: &mut Pairs, count: usize, shift: u32, net: &mut dyn Net) -> Result<BlockBits> {
    let peer = peer_of(net)?.index();
    if count == 0 {
        let (values, tags, keys) = Default::default();
        return Ok(BlockBits { values, tags, keys, shift });
    }
    let mut seed = Zeroizing::new([0; 16]);
    random_bytes(&mut *seed)?;
    let mut choices = Zeroizing::new(vec![0; count.div_ceil(8)]);
    AesPrg::new(&seed, 0).fill(&mut choices);
    let mut towards = [&[][..]; 2];
    towards[peer] = choices.as_slice();
    let Correlated { mut sent, mut received, .. } = pairs.extend(&towards, count, net)?;
    let mut values = Zeroizing::new(vec![0; count]);
    for (eight, byte) in values.chunks_mut(8).zip(choices.iter()) {
        eight.iter_mut().enumerate().for_each(|(place, bit)| *bit = byte >> place & 1);
    }
    let (tags, keys) = (std::mem::take(&mut received[peer]), std::mem::take(&mut sent[peer]));
    Ok(BlockBits { values, tags, keys, shift })
}

impl BlockBits {
    /// Number of bits.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Writes all bits, with the tags and keys that are kept of them, to others from number `at` on.
    pub(super) fn write_to(&self, bits: &mut Bits, at: usize) {
        let range = at..at + self.len();
        let kept = |block: &u128| (block >> self.shift) as u64;
        bits.values[range.clone()].copy_from_slice(&self.values);
        bits.tags[range.clone()].iter_mut().zip(self.tags.iter()).for_each(|(tag, block)| *tag = kept(block));
        bits.keys[range].iter_mut().zip(self.keys.iter()).for_each(|(key, block)| *key = kept(block));
    }

    /// Sets a row to the shares of the MACs of the bits from `start` on, in authenticated sharing under the sum of both keys:
    /// x alpha + M + K, as in [`Bits::to_spdz`].
    pub(super) fn write_macs(&self, start: usize, key: &Key, macs: &mut [u64]) {
        let range = start..start + macs.len();
        let (values, tags, keys) =
            (&self.values[range.clone()], &self.tags[range.clone()], &self.keys[range]);
        let alpha = key.reveal_own_share();
        secret::masks(macs, |i| u64::from(values[i]));
        for (mac, (tag, key)) in macs.iter_mut().zip(tags.iter().zip(keys)) {
            *mac = *mac & alpha ^ ((tag ^ key) >> self.shift) as u64;
        }
    }
}

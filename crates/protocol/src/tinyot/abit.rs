//! Authenticated bits from correlated transfers (Nielsen, Nordholt, Orlandi, Burra 2012, section 4, where
//! they are called aBit; the transfers are those of Roy 2022, [`crate::ot`]).
//!
//! A party chooses with random bits x, and its peer's Delta is the offset: M = K + x Delta, where M is the
//! receiver's block and K the sender's. M is the tag of x, K the key of the tag. Both directions are extended
//! at once, so each of `count` authenticated bits is the sum of one bit of each party. Among more than two
//! parties, a party chooses with the same bits from every peer, and has a tag and a key with each.
//!
//! There are two widths. **Wide** bits have blocks of 128 bits, which are hashed (`products.rs`), or added to
//! labels of garbled circuits (`wide.rs`). **Narrow** bits have 64, enough for a tag, at half the cost.
//!
//! **Delta.** The upper 64 bits are alpha, the party's key, which is uniform. The lower 64 are random. The
//! whole of Delta is only used for wide bits, and as the offset of garbled circuits that are made of them
//! ([`crate::spdz`], `garbled`). Narrow bits come from the trees of the upper columns only
//! ([`Pairs::fork_upper`]), so both widths have the same alpha by construction: a party cannot take another
//! one for either. The upper half of a wide block is a narrow one. Where transfers are silent
//! ([`crate::ot::Silent`]), the blocks of both are, and the lowest bit of Delta is one: 127 are random.
//!
//! **Why the check of the transfers is enough**: towards each peer, a cheater has one choice for each
//! transfer and one Delta, except for guesses of bits of Delta, which pass with probability 2^-c for c bits.
//! The check comes before anything that is made of the blocks is sent. The sender checks. Before the receiver
//! hears of the outcome, it has nothing that tells whether a guess was right, so it learns nothing by
//! silence. *Other choices, or another Delta, towards another peer* are found later
//! (docs/protocols/tower-parties.md).

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret;
use zeroize::Zeroizing;

use super::{Bits, Key, between_two};
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::ot::{Batch, Checked, Columns, Means, Pairs, Shape, Silent, Wanted, extend_checked};
use crate::{Party, Result};

/// Wide bits that are made at once: until they are used their columns take 3 MB. Fewer are no faster, and
/// cost rounds.
pub(super) const AT_ONCE: usize = 3 << 15;

/// Bits whose blocks are in work at once: they lie in the first-level cache.
pub(super) const PIECE: usize = 1024;

/// Elements whose products with a key are made at once.
const WORDS: usize = 64;

/// Transfers under both Deltas.
pub(super) struct Transfers {
    wide: Pairs,
    narrow: Pairs,
    /// Where most transfers are made so.
    silent: Option<Silent>,
    /// What a cheater of a test chooses otherwise towards one peer, and how often bits were made.
    #[cfg(test)]
    pub(super) lies: (Option<Lie>, u64),
}

/// Another bit towards one peer.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(super) struct Lie {
    pub(super) towards: Party,
    /// Which of the calls that make bits.
    pub(super) call: u64,
    /// Which of the first eight wide bits, and of the narrow ones, as bits of a byte.
    pub(super) wide: u8,
    pub(super) narrow: u8,
}

/// A number of bits: rows of equal length.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) rows: usize,
    pub(super) len: usize,
}

/// One party's part of authenticated bits, with their blocks, in rows of equal length.
pub(super) struct BlockBits {
    /// Its share of each bit: 0 or 1.
    pub(super) values: Zeroizing<Vec<u8>>,
    /// The same, eight in a byte.
    packed: Zeroizing<Vec<u8>>,
    /// By peer, in the order of their numbers.
    sides: Vec<Side>,
    /// From the beginning of a row to that of the next.
    stride: usize,
}

/// The blocks of bits with one peer.
struct Side {
    /// M.
    tags: Columns,
    /// K, of the peer's shares.
    keys: Columns,
}

/// Narrow blocks in work, kept for their memory.
pub(super) struct BlockRoom(Wiped<u64>);

const NARROW: &[u8] = b" narrow";

impl Rows {
    /// No bits.
    pub(super) const NONE: Rows = Rows { rows: 0, len: 0 };

    /// Every row begins with a byte of choices.
    fn stride(self) -> usize {
        self.len.next_multiple_of(8)
    }

    fn bits(self) -> usize {
        self.rows * self.stride()
    }
}

impl Transfers {
    /// With a fresh Delta for a key. Two rounds.
    pub(super) fn setup(label: &[u8], key: &Key, means: Means, net: &mut dyn Net) -> Result<Self> {
        let mut low = Zeroizing::new([0; 8]);
        random_bytes(&mut *low)?;
        let low = Zeroizing::new(u64::from_le_bytes(*low) | u64::from(means.silent));
        let delta = Zeroizing::new(u128::from(key.reveal_own_share()) << 64 | u128::from(*low));
        let wide =
            Pairs::set_up_under(label, *delta, Shape::new(128, means.expansion)?, key.retirement(), net)?;
        let narrow = wide.fork_upper(&[label, NARROW].concat())?;
        let silent = means.silent.then(|| Silent::new(label, &wide)).transpose()?;
        Ok(Self::of(wide, narrow, silent))
    }

    fn of(wide: Pairs, narrow: Pairs, silent: Option<Silent>) -> Self {
        Transfers {
            wide,
            narrow,
            silent,
            #[cfg(test)]
            lies: (None, 0),
        }
    }

    /// The choices of a cheater of a test towards the peer that it lies to.
    #[cfg(test)]
    fn lie(&mut self, choices: &[Zeroizing<Vec<u8>>; 2]) -> Option<(Party, [Zeroizing<Vec<u8>>; 2])> {
        self.lies.1 += 1;
        let lie = self.lies.0.filter(|lie| lie.call == self.lies.1 - 1)?;
        let mut message = choices.clone();
        for (choices, bits) in message.iter_mut().zip([lie.wide, lie.narrow]) {
            choices.iter_mut().take(1).for_each(|byte| *byte ^= bits);
        }
        Some((lie.towards, message))
    }

    /// Whether a check has failed under these Deltas: then no fork makes anything.
    #[cfg(test)]
    pub(super) fn are_retired(&self) -> bool {
        self.wide.refuse_retired().is_err() || self.narrow.refuse_retired().is_err()
    }

    /// Others under the same Deltas. Local.
    pub(super) fn fork(&self, label: &[u8]) -> Self {
        let wide = self.wide.fork(label);
        let silent = self.silent.as_ref().map(|silent| silent.fork(label, &wide));
        Self::of(wide, self.narrow.fork(&[label, NARROW].concat()), silent)
    }

    /// This party's.
    pub(super) fn delta(&self) -> Zeroizing<u128> {
        Zeroizing::new(self.wide.delta())
    }

    /// Makes wide bits and narrow bits, checked. Three rounds; where transfers are silent, one, and eight for
    /// each batch of them.
    pub(super) fn make(&mut self, wide: Rows, narrow: Rows, net: &mut dyn Net) -> Result<[BlockBits; 2]> {
        let (me, n) = (net.me(), net.parties());
        let choices = [random_choices(wide.bits())?, random_choices(narrow.bits())?];
        let towards = choices.each_ref().map(|choices| towards_all(choices, me, n));
        #[cfg(test)]
        let (lie, mut towards) = (self.lie(&choices), towards);
        #[cfg(test)]
        if let Some((peer, message)) = &lie {
            towards.iter_mut().zip(message).for_each(|(towards, message)| towards[peer.index()] = message);
        }
        let [of_wide, of_narrow] = self.transfers(&towards, [wide, narrow], net)?;
        let bits = |checked: Checked, packed: Zeroizing<Vec<u8>>, rows: Rows| {
            let Checked { mut sent, mut received } = checked;
            let side = |peer: Party| Side {
                tags: std::mem::take(&mut received[peer.index()]),
                keys: std::mem::take(&mut sent[peer.index()]),
            };
            let sides = me.peers(n).map(side).collect();
            BlockBits { values: spread(&packed), packed, sides, stride: rows.stride() }
        };
        let [of_wide_choices, of_narrow_choices] = choices;
        Ok([bits(of_wide, of_wide_choices, wide), bits(of_narrow, of_narrow_choices, narrow)])
    }
}

impl Transfers {
    /// Checked transfers of wide and of narrow bits.
    fn transfers(
        &mut self,
        choices: &[Vec<&[u8]>; 2],
        rows: [Rows; 2],
        net: &mut dyn Net,
    ) -> Result<[Checked; 2]> {
        let counts = rows.map(Rows::bits);
        if let Some(silent) = &mut self.silent
            && silent.serves(counts.iter().sum())
        {
            let wanted = |i: usize, columns| Wanted { choices: &choices[i], count: counts[i], columns };
            return silent.extend(&mut self.wide, [wanted(0, 128), wanted(1, 64)], net);
        }
        let batches = [
            Batch { pairs: &mut self.wide, choices: &choices[0], count: counts[0] },
            Batch { pairs: &mut self.narrow, choices: &choices[1], count: counts[1] },
        ];
        extend_checked(batches, net)
    }
}

/// The same choices from every peer.
fn towards_all(choices: &[u8], me: Party, n: usize) -> Vec<&[u8]> {
    Party::all(n).map(|p| if p == me { &[][..] } else { choices }).collect()
}

fn random_choices(count: usize) -> Result<Zeroizing<Vec<u8>>> {
    let mut seed = Zeroizing::new([0; 16]);
    random_bytes(&mut *seed)?;
    let mut choices = Zeroizing::new(vec![0; count / 8]);
    AesPrg::new(&seed, 0).fill(&mut choices);
    Ok(choices)
}

/// Every bit as a byte.
fn spread(choices: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut values = Zeroizing::new(vec![0; 8 * choices.len()]);
    for (eight, byte) in values.as_chunks_mut::<8>().0.iter_mut().zip(choices) {
        // Bit i of every byte, each in the byte of its own.
        let spread = (u64::from(*byte) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        *eight = ((spread + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101).to_le_bytes();
    }
    values
}

impl BlockRoom {
    pub(super) fn new() -> Self {
        BlockRoom(Wiped::zeros(PIECE))
    }
}

impl BlockBits {
    /// The place of the bit at `start` of a row.
    pub(super) fn place(&self, row: usize, start: usize) -> usize {
        row * self.stride + start
    }

    /// Number of bits, with those that fill rows up.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The shares of bits from this place on.
    pub(super) fn values_at(&self, at: usize, len: usize) -> &[u8] {
        &self.values[at..][..len]
    }

    /// Writes M of wide bits with a peer, from place `at` on, a multiple of 8. `peer` is the peer's number
    /// among all peers.
    pub(super) fn write_tags(&self, peer: usize, at: usize, tags: &mut [u128]) -> Result<()> {
        self.sides[peer].tags.write_blocks(at, tags)
    }

    /// The same with K.
    pub(super) fn write_keys(&self, peer: usize, at: usize, keys: &mut [u128]) -> Result<()> {
        self.sides[peer].keys.write_blocks(at, keys)
    }

    /// Hands the tags, or keys, of narrow bits from a place on to `put`, one after another with their
    /// numbers.
    fn each_kept(
        columns: &Columns,
        at: usize,
        len: usize,
        room: &mut BlockRoom,
        mut put: impl FnMut(usize, u64),
    ) -> Result<()> {
        let blocks = &mut room.0[..len];
        columns.write_blocks(at, blocks)?;
        blocks.iter().enumerate().for_each(|(i, block)| put(i, *block));
        Ok(())
    }

    /// Writes `len` narrow bits of row 0, with their tags and keys, to others from number `to` on. Between
    /// two parties.
    pub(super) fn write_to(
        &self,
        bits: &mut Bits,
        to: usize,
        len: usize,
        room: &mut BlockRoom,
    ) -> Result<()> {
        let [side] = &self.sides[..] else { return Err(between_two()) };
        bits.values[to..][..len].copy_from_slice(self.values_at(0, len));
        for start in (0..len).step_by(PIECE) {
            let now = PIECE.min(len - start);
            let (tags, keys) = (&mut bits.tags[to + start..][..now], &mut bits.keys[to + start..][..now]);
            Self::each_kept(&side.tags, start, now, room, |i, tag| tags[i] = tag)?;
            Self::each_kept(&side.keys, start, now, room, |i, key| keys[i] = key)?;
        }
        Ok(())
    }

    /// Sets a row of at most [`PIECE`] to the shares of the MACs of narrow bits from this place on, in
    /// authenticated sharing under the sum of all keys: x alpha and the sum of M + K over all peers, as in
    /// [`Bits::to_spdz`].
    pub(super) fn write_macs(
        &self,
        at: usize,
        key: &Key,
        macs: &mut [u64],
        room: &mut BlockRoom,
    ) -> Result<()> {
        let (len, values) = (macs.len(), self.values_at(at, macs.len()));
        let alpha = key.reveal_own_share();
        secret::masks(macs, |i| u64::from(values[i]));
        macs.iter_mut().for_each(|mac| *mac &= alpha);
        for Side { tags, keys } in &self.sides {
            Self::each_kept(tags, at, len, room, |i, tag| macs[i] ^= tag)?;
            Self::each_kept(keys, at, len, room, |i, key| macs[i] ^= key)?;
        }
        Ok(())
    }

    /// The shares of `len` narrow bits from place `at` on, a multiple of 8; eight in a byte.
    pub(super) fn packed_at(&self, at: usize, len: usize) -> &[u8] {
        &self.packed[at / 8..][..len.div_ceil(8)]
    }

    /// Adds to `values` the elements whose coefficients are `width` narrow bits each, side by side from a
    /// place on, a power of two from 2 to 64; and to `macs` this party's shares of their MACs, as
    /// [`BlockBits::write_macs`] gives those of the bits.
    pub(super) fn add_words(
        &self,
        at: usize,
        width: usize,
        key: &Key,
        values: &mut [u64],
        macs: &mut [u64],
    ) -> Result<()> {
        let alphas = Zeroizing::new([key.reveal_own_share(); WORDS]);
        let [mut own, mut products] = [(); 2].map(|()| Zeroizing::new([0; WORDS]));
        let places = (at..).step_by(WORDS * width);
        for (at, (values, macs)) in places.zip(values.chunks_mut(WORDS).zip(macs.chunks_mut(WORDS))) {
            let (own, products) = (&mut own[..values.len()], &mut products[..values.len()]);
            for (word, bit) in own.iter_mut().zip((at..).step_by(width)) {
                let mut bytes = [0; 8];
                let some = width.div_ceil(8);
                bytes[..some].copy_from_slice(&self.packed[bit / 8..][..some]);
                *word = u64::from_le_bytes(bytes) >> (bit % 8) & u64::MAX >> (64 - width);
            }
            Gf2_64::multiply_rows(products, own, &alphas[..own.len()]);
            values.iter_mut().zip(own).for_each(|(value, word)| *value ^= *word);
            macs.iter_mut().zip(products).for_each(|(mac, product)| *mac ^= *product);
        }
        for Side { tags, keys } in &self.sides {
            tags.add_words(width, at, macs)?;
            keys.add_words(width, at, macs)?;
        }
        Ok(())
    }
}

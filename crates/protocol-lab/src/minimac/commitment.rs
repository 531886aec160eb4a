//! A string to which a party is committed, and the material that is needed to open a part of it once.
//!
//! \[s\] of Damgard et al. 2016, section 6: additive shares of C(s), of a and of a * C(s), for s cut into
//! messages of k symbols. Next to it a mask \[r\]: r is a uniform word of C* among those whose message is
//! zero, and shares of r and of a * r come with it.
//!
//! One bit of the string is one symbol, 0 or 1. That makes the code's alphabet 16 times as large as it need
//! be, a constant, and is what lets any subset of *bits* be selected: a selection I is a message of zeros and
//! ones as well, and (I * s)_i is s_i or zero.
//!
//! **Shares are words of the code**: C(s) = C(s_A) + C(s_B), with s_B uniform *bits*; r = r_A + r_B, both
//! with the message zero. So a share of C(s) is kept as its k bits, and one of r as the k - 1 places that
//! determine it. Only the shares of MACs, which are no words of any code, have n symbols. A party holds k
//! bits, k - 1 and 2n symbols for a message: at n = 2.25 k a little over 11 bytes for a bit of the string,
//! however secure.

use zeroize::Zeroize;

use super::Code;
use polyclave_protocol::Party;

/// Messages that are worked on at once: rows of this many lanes.
const LANES: usize = 64;

/// One party's shares of a committed string and of its mask; wiped on drop.
///
/// The messages are processed in tiles of 64; the last tile can be smaller. A tile of w messages consists of
/// the next k w bits of the string. Its row i, of w lanes, has bits i w to (i + 1) w. So rows of messages are
/// directly the string. Bits beyond its end are zeros.
#[derive(Default)]
pub struct Shares {
    /// The string: eight bits in a byte, the lowest first, and zeros beyond the last bit.
    pub bits: Vec<u8>,
    /// Shares of r: k - 1 rows for each tile.
    pub mask: Vec<u16>,
    /// Shares of a * C(s): n rows for each tile.
    pub macs: Vec<u16>,
    /// Shares of a * r: n rows for each tile.
    pub mask_macs: Vec<u16>,
}

impl Drop for Shares {
    fn drop(&mut self) {
        self.bits.zeroize();
        self.mask.zeroize();
        self.macs.zeroize();
        self.mask_macs.zeroize();
    }
}

/// What a dealer hands out to one party for one string. Opened once, wholly used up by it.
pub struct Committed {
    pub(super) number: u64,
    pub(super) owner: Party,
    pub(super) code: Code,
    pub(super) len: usize,
    pub(super) shares: Shares,
}

impl Committed {
    /// This party's part. `number` is that of the string among all under its MAC key, the same at both
    /// parties.
    ///
    /// # Panics
    /// If there are not as many shares as the length needs.
    pub fn new(number: u64, owner: Party, code: Code, len: usize, shares: Shares) -> Self {
        let messages = len.div_ceil(code.message());
        assert_eq!(shares.bits.len(), len.div_ceil(8), "a share of every bit");
        assert_eq!(shares.mask.len(), messages * code.free(), "a share of the mask for every message");
        let macs = messages * code.places();
        assert!(shares.macs.len() == macs && shares.mask_macs.len() == macs, "MACs of all places");
        Committed { number, owner, code, len, shares }
    }

    /// The party that knows the string.
    pub fn owner(&self) -> Party {
        self.owner
    }

    /// Bits of the string.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of shares that this party holds.
    pub fn bytes(&self) -> usize {
        Self::bytes_of(self.code, self.len)
    }

    /// Bytes of shares that a party holds of a string of this many bits.
    pub fn bytes_of(code: Code, len: usize) -> usize {
        let symbols = code.free() + 2 * code.places();
        len.div_ceil(8) + len.div_ceil(code.message()) * symbols * size_of::<u16>()
    }
}

/// Messages that are transformed together.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// The messages before it.
    before: usize,
    /// Its messages.
    pub(crate) lanes: usize,
}

impl Tile {
    /// The tiles of a string.
    pub(crate) fn all(code: Code, len: usize) -> impl Iterator<Item = Tile> {
        let messages = len.div_ceil(code.message());
        (0..messages).step_by(LANES).map(move |before| Tile { before, lanes: LANES.min(messages - before) })
    }

    /// The tile's part of `of`, which has `rows` rows for each tile.
    pub(crate) fn part<'a>(&self, of: &'a [u16], rows: usize) -> &'a [u16] {
        &of[self.before * rows..(self.before + self.lanes) * rows]
    }

    /// [`Tile::part`], mutable.
    pub(crate) fn part_mut<'a>(&self, of: &'a mut [u16], rows: usize) -> &'a mut [u16] {
        &mut of[self.before * rows..(self.before + self.lanes) * rows]
    }

    /// Its rows of messages, from the string's bits.
    pub(crate) fn messages(&self, bit: impl Fn(usize) -> u8, len: usize, code: Code, into: &mut [u16]) {
        let first = self.before * code.message();
        for (i, symbol) in (first..).zip(&mut into[..self.lanes * code.message()]) {
            *symbol = if i < len { u16::from(bit(i)) } else { 0 };
        }
    }
}

/// A bit among packed ones.
pub(crate) fn bit_at(packed: &[u8], i: usize) -> u8 {
    packed[i / 8] >> (i % 8) & 1
}

/// Bits, 0 or 1 each, eight in a byte.
pub(crate) fn pack(bits: &[u8]) -> Vec<u8> {
    bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect()
}

//! Computes an entry's record from the authenticated bits of the entry.
//!
//! *Linear*: tags and keys of the bits, times X^i, are added up: y = alpha x + beta for the cell x,
//! unreduced. beta is uniform in 63 + n bits because the keys of all bits are. *Lookup*: strings F(tag) of
//! this party's share, and F of every tag that the peer could show (figure 8). With raw tags instead, a
//! string of one value would tell those of others, by alpha.
//!
//! F(y) is MMO, P(d) + d with P = AES under a key that is fresh for the stream, cut to the length of strings.
//! d is y with a position and the direction of the opening, so each d occurs once (Guo, Katz, Wang, Yu 2020,
//! ePrint 2019/074: correlation robust if P is a random permutation).

use polyclave_kernels::aes_sum::AesSum;
use polyclave_kernels::memory::wipe;
use zeroize::Zeroizing;

use super::entries::EntryBits;
use crate::tinyot::{Bits, Key};
use crate::tinytable::Macs;
use crate::tinytable::batch::Place;
use crate::tinytable::lookup::products;
use crate::tinytable::macs::{tag_bytes, write_tag};

/// Below are tags, of at most 71 bits; above the direction.
const POSITION: u32 = 71;

/// Writes records on one stream of a session.
pub(super) struct Records {
    macs: Macs,
    /// Products of this party's key with every cell.
    products: Box<Zeroizing<[u128; 256]>>,
    strings: AesSum,
    /// The directions of the strings that prove this party's openings, and of those that prove the peer's.
    directions: [u128; 2],
    next: u64,
}

/// Cells of one entry: shares, tags, keys.
struct Cells {
    values: Vec<u8>,
    tags: Vec<u128>,
    keys: Vec<u128>,
}

impl Drop for Cells {
    fn drop(&mut self) {
        wipe(&mut self.values);
        wipe(&mut self.tags);
        wipe(&mut self.keys);
    }
}

impl Cells {
    fn of(bits: &[Bits]) -> Cells {
        let lanes = bits[0].len();
        let mut cells = Cells { values: vec![0; lanes], tags: vec![0; lanes], keys: vec![0; lanes] };
        for (i, bit) in bits.iter().enumerate() {
            cells.values.iter_mut().zip(&bit.values).for_each(|(x, bit)| *x ^= bit << i);
            cells.tags.iter_mut().zip(&bit.tags).for_each(|(x, tag)| *x ^= u128::from(*tag) << i);
            cells.keys.iter_mut().zip(&bit.keys).for_each(|(x, key)| *x ^= u128::from(*key) << i);
        }
        cells
    }
}

impl Records {
    pub(super) fn new(macs: Macs, key: &Key, label: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 strings of tables");
        let mut aes_key = [0; 16];
        hasher.update(label).finalize_xof().fill(&mut aes_key);
        let mine = u128::from(key.me().0 & 1) << 127;
        Records {
            macs,
            products: products(key.reveal_own_share()),
            strings: AesSum::new(&aes_key),
            directions: [mine, mine ^ 1 << 127],
            next: 0,
        }
    }

    /// Writes entries of the cells of some lanes. Their first lane has number `first` among all lanes of the
    /// lookups at these places.
    pub(super) fn write(&mut self, places: &[Place], first: usize, entries: &EntryBits, records: &mut [u8]) {
        for (entry, bits) in entries.iter().enumerate() {
            let cells = Cells::of(bits);
            let (mut begin, mut done) = (0, 0);
            for place in places {
                // Lanes of this place that are among those given.
                let from = first.max(begin) - begin;
                let to = (first + cells.values.len()).min(begin + place.width).saturating_sub(begin);
                begin += place.width;
                if from >= to {
                    continue;
                }
                let count = to - from;
                let part = done..done + count;
                done += count;
                let size = place.record.table_bytes();
                let at = |lane: usize| place.records + (from + lane) * size + entry * place.record.bytes;
                for (lane, i) in part.enumerate() {
                    let record = &mut records[at(lane)..][..place.record.bytes];
                    let (share, macs) = record.split_at_mut(place.record.share_bytes);
                    share.fill(cells.values[i]);
                    self.write_macs(cells.tags[i], cells.keys[i], place.record.out_bits, macs);
                }
            }
        }
    }

    /// Writes what verifies an entry of `bits` bits: its tag, and the key of the peer's tag.
    pub(super) fn write_macs(&mut self, tag: u128, key: u128, bits: u8, to: &mut [u8]) {
        match self.macs {
            Macs::None | Macs::Minimac => {}
            Macs::Linear64 => {
                let (tag_to, key_to) = to.split_at_mut(tag_bytes(bits));
                write_tag(tag, tag_to);
                write_tag(key, key_to);
            }
            Macs::Lookup32 | Macs::Lookup64 => {
                let position = u128::from(self.next) << POSITION;
                self.next += 1;
                let [mine, theirs] = self.directions.map(|direction| direction | position);
                // Room at once, since growing would leave copies behind.
                let mut blocks = Zeroizing::new(Vec::with_capacity(1 + (1 << bits)));
                blocks.push(mine | tag);
                blocks.extend(self.products[..1 << bits].iter().map(|product| theirs | (key ^ product)));
                self.strings.hash_each(&mut blocks);
                let size = self.macs.string_bytes();
                for (string, to) in blocks.iter().zip(to.chunks_exact_mut(size)) {
                    to.copy_from_slice(&string.to_le_bytes()[..size]);
                }
            }
        }
    }
}

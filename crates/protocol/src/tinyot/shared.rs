//! Lists of leaky products that the products of a bucket share (`groups.rs`): one x, and a y for each row.
//!
//! As `products.rs`, for k products at once: with each bit of x a party offers its shares of all y of an
//! element, side by side, and of one MAC, that of the word of all of them. What an offer is cut to is 64 bits
//! and those of all y, at most 128. A wide bit is hashed once, so a pad hides all of an offer.
//!
//! What a cheater can change is a GF(2)-linear map of the honest parties' bits, as there: of a bit to the
//! values of all rows and to the MAC of their word. The word of different values is another one wherever a
//! row's factor is not 0, and where it is, nothing is made of the value. So the check of words
//! (`coset_check.rs`) finds every error, and what a cheater that passes knows is as many functions of an
//! element as it has guessed bits.
//!
//! Cost of an element for each peer: 64 bits, and those of all y, for each bit of x; 6 AES calls for each.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_hash::AesHash;
use polyclave_kernels::affine::{self, Term};
use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::masks;
use zeroize::Zeroizing;

use super::Key;
use super::abit::{BlockBits, PIECE};
use super::groups::Layout;
use super::lists::Column;
use super::products::{hash_of_direction, upper_word};
use super::word_products::{Words, lowest, value_bytes};
use crate::interface::net::Net;
use crate::{Party, Result};

const MAC_BYTES: usize = size_of::<u64>();

/// One party's part of a shared list. Memory is kept for the next one.
#[derive(Default)]
pub(super) struct SharedList {
    /// By coordinate of an element.
    pub(super) x: Vec<Column>,
    /// Row by row.
    pub(super) y: Column,
    /// By coordinate, and there row by row.
    pub(super) z: Vec<Wiped<u8>>,
    /// By coordinate: the words of all rows' z, and their MACs.
    words: Vec<Wiped<u64>>,
    pub(super) macs: Vec<Wiped<u64>>,
}

impl SharedList {
    /// Makes room for a list of this kind. What is there is undefined.
    pub(super) fn make_room(&mut self, layout: &Layout) {
        let (coordinates, columns) = (layout.coordinates(), layout.columns());
        self.x.resize_with(coordinates, Column::default);
        self.x.iter_mut().for_each(|column| column.make_room_for_squares(columns));
        self.y.make_room(layout.products);
        let room = |row: &mut Wiped<u64>| {
            if row.len() != columns {
                *row = Wiped::zeros(columns);
            }
        };
        for words in [&mut self.words, &mut self.macs] {
            words.resize_with(coordinates, Wiped::default);
            words.iter_mut().for_each(room);
        }
        self.z.resize_with(coordinates, Wiped::default);
        for row in self.z.iter_mut().filter(|row| row.len() != layout.products) {
            *row = Wiped::zeros(layout.products);
        }
    }

    /// Sums up the words of z of list b, for the check.
    pub(super) fn sum_words(&mut self, layout: &Layout, b: usize) {
        let columns = layout.columns();
        let mut embedded = Wiped::<u64>::zeros(layout.rows() * PIECE);
        for (a, words) in self.words.iter_mut().enumerate() {
            for start in (0..columns).step_by(PIECE) {
                let len = PIECE.min(columns - start);
                for (row, embedded) in embedded.chunks_exact_mut(PIECE).enumerate() {
                    Gf2_64::embed_row(&mut embedded[..len], &self.z[a][row * columns + start..][..len]);
                }
                let rows = embedded.chunks_exact(PIECE).enumerate();
                let terms: Vec<_> =
                    rows.map(|(row, embedded)| (&embedded[..len], layout.packing(b, row, a))).collect();
                Gf2_64::combine(&mut words[start..][..len], &terms, 0);
            }
        }
    }

    /// What the check of the phase covers of this list.
    pub(super) fn checked(&self) -> impl Iterator<Item = Words<'_>> {
        self.words.iter().zip(&self.macs).map(|(values, macs)| Words { values, macs })
    }
}

/// Offers of shared lists to and from every peer, on one stream.
pub(super) struct SharedOffers {
    delta: Zeroizing<u128>,
    /// In the order of their numbers.
    peers: Vec<Side>,
    /// The number of the next offer.
    next: u64,
    work: Work,
}

/// Offers to and from one peer.
struct Side {
    peer: Party,
    outward: AesHash,
    inward: AesHash,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

/// Rows of a piece, kept for their memory.
struct Work {
    zeros: Wiped<u128>,
    ones: Wiped<u128>,
    masks: Wiped<u64>,
    /// What is offered: values of all rows side by side, and the MAC of their word.
    values: Wiped<u64>,
    macs: Wiped<u64>,
    coordinates: Wiped<u8>,
    /// By bit of x: parts of its MAC, of the values and of the MAC of the product.
    of_bits: Vec<Wiped<u64>>,
    of_values: Vec<Wiped<u64>>,
    of_macs: Vec<Wiped<u64>>,
    unpacked: Vec<Wiped<u8>>,
    sums: Wiped<u64>,
    byte_sums: Wiped<u8>,
}

/// The next columns of list b.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub(super) layout: &'a Layout,
    pub(super) b: usize,
    pub(super) start: usize,
    pub(super) len: usize,
    /// Whether MACs of the squares of x are wanted.
    pub(super) squares: bool,
}

impl SharedOffers {
    /// With a label that is used once.
    pub(super) fn new(label: &[u8], key: &Key, delta: Zeroizing<u128>) -> Self {
        let (me, label) = (key.me(), [label, b" shared lists"].concat());
        let side = |peer| Side {
            peer,
            outward: hash_of_direction(&label, me, peer),
            inward: hash_of_direction(&label, peer, me),
            outgoing: Vec::new(),
            incoming: Vec::new(),
        };
        SharedOffers { delta, peers: me.peers(key.parties()).map(side).collect(), next: 0, work: Work::new() }
    }

    /// Sets the products of a tile, and the MACs of x. Row `a l + k` of the bits has bit k of coordinate a of
    /// all x. Provisional until they are checked. One round.
    pub(super) fn multiply(
        &mut self,
        tile: Tile<'_>,
        bits: &BlockBits,
        list: &mut SharedList,
        net: &mut dyn Net,
    ) -> Result<()> {
        let message = bits.len() * (MAC_BYTES + tile.value_bytes());
        for side in &mut self.peers {
            side.outgoing.resize(message, 0);
            side.incoming.resize(message, 0);
        }
        self.work.make_room(tile.layout.kind.x.bits());
        self.offer(tile, bits, list)?;
        let mut out: Vec<&[u8]> = vec![&[]; net.parties()];
        let mut into: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
        for Side { peer, outgoing, incoming, .. } in &mut self.peers {
            (out[peer.index()], into[peer.index()]) = (outgoing, incoming);
        }
        net.exchange(&out, &mut into)?;
        self.take(tile, bits, list)?;
        self.next += bits.len() as u64;
        Ok(())
    }

    /// What this party offers, and of the products what needs no message.
    fn offer(&mut self, tile: Tile<'_>, bits: &BlockBits, list: &mut SharedList) -> Result<()> {
        let (delta, work, layout) = (*self.delta, &mut self.work, tile.layout);
        let (alpha, lane, each) = ((delta >> 64) as u64, lowest(tile.value_bits()), tile.value_bytes());
        let l = layout.kind.x.bits();
        for done in (0..tile.len).step_by(PIECE) {
            let len = PIECE.min(tile.len - done);
            work.pack_values(tile, list, tile.start + done, len);
            for a in 0..layout.coordinates() {
                work.pack_macs(tile, a, list, tile.start + done, len);
                for k in 0..l {
                    let at = bits.place(a * l + k, done);
                    let x = bits.values_at(at, len);
                    masks(&mut work.masks[..len], |i| u64::from(x[i]));
                    work.begin(k, len, alpha);
                    for (number, side) in self.peers.iter_mut().enumerate() {
                        let (zeros, ones) = (&mut work.zeros[..len], &mut work.ones[..len]);
                        bits.write_keys(number, at, zeros)?;
                        let of_bit = work.of_bits[k][..len].iter_mut();
                        of_bit.zip(&*zeros).for_each(|(mac, key)| *mac ^= upper_word(*key));
                        ones.iter_mut().zip(&*zeros).for_each(|(one, key)| *one = key ^ delta);
                        side.outward.hash(self.next + at as u64, zeros);
                        side.outward.hash(self.next + at as u64, ones);

                        let (macs, values) = side.outgoing.split_at_mut(bits.len() * MAC_BYTES);
                        let macs = macs[at * MAC_BYTES..][..len * MAC_BYTES].as_chunks_mut().0;
                        let pads = zeros.iter().zip(&*ones);
                        let kept = work.of_macs[k][..len].iter_mut().zip(&work.macs[..len]);
                        for ((offered, (zero, one)), (kept, y)) in macs.iter_mut().zip(pads).zip(kept) {
                            *offered = (*zero as u64 ^ *one as u64 ^ y).to_le_bytes();
                            *kept ^= *zero as u64;
                        }
                        let values = values[at * each..][..len * each].chunks_exact_mut(each);
                        let pads = zeros.iter().zip(&*ones);
                        let kept = work.of_values[k][..len].iter_mut().zip(&work.values[..len]);
                        for ((offered, (zero, one)), (kept, y)) in values.zip(pads).zip(kept) {
                            let value = upper_word(zero ^ one) & lane ^ y;
                            offered.copy_from_slice(&value.to_le_bytes()[..each]);
                            *kept ^= upper_word(*zero) & lane;
                        }
                    }
                }
                work.add_up(tile, a, list, tile.start + done, len, false);
            }
        }
        Ok(())
    }

    /// Adds what the peers' offers give.
    fn take(&mut self, tile: Tile<'_>, bits: &BlockBits, list: &mut SharedList) -> Result<()> {
        let (work, layout) = (&mut self.work, tile.layout);
        let (lane, each, l) = (lowest(tile.value_bits()), tile.value_bytes(), layout.kind.x.bits());
        for done in (0..tile.len).step_by(PIECE) {
            let len = PIECE.min(tile.len - done);
            for a in 0..layout.coordinates() {
                for k in 0..l {
                    let at = bits.place(a * l + k, done);
                    let x = bits.values_at(at, len);
                    masks(&mut work.masks[..len], |i| u64::from(x[i]));
                    for rows in [&mut work.of_bits, &mut work.of_macs, &mut work.of_values] {
                        rows[k][..len].fill(0);
                    }
                    for (number, side) in self.peers.iter_mut().enumerate() {
                        let pads = &mut work.zeros[..len];
                        bits.write_tags(number, at, pads)?;
                        let of_bit = work.of_bits[k][..len].iter_mut();
                        of_bit.zip(&*pads).for_each(|(mac, tag)| *mac ^= upper_word(*tag));
                        side.inward.hash(self.next + at as u64, pads);

                        let (macs, values) = side.incoming.split_at(bits.len() * MAC_BYTES);
                        let macs = macs[at * MAC_BYTES..][..len * MAC_BYTES].as_chunks().0;
                        let masks = &work.masks[..len];
                        let taken = work.of_macs[k][..len].iter_mut().zip(&*pads);
                        for ((taken, pad), (offered, mine)) in taken.zip(macs.iter().zip(masks)) {
                            *taken ^= *pad as u64 ^ (u64::from_le_bytes(*offered) & mine);
                        }
                        let values = values[at * each..][..len * each].chunks_exact(each);
                        let taken = work.of_values[k][..len].iter_mut().zip(&*pads);
                        for ((taken, pad), (offered, mine)) in taken.zip(values.zip(masks)) {
                            let mut word = [0; MAC_BYTES];
                            word[..each].copy_from_slice(offered);
                            *taken ^= (upper_word(*pad) ^ (u64::from_le_bytes(word) & mine)) & lane;
                        }
                    }
                }
                work.add_up(tile, a, list, tile.start + done, len, true);
            }
        }
        Ok(())
    }
}

impl Tile<'_> {
    /// Bits of all y of an element.
    fn value_bits(&self) -> usize {
        self.layout.rows() * self.layout.kind.y.bits()
    }

    fn value_bytes(&self) -> usize {
        value_bytes(self.value_bits())
    }
}

impl Work {
    fn new() -> Self {
        let words = || Wiped::<u64>::zeros(PIECE);
        Work {
            zeros: Wiped::zeros(PIECE),
            ones: Wiped::zeros(PIECE),
            masks: words(),
            values: words(),
            macs: words(),
            coordinates: Wiped::zeros(PIECE),
            of_bits: Vec::new(),
            of_values: Vec::new(),
            of_macs: Vec::new(),
            unpacked: Vec::new(),
            sums: words(),
            byte_sums: Wiped::zeros(PIECE),
        }
    }

    /// For x of so many bits.
    fn make_room(&mut self, bits: usize) {
        for rows in [&mut self.of_bits, &mut self.of_values, &mut self.of_macs] {
            rows.resize_with(bits.max(rows.len()), || Wiped::zeros(PIECE));
        }
        self.unpacked.resize_with(bits.max(self.unpacked.len()), || Wiped::zeros(PIECE));
    }

    /// The coordinates of all y of some elements, side by side.
    fn pack_values(&mut self, tile: Tile<'_>, list: &SharedList, at: usize, len: usize) {
        let (layout, field) = (tile.layout, tile.layout.kind.y);
        self.values[..len].fill(0);
        for row in 0..layout.rows() {
            let y = list.y.part(row * layout.columns() + at, len).values;
            field.coordinates(&mut self.coordinates[..len], y);
            let shift = row * field.bits();
            let values = self.values[..len].iter_mut().zip(&self.coordinates[..len]);
            values.for_each(|(value, y)| *value |= u64::from(*y) << shift);
        }
    }

    /// The MACs of the words of all y, as a coordinate of x multiplies them.
    fn pack_macs(&mut self, tile: Tile<'_>, a: usize, list: &SharedList, at: usize, len: usize) {
        let layout = tile.layout;
        let term =
            |row: usize| (list.y.part(row * layout.columns() + at, len).macs, layout.packing(tile.b, row, a));
        let terms: Vec<_> = (0..layout.rows()).map(term).collect();
        Gf2_64::combine(&mut self.macs[..len], &terms, 0);
    }

    /// This party's own share of y times its bit of x.
    fn begin(&mut self, k: usize, len: usize, alpha: u64) {
        let masks = &self.masks[..len];
        self.of_bits[k][..len].iter_mut().zip(masks).for_each(|(mac, mine)| *mac = alpha & mine);
        for (rows, y) in [(&mut self.of_macs, &self.macs), (&mut self.of_values, &self.values)] {
            let kept = rows[k][..len].iter_mut().zip(&y[..len]).zip(masks);
            kept.for_each(|((kept, y), mine)| *kept = y & mine);
        }
    }

    /// Sets, or adds to, the elements of a coordinate what the rows of its bits give.
    fn add_up(&mut self, tile: Tile<'_>, a: usize, list: &mut SharedList, at: usize, len: usize, add: bool) {
        let (layout, kind) = (tile.layout, tile.layout.kind);
        let l = kind.x.bits();
        let sums = &mut self.sums[..len];
        let mut put = |to: &mut [u64], rows: &[Wiped<u64>], factors: &[u64]| {
            let terms: Vec<_> =
                rows.iter().zip(factors).map(|(row, factor)| (&row[..len], *factor)).collect();
            Gf2_64::combine(sums, &terms, 0);
            let to = to[at..][..len].iter_mut().zip(&*sums);
            to.for_each(|(to, sum)| *to = if add { *to ^ sum } else { *sum });
        };
        put(&mut list.x[a].macs, &self.of_bits[..l], kind.x.words());
        if tile.squares {
            put(&mut list.x[a].square_macs, &self.of_bits[..l], kind.x.square_words());
        }
        put(&mut list.macs[a], &self.of_macs[..l], kind.x.words());
        let lane = u8::MAX >> (8 - kind.y.bits());
        for row in 0..layout.rows() {
            let shift = row * kind.y.bits();
            for (bytes, words) in self.unpacked.iter_mut().zip(&self.of_values).take(l) {
                let bytes = bytes[..len].iter_mut().zip(&words[..len]);
                bytes.for_each(|(byte, word)| *byte = (word >> shift) as u8 & lane);
            }
            let terms = self.unpacked[..l].iter().zip(&kind.maps);
            let terms: Vec<_> = terms.map(|(bytes, map)| Term { src: &bytes[..len], map }).collect();
            let sums = &mut self.byte_sums[..len];
            affine::combine(sums, &terms, 0);
            let to = list.z[a][row * layout.columns() + at..][..len].iter_mut().zip(&*sums);
            to.for_each(|(to, sum)| *to = if add { *to ^ sum } else { *sum });
        }
    }
}

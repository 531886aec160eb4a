//! Leaky products: shares of z = x y with a MAC, for x in GF(2^l), given as l wide authenticated bits, and
//! for y in GF(2^p) with a MAC. A cheater may learn some bits of a few x, and nothing of y.
//! docs/protocols/tower-material.md has the whole argument.
//!
//! Let alpha_i be the key of party i, Delta_i its whole Delta, and M_i\[b\] = K_j\[b\] + b Delta_j for each
//! bit b of i. Elements are shared as in [`crate::spdz`]: y = y_A + y_B, and m_A + m_B = y (alpha_A +
//! alpha_B). Let b_1 .. b_l be a basis of GF(2^l).
//!
//! 1. For each bit x\[k\], party i offers its whole share of y, value and MAC, together Y_i: G_i =
//!    H(K_i\[x_j\[k\]\]) + H(K_i\[x_j\[k\]\] + Delta_i) + Y_i, cut to 64 + p bits. It keeps
//!    H(K_i\[x_j\[k\]\]).
//! 2. The peer j, which can compute one of the two hashes, has H(M_j\[x_j\[k\]\]) + x_j\[k\] G_i =
//!    H(K_i\[x_j\[k\]\]) + x_j\[k\] Y_i.
//! 3. Both do so at once, and each adds x_i\[k\] Y_i. The sum over both parties is x\[k\] (Y_A + Y_B), and
//!    the sum over all k times b_k is x y with its MAC.
//!
//! Among more than two parties, every two do steps 1 and 2, and every party adds x_i\[k\] Y_i once. In what
//! follows A then are all cheaters, B all honest parties, and x_B the bits of all of them.
//!
//! The value has only p bits in its lane, coordinates in a basis of GF(2^p). So shares of z lie in the
//! subfield, and opening a value takes p bits.
//!
//! **What a cheater A can do.** All that B uses of A are the offers; the transfers under them are checked
//! before an offer leaves, because a receiver with inconsistent choices could compute Delta_B from B's pads.
//! Let A send G_A + e for some offers. Then z is wrong by a value E'(x_B), and its MAC by E''(x_B), both
//! GF(2)-linear in B's bits. `coset_check.rs` finds every product whose error is not zero. So a cheater
//! passes only if x_B lies in the kernel of both, a subspace of some codimension c that A chose: it has
//! guessed c bits, and passes with probability 2^-c. If it passes, the product is right, and A knows c linear
//! functions of x_B. `rotation.rs` turns these into products about which A knows nothing.
//!
//! **H** is [`AesHash`], tweakable circular correlation-robust. Circular: what is added to the pad that the
//! peer lacks contains y alpha_i, and alpha_i is a part of Delta_i. The usual definition adds Delta or
//! nothing; here it is a linear map of Delta, which depends on y but not on Delta. In the ideal-cipher
//! argument the pad is fresh, with any value added to it, unless somebody asked for a block at distance
//! Delta_i (docs/protocols/tower-material.md). Each direction between two parties has a key of its own in
//! each stream, and the tweak is the number of the offer, counted over the life of the stream, so no tweak
//! comes twice under a key.
//!
//! Constant time in all shares. Cost of a product for each peer: l (64 + p) bits to it; 6 l AES calls. One
//! round.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_hash::AesHash;
use polyclave_kernels::affine::{self, Map, Term};
use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::masks;
use zeroize::Zeroizing;

use super::Key;
use super::abit::{BlockBits, PIECE};
use super::subfield::Subfield;
use crate::interface::net::Net;
use crate::{Party, Result};

const MAC_BYTES: usize = size_of::<u64>();

/// The fields of both factors.
pub(super) struct Kind {
    pub(super) x: &'static Subfield,
    pub(super) y: &'static Subfield,
    /// From the coordinates of y to y b_k, for each k.
    pub(super) maps: Vec<Map>,
}

impl Kind {
    /// Products of x in one field by y in another, which contains it.
    pub(super) fn new(x: &'static Subfield, y: &'static Subfield) -> Self {
        Kind { x, y, maps: x.basis().iter().map(|constant| y.times(*constant)).collect() }
    }
}

/// Shares of elements: their values as cells, and their MACs.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    pub(super) values: &'a [u8],
    pub(super) macs: &'a [u64],
}

impl<'a> Elements<'a> {
    /// The elements from `start` on.
    pub(super) fn part(self, start: usize, len: usize) -> Elements<'a> {
        Elements { values: &self.values[start..][..len], macs: &self.macs[start..][..len] }
    }
}

/// Where products go.
pub(super) struct ElementsMut<'a> {
    pub(super) values: &'a mut [u8],
    pub(super) macs: &'a mut [u64],
}

/// What is kept of the bits of x beside their values. Their blocks are made once, for this and for the
/// hashes.
pub(super) enum Kept<'a> {
    /// Nothing.
    Nothing,
    /// MACs of x, and of its squares if these are wanted.
    Macs { macs: &'a mut [u64], square_macs: Option<&'a mut [u64]>, field: &'a Subfield },
    /// The tag and the key of the tag of every bit, for x of one bit.
    Tags { tags: &'a mut [u64], keys: &'a mut [u64] },
}

/// Where the results go.
pub(super) struct Made<'a> {
    pub(super) z: ElementsMut<'a>,
    pub(super) kept: Kept<'a>,
}

/// Offers to and from every peer, on one stream.
pub(super) struct Offers {
    delta: Zeroizing<u128>,
    /// In the order of their numbers.
    peers: Vec<Side>,
    /// The number of the next offer.
    next: u64,
    /// Kept for their memory.
    rows: PieceRows,
    mac_sums: Wiped<u64>,
    value_sums: Wiped<u8>,
}

/// Offers to and from one peer.
struct Side {
    peer: Party,
    /// For what this party offers.
    outward: AesHash,
    inward: AesHash,
    /// Messages, kept for their memory.
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

/// What is in work for a piece: a row of parts of z for each bit of x.
struct PieceRows {
    zeros: Wiped<u128>,
    ones: Wiped<u128>,
    word_masks: Wiped<u64>,
    cell_masks: Wiped<u8>,
    coordinates: Wiped<u8>,
    offered: Wiped<u8>,
    /// Parts of the MACs of the bits of x.
    bits: Wiped<u64>,
    macs: Wiped<u64>,
    values: Wiped<u8>,
}

/// What is multiplied: bits, each of them the coefficient of a basis element, and elements.
struct Job<'a> {
    bits: &'a BlockBits,
    basis: &'a [u64],
    /// The field of y, and the maps of a [`Kind`]; none if only MACs are multiplied.
    values: Option<(&'a Subfield, &'a [Map])>,
    y: Elements<'a>,
}

impl Offers {
    /// With a label that is used once.
    pub(super) fn new(label: &[u8], key: &Key, delta: Zeroizing<u128>) -> Self {
        let me = key.me();
        let side = |peer| Side {
            peer,
            outward: hash_of_direction(label, me, peer),
            inward: hash_of_direction(label, peer, me),
            outgoing: Vec::new(),
            incoming: Vec::new(),
        };
        Offers {
            delta,
            peers: me.peers(key.parties()).map(side).collect(),
            next: 0,
            rows: PieceRows::new(),
            mac_sums: Wiped::zeros(PIECE),
            value_sums: Wiped::zeros(PIECE),
        }
    }

    /// Sets z to the products of x and y. Row k of the bits has bit k of all x. Provisional until they are
    /// checked. One round.
    pub(super) fn multiply(
        &mut self,
        kind: &Kind,
        bits: &BlockBits,
        y: Elements<'_>,
        made: Made<'_>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let values = Some((kind.y, &kind.maps[..]));
        self.run(&Job { bits, basis: kind.x.words(), values, y }, made, net)
    }

    /// Sets z to shares of the products of x = sum X^k x\[k\] in the field of MACs and of the sums of all
    /// parties' y, without MACs.
    pub(super) fn multiply_words(
        &mut self,
        bits: &BlockBits,
        y: &[u64],
        z: &mut [u64],
        net: &mut dyn Net,
    ) -> Result<()> {
        let basis: [u64; Gf2_64::BITS as usize] = std::array::from_fn(|k| 1 << k);
        let job = Job { bits, basis: &basis, values: None, y: Elements { values: &[], macs: y } };
        self.run(&job, Made { z: ElementsMut { values: &mut [], macs: z }, kept: Kept::Nothing }, net)
    }

    fn run(&mut self, job: &Job<'_>, mut made: Made<'_>, net: &mut dyn Net) -> Result<()> {
        let len = job.message_bytes();
        for side in &mut self.peers {
            side.outgoing.resize(len, 0);
            side.incoming.resize(len, 0);
        }
        self.rows.make_room(job.basis.len());
        self.offer(job, &mut made)?;
        let mut out: Vec<&[u8]> = vec![&[]; net.parties()];
        let mut into: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
        for Side { peer, outgoing, incoming, .. } in &mut self.peers {
            (out[peer.index()], into[peer.index()]) = (outgoing, incoming);
        }
        net.exchange(&out, &mut into)?;
        self.take(job, &mut made)?;
        self.next += job.bits.len() as u64;
        Ok(())
    }

    /// Step 1, and of step 3 what needs no message.
    fn offer(&mut self, job: &Job<'_>, made: &mut Made<'_>) -> Result<()> {
        let (delta, count) = (*self.delta, job.y.macs.len());
        let Made { z, kept } = made;
        let alpha = (delta >> 64) as u64;
        let rows = &mut self.rows;
        for start in (0..count).step_by(PIECE) {
            let len = PIECE.min(count - start);
            let y_macs = &job.y.macs[start..][..len];
            if let Some((field, _)) = job.values {
                field.coordinates(&mut rows.coordinates[..len], &job.y.values[start..][..len]);
            }
            for k in 0..job.basis.len() {
                let at = job.bits.place(k, start);
                let x = job.bits.values_at(at, len);
                let mine = &mut rows.word_masks[..len];
                masks(mine, |i| u64::from(x[i]));
                masks(&mut rows.cell_masks[..len], |i| x[i]);
                for (number, side) in self.peers.iter_mut().enumerate() {
                    // What is this party's own is added once.
                    let is_first = number == 0;
                    let (zeros, ones) = (&mut rows.zeros[..len], &mut rows.ones[..len]);
                    job.bits.write_keys(number, at, zeros)?;
                    let mine = &rows.word_masks[..len];
                    match kept {
                        Kept::Nothing => {}
                        Kept::Macs { .. } => {
                            let row = rows.bits[k * PIECE..][..len].iter_mut().zip(zeros.iter().zip(mine));
                            row.for_each(|(mac, (key, mine))| {
                                let before = if is_first { alpha & mine } else { *mac };
                                *mac = before ^ upper_word(*key);
                            });
                        }
                        Kept::Tags { keys, .. } => {
                            let keys = keys[start..][..len].iter_mut();
                            keys.zip(zeros.iter()).for_each(|(kept, key)| *kept = upper_word(*key));
                        }
                    }
                    ones.iter_mut().zip(&*zeros).for_each(|(one, key)| *one = key ^ delta);
                    side.outward.hash(self.next + at as u64, zeros);
                    side.outward.hash(self.next + at as u64, ones);

                    let (of_macs, of_values) = side.outgoing.split_at_mut(job.bits.len() * MAC_BYTES);
                    let offered = of_macs[at * MAC_BYTES..][..len * MAC_BYTES].as_chunks_mut().0;
                    let kept = rows.macs[k * PIECE..][..len].iter_mut().zip(offered);
                    let pads = zeros.iter().zip(ones.iter());
                    for (((kept, offered), (zero, one)), (y, mine)) in
                        kept.zip(pads).zip(y_macs.iter().zip(mine))
                    {
                        *offered = (*zero as u64 ^ *one as u64 ^ y).to_le_bytes();
                        let before = if is_first { y & *mine } else { *kept };
                        *kept = before ^ *zero as u64;
                    }
                    let Some((field, _)) = job.values else { continue };
                    let lane = lane(field);
                    let kept = rows.values[k * PIECE..][..len].iter_mut().zip(&mut rows.offered[..len]);
                    let y = rows.coordinates[..len].iter().zip(&rows.cell_masks[..len]);
                    let pads = zeros.iter().zip(ones.iter());
                    for (((kept, offered), (zero, one)), (y, mine)) in kept.zip(pads).zip(y) {
                        *offered = upper(*zero ^ *one) & lane ^ y;
                        let before = if is_first { y & *mine } else { *kept };
                        *kept = before ^ upper(*zero) & lane;
                    }
                    let row = &mut of_values[k * field.packed_bytes(count)..][field.packed_bytes(start)..];
                    field.pack(&rows.offered[..len], &mut row[..field.packed_bytes(len)]);
                }
            }
            if let Kept::Macs { macs, square_macs, field } = kept {
                Gf2_64::combine(&mut macs[start..][..len], &rows.bit_terms(field.words(), len), 0);
                if let Some(macs) = square_macs {
                    Gf2_64::combine(&mut macs[start..][..len], &rows.bit_terms(field.square_words(), len), 0);
                }
            }
            Gf2_64::combine(&mut z.macs[start..][..len], &rows.mac_terms(job, len), 0);
            if let Some((_, maps)) = job.values {
                affine::combine(&mut z.values[start..][..len], &rows.value_terms(maps, len), 0);
            }
        }
        Ok(())
    }

    /// Step 2, and the rest of step 3.
    fn take(&mut self, job: &Job<'_>, made: &mut Made<'_>) -> Result<()> {
        let count = job.y.macs.len();
        let Made { z, kept } = made;
        let rows = &mut self.rows;
        for start in (0..count).step_by(PIECE) {
            let len = PIECE.min(count - start);
            for k in 0..job.basis.len() {
                let at = job.bits.place(k, start);
                let x = job.bits.values_at(at, len);
                masks(&mut rows.word_masks[..len], |i| u64::from(x[i]));
                masks(&mut rows.cell_masks[..len], |i| x[i]);
                for (number, side) in self.peers.iter().enumerate() {
                    let is_first = number == 0;
                    let pads = &mut rows.zeros[..len];
                    job.bits.write_tags(number, at, pads)?;
                    match kept {
                        Kept::Nothing => {}
                        Kept::Macs { .. } => {
                            let row = rows.bits[k * PIECE..][..len].iter_mut().zip(&*pads);
                            row.for_each(|(mac, tag)| {
                                let before = if is_first { 0 } else { *mac };
                                *mac = before ^ upper_word(*tag);
                            });
                        }
                        Kept::Tags { tags, .. } => {
                            let tags = tags[start..][..len].iter_mut();
                            tags.zip(&*pads).for_each(|(kept, tag)| *kept = upper_word(*tag));
                        }
                    }
                    side.inward.hash(self.next + at as u64, pads);
                    let (of_macs, of_values) = side.incoming.split_at(job.bits.len() * MAC_BYTES);
                    let offered = of_macs[at * MAC_BYTES..][..len * MAC_BYTES].as_chunks().0;
                    let taken = rows.macs[k * PIECE..][..len].iter_mut().zip(pads.iter());
                    for ((taken, pad), (offered, mine)) in
                        taken.zip(offered.iter().zip(&rows.word_masks[..len]))
                    {
                        let before = if is_first { 0 } else { *taken };
                        *taken = before ^ *pad as u64 ^ (u64::from_le_bytes(*offered) & *mine);
                    }
                    let Some((field, _)) = job.values else { continue };
                    let row = &of_values[k * field.packed_bytes(count)..][field.packed_bytes(start)..];
                    field.unpack(&row[..field.packed_bytes(len)], &mut rows.offered[..len]);
                    let lane = lane(field);
                    let taken = rows.values[k * PIECE..][..len].iter_mut().zip(pads.iter());
                    for ((taken, pad), (offered, mine)) in
                        taken.zip(rows.offered[..len].iter().zip(&rows.cell_masks[..len]))
                    {
                        let before = if is_first { 0 } else { *taken };
                        *taken = before ^ upper(*pad) & lane ^ (offered & *mine);
                    }
                }
            }
            let sums = &mut self.mac_sums[..len];
            let mut add = |to: &mut [u64], terms: &[(&[u64], u64)]| {
                Gf2_64::combine(sums, terms, 0);
                to[start..][..len].iter_mut().zip(&*sums).for_each(|(to, sum)| *to ^= sum);
            };
            if let Kept::Macs { macs, square_macs, field } = kept {
                add(macs, &rows.bit_terms(field.words(), len));
                if let Some(macs) = square_macs {
                    add(macs, &rows.bit_terms(field.square_words(), len));
                }
            }
            add(z.macs, &rows.mac_terms(job, len));
            if let Some((_, maps)) = job.values {
                let sums = &mut self.value_sums[..len];
                affine::combine(sums, &rows.value_terms(maps, len), 0);
                z.values[start..][..len].iter_mut().zip(sums).for_each(|(z, sum)| *z ^= *sum);
            }
        }
        Ok(())
    }
}

impl Job<'_> {
    /// Bytes of the offers: all lanes of MACs, then the lanes of values, bit by bit of x.
    fn message_bytes(&self) -> usize {
        let lanes = self.values.map_or(0, |(field, _)| field.packed_bytes(self.y.macs.len()));
        self.bits.len() * MAC_BYTES + self.basis.len() * lanes
    }
}

impl PieceRows {
    fn new() -> Self {
        PieceRows {
            zeros: Wiped::zeros(PIECE),
            ones: Wiped::zeros(PIECE),
            word_masks: Wiped::zeros(PIECE),
            cell_masks: Wiped::zeros(PIECE),
            coordinates: Wiped::zeros(PIECE),
            offered: Wiped::zeros(PIECE),
            bits: Wiped::default(),
            macs: Wiped::default(),
            values: Wiped::default(),
        }
    }

    /// For x of `bits` bits.
    fn make_room(&mut self, bits: usize) {
        if self.macs.len() < bits * PIECE {
            self.bits = Wiped::zeros(bits * PIECE);
            self.macs = Wiped::zeros(bits * PIECE);
            self.values = Wiped::zeros(bits * PIECE);
        }
    }

    /// The rows of MACs of bits, each with its factor.
    fn bit_terms<'a>(&'a self, factors: &[u64], len: usize) -> Vec<(&'a [u64], u64)> {
        self.bits.chunks_exact(PIECE).zip(factors).map(|(row, factor)| (&row[..len], *factor)).collect()
    }

    /// The rows of MACs, each with its power of the basis.
    fn mac_terms<'a>(&'a self, job: &Job<'_>, len: usize) -> Vec<(&'a [u64], u64)> {
        self.macs.chunks_exact(PIECE).zip(job.basis).map(|(row, power)| (&row[..len], *power)).collect()
    }

    /// The rows of values, each with the map of its bit.
    fn value_terms<'a>(&'a self, maps: &'a [Map], len: usize) -> Vec<Term<'a>> {
        self.values.chunks_exact(PIECE).zip(maps).map(|(row, map)| Term { src: &row[..len], map }).collect()
    }
}

/// The bits of a byte in which coordinates lie.
fn lane(field: &Subfield) -> u8 {
    u8::MAX >> (8 - field.bits())
}

/// What of a pad masks a value: the byte above the MAC.
fn upper(pad: u128) -> u8 {
    (pad >> 64) as u8
}

/// What of a block is kept.
pub(super) fn upper_word(block: u128) -> u64 {
    (block >> 64) as u64
}

/// The hash of what a party offers to another under a label that is used once.
pub(super) fn hash_of_direction(label: &[u8], from: Party, to: Party) -> AesHash {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 TinyOT hash of one direction");
    let mut key = [0; 16];
    hasher.update(&[from.0, to.0]).update(label).finalize_xof().fill(&mut key);
    AesHash::new(&key)
}

//! The shares of one layer on their way: from tables to a message, and from both messages to masked outputs.

use polyclave_cipher::{Lookup, Slot};
use polyclave_kernels::memory::{prefetch, wipe};
use polyclave_kernels::secret::mark_public;

use super::batch::{Batch, Place};
use super::macs::{Macs, tag_bytes};
use super::registers::{Packing, Registers};
use super::wire;
use crate::Result;
use crate::interface::net::Net;
use crate::tinyot::peer_of;

/// How many records are being fetched from memory while one is read.
pub(super) const AHEAD: usize = 32;

/// Memory of a layer's messages, used again by the next.
#[derive(Default)]
pub(super) struct Scratch {
    /// Where the record of each lookup of each lane begins.
    pub(super) records: Vec<usize>,
    /// This party's shares, a cell each or planes, and the peer's.
    pub(super) mine: Vec<u8>,
    pub(super) theirs: Vec<u8>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    pub(super) shown: Vec<u128>,
    pub(super) expected: Vec<u128>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        wipe(&mut self.mine);
        wipe(&mut self.shown);
        wipe(&mut self.expected);
    }
}

/// What the peer opened.
pub struct Theirs<'a>(
    /// The rows.
    pub &'a [u8],
    /// How they hold their lanes.
    pub Packing,
);

impl Theirs<'_> {
    /// In the row that begins there.
    #[inline(always)]
    pub fn of(&self, row: usize, lane: usize) -> u8 {
        match self.1 {
            Packing::Cells => self.0[row + lane],
            Packing::Planes => self.0[row + lane / 8] >> (lane % 8) & 1,
        }
    }
}

impl Scratch {
    /// Finds the entries and reads this party's shares of them.
    pub(super) fn read_own(
        &mut self,
        lookups: &[Lookup],
        places: &[Place],
        registers: &Registers,
        batch: &Batch,
        macs: Macs,
    ) {
        self.records.clear();
        self.mine.clear();
        let mut uniform = [0; 16];
        for (lookup, place) in lookups.iter().zip(places) {
            let e = match lookup.xs[0] {
                Slot::Lanes(at) => registers.row(at),
                Slot::Uniform(at) if registers.packing == Packing::Planes => {
                    let cell = registers.uniform[at as usize];
                    (uniform[0], uniform[8]) = (cell & 1, cell >> 1 & 1);
                    &uniform[..]
                }
                Slot::Uniform(at) => &registers.uniform[at as usize..=at as usize],
            };
            match registers.packing {
                Packing::Cells => {
                    let (table, record) = (place.record.table_bytes(), place.record.bytes);
                    let begin =
                        |(lane, e): (usize, &u8)| place.records + lane * table + usize::from(*e) * record;
                    self.records.extend(e.iter().enumerate().map(begin));
                }
                Packing::Planes => self.read_planes(e, place, batch),
            }
        }
        if registers.packing == Packing::Cells {
            self.read_cells(places, batch, macs);
        }
    }

    /// Shares of cells, and with linear verification tags and keys, in one pass over what is fetched.
    fn read_cells(&mut self, places: &[Place], batch: &Batch, macs: Macs) {
        let records = &batch.made.records;
        // With its tags a record may lie across two lines.
        let size = places.iter().map(|place| place.record.bytes).max().unwrap_or(1);
        let last = if macs == Macs::Linear64 { size - 1 } else { 0 };
        let fetch = |at: usize| {
            prefetch(records, at);
            if last > 0 {
                prefetch(records, at + last);
            }
        };
        self.records.iter().take(AHEAD).for_each(|at| fetch(*at));
        let ahead = |i: usize| self.records.get(i + AHEAD).into_iter().for_each(|at| fetch(*at));
        let count = self.records.len();
        self.mine.resize(count, 0);
        if macs != Macs::Linear64 {
            for (i, (at, mine)) in self.records.iter().zip(&mut self.mine).enumerate() {
                ahead(i);
                *mine = records[*at];
            }
            return;
        }
        self.shown.resize(count, 0);
        self.expected.resize(count, 0);
        let mut i = 0;
        for place in places {
            let tag = tag_bytes(place.record.out_bits);
            for _ in 0..place.width {
                ahead(i);
                let record = &records[self.records[i]..][..1 + 2 * tag];
                self.mine[i] = record[0];
                self.shown[i] = read_tag(&record[1..1 + tag]);
                self.expected[i] = read_tag(&record[1 + tag..]);
                i += 1;
            }
        }
    }

    /// Tags and keys of gates, whose records follow one another.
    pub(super) fn read_tags(&mut self, places: &[Place], batch: &Batch) {
        self.shown.clear();
        self.expected.clear();
        let mut records = self.records.iter();
        for place in places {
            let tag = tag_bytes(place.record.out_bits);
            for at in records.by_ref().take(place.width) {
                let record = &batch.made.records[*at..][..2 * tag];
                self.shown.push(read_tag(&record[..tag]));
                self.expected.push(read_tag(&record[tag..]));
            }
        }
    }

    /// Entries of a gate: bit by bit, the one of four planes that both masked inputs choose.
    fn read_planes(&mut self, e: &[u8], place: &Place, batch: &Batch) {
        let plane = Packing::plane_bytes(place.width);
        let (u, v) = e.split_at(e.len() / 2);
        let planes = &batch.made.planes[place.planes..][..4 * plane];
        let (low, high) = planes.split_at(2 * plane);
        let ((t00, t10), (t01, t11)) = (low.split_at(plane), high.split_at(plane));
        let word =
            |bytes: &[u8], i: usize| u64::from_le_bytes(*bytes[8 * i..].first_chunk().unwrap_or(&[0; 8]));
        let begin = self.mine.len();
        self.mine.resize(begin + plane, 0);
        for (i, to) in self.mine[begin..].as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let (u, v) = (word(u, i), word(v, i));
            let low = word(t00, i) ^ (u & (word(t00, i) ^ word(t10, i)));
            let high = word(t01, i) ^ (u & (word(t01, i) ^ word(t11, i)));
            *to = (low ^ (v & (low ^ high))).to_le_bytes();
        }
        let (table, record) = (place.record.table_bytes(), place.record.bytes);
        if record > 0 {
            let mut first = place.records;
            for (lanes, (u, v)) in u.iter().zip(v).enumerate().take(place.width.div_ceil(8)) {
                let (mut u, mut v) = (usize::from(*u), usize::from(*v) << 1);
                for _ in 8 * lanes..place.width.min(8 * lanes + 8) {
                    self.records.push(first + (u & 1 | v & 2) * record);
                    (first, u, v) = (first + table, u >> 1, v >> 1);
                }
            }
        }
    }

    /// As few bytes as hold the shares.
    pub(super) fn pack(&mut self, places: &[Place], packing: Packing) {
        self.outgoing.clear();
        let mut row = 0;
        for place in places {
            let mine = &self.mine[row..][..place.row_bytes(packing)];
            match packing {
                Packing::Planes => wire::write_plane(mine, place.width, &mut self.outgoing),
                Packing::Cells => wire::write_cells(mine, place.record.out_bits, &mut self.outgoing),
            }
            row += mine.len();
        }
    }

    pub(super) fn exchange(&mut self, net: &mut dyn Net) -> Result<()> {
        let peer = peer_of(net)?;
        self.incoming.resize(self.outgoing.len(), 0);
        let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = (vec![&[]; 2], vec![&mut [], &mut []]);
        out[peer.index()] = &self.outgoing;
        into[peer.index()] = &mut self.incoming;
        // The shares that are sent, as they lie here.
        mark_public(&self.mine);
        net.exchange(&out, &mut into)
    }

    /// What came.
    pub(super) fn unpack(&mut self, places: &[Place], packing: Packing) {
        self.theirs.clear();
        let mut at = 0;
        for place in places {
            let begin = self.theirs.len();
            self.theirs.resize(begin + place.row_bytes(packing), 0);
            let row = &mut self.theirs[begin..];
            let bytes = match packing {
                Packing::Planes => place.width.div_ceil(8),
                Packing::Cells => wire::cells_bytes(place.width, place.record.out_bits),
            };
            let came = &self.incoming[at..at + bytes];
            match packing {
                Packing::Planes => row[..bytes].copy_from_slice(came),
                Packing::Cells => wire::read_cells(came, place.record.out_bits, row),
            }
            at += bytes;
        }
    }

    /// Masked outputs: the sums of both parties' shares.
    pub(super) fn write_sums(&self, lookups: &[Lookup], places: &[Place], registers: &mut Registers) {
        let mut row = 0;
        for (lookup, place) in lookups.iter().zip(places) {
            let bytes = place.row_bytes(registers.packing);
            let shares = || self.mine[row..][..bytes].iter().zip(&self.theirs[row..]);
            for (matrix, slot) in &lookup.views {
                match (*slot, registers.packing) {
                    (Slot::Uniform(at), packing) => {
                        let cell = shares().next().map_or(0, |(x, y)| x ^ y);
                        let cell = if packing == Packing::Planes { cell & 1 } else { cell };
                        registers.uniform[at as usize] = matrix.apply(cell);
                    }
                    (Slot::Lanes(at), Packing::Cells) if !matrix.is_identity() => {
                        registers
                            .row_mut(at)
                            .iter_mut()
                            .zip(shares())
                            .for_each(|(e, (x, y))| *e = matrix.apply(x ^ y));
                    }
                    (Slot::Lanes(at), _) => {
                        registers.row_mut(at).iter_mut().zip(shares()).for_each(|(e, (x, y))| *e = x ^ y);
                    }
                }
            }
            row += bytes;
        }
    }
}

#[inline(always)]
fn read_tag(bytes: &[u8]) -> u128 {
    let low = bytes.first_chunk().map_or(0, |low| u64::from_le_bytes(*low));
    match bytes.get(8) {
        Some(high) => u128::from(low) | u128::from(*high) << 64,
        None => u128::from(low),
    }
}

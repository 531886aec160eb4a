//! The tables of Boolean gates (figure 8, AND). With the masks u and v of a gate's inputs and o of its
//! output, the entry at (i, j) is T(i + u, j + v) + o. As a polynomial T(x, y) = c_0 + c_1 x + c_2 y + c_3 x
//! y, so the entry takes one product, u v, and is
//!
//! (c_1 + c_3 j) u + (c_2 + c_3 i) v + c_3 u v + o + T(i, j).
//!
//! Gates wait until there are enough of them for one round. All of them lie in rows, one behind another, and
//! their records are written in one pass.

use polyclave_cipher::Table;
use polyclave_kernels::memory::Wiped;

use super::products::Products;
use super::records::Records;
use super::{ENOUGH_PRODUCTS, Job};
use crate::Result;
use crate::tinyot::{BitSlices, Bits, Key};
use crate::tinytable::Packing;
use crate::tinytable::batch::{Place, Plan};
use crate::tinytable::registers::pack;

/// Entries of a gate.
const ENTRIES: usize = 4;
/// Lanes that are worked on at once, a multiple of 8.
const PIECE: usize = 512;

/// Gates that wait for their records.
pub(super) struct Gates {
    room: usize,
    /// Positions of their lookups.
    lookups: Vec<usize>,
    /// The masks u and v of all lanes of all gates, and o.
    inputs: [Bits; 2],
    outputs: Bits,
    /// This party's shares of some entries.
    shares: Wiped<u8>,
}

impl Gates {
    /// With room for gates of a plan.
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let all: usize = plan.places.iter().filter(|place| place.record.is_gate()).map(|p| p.width).sum();
        let room = all.min(ENOUGH_PRODUCTS.max(plan.lanes));
        Gates {
            room,
            lookups: Vec::new(),
            inputs: [Bits::with_room(room), Bits::with_room(room)],
            outputs: Bits::with_room(room),
            shares: Wiped::zeros(ENTRIES * PIECE),
        }
    }

    /// Whether there is no room for `lanes` more lanes.
    pub(super) fn are_full_with(&self, lanes: usize) -> bool {
        self.outputs.len() + lanes > self.room
    }

    /// Adds a gate, for which there is room: the position of its lookup, and its masks.
    pub(super) fn add(&mut self, lookup: usize, inputs: [BitSlices<'_>; 2], output: BitSlices<'_>) {
        self.lookups.push(lookup);
        self.inputs.iter_mut().zip(inputs).for_each(|(row, input)| row.append(input));
        self.outputs.append(output);
    }

    /// Writes the records of all gates that wait. One round, none if there are no gates.
    pub(super) fn write(
        &mut self,
        products: &mut Products,
        records: &mut Records,
        job: &mut Job<'_, '_>,
    ) -> Result<()> {
        if self.lookups.is_empty() {
            return Ok(());
        }
        let [u, v] = &self.inputs;
        let uv = products.multiply(u, v, job.counts, job.net)?;
        let rows = [u, v, &uv, &self.outputs];
        let mut begin = 0;
        for lookup in self.lookups.drain(..) {
            let place = job.plan.places[lookup];
            let table = &job.plan.compiled.tables()[place.table];
            let entries: [Entry; ENTRIES] = std::array::from_fn(|at| Entry::new(table, at, products.key()));
            for first in (0..place.width).step_by(PIECE) {
                let lanes = PIECE.min(place.width - first);
                let masks = rows.map(|row| row.slices(begin + first..begin + first + lanes));
                write_piece(&entries, &masks, &place, first, &mut self.shares, records, job);
            }
            begin += place.width;
        }
        self.inputs.iter_mut().chain([&mut self.outputs]).for_each(Bits::remove_all);
        Ok(())
    }
}

/// How an entry follows from u, v, u v and o: all ones for what is added, and the constant for this party's
/// share and for its key of the peer's tag. All of it is public except the last.
struct Entry {
    terms: [u64; 3],
    share: u8,
    key: u64,
}

impl Entry {
    fn new(table: &Table, at: usize, key: &Key) -> Entry {
        let t = |at: usize| table.entries()[at] & 1;
        let (i, j) = (at as u8 & 1, at as u8 >> 1);
        let both = t(0) ^ t(1) ^ t(2) ^ t(3);
        let terms = [t(0) ^ t(1) ^ both & j, t(0) ^ t(2) ^ both & i, both];
        // What is public belongs to the first party's share, so the second one's key changes.
        let (share, key) = match key.is_first() {
            true => (t(at), 0),
            false => (0, key.reveal_own_share() & u64::from(t(at)).wrapping_neg()),
        };
        Entry { terms: terms.map(|term| u64::from(term).wrapping_neg()), share, key }
    }

    fn sum(&self, [u, v, uv, o]: [u64; 4]) -> u64 {
        u & self.terms[0] ^ v & self.terms[1] ^ uv & self.terms[2] ^ o
    }
}

/// Some lanes of a gate, from `first` on.
fn write_piece(
    entries: &[Entry; ENTRIES],
    masks: &[BitSlices<'_>; 4],
    place: &Place,
    first: usize,
    shares: &mut [u8],
    records: &mut Records,
    job: &mut Job<'_, '_>,
) {
    let lanes = masks[0].values.len();
    let plane = Packing::plane_bytes(place.width);
    for (at, entry) in entries.iter().enumerate() {
        let shares = &mut shares[..lanes];
        for (lane, share) in shares.iter_mut().enumerate() {
            let sum = entry.sum(masks.map(|mask| u64::from(mask.values[lane])));
            *share = sum as u8 ^ entry.share;
        }
        let plane = &mut job.planes[place.planes + at * plane..][..plane];
        pack(shares, &mut plane[first / 8..]);
    }
    let size = place.record.bytes;
    if size == 0 {
        return;
    }
    let all = &mut job.records[place.records + first * ENTRIES * size..][..lanes * ENTRIES * size];
    for (lane, of_lane) in all.chunks_exact_mut(ENTRIES * size).enumerate() {
        let tags = masks.map(|mask| mask.tags[lane]);
        let keys = masks.map(|mask| mask.keys[lane]);
        for (entry, record) in entries.iter().zip(of_lane.chunks_exact_mut(size)) {
            let (tag, key) = (entry.sum(tags), entry.sum(keys) ^ entry.key);
            records.write_macs(u128::from(tag), u128::from(key), 1, record);
        }
    }
}

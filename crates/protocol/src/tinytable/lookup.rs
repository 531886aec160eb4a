//! Lookups in scrambled tables (Damgard et al. 2016, figure 7, step 3; section 2.3): each party sends the
//! entry of its table at the masked input, and the sum of both entries is the masked output. A layer takes
//! one round; a lookup takes the bits of one entry.
//!
//! The place in a table is public: both parties know it. The entry that is read there is a uniform share
//! until the peer's share has arrived.

use polyclave_cipher::{Compiled, Lookup};
use polyclave_kernels::memory::prefetch;
use zeroize::Zeroizing;

use super::TinyTable;
use super::batch::{Batch, Place};
use super::macs::{Macs, product};
use super::registers::{Packing, Registers};
use super::scratch::{AHEAD, Scratch, Theirs};
use super::shared::Worth;
use crate::Result;
use crate::interface::net::Net;

impl<R: Worth> TinyTable<R> {
    pub(super) fn look_up(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers,
        batch: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.key.refuse_retired()?;
        batch.refuse_other(&self.stream, compiled, registers.lanes())?;
        // Spent first: no table is read twice, also if this layer fails.
        let spent = batch.take(lookups.len())?;
        if let Some(commitments) = &mut self.commitments {
            commitments.begin(batch)?;
        }
        let batch = &*batch;
        let places = &batch.places[spent.clone()];
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.read_own(lookups, places, registers, batch, self.macs);
        scratch.pack(places, registers.packing);
        scratch.exchange(net)?;
        self.tally.of(self.phase).rounds += 1;
        self.tally.of(self.phase).openings += places.iter().map(|place| place.width as u64).sum::<u64>();
        scratch.unpack(places, registers.packing);
        match self.macs {
            Macs::None | Macs::Minimac => {}
            Macs::Lookup32 => self.add_strings::<4>(&scratch, places, batch, registers.packing),
            Macs::Lookup64 => self.add_strings::<8>(&scratch, places, batch, registers.packing),
            Macs::Linear64 => self.add_tags(&mut scratch, places, batch, registers.packing),
        }
        if let Some(commitments) = &mut self.commitments {
            commitments.note(lookups, spent, registers, batch, &scratch.theirs)?;
        }
        scratch.write_sums(lookups, places, registers);
        self.scratch = scratch;
        Ok(())
    }

    /// Strings that prove what this party opened, and those expected for what the peer opened (figure 5, step
    /// 4).
    fn add_strings<const SIZE: usize>(
        &mut self,
        scratch: &Scratch,
        places: &[Place],
        batch: &Batch,
        packing: Packing,
    ) {
        let records = &batch.made.records;
        let theirs = Theirs(&scratch.theirs, packing);
        let (mut shown, mut expected) = (0, 0);
        let mut rest = scratch.records.as_slice();
        let mut row = 0;
        for place in places {
            let (here, after) = rest.split_at(place.width);
            rest = after;
            let (skip, size) = (place.record.share_bytes, place.record.bytes);
            // The peer's share is known to both: its string's place is public.
            let string = |lane: usize| SIZE * (1 + usize::from(theirs.of(row, lane)));
            for (lane, at) in here.iter().enumerate() {
                if packing == Packing::Cells
                    && let Some(ahead) = here.get(lane + AHEAD)
                {
                    prefetch(records, ahead + skip + string(lane + AHEAD));
                }
                let strings = &records[at + skip..at + size];
                shown ^= word::<SIZE>(strings);
                expected ^= word::<SIZE>(&strings[string(lane)..]);
            }
            row += place.row_bytes(packing);
        }
        self.strings.add(shown, expected);
    }

    /// Tags of what this party opened, and those expected of the peer's (section 3.3).
    fn add_tags(&mut self, scratch: &mut Scratch, places: &[Place], batch: &Batch, packing: Packing) {
        if packing == Packing::Planes {
            scratch.read_tags(places, batch);
        }
        let theirs = Theirs(&scratch.theirs, packing);
        let (mut at, mut row) = (0, 0);
        for place in places {
            for (lane, expected) in scratch.expected[at..at + place.width].iter_mut().enumerate() {
                // The peer's share is known to both: its product may be looked up.
                *expected ^= self.products[usize::from(theirs.of(row, lane))];
            }
            at += place.width;
            row += place.row_bytes(packing);
        }
        for (shown, expected) in scratch.shown.chunks_mut(BLOCK).zip(scratch.expected.chunks_mut(BLOCK)) {
            self.openings.add(shown, expected);
        }
    }
}

/// Tags that are hashed while they are near.
const BLOCK: usize = 256;

/// The products of a key with every cell.
pub(super) fn products(alpha: u64) -> Box<Zeroizing<[u128; 256]>> {
    let mut products = Box::new(Zeroizing::new([0; 256]));
    products.iter_mut().zip(0..=255).for_each(|(to, cell)| *to = product(alpha, cell));
    products
}

/// The first bytes as a number.
#[inline(always)]
fn word<const SIZE: usize>(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    if let Some(bytes) = bytes.first_chunk::<SIZE>() {
        word[..SIZE].copy_from_slice(bytes);
    }
    u64::from_le_bytes(word)
}

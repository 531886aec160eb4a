//! Shared values outside of a bank: what goes in, what comes out, and what is kept; and what a revealed one is worth.

use polyclave_cipher::Cells;

use super::batch::Masks;
use super::macs::{Macs, product};
use crate::protocol::SharedValue;
use crate::release::{Checked, Released, Unverified};
use crate::tinyot::Key;
use crate::unchecked::Unchecked;

/// Shares of the cells of one port: a sum of two, each with a tag that the other party verifies, unless the protocol is passive.
#[derive(Clone)]
pub struct Shared {
    pub(super) bits: u8,
    pub(super) count: usize,
    pub(super) lanes: usize,
    pub(super) shares: Masks,
    pub(super) unchecked: Unchecked,
}

impl SharedValue for Shared {
    fn reveal_own_shares(&self) -> &[u8] {
        &self.shares.values
    }
}

impl Shared {
    /// Bytes of the blocks that people write.
    pub(super) fn block_bytes(&self) -> usize {
        Cells::block_bytes(self.count, self.bits) * self.lanes
    }

    /// The lanes of these numbers.
    ///
    /// # Panics
    /// If there is no such lane.
    pub(super) fn select(&self, lanes: &[usize]) -> Shared {
        fn rows<T: Copy>(all: &[T], width: usize, lanes: &[usize]) -> Vec<T> {
            // Sized at once: growing would leave copies behind.
            let mut selected = Vec::with_capacity(all.len() / width * lanes.len());
            all.chunks_exact(width).for_each(|row| selected.extend(lanes.iter().map(|lane| row[*lane])));
            selected
        }
        let shares = Masks {
            values: rows(&self.shares.values, self.lanes, lanes),
            tags: rows(&self.shares.tags, self.lanes, lanes),
            keys: rows(&self.shares.keys, self.lanes, lanes),
        };
        let unchecked = self.unchecked.clone();
        Shared { bits: self.bits, count: self.count, lanes: lanes.len(), shares, unchecked }
    }

    /// The lanes of all parts, which are values of one port and session.
    pub(super) fn join(parts: &[&Shared]) -> Shared {
        fn rows<T: Copy>(parts: &[(&[T], usize)]) -> Vec<T> {
            // Sized at once, as above.
            let mut joined = Vec::with_capacity(parts.iter().map(|(all, _)| all.len()).sum());
            for row in 0..parts.first().map_or(0, |(all, width)| all.len() / width) {
                parts.iter().for_each(|(all, width)| joined.extend_from_slice(&all[row * width..][..*width]));
            }
            joined
        }
        let first = parts[0];
        let shares = Masks {
            values: rows(&parts.iter().map(|part| (&part.shares.values[..], part.lanes)).collect::<Vec<_>>()),
            tags: rows(&parts.iter().map(|part| (&part.shares.tags[..], part.lanes)).collect::<Vec<_>>()),
            keys: rows(&parts.iter().map(|part| (&part.shares.keys[..], part.lanes)).collect::<Vec<_>>()),
        };
        let lanes = parts.iter().map(|part| part.lanes).sum();
        let unchecked = Unchecked::join(parts.iter().map(|part| &part.unchecked));
        Shared { bits: first.bits, count: first.count, lanes, shares, unchecked }
    }

    /// Whether it has the tags of a protocol that verifies so.
    pub(super) fn has_tags_of(&self, macs: Macs) -> bool {
        let tags = if macs == Macs::None { 0 } else { self.shares.values.len() };
        (self.shares.tags.len(), self.shares.keys.len()) == (tags, tags)
    }
}

impl Masks {
    /// Adds cells that both know: to the first party's share, so it is the second one's keys that change.
    pub(super) fn add_public(&mut self, cells: &[u8], key: &Key) {
        if key.is_first() {
            self.values.iter_mut().zip(cells).for_each(|(share, cell)| *share ^= cell);
        } else {
            let alpha = key.reveal_own_share();
            self.keys.iter_mut().zip(cells).for_each(|(beta, cell)| *beta ^= product(alpha, *cell));
        }
    }
}

/// What a released value is worth: [`Unverified`] without verification, [`Checked`] with.
pub trait Worth: Released + Send + Sync + Sized + 'static {
    /// Whether it is only released after a check.
    const VERIFIED: bool;

    /// Wraps a released value.
    #[doc(hidden)]
    fn of(cells: Cells) -> Self;

    /// Whether it may come of a protocol that verifies so.
    fn allows(macs: Macs) -> bool {
        Self::VERIFIED == (macs != Macs::None)
    }
}

impl Worth for Unverified<Cells> {
    const VERIFIED: bool = false;

    fn of(cells: Cells) -> Self {
        Unverified::new(cells)
    }
}

impl Worth for Checked<Cells> {
    const VERIFIED: bool = true;

    fn of(cells: Cells) -> Self {
        Checked::new(cells)
    }
}

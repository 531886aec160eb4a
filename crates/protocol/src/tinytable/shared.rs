//! Shared values outside of a bank: what goes in, what comes out, and what is kept; and what a revealed one
//! is worth.

use polyclave_cipher::Cells;

use super::batch::Masks;
use super::macs::{Macs, product};
use crate::interface::protocol::SharedValue;
use crate::interface::release::{Checked, Released, Unverified};
use crate::lanes;
use crate::tinyot::Key;
use crate::unchecked::Unchecked;

/// Shares of the cells of one port: a sum of two, each with a tag that the other party verifies, unless the
/// protocol is passive.
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
    pub(super) fn select(&self, selected: &[usize]) -> Shared {
        let Masks { values, tags, keys } = &self.shares;
        let shares = Masks {
            values: lanes::select(values, self.lanes, selected),
            tags: lanes::select(tags, self.lanes, selected),
            keys: lanes::select(keys, self.lanes, selected),
        };
        Shared { lanes: selected.len(), shares, unchecked: self.unchecked.clone(), ..*self }
    }

    /// Whether its lanes and those of another value can be lanes of one.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        (self.bits, self.count) == (other.bits, other.count)
    }

    /// The lanes of all parts, which are values of one port and session.
    pub(super) fn join(parts: &[&Shared]) -> Shared {
        fn joined<T: Copy>(parts: &[&Shared], rows: fn(&Masks) -> &[T]) -> Vec<T> {
            lanes::join(&parts.iter().map(|part| (rows(&part.shares), part.lanes)).collect::<Vec<_>>())
        }
        let shares = Masks {
            values: joined(parts, |masks| &masks.values),
            tags: joined(parts, |masks| &masks.tags),
            keys: joined(parts, |masks| &masks.keys),
        };
        let lanes = parts.iter().map(|part| part.lanes).sum();
        let unchecked = Unchecked::join(parts.iter().map(|part| &part.unchecked));
        Shared { lanes, shares, unchecked, ..*parts[0] }
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

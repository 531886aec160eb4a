//! Shared values outside of an evaluation (inputs, outputs and values that are kept), and whether a revealed value was verified.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use polyclave_cipher::Cells;

use super::batch::Masks;
use super::macs::{Macs, product};
use crate::protocol::SharedValue;
use crate::release::{Checked, Released, Unverified};
use crate::tinyot::Key;
use crate::{Error, Result};

/// Shares of the cells of one port: a sum of two, each with a tag that the other party verifies, unless the protocol is passive.
#[derive(Clone)]
pub struct Shared {
    pub(super) bits: u8,
    pub(super) count: usize,
    pub(super) lanes: usize,
    pub(super) shares: Masks,
    pub(super) unchecked: Option<Unchecked>,
}

impl SharedValue for Shared {
    fn reveal_own_shares(&self) -> &[u8] {
        &self.shares.values
    }
}

impl Shared {
    /// Whether its session has not checked yet what it rests on.
    pub(super) fn is_unchecked(&self) -> bool {
        self.unchecked.as_ref().is_some_and(|of| of.checks.load(SeqCst) <= of.before)
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

    /// The lanes of all parts, which are values of one port and session. The last one rests on what the others rest on, too.
    pub(super) fn join(parts: &[&Shared]) -> Shared {
        fn rows<T: Copy>(parts: &[(&[T], usize)]) -> Vec<T> {
            // Sized at once, as above.
            let mut joined = Vec::with_capacity(parts.iter().map(|(all, _)| all.len()).sum());
            for row in 0..parts.first().map_or(0, |(all, width)| all.len() / width) {
                parts.iter().for_each(|(all, width)| joined.extend_from_slice(&all[row * width..][..*width]));
            }
            joined
        }
        let (first, last) = (parts[0], parts[parts.len() - 1]);
        let shares = Masks {
            values: rows(&parts.iter().map(|part| (&part.shares.values[..], part.lanes)).collect::<Vec<_>>()),
            tags: rows(&parts.iter().map(|part| (&part.shares.tags[..], part.lanes)).collect::<Vec<_>>()),
            keys: rows(&parts.iter().map(|part| (&part.shares.keys[..], part.lanes)).collect::<Vec<_>>()),
        };
        let (lanes, unchecked) = (parts.iter().map(|part| part.lanes).sum(), last.unchecked.clone());
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

/// A value rests on openings that only the next check of its session covers: no other session's does.
#[derive(Clone)]
pub(super) struct Unchecked {
    checks: Arc<AtomicU64>,
    before: u64,
}

/// The checks of one session that have passed.
#[derive(Clone, Default)]
pub(super) struct Checks(Arc<AtomicU64>);

impl Checks {
    pub(super) fn pass(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    /// What a value rests on that is made now.
    pub(super) fn unchecked(&self) -> Unchecked {
        Unchecked { checks: self.0.clone(), before: self.0.load(SeqCst) }
    }

    /// Refuses a value of another session that has not been checked there.
    pub(super) fn refuse_unchecked(&self, shared: &Shared) -> Result<()> {
        match &shared.unchecked {
            Some(of) if !Arc::ptr_eq(&of.checks, &self.0) && shared.is_unchecked() => {
                Err(Error::misuse("the shared value comes from another session that has not checked it"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a released value was verified: [`Checked`] if so, [`Unverified`] if not.
pub trait Worth: Released + Send + Sync + Sized + 'static {
    /// Whether it is only released after a check.
    const VERIFIED: bool;

    /// Wraps a released value.
    #[doc(hidden)]
    fn of(cells: Cells) -> Self;

    /// Whether a variant with these MACs releases such values.
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

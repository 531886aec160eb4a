//! A lot: what one run made of one kind, at this party.

use std::time::{Duration, Instant};

use polyclave_protocol::PartySet;
use polyclave_protocol::stock::Kind;
use zeroize::{Zeroize, Zeroizing};

use super::claims::Range;
use super::ranges::Ranges;

/// Of a lot, 1 / so many is marked as spent ahead: the items that one synced write is for.
const STRIDES: u64 = 8;

/// A claim may leave out 1 / so many of a lot: twice what a proposer that goes on after a crash leaves out.
const GAPS: u64 = 4;

/// A lot of which the last item was claimed, and not each before it, may still be asked for those for so long.
const AFTERWARDS: Duration = Duration::from_secs(60);

/// What this party knows of the others' parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The proposer has not said yet that all hold theirs, and may never say so.
    Pending,
    /// All hold theirs.
    Held,
}

/// A lot.
pub(super) struct Lot {
    pub(super) id: [u8; 16],
    pub(super) kind: Kind,
    pub(super) standing: Standing,
    /// Nodes that have not started again since.
    holders: PartySet,
    count: u64,
    items: Zeroizing<Vec<u8>>,
    spent: Ranges,
    /// Durably spent up to here; never below the end of `spent`.
    reserved: u64,
    /// When the last item was claimed.
    over: Option<Instant>,
}

impl Lot {
    /// Of whole items, of which those below `mark` count as spent; `holders` made them.
    pub(super) fn new(
        id: [u8; 16],
        kind: Kind,
        mut items: Zeroizing<Vec<u8>>,
        mark: u64,
        holders: PartySet,
    ) -> Lot {
        let count = (items.len() / kind.item_bytes) as u64;
        let mark = mark.min(count);
        items[..mark as usize * kind.item_bytes].zeroize();
        let standing = Standing::Pending;
        Lot {
            id,
            kind,
            standing,
            holders,
            count,
            items,
            spent: Ranges::below(mark),
            reserved: mark,
            over: None,
        }
    }

    /// Whether all hold it, and these are among those that hold it still.
    pub(super) fn is_held_by(&self, nodes: PartySet) -> bool {
        self.standing == Standing::Held && nodes.without(self.holders).is_empty()
    }

    /// Those of some nodes that hold it still.
    pub(super) fn held_by(&self, nodes: PartySet) -> PartySet {
        nodes.without(nodes.without(self.holders))
    }

    /// A node holds it no more.
    pub(super) fn is_lost_at(&mut self, node: PartySet) {
        self.holders = self.holders.without(node);
    }

    /// Items behind all that were claimed: those that may be proposed.
    pub(super) fn ahead(&self) -> u64 {
        self.count - self.spent.end()
    }

    /// Whether it will not be asked for any more, though not each item was claimed here: this node did not serve then.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_some_and(|over| over.elapsed() > AFTERWARDS)
    }

    /// Items that were never claimed.
    pub(super) fn left(&self) -> u64 {
        self.count - self.spent.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.items.len()
    }

    /// The next items, at most so many; `None` if there are none. Behind all that were claimed.
    pub(super) fn next(&self, most: u64) -> Option<Range> {
        let from = self.spent.end();
        let to = from.saturating_add(most).min(self.count);
        (from < to).then_some(Range { lot: self.id, from, to })
    }

    /// Why items may not be taken. That too many are left out is none where only some nodes serve: each has heard of some claims.
    pub(super) fn refuses(&self, range: &Range, hears_all: bool) -> Option<Refused> {
        let Range { from, to, .. } = *range;
        let most = self.count / GAPS;
        let end = self.spent.end();
        if from >= to || to > self.count {
            Some(Refused::Outside { from, to, count: self.count })
        } else if self.spent.meets(from, to) {
            Some(Refused::Spent { from, to })
        } else if hears_all && from.saturating_sub(end) > most {
            Some(Refused::TooFar { from, end, most })
        } else {
            None
        }
    }

    /// Up to where the lot has to be marked as spent before items up to `to` may be taken, if it is not.
    pub(super) fn mark_for(&self, to: u64) -> Option<u64> {
        let ahead = self.reserved.saturating_add((self.count / STRIDES).max(1)).min(self.count);
        (to > self.reserved).then_some(to.max(ahead))
    }

    /// It was marked.
    pub(super) fn marked(&mut self, mark: u64) {
        self.reserved = self.reserved.max(mark);
    }

    /// Takes items out: they are no longer here.
    pub(super) fn take(&mut self, range: &Range, into: &mut Vec<u8>) {
        assert!(
            range.to <= self.reserved && !self.spent.meets(range.from, range.to),
            "marked first, taken once"
        );
        self.spent.add(range.from, range.to);
        if self.ahead() == 0 {
            self.over.get_or_insert_with(Instant::now);
        }
        let bytes = |item: u64| item as usize * self.kind.item_bytes;
        let items = &mut self.items[bytes(range.from)..bytes(range.to)];
        into.extend_from_slice(items);
        items.zeroize();
    }
}

/// Why a claim is not followed. It has cost nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("it claims material of another renewal than this node's; restart the node that started last")]
    OtherEpoch,
    #[error("it claims more ranges than one claim may have")]
    TooLong,
    #[error("it claims items of a lot that is not in stock here: spent, never made, or of another kind")]
    Unknown,
    #[error("it claims a lot twice at once")]
    Repeated,
    #[error("it claims {claimed} items where {asked} are asked for")]
    Count { asked: u64, claimed: u64 },
    #[error("it claims items {from} to {to} of a lot of {count}")]
    Outside { from: u64, to: u64, count: u64 },
    #[error("it claims items {from} to {to} of a lot, of which some were claimed before")]
    Spent { from: u64, to: u64 },
    #[error(
        "it claims items from {from} on of a lot that is claimed up to {end}, and may leave out {most}; nothing was spent \
         here. See whether it runs on an old copy, then restart it, for a fresh stock"
    )]
    TooFar { from: u64, end: u64, most: u64 },
}

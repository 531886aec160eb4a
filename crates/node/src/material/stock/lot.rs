//! A lot: what one run made of one kind, at this party.

use std::time::{Duration, Instant};

use polyclave_protocol::PartySet;
use polyclave_protocol::stock::Kind;
use zeroize::{Zeroize, Zeroizing};

use super::claims::Range;
use super::ranges::Ranges;

/// One synced write marks this fraction of a lot (one divided by this number) as spent ahead.
const STRIDES: u64 = 8;

/// Where all nodes serve, a claim may leave out this fraction of a lot (one divided by this number): twice
/// what a proposer leaves out that goes on after a crash.
const GAPS: u64 = 4;

/// What this party knows about the others' parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LotStatus {
    /// The proposer has not said yet that all nodes hold theirs, and may never say so.
    Pending,
    /// All nodes hold theirs.
    Held,
}

/// A lot.
pub(crate) struct Lot {
    pub(super) id: [u8; 16],
    pub(super) kind: Kind,
    pub(super) status: LotStatus,
    /// The nodes that made it and have not started again since.
    holders: PartySet,
    count: u64,
    /// The items, as pieces with the number of the first item of each. Every item that is not spent is in a
    /// piece; spent items are zeros.
    pieces: Vec<(u64, Zeroizing<Vec<u8>>)>,
    spent: Ranges,
    /// Items that too few others hold, as of the last comparison.
    useless: Ranges,
    /// The same as of an earlier comparison; wiped once it is old enough.
    doomed: Option<(Instant, Ranges)>,
    /// Items below this number are durably marked as spent. Never below the end of what was handed out.
    reserved: u64,
    /// What this party has claimed and not yet taken.
    promised: Vec<(u64, u64)>,
}

impl Lot {
    /// A lot of whole items. Items below `mark` count as spent. `holders` made it.
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
        let status = LotStatus::Pending;
        let (pieces, spent) = (vec![(0, items)], Ranges::below(mark));
        Lot {
            id,
            kind,
            status,
            holders,
            count,
            pieces,
            spent,
            useless: Ranges::default(),
            doomed: None,
            reserved: mark,
            promised: Vec::new(),
        }
    }

    /// Whether all nodes are known to hold it, and these nodes still do.
    pub(super) fn is_held_by(&self, nodes: PartySet) -> bool {
        self.status == LotStatus::Held && nodes.without(self.holders).is_empty()
    }

    /// Those of some nodes that still hold it.
    pub(super) fn held_by(&self, nodes: PartySet) -> PartySet {
        nodes.without(nodes.without(self.holders))
    }

    /// Notes that a node no longer holds it.
    pub(super) fn is_lost_at(&mut self, node: PartySet) {
        self.holders = self.holders.without(node);
    }

    /// Items that were never claimed.
    pub(super) fn left(&self) -> u64 {
        self.count - self.spent.len()
    }

    /// Bytes held, including those of spent items.
    pub(super) fn bytes(&self) -> usize {
        self.pieces.iter().map(|(_, items)| items.len()).sum()
    }

    /// How many items it had when it was made.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The items that were claimed.
    pub(super) fn spent(&self) -> &Ranges {
        &self.spent
    }

    /// The nodes that still hold it, as far as this node knows.
    pub(super) fn holders(&self) -> PartySet {
        self.holders
    }

    /// The ranges that may be proposed, in order.
    pub(super) fn unspent(&self) -> impl Iterator<Item = Range> {
        let mut taken = self.spent.clone();
        self.promised.iter().for_each(|(from, to)| taken.add(*from, *to));
        let gaps: Vec<_> = taken.gaps(self.count).collect();
        gaps.into_iter().map(|(from, to)| Range { lot: self.id, from, to })
    }

    /// Promises a range: until it is released, no other claim has it.
    pub(super) fn promise(&mut self, range: &Range) {
        self.promised.push((range.from, range.to));
    }

    /// Ends a promise.
    pub(super) fn release(&mut self, range: &Range) {
        let at = self.promised.iter().position(|promised| *promised == (range.from, range.to));
        at.map(|at| self.promised.swap_remove(at));
    }

    /// Why items may not be taken. Leaving out too many is no reason where only some nodes serve: each has
    /// heard of some claims only.
    pub(super) fn refuses(&self, range: &Range, hears_all: bool) -> Option<Refused> {
        let Range { from, to, .. } = *range;
        let most = self.count / GAPS;
        let end = self.spent.end();
        if from >= to || to > self.count {
            Some(Refused::Outside { from, to, count: self.count })
        } else if self.spent.meets(from, to) || self.promised.iter().any(|(f, t)| *f < to && from < *t) {
            Some(Refused::Spent { from, to })
        } else if hears_all && from.saturating_sub(end) > most {
            Some(Refused::TooFar { from, end, most })
        } else {
            None
        }
    }

    /// Up to where the lot has to be marked as spent before items below `to` may be taken; `None` if it is
    /// marked already.
    pub(super) fn mark_for(&self, to: u64) -> Option<u64> {
        let ahead = self.reserved.saturating_add((self.count / STRIDES).max(1)).min(self.count);
        (to > self.reserved).then_some(to.max(ahead))
    }

    /// Notes that items are durably marked.
    pub(super) fn marked(&mut self, mark: u64) {
        self.reserved = self.reserved.max(mark);
    }

    /// Takes items out: afterwards they are no longer here.
    pub(super) fn take(&mut self, range: &Range, into: &mut Vec<u8>) {
        assert!(
            range.to <= self.reserved && !self.spent.meets(range.from, range.to),
            "marked first, taken once"
        );
        let items = self.items_of(range.from, range.to);
        into.extend_from_slice(items);
        items.zeroize();
        self.spent.add(range.from, range.to);
    }

    /// Wipes items that are of no use any more, whether they were claimed here or not. One pass for any
    /// number of pieces that a peer reports.
    pub(super) fn lose(&mut self, useless: &Ranges) {
        let mut here = Ranges::default();
        self.spent.gaps(self.count).for_each(|(from, to)| here.add(from, to));
        let lost = Ranges::in_at_least(2, &[useless.clone(), here]);
        lost.iter().for_each(|(from, to)| self.items_of(from, to).zeroize());
        self.spent = Ranges::in_at_least(1, &[self.spent.clone(), lost]);
        self.shrink();
    }

    /// Notes that too few others hold these items. Wipes those that were also in an earlier comparison, long
    /// enough ago: until then a claim may have been on its way here, or have come and not been judged yet.
    pub(super) fn doom(&mut self, useless: &Ranges, on_its_way: Duration) {
        let useless = Ranges::in_at_least(2, &[useless.clone(), Ranges::below(self.count)]);
        self.useless = useless.clone();
        match self.doomed.take() {
            Some(before) if before.0.elapsed() < on_its_way => self.doomed = Some(before),
            before => {
                let before = before.map_or_else(Ranges::default, |(_, before)| before);
                let still = Ranges::in_at_least(2, &[before, useless.clone()]);
                self.lose(&still);
                self.doomed = Some((Instant::now(), useless));
            }
        }
    }

    /// Items that were never claimed, except those that too few others hold.
    pub(super) fn of_use(&self) -> u64 {
        self.count - Ranges::in_at_least(1, &[self.spent.clone(), self.useless.clone()]).len()
    }

    /// Gives back the memory of spent items if they are more than the others. So a lot never takes more than
    /// twice the memory of its usable items, however it was cut into pieces.
    pub(super) fn shrink(&mut self) {
        let size = self.kind.item_bytes;
        if self.bytes() <= 2 * self.left() as usize * size {
            return;
        }
        let gaps: Vec<(u64, u64)> = self.spent.gaps(self.count).collect();
        let pieces = gaps.into_iter().map(|(from, to)| {
            let items = self.items_of(from, to);
            (from, Zeroizing::new(items.to_vec()))
        });
        self.pieces = pieces.collect();
    }

    /// The bytes of some items. They lie in one piece, because they are all unspent.
    fn items_of(&mut self, from: u64, to: u64) -> &mut [u8] {
        let at = self.pieces.partition_point(|(first, _)| *first <= from) - 1;
        let (first, items) = &mut self.pieces[at];
        let bytes = |item: u64| (item - *first) as usize * self.kind.item_bytes;
        &mut items[bytes(from)..bytes(to)]
    }
}

/// Why a claim is not followed. The claim has cost nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("it claims material of another epoch than this node's; restart the node that started last")]
    OtherEpoch,
    #[error("it claims more ranges than one claim may have")]
    TooLong,
    #[error("it claims items of a lot that is not in stock here: spent, never made, or of another kind")]
    Unknown,
    #[error("it claims the same items twice")]
    Repeated,
    #[error("it claims {claimed} ranges where {most} are enough: it would cut the stock into pieces")]
    Pieces { claimed: usize, most: usize },
    #[error("it claims {claimed} items, and {asked} are needed")]
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

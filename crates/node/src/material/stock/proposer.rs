//! Claims where all nodes serve every request: the first node proposes and tells the others, which follow if
//! the claim fits.
//!
//! A lot can be claimed when all nodes have told the proposer that they hold their parts. The proposer drops
//! a lot if it does not hear that; the others keep it ([`MAX_IN_DOUBT`](super::MAX_IN_DOUBT)).

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::stock::{Kind, Purpose};
use polyclave_protocol::{Error, Party, PartySet};
use zeroize::Zeroizing;

use super::Lots;
use super::choice::{choose, judge};
use super::claiming::{BLOCKS_AT_ONCE, ByProposer, Claiming, HELD};
use super::claims::{self, PROPOSER, Range, refused};
use super::lot::{Lot, Refused};
use crate::Result;
use crate::material::preparation::MAX_RUNS;
use crate::material::target::Target;

/// How long a claim that leaves out too much waits for earlier claims that are still on their way.
pub(super) const PATIENCE: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(10) };

/// How long a claim waits while no material comes in.
const STALLED: Duration = if cfg!(test) { Duration::from_millis(250) } else { Duration::from_secs(60) };
/// How long a claim waits in all.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// How often the others are told that a claim waits.
const TOLD_EVERY: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_millis(500) };
/// One run makes this part of a level (one divided by this number), and no more bytes than this.
const PART_AT_ONCE: usize = 8;
const BYTES_AT_ONCE: usize = 16 << 20;

/// The ranges that the proposer takes, and their items.
type Proposed = (Vec<Range>, Zeroizing<Vec<u8>>);

impl Claiming for ByProposer {
    fn take(&self, lots: &Lots, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        refuse_without_all(lots, net)?;
        if net.me() == PROPOSER {
            let proposed = lots.propose_when_there(kind, count, net)?;
            let ranges = proposed.as_ref().map_or(&[][..], |(ranges, _)| ranges);
            claims::tell(&lots.epoch, ranges, net)?;
            return match proposed {
                Some((_, items)) => Ok(items),
                None => {
                    let (there, _) = lots.of_use(kind);
                    claims::tell_left(there, net)?;
                    Err(lots.dry_with(kind, count, (there, 0)))
                }
            };
        }
        let mut wait = Wait::begin(lots, kind);
        match claims::hear_when_it_is_there(&lots.epoch, net, || !wait.is_over(2))? {
            none if none.is_empty() => Err(lots.dry_with(kind, count, (claims::hear_left(net)?, 0))),
            ranges => lots.follow(kind, count, &ranges),
        }
    }

    /// Nobody waits. The nodes that follow hear at once that there is nothing, in place of the first claim.
    fn take_if_there(
        &self,
        lots: &Lots,
        wanted: &[(Kind, usize)],
        net: &mut dyn Net,
    ) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
        refuse_without_all(lots, net)?;
        if net.me() == PROPOSER {
            wanted.iter().for_each(|(kind, _)| lots.note_wanted(kind));
            let Some(proposed) = lots.propose(wanted)? else {
                claims::tell(&lots.epoch, &[], net)?;
                return Ok(None);
            };
            proposed.iter().try_for_each(|(ranges, _)| claims::tell(&lots.epoch, ranges, net))?;
            return Ok(Some(proposed.into_iter().map(|(_, items)| items).collect()));
        }
        let mut told = Vec::with_capacity(wanted.len());
        for _ in wanted {
            let ranges = claims::hear(PROPOSER, &lots.epoch, Patience::of(1), net)?;
            if ranges.is_empty() && told.is_empty() {
                return Ok(None);
            }
            told.push(ranges);
        }
        let each = wanted.iter().zip(&told);
        each.map(|((kind, count), ranges)| lots.follow(kind, *count, ranges)).collect::<Result<_>>().map(Some)
    }

    fn waits(&self) -> bool {
        true
    }

    /// The stocks of the nodes differ, if only by a claim that was lost. The nodes begin anew.
    fn ends_with_a_failed_claim(&self) -> bool {
        true
    }

    fn counts(&self, _: &Lot, _: usize) -> bool {
        true
    }

    /// A lot ends with the epoch, at all nodes.
    fn least_holders(&self) -> usize {
        0
    }

    /// True at all nodes but the proposer: only the proposer claims the lot.
    fn keeps_in_doubt(&self, me: Party) -> bool {
        me != PROPOSER
    }

    /// All nodes have heard of the same claims.
    fn compare(&self, _: &Lots, _: &Kind, _: usize, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    fn hear_that_all_hold(&self, net: &mut dyn Net) -> Result<()> {
        match net.me() {
            PROPOSER => Party::all(net.parties()).skip(1).try_for_each(|peer| hear(peer, net)),
            _ => {
                net.send(PROPOSER, &HELD)?;
                hear(PROPOSER, net)
            }
        }
    }

    fn tell_that_all_hold(&self, net: &mut dyn Net) -> Result<()> {
        match net.me() {
            PROPOSER => Party::all(net.parties()).skip(1).try_for_each(|peer| net.send(peer, &HELD)),
            _ => Ok(()),
        }
    }

    fn believed_left(&self, lots: &Lots, target: &Target, _: Option<u16>, _: Vec<u16>) -> usize {
        lots.left(&target.kind)
    }

    /// A part of the level: the more is made at once, the less an item costs. A stock that begins is filled
    /// in runs that double, so that the first requests need not wait for a large one.
    fn blocks_at_once(&self, lots: &Lots, target: &Target) -> usize {
        // They are wanted soon or not at all, and each run takes several round trips between far nodes. The
        // part of one node can be far larger than that of another one.
        if target.kind.purpose == Purpose::Circuits {
            return target.blocks.min(BYTES_AT_ONCE / target.largest.max(1)).max(1);
        }
        let of_block = (target.kind.item_bytes * target.kind.per_block).max(1);
        let most = (target.blocks / PART_AT_ONCE).min(BYTES_AT_ONCE / of_block);
        let so_far = lots.made(&target.kind) / target.kind.per_block.max(1);
        most.min(so_far).max(BLOCKS_AT_ONCE)
    }

    fn runs_at_once(&self) -> usize {
        MAX_RUNS
    }

    /// What a few small requests took is made again later, together with more, or when nobody asks for
    /// anything.
    fn is_due(&self, lots: &Lots, target: &Target, left: usize) -> bool {
        let run = match target.kind.purpose {
            Purpose::Circuits if !lots.is_wanted(&target.kind) => return false,
            Purpose::Circuits => target.items().div_ceil(PART_AT_ONCE),
            _ => self.blocks_at_once(lots, target) * target.kind.per_block,
        };
        let missing = target.items().saturating_sub(left);
        missing > 0 && (missing >= run || left < run || lots.is_quiet())
    }

    /// Stocks can differ a little between nodes, after a run that some nodes did not complete.
    fn fitting(&self, lots: &Lots, target: &Target) -> RangeInclusive<usize> {
        1..=(2 * target.accepted()).saturating_sub(lots.left(&target.kind))
    }
}

impl Lots {
    /// At the proposer: the same as [`Lots::propose`] of one kind as soon as there is enough, in the order in
    /// which sessions asked. `None` if nothing comes in for a while.
    fn propose_when_there(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Option<Proposed>> {
        let turn = Turn::take(self, kind);
        let mut wait = Wait::begin(self, kind);
        loop {
            if let Some(proposed) = self.propose_in_turn(&turn, kind, count, Instant::now() + TOLD_EVERY)? {
                return Ok(Some(proposed));
            }
            if wait.is_over(1) || self.is_held_back() {
                return Ok(None);
            }
            // The others learn that they are still to wait, and this node notices if it need not wait any
            // more.
            claims::tell_that_it_waits(&self.epoch, net)?;
        }
    }

    /// Waits until a time.
    fn propose_in_turn(
        &self,
        turn: &Turn<'_>,
        kind: &Kind,
        count: usize,
        until: Instant,
    ) -> Result<Option<Proposed>> {
        let mut lots = self.lock();
        loop {
            let all = PartySet::all(self.nodes);
            if turn.has_come()
                && let Some(ranges) = choose(&lots, kind, count as u64, all, self.nodes)
            {
                let items = self.spend(&mut lots, &ranges, count * kind.item_bytes)?;
                return Ok(Some((ranges, items)));
            }
            if self.claimed.wait_until(&mut lots, until).timed_out() {
                return Ok(None);
            }
        }
    }

    /// At the proposer: [chooses](choose) items of different kinds, and spends them, together, if there are
    /// enough of all and no session waits for its turn to take such items.
    pub(super) fn propose(&self, wanted: &[(Kind, usize)]) -> Result<Option<Vec<Proposed>>> {
        let mut lots = self.lock();
        let all = PartySet::all(self.nodes);
        let choose = |(kind, count): &(Kind, usize)| match self.is_waited_for(kind) {
            true => None,
            false => choose(&lots, kind, *count as u64, all, self.nodes),
        };
        let Some(chosen) = wanted.iter().map(choose).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let bytes = |(kind, count): &(Kind, usize)| count * kind.item_bytes;
        let items = self.spend(&mut lots, &chosen.concat(), wanted.iter().map(bytes).sum())?;
        let mut rest = &items[..];
        let proposed = wanted.iter().zip(chosen).map(|(of, ranges)| {
            let (own, behind) = rest.split_at(bytes(of));
            rest = behind;
            (ranges, Zeroizing::new(own.to_vec()))
        });
        Ok(Some(proposed.collect()))
    }

    /// Whether a session waits for items of a kind.
    pub(crate) fn is_waited_for(&self, kind: &Kind) -> bool {
        self.turns.lock().waiting.iter().any(|(waited_for, _)| waited_for == kind)
    }

    /// At the others: spends the items of a claim.
    fn follow(&self, kind: &Kind, count: usize, ranges: &[Range]) -> Result<Zeroizing<Vec<u8>>> {
        let until = Instant::now() + PATIENCE;
        let mut lots = self.lock();
        loop {
            match judge(&lots, kind, count, ranges, true) {
                Ok(()) => return self.spend(&mut lots, ranges, count * kind.item_bytes),
                Err(why @ Refused::TooFar { .. }) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(refused(why));
                    }
                    self.claimed.wait_for(&mut lots, left);
                }
                Err(why) => return Err(refused(why)),
            }
        }
    }
}

fn refuse_without_all(lots: &Lots, net: &dyn Net) -> Result<()> {
    match (net.me(), net.parties(), net.members()) == (lots.me, lots.nodes, PartySet::all(lots.nodes)) {
        true => Ok(()),
        false => Err(Error::misuse("all nodes that made the material must take it together")),
    }
}

/// A claim that waits for material.
struct Wait<'l> {
    lots: &'l Lots,
    kind: Kind,
    began: Instant,
    /// How many items could be taken, and since when.
    there: (u64, u64),
    since: Instant,
}

impl<'l> Wait<'l> {
    fn begin(lots: &'l Lots, kind: &Kind) -> Wait<'l> {
        let now = Instant::now();
        Wait { lots, kind: *kind, began: now, there: lots.of_use(kind), since: now }
    }

    /// Whether nothing was made or taken for too long, or the claim waits for too long. The nodes that follow
    /// wait `times` as long as the proposer, so that only one that departs from the protocol makes them give
    /// up.
    fn is_over(&mut self, times: u32) -> bool {
        let there = self.lots.of_use(&self.kind);
        if there != self.there {
            (self.there, self.since) = (there, Instant::now());
        }
        self.since.elapsed() >= times * STALLED || self.began.elapsed() >= times * LONGEST
    }
}

/// A session's place among those that wait for items of a kind.
struct Turn<'l> {
    lots: &'l Lots,
    kind: Kind,
    number: u64,
}

impl<'l> Turn<'l> {
    fn take(lots: &'l Lots, kind: &Kind) -> Turn<'l> {
        let mut turns = lots.turns.lock();
        turns.next += 1;
        let turn = Turn { lots, kind: *kind, number: turns.next };
        turns.waiting.push((turn.kind, turn.number));
        turn
    }

    fn has_come(&self) -> bool {
        let turns = self.lots.turns.lock();
        let first = turns.waiting.iter().find(|(kind, _)| *kind == self.kind);
        first.is_some_and(|(_, number)| *number == self.number)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Under the lock that the next one looks under before it sleeps.
        let _lots = self.lots.lock();
        self.lots.turns.lock().waiting.retain(|(_, number)| *number != self.number);
        self.lots.claimed.notify_all();
    }
}

fn hear(peer: Party, net: &mut dyn Net) -> Result<()> {
    let mut said = [0];
    net.recv(peer, &mut said)?;
    match said == HELD {
        true => Ok(()),
        false => Err(Error::Peer { peer, detail: "it did not confirm that a lot is held".into() }),
    }
}

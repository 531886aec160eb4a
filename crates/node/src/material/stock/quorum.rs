//! Claims where a quorum of nodes serves, and some of them may cheat.
//!
//! The serving node with the lowest number proposes, and the others judge its claim. Then every node *echoes*
//! what it heard to every other, and marks and takes the items only if a quorum heard the same. Last, every
//! node tells every other what it has taken, and uses it only if a quorum took the same. Any two quorums have
//! a node in common that does not cheat ([`quorum`](polyclave_protocol::service::ServiceConfig::quorum)).
//!
//! # Why no two sessions use the same item
//!
//! If nodes used one item in different sessions, even each node only once, they would reveal the difference
//! of the values that they masked with it: t known shares determine all others from one. Say node i uses the
//! item in one session, and node j in another. The quorum that told i the same and the quorum that told j the
//! same have a node in common that does not cheat, and that node gives an item to one session only. So this
//! cannot happen, no matter which nodes propose and what a proposer tells each node. A node that took an item
//! and cannot use it has lost it: the item is wiped.
//!
//! # What a cheater cannot take away
//!
//! A proposer may leave out any items, and the next proposer can take them. Leaving out much in many small
//! pieces is refused.
//!
//! A proposer that tells nodes different claims takes nothing from the nodes that it misleads. It can echo
//! what it likes, but the others echo what they heard. If fewer than a quorum, including the proposer, were
//! told the same, they take nothing and lose nothing. A node takes items only if a quorum was told the same.
//! The proposer itself only *promises* items until the echo is over, so that no other session proposes them:
//! if too few nodes follow, they are free again.
//!
//! *What is left*: a cheating node whose word the others need for a quorum can deny afterwards that it took
//! what it echoed. Such a node is a proposer that told t of the others something else, or any node while
//! another is missing or cannot follow. Then the request fails, and the nodes that took the claim have lost
//! that much. The client asks again without the nodes that it suspects.
//!
//! A node that was away, or was told other things, proposes items that the others have spent. A node that
//! refuses a claim says which range of items it has spent there. If too few other nodes are left to use the
//! items, the proposer wipes them, and so catches up with the others. The nodes compare all items before they
//! make material ([`census`](super::census)). After a claim that too few followed, the proposer also wipes
//! the items that any single node says it has spent, so that no two nodes refuse each other for ever.
//!
//! A node that other sessions left out for a while holds lots that the others have spent, as many as they
//! spend until a comparison wipes them. If it learned of only one lot from each refused claim, and the others
//! spent another lot meanwhile, no session with this proposer would ever succeed. So after a refused claim it
//! proposes items of its youngest lots, which the others still have, until comparisons have told it the rest
//! ([`BEHIND`]).
//!
//! The refusal names a proposer that says that the stock is dry while others could take from it, and a
//! proposer whose claim does not fit. This is no accusation ([`Error::OutOfStep`]): an honest proposer may
//! have started again, and a cheater can have made it or this node spend items that the other has not spent.
//! The client asks the others.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;
use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party, PartySet};
use zeroize::Zeroizing;

use super::Lots;
use super::choice::{choose, choose_youngest, held, judge, refuse_pieces};
use super::claiming::{BLOCKS_AT_ONCE, ByQuorum, Claiming, FULL, HELD};
use super::claims::{RANGE, Range, encode, hear};
use super::lot::Lot;
use super::ranges::Ranges;
use crate::Result;
use crate::material::target::Target;
use crate::peers::exchange::tell_all;

/// One run makes this part of the level, limited to a number of bytes.
const PART_AT_ONCE: usize = 8;
const BYTES_AT_ONCE: usize = 16 << 20;

/// What a node says if it has taken nothing.
const NOTHING: [u8; 32] = [0; 32];

/// The range without items.
const NONE: Range = Range { lot: [0; 16], from: 0, to: 0 };

/// How long a peer may be silent. Longer than the delay of an honest node that was held up before, and short
/// enough for openings to follow.
const PATIENCE: Patience = Patience::of(3);

/// How long a proposer waits for material that is being made. Where nodes correct each other, making it takes
/// moments. After some nodes have started again, the others may hold enough items, but of lots that too few
/// nodes hold. The proposer then waits this long for more, if all nodes are connected to make it. Less than
/// the time that the others wait for its claim.
pub(super) const REFILL: Duration =
    if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(3) };

/// How long after a refused claim a proposer takes items of its youngest lots. The nodes compare what they
/// hold whenever they make material, and wipe what two comparisons have shown that lie 20 s apart
/// ([`census`](super::census)).
const BEHIND: Duration = Duration::from_secs(60);

impl Claiming for ByQuorum {
    fn take(&self, lots: &Lots, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        lots.take_with_quorum(kind, count, self.quorum, net)
    }

    /// The nodes that wait could not tell a slow proposer from one that cheats.
    fn waits(&self) -> bool {
        false
    }

    fn ends_with_a_failed_claim(&self) -> bool {
        false
    }

    /// A lot that only some nodes hold is for emergencies, and does not count.
    fn counts(&self, lot: &Lot, nodes: usize) -> bool {
        lot.is_held_by(PartySet::all(nodes))
    }

    fn least_holders(&self) -> usize {
        self.quorum
    }

    fn keeps_in_doubt(&self, _: Party) -> bool {
        true
    }

    fn compare(&self, lots: &Lots, kind: &Kind, level: usize, net: &mut dyn Net) -> Result<()> {
        lots.compare(kind, level, self.quorum, net)
    }

    /// Any node may propose, so all nodes tell all: if one honest node relies on a lot, all honest nodes hold
    /// it.
    fn hear_that_all_hold(&self, net: &mut dyn Net) -> Result<()> {
        tell_all(&HELD, net).map(drop)
    }

    fn tell_that_all_hold(&self, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    /// Each node hears of some claims only. Items that this node lacks are really lacking, also if other
    /// nodes lie.
    fn believed_left(&self, lots: &Lots, target: &Target, own: Option<u16>, others: Vec<u16>) -> usize {
        let Some(own) = own else { return lots.left(&target.kind) };
        let levels = others.into_iter().chain([own]).collect();
        let level = believable(levels, (self.quorum - 1) / 2).min(own);
        target.items() * usize::from(level) / FULL
    }

    fn blocks_at_once(&self, _: &Lots, target: &Target) -> usize {
        let fit = BYTES_AT_ONCE / (target.kind.item_bytes * target.kind.per_block).max(1);
        (target.blocks / PART_AT_ONCE).min(fit).max(BLOCKS_AT_ONCE)
    }

    /// Nodes compare what they hold before each run.
    fn runs_at_once(&self) -> usize {
        1
    }

    fn is_due(&self, _: &Lots, target: &Target, left: usize) -> bool {
        left < target.items()
    }

    /// Whether there is room is decided when all nodes have met ([`census`](super::census)).
    fn fitting(&self, lots: &Lots, target: &Target) -> RangeInclusive<usize> {
        let per_block = target.kind.per_block;
        per_block.max(1)..=self.blocks_at_once(lots, target) * per_block
    }
}

/// Judges the levels that all nodes report. Up to `liars` of them may be false, so it leaves out the `liars`
/// lowest and returns the lowest of the rest.
///
/// If the result is too low, the level of at least one honest node is too low: liars could only lower as many
/// values as are left out, so they cannot have material made for ever. And they cannot prevent it from being
/// made: the result is too low as soon as `liars + 1` honest nodes are too low, no matter what liars report.
/// (A single honest node, other than this one, may lack material unnoticed until the others lack it too;
/// without it there is still a quorum, if no other node cheats.)
fn believable(mut levels: Vec<u16>, liars: usize) -> u16 {
    levels.sort_unstable();
    levels.get(liars).copied().unwrap_or_default()
}

impl Lots {
    /// Takes items that `quorum` nodes take, including this one.
    fn take_with_quorum(
        &self,
        kind: &Kind,
        count: usize,
        quorum: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let me = net.me();
        let proposer = net.members().iter().next().unwrap_or(me);
        let mut conflict = NONE;
        let claim = if proposer == me {
            self.propose_to_members(kind, count, quorum, net)
        } else {
            self.hear_proposer(proposer, kind, count, quorum, &mut conflict, net)
        };
        let digest = claim.as_ref().map_or(NOTHING, |claim| self.digest(kind, count, &claim.ranges));
        let echo = compare(&digest, &conflict, quorum, net)?;
        if proposer == me && !echo.agreed {
            let ranges = claim.as_ref().map_or(&[][..], |claim| &claim.ranges);
            self.learn(kind, quorum, ranges, &echo.conflicts);
            if echo.conflicts.iter().any(|conflict| *conflict != NONE) {
                *self.fell_behind.lock() = Some(Instant::now());
            }
        }
        let taken = claim.and_then(|claim| match echo.agreed {
            true => self.take_claimed(claim, kind, count),
            false => Err(not_alike(proposer, "heard of", echo.silent)),
        });
        // A node that takes nothing says so: others may wait for it.
        let digest = taken.as_ref().map_or(NOTHING, |_| digest);
        let confirmed = compare(&digest, &NONE, quorum, net)?;
        let items = taken?;
        match (confirmed.agreed, items) {
            (false, _) => Err(not_alike(proposer, "took", confirmed.silent)),
            // All nodes that take the same claim end here.
            (true, None) => Err(self.dry(kind, count)),
            (true, Some(items)) => Ok(items),
        }
    }

    fn propose_to_members(
        &self,
        kind: &Kind,
        count: usize,
        quorum: usize,
        net: &mut dyn Net,
    ) -> Result<Claim<'_>> {
        let members = net.members();
        let claim = self.promise(kind, count, members, quorum);
        for message in encode(&self.epoch, &claim.ranges) {
            tell(&message, net)?;
        }
        Ok(claim)
    }

    /// At the proposer: [chooses](choose) items that no other claim of this proposer has, until this claim is
    /// over.
    fn promise(&self, kind: &Kind, count: usize, members: PartySet, enough: usize) -> Claim<'_> {
        let (mut lots, ranges) = self.choose_or_wait(kind, count, members, enough);
        let ranges = ranges.unwrap_or_default();
        for range in &ranges {
            lots.iter_mut().filter(|lot| lot.id == range.lot).for_each(|lot| lot.promise(range));
        }
        Claim { ranges, promised_by: Some(self) }
    }

    /// At the proposer: [chooses](choose) items. If there are none because nodes have started again, it waits
    /// a short time for those that are being made.
    fn choose_or_wait(
        &self,
        kind: &Kind,
        count: usize,
        members: PartySet,
        enough: usize,
    ) -> (MutexGuard<'_, Vec<Lot>>, Option<Vec<Range>>) {
        let until = Instant::now() + REFILL;
        let is_behind = self.fell_behind.lock().is_some_and(|since| since.elapsed() < BEHIND);
        let choose = if is_behind { choose_youngest } else { choose };
        let mut lots = self.lock();
        loop {
            if let Some(ranges) = choose(&lots, kind, count as u64, members, enough) {
                return (lots, Some(ranges));
            }
            let left = until.saturating_duration_since(Instant::now());
            // A proposer that has itself started again says at once that it has none: the others can do
            // without it.
            let holds = held(&lots, kind).map(Lot::left).sum::<u64>();
            let is_refilled = self.missing.load(Relaxed) == 0 && holds >= count as u64;
            if !is_refilled || left.is_zero() {
                return (lots, None);
            }
            self.claimed.wait_for(&mut lots, left);
        }
    }

    /// Spends and returns the items of a claim that enough nodes heard; `None` if the stock is dry. Another
    /// session may have been faster.
    fn take_claimed(
        &self,
        mut claim: Claim<'_>,
        kind: &Kind,
        count: usize,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let mut lots = self.lock();
        let ranges = claim.end(&mut lots);
        if ranges.is_empty() {
            return Ok(None);
        }
        judge(&lots, kind, count, &ranges, false).map_err(|why| Error::System(why.to_string()))?;
        self.spend(&mut lots, &ranges, count * kind.item_bytes).map(Some)
    }

    fn hear_proposer(
        &self,
        proposer: Party,
        kind: &Kind,
        count: usize,
        quorum: usize,
        conflict: &mut Range,
        net: &mut dyn Net,
    ) -> Result<Claim<'_>> {
        let misfit = |detail: String| Error::OutOfStep { peer: proposer, detail };
        let ranges = hear(proposer, &self.epoch, PATIENCE, net).map_err(|e| match e {
            Error::System(detail) => misfit(detail),
            other => other,
        })?;
        if ranges.is_empty() {
            return match self.has(kind, count, net.members(), quorum) {
                true => Err(misfit("it says that the stock is dry, and this node's stock is not".into())),
                false => Ok(Claim { ranges, promised_by: None }),
            };
        }
        let lots = self.lock();
        judge(&lots, kind, count, &ranges, false)
            .and_then(|()| refuse_pieces(&lots, kind, count, &ranges, net.members(), quorum))
            .map_err(|why| {
                *conflict = first_conflict(&lots, kind, &ranges);
                misfit(why.to_string())
            })?;
        Ok(Claim { ranges, promised_by: None })
    }

    /// Digest of a claim: the kind, the number of items and the ranges.
    pub(super) fn digest(&self, kind: &Kind, count: usize, ranges: &[Range]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 claim of material");
        hasher.update(&(kind.name.len() as u64).to_le_bytes()).update(kind.name.as_bytes());
        hasher.update(&(count as u64).to_le_bytes());
        encode(&self.epoch, ranges).iter().for_each(|message| {
            hasher.update(message);
        });
        hasher.finalize().into()
    }

    /// Whether at least `quorum` of the `members` could take `count` items.
    fn has(&self, kind: &Kind, count: usize, members: PartySet, quorum: usize) -> bool {
        choose(&self.lock(), kind, count as u64, members, quorum).is_some()
    }

    /// After a refused claim: wipes what too few of the others still hold, and the items of the claim that
    /// any of them has spent.
    fn learn(&self, kind: &Kind, quorum: usize, claimed: &[Range], conflicts: &[Range]) {
        let as_set = |range: &Range, lot: &Lot| {
            let mut set = Ranges::default();
            set.add(range.from, range.to.min(lot.count()));
            set
        };
        let of_lot = |ranges: &[Range], lot: &Lot| -> Vec<Ranges> {
            ranges.iter().filter(|range| range.lot == lot.id).map(|range| as_set(range, lot)).collect()
        };
        // No claim of these items can still come here: the proposer itself makes them.
        let mut lots = self.lock();
        for lot in lots.iter_mut().filter(|lot| lot.kind == *kind) {
            let spent = of_lot(conflicts, lot);
            let useless = Ranges::in_at_least(self.nodes - quorum + 1, &spent);
            let (refused, claimed) = (Ranges::in_at_least(1, &spent), of_lot(claimed, lot));
            lot.lose(&useless);
            lot.lose(&Ranges::in_at_least(2, &[refused, Ranges::in_at_least(1, &claimed)]));
        }
        lots.retain(|lot| lot.left() > 0);
    }
}

/// For the first range of a claim that cannot be taken: the first run of spent items in it; or everything, if
/// the lot is not here.
fn first_conflict(lots: &[Lot], kind: &Kind, ranges: &[Range]) -> Range {
    let met = |range: &Range| {
        let lot = range.lot;
        match lots.iter().find(|lot| lot.id == range.lot && lot.kind == *kind) {
            Some(here) => {
                here.spent().first_met(range.from, range.to).map(|(from, to)| Range { lot, from, to })
            }
            None => Some(Range { lot, from: 0, to: u64::MAX }),
        }
    };
    ranges.iter().find_map(met).unwrap_or(NONE)
}

/// The items to take; none if the stock is dry.
struct Claim<'l> {
    ranges: Vec<Range>,
    /// At the proposer: the stock that has promised the items.
    promised_by: Option<&'l Lots>,
}

impl Claim<'_> {
    /// Ends the promise: the items may be taken, or promised to others.
    fn end(&mut self, lots: &mut [Lot]) -> Vec<Range> {
        let ranges = std::mem::take(&mut self.ranges);
        for range in ranges.iter().filter(|_| self.promised_by.is_some()) {
            lots.iter_mut().filter(|lot| lot.id == range.lot).for_each(|lot| lot.release(range));
        }
        ranges
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(lots) = self.promised_by.filter(|_| !self.ranges.is_empty()) {
            self.end(&mut lots.lock());
        }
    }
}

/// The error if too few nodes say the same. If a node is missing, nobody knows what it would have said, so
/// the proposer is not named.
fn not_alike(proposer: Party, what: &str, silent: PartySet) -> Error {
    match silent.iter().next() {
        Some(peer) => Error::Closed { peer, detail: format!("it did not say which material it {what}") },
        None => {
            let detail = format!("too few other nodes {what} the same material");
            Error::OutOfStep { peer: proposer, detail }
        }
    }
}

/// Sends the same to all peers. A peer that does not take it will be missing among those that confirm.
fn tell(message: &[u8], net: &mut dyn Net) -> Result<()> {
    if !message.is_empty() {
        let out = to_peers(message, net);
        let mut nothing: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
        net.gather(&out, &mut nothing, PATIENCE, &mut |_, _| true)?;
    }
    Ok(())
}

/// What the nodes say of a claim.
struct Comparison {
    /// Whether a quorum says the same as this node.
    agreed: bool,
    /// The items that others say to have spent.
    conflicts: Vec<Range>,
    /// The nodes that fell silent.
    silent: PartySet,
}

/// Tells all others the digest of a claim and hears theirs, until a quorum has the same as this node. A node
/// without a claim waits for nobody.
fn compare(mine: &[u8; 32], conflict: &Range, quorum: usize, net: &mut dyn Net) -> Result<Comparison> {
    let message = [&mine[..], &conflict.encode()].concat();
    let out = to_peers(&message, net);
    let mut theirs = vec![[0; 32 + RANGE]; out.len()];
    let awaited = if *mine == NOTHING { PartySet::default() } else { net.members() };
    let (me, mut agreed) = (net.me(), false);
    let mut into: Vec<&mut [u8]> = Party::all(out.len())
        .zip(&mut theirs)
        .map(|(p, buffer)| if p != me && awaited.contains(p) { &mut buffer[..] } else { &mut [][..] })
        .collect();
    let gathered = net.gather(&out, &mut into, PATIENCE, &mut |arrived, into| {
        agreed = 1 + arrived.iter().filter(|p| into[p.index()][..32] == mine[..]).count() >= quorum;
        agreed
    })?;
    let conflicts = gathered.arrived.iter().map(|p| Range::decode(&theirs[p.index()][32..])).collect();
    Ok(Comparison { agreed, conflicts, silent: gathered.lost })
}

fn to_peers<'m>(message: &'m [u8], net: &dyn Net) -> Vec<&'m [u8]> {
    let (me, members) = (net.me(), net.members());
    let to = |p: Party| if p != me && members.contains(p) { message } else { &[][..] };
    Party::all(net.parties()).map(to).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polyclave_protocol::stock::Purpose;

    use super::*;

    #[test]
    fn one_of_four_can_neither_have_material_made_for_ever_nor_keep_it_from_being_made() {
        for lie in [0, 300, 700, 1000, u16::MAX] {
            assert!(believable(vec![lie, 1000, 1000, 1000], 1) >= 1000, "none that is honest lacks any");
            assert!(believable(vec![0, 0, 0, lie], 1) == 0, "all that are honest are dry");
            assert!(believable(vec![lie, 1000, 0, 0], 1) == 0, "one more than may lie is dry");
        }
        assert_eq!(believable(vec![1000, 0, 0, 0], 1), 0, "the one that leads was not asked");
    }

    #[test]
    fn orders_of_more_than_a_run_are_not_joined() {
        let (store, _disk) = polyclave_store::testing::in_memory();
        let kind = Kind { name: "triples", purpose: Purpose::All, item_bytes: 16, per_block: 16 };
        let target = Target { kind, ciphers: "aes", blocks: 80, largest: 16 };
        let lots = Lots::permanent(Party(1), 4, ([1; 32], [1; 16]), vec![kind], Arc::new(store), 3);
        let fitting = ByQuorum { quorum: 3 }.fitting(&lots.expect("begun"), &target);
        for (blocks, fits) in [(1, true), (10, true), (11, false), (1 << 24, false)] {
            assert_eq!(fitting.contains(&(blocks * kind.per_block)), fits, "{blocks}");
        }
        assert!(!fitting.contains(&0) && !fitting.contains(&1));
    }
}

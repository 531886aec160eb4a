//! Taking from the stock among some of the nodes, of which some may cheat.
//!
//! The lowest node that serves proposes; the others judge its claim. Then every node *echoes* what it heard to every other, and
//! only if so many heard the same does it mark and take the items. Last, every node tells every other what it has taken, and uses it
//! only if so many took the same. So many are enough that any two choices of so many have a node in common that does not
//! cheat ([`quorum`](polyclave_protocol::service::ServiceConfig::quorum)).
//!
//! # Why nobody uses an item in two sessions
//!
//! Nodes that use one item in different sessions, even each of them once, would give away how what they hid under it differs: who
//! knows t shares can compute all others from one. Say i uses it in one session, and j in another. Those who told i the same,
//! and those who told j, have a node in common that does not cheat; it gives an item to one session only. So it cannot be, whoever
//! proposes, and whatever a proposer tells to whom. Who took what and uses nothing has lost it: it is wiped.
//!
//! # What cannot be taken from whom
//!
//! A proposer may leave out whatever it likes, and what it leaves out serves the next one that proposes; to leave out much in many
//! small pieces is refused.
//!
//! One that tells nodes different claims takes nothing from whom it misleads. It can echo what it likes, but the others echo what they
//! heard: if fewer than a quorum, with the proposer, were told the same, they take nothing and lose nothing, and what a node
//! takes is what a quorum was told. The proposer itself only *promises* items until the echo is over, so that no
//! other session proposes them: what too few follow is free again.
//!
//! *What is left*: a node that cheats, and whose word the others need for a quorum, can deny afterwards that it took what it echoed. That
//! is a proposer that told t of the others something else, or any node while another is missing or cannot follow. Then the
//! request fails, and those who took the claim have lost that much; the client asks again without whom it suspects.
//!
//! A node that was away, or was told other things, proposes items that the others have spent. Who refuses a claim says
//! which items in a row it has spent there, and what so many say that too few are left to use it is wiped at the
//! proposer, so that it comes to where the others are; all is compared before material is made ([`census`](super::census)). Of a claim
//! that too few followed the proposer also wipes what any one of them says to have spent, so that no two nodes refuse each other
//! for ever.
//!
//! A proposer that says that the stock is dry while others could take of it is the cause of a refusal, as is one whose claim does not
//! fit: it may have started again, and the client asks the others.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;
use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party, PartySet};
use zeroize::Zeroizing;

use super::Lots;
use super::choice::{choose, held, judge, refuse_pieces};
use super::claiming::{BLOCKS_AT_ONCE, ByQuorum, Claiming, FULL, HELD};
use super::claims::{RANGE, Range, encode, hear};
use super::lot::Lot;
use super::ranges::Ranges;
use crate::Result;
use crate::material::target::Target;
use crate::peers::exchange::tell_all;

/// In one run this part of the level is made, and not beyond so many bytes.
const PART_AT_ONCE: usize = 8;
const BYTES_AT_ONCE: usize = 16 << 20;

/// What a node says that has taken nothing.
const NOTHING: [u8; 32] = [0; 32];

/// No items.
const NONE: Range = Range { lot: [0; 16], from: 0, to: 0 };

/// How long a peer has to be silent. Longer than an honest one is late that was held up before, and short enough for openings to follow.
const PATIENCE: Patience = Patience::of(3);

/// Where nodes correct each other, material is made in moments. After some have started again what the others hold is of no use, though it
/// is enough: a proposer then waits so long for more, if all nodes are there to make it. Less than the others wait for its claim.
pub(super) const REFILL: Duration =
    if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(3) };

impl Claiming for ByQuorum {
    fn take(&self, lots: &Lots, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        lots.take_with_quorum(kind, count, self.quorum, net)
    }

    fn ends_with_a_failed_claim(&self) -> bool {
        false
    }

    /// What only some nodes hold serves in an emergency, and does not count.
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

    /// Any node may propose, so all tell all: a lot that one counts on is held by all that do not cheat.
    fn hear_that_all_hold(&self, net: &mut dyn Net) -> Result<()> {
        tell_all(&HELD, net).map(drop)
    }

    fn tell_that_all_hold(&self, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    /// Each node hears of some claims only. What this one lacks is so, whoever lies.
    fn believed_left(&self, lots: &Lots, target: &Target, own: Option<u16>, others: Vec<u16>) -> usize {
        let Some(own) = own else { return lots.left(&target.kind) };
        let levels = others.into_iter().chain([own]).collect();
        let level = believable(levels, (self.quorum - 1) / 2).min(own);
        target.items() * usize::from(level) / FULL
    }

    fn blocks_at_once(&self, target: &Target) -> usize {
        let fit = BYTES_AT_ONCE / (target.kind.item_bytes * target.kind.per_block).max(1);
        (target.blocks / PART_AT_ONCE).min(fit).max(BLOCKS_AT_ONCE)
    }

    /// Whether there is room turns out when all have met ([`census`](super::census)).
    fn fitting(&self, _: &Lots, target: &Target) -> RangeInclusive<usize> {
        let per_block = target.kind.per_block;
        per_block.max(1)..=self.blocks_at_once(target) * per_block
    }
}

/// What all nodes' levels say of which `liars` may be any number: of all, the lowest but for so many.
///
/// If it is too low, one that does not lie is too low: liars could hold down only as many as are left out, so they cannot have
/// material made for ever. And they cannot keep it from being made: whatever they say, it is too low as soon as one more than
/// they are, of those that do not lie, are. (One honest node alone, other
/// than this one, may lack some unseen, until the others do; a quorum is there without it, if no other cheats.)
fn believable(mut levels: Vec<u16>, liars: usize) -> u16 {
    levels.sort_unstable();
    levels.get(liars).copied().unwrap_or_default()
}

impl Lots {
    /// Takes items that `quorum` nodes take, this one included.
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
        }
        let taken = claim.and_then(|claim| match echo.agreed {
            true => self.take_claimed(claim, kind, count),
            false => Err(not_alike(proposer, "heard of", echo.silent)),
        });
        // Whoever takes nothing says so: others may wait for it.
        let digest = taken.as_ref().map_or(NOTHING, |_| digest);
        let confirmed = compare(&digest, &NONE, quorum, net)?;
        let items = taken?;
        match (confirmed.agreed, items) {
            (false, _) => Err(not_alike(proposer, "took", confirmed.silent)),
            // All that take the same come to it.
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

    /// At the proposer: items that it [chooses](choose), which no other claim of its has until this one is over.
    fn promise(&self, kind: &Kind, count: usize, members: PartySet, enough: usize) -> Claim<'_> {
        let (mut lots, ranges) = self.choose_or_wait(kind, count, members, enough);
        let ranges = ranges.unwrap_or_default();
        for range in &ranges {
            lots.iter_mut().filter(|lot| lot.id == range.lot).for_each(|lot| lot.promise(range));
        }
        Claim { ranges, promised_by: Some(self) }
    }

    /// At the proposer: items that it [chooses](choose). Where there are none since nodes have started again, it waits a moment for
    /// those that are being made.
    fn choose_or_wait(
        &self,
        kind: &Kind,
        count: usize,
        members: PartySet,
        enough: usize,
    ) -> (MutexGuard<'_, Vec<Lot>>, Option<Vec<Range>>) {
        let until = Instant::now() + REFILL;
        let mut lots = self.lock();
        loop {
            if let Some(ranges) = choose(&lots, kind, count as u64, members, enough) {
                return (lots, Some(ranges));
            }
            let left = until.saturating_duration_since(Instant::now());
            // One that has itself started again says so at once: the others can do without it.
            let holds = held(&lots, kind).map(Lot::left).sum::<u64>();
            let is_refilled = self.missing.load(Relaxed) == 0 && holds >= count as u64;
            if !is_refilled || left.is_zero() {
                return (lots, None);
            }
            self.claimed.wait_for(&mut lots, left);
        }
    }

    /// The items of a claim that enough nodes heard, spent; none if the stock is dry. Another session may have been faster.
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
        let misfit = |detail: String| Error::Peer { peer: proposer, detail };
        let ranges = hear(proposer, &self.epoch, PATIENCE, net).map_err(|e| match e {
            Error::System(detail) => misfit(detail),
            other => other,
        })?;
        if ranges.is_empty() {
            return match self.has(kind, count, net.members(), quorum) {
                true => Err(misfit("it says that the stock is dry, which it is not here".into())),
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

    /// What is claimed of what.
    pub(super) fn digest(&self, kind: &Kind, count: usize, ranges: &[Range]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 claim of material");
        hasher.update(&(kind.name.len() as u64).to_le_bytes()).update(kind.name.as_bytes());
        hasher.update(&(count as u64).to_le_bytes());
        encode(&self.epoch, ranges).iter().for_each(|message| {
            hasher.update(message);
        });
        hasher.finalize().into()
    }

    /// Whether so many of some nodes could take so much.
    fn has(&self, kind: &Kind, count: usize, members: PartySet, quorum: usize) -> bool {
        choose(&self.lock(), kind, count as u64, members, quorum).is_some()
    }

    /// A claim was refused: wipes what too few of the others have left, and what of the claim any of them has spent.
    fn learn(&self, kind: &Kind, quorum: usize, claimed: &[Range], conflicts: &[Range]) {
        let as_set = |range: &Range, lot: &Lot| {
            let mut set = Ranges::default();
            set.add(range.from, range.to.min(lot.count()));
            set
        };
        let of_lot = |ranges: &[Range], lot: &Lot| -> Vec<Ranges> {
            ranges.iter().filter(|range| range.lot == lot.id).map(|range| as_set(range, lot)).collect()
        };
        // A proposer has heard of no claim of them that it could still follow.
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

/// Of the first range of a claim that cannot be taken: the spent items that it meets, in a row. All, of a lot that is not here.
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

/// What is to be taken; nothing if the stock is dry.
struct Claim<'l> {
    ranges: Vec<Range>,
    /// The stock that has promised it, at the proposer.
    promised_by: Option<&'l Lots>,
}

impl Claim<'_> {
    /// What was promised may be taken, or promised to others.
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

/// Too few nodes say the same. Whoever proposed, if somebody is missing it is not known what it would have said.
fn not_alike(proposer: Party, what: &str, silent: PartySet) -> Error {
    match silent.iter().next() {
        Some(peer) => Error::Closed { peer, detail: format!("it did not say which material it {what}") },
        None => {
            let detail = format!("too few other nodes {what} the same material");
            Error::Peer { peer: proposer, detail }
        }
    }
}

/// Sends all peers the same. One that takes nothing is missing from those who confirm.
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
    /// So many say the same as this one.
    agreed: bool,
    /// Which items others say to have spent.
    conflicts: Vec<Range>,
    /// Who fell silent.
    silent: PartySet,
}

/// Tells all others the digest of a claim, and hears theirs, until so many are the same as this one. With nothing to compare
/// nobody is waited for.
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
        let (store, _disk) = crate::store::testing::in_memory();
        let kind = Kind { name: "triples", purpose: Purpose::All, item_bytes: 16, per_block: 16 };
        let target = Target { kind, ciphers: "aes", blocks: 80 };
        let lots = Lots::standing(Party(1), 4, ([1; 32], [1; 16]), vec![kind], Arc::new(store), 3);
        let fitting = ByQuorum { quorum: 3 }.fitting(&lots.expect("begun"), &target);
        for (blocks, fits) in [(1, true), (10, true), (11, false), (1 << 24, false)] {
            assert_eq!(fitting.contains(&(blocks * kind.per_block)), fits, "{blocks}");
        }
        assert!(!fitting.contains(&0) && !fitting.contains(&1));
    }
}

//! Material that this node has in stock: made ahead, handed out once ([`polyclave_protocol::stock`]).
//!
//! * A **lot** is what one run of all nodes made of one kind ([`fill`]). Its name is random and no node chooses it.
//! * A **claim** says which items a session takes: ranges of lots. The lowest node, the proposer, picks them; it marks them
//!   as spent in its store, then tells the others. They follow if they know the lots, none of the items was claimed before
//!   here, and the claim leaves out no more than a part of a lot ([`Refused::TooFar`]); they mark, too, before they use an
//!   item. A claim that is refused costs nothing here. Sessions run side by side, so claims come in any order, and items
//!   that were left out can be claimed later; a claim that leaves out too much waits a little for those on their way.
//! * Marks are made ahead, as for budgets: one synced write for an eighth of a lot, or for a claim if that is more.
//!
//! # Nothing is used twice
//!
//! Two sessions never get the same item at a node: claims are judged and items taken out under one lock, and what is taken
//! out is wiped here. **Lots are in memory only**, never on a disk, not even sealed: a node that starts has none, so neither a
//! crash nor an old copy of its disk brings material back, and there is no key for it to lose. (What a stock takes: 330 KB
//! for a block of AES-128, 200 KB for one of 3DES.) The marks are for what remains, the image of a running process that is
//! put back: whoever takes such lots into use again ([`Lots::hold`]) starts behind the mark. An image that goes on without
//! noticing proposes items again that it proposed before; any other node that was not put back, too, refuses them. Not covered:
//! an image put back together with hostile memory of all other nodes.
//!
//! Lots are of one epoch, that of the nodes' common secrets; the store refuses marks of any but the latest.
//!
//! All of this is where all nodes serve every request. Where nodes correct each other and some serve, others propose, and claims may
//! leave out anything, since each node has heard of some; more is to be said for it in [`quorum`], and in [`census`] on what is given up.

mod census;
mod choice;
mod claims;
pub(crate) mod fill;
#[cfg(test)]
mod fuzz;
mod lot;
mod quorum;
mod ranges;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::{Error, Party, PartySet};
use zeroize::Zeroizing;

use crate::Result;
use crate::core::system;
use crate::store::Store;
use choice::{choose, held, judge};
use claims::{PROPOSER, Range, refused};
use lot::{Lot, Refused, Standing};

/// A run makes so much, at most: a step of progress.
const MOST_BYTES_AT_ONCE: usize = 64 << 20;

/// Material held at most, whatever other nodes want made.
const MOST_BYTES: usize = 8 << 30;

/// Lots of which only the proposer knows whether they serve, at most: the eldest is then dropped.
const MOST_IN_DOUBT: usize = 4;

/// How long a claim that leaves out too much waits for others that are on their way.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(10) };

/// Where nodes correct each other, material is made in moments. After some have started again what the others hold is of no use, though it
/// is enough: a proposer then waits so long for more, if all nodes are there to make it. Less than the others wait for its claim.
const REFILL: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(3) };

/// The material of one epoch.
pub(crate) struct Lots {
    me: Party,
    nodes: usize,
    epoch: [u8; 32],
    /// Of what the marks are.
    marks: [u8; 32],
    kinds: Vec<Kind>,
    store: Arc<Store>,
    /// So many nodes that take the same take it, whoever serves; none if all nodes serve.
    quorum: Option<usize>,
    /// By age.
    lots: Mutex<Vec<Lot>>,
    claimed: Condvar,
    /// Nodes without which none is made now.
    missing: AtomicU16,
}

/// What there is of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// Of what.
    pub(crate) kind: Kind,
    /// Items.
    pub(crate) left: usize,
}

impl Lots {
    /// An empty stock for material of these kinds. Other epochs' material is not used any more.
    pub(crate) fn new(
        me: Party,
        nodes: usize,
        epoch: [u8; 32],
        kinds: Vec<Kind>,
        store: Arc<Store>,
    ) -> Result<Arc<Lots>> {
        Lots::begin(me, nodes, (epoch, epoch), kinds, store, None)
    }

    /// The same for nodes that correct each other, of which `quorum` take the same. `boot` is this start of the node: its lots end
    /// with it, and the epoch does not.
    pub(crate) fn standing(
        me: Party,
        nodes: usize,
        (epoch, boot): ([u8; 32], [u8; 16]),
        kinds: Vec<Kind>,
        store: Arc<Store>,
        quorum: usize,
    ) -> Result<Arc<Lots>> {
        let mut marks = blake3::Hasher::new_derive_key("polyclave 2026 marks of lots in one start");
        let marks = marks.update(&epoch).update(&boot).finalize().into();
        Lots::begin(me, nodes, (epoch, marks), kinds, store, Some(quorum))
    }

    fn begin(
        me: Party,
        nodes: usize,
        (epoch, marks): ([u8; 32], [u8; 32]),
        kinds: Vec<Kind>,
        store: Arc<Store>,
        quorum: Option<usize>,
    ) -> Result<Arc<Lots>> {
        store.begin_lots(marks).map_err(system)?;
        let (lots, claimed, missing) = (Mutex::default(), Condvar::new(), AtomicU16::new(0));
        Ok(Arc::new(Lots { me, nodes, epoch, marks, kinds, store, quorum, lots, claimed, missing }))
    }

    /// Whether requests that fail leave the stock as it is, since the nodes correct each other.
    pub(crate) fn stands(&self) -> bool {
        self.quorum.is_some()
    }

    /// Which nodes are not connected: all are needed to make material.
    pub(crate) fn note_missing(&self, nodes: PartySet) {
        self.missing.store(nodes.bits(), Relaxed);
    }

    /// A node has started again: it holds nothing any more.
    pub(crate) fn forget(&self, node: Party) {
        let node = [node].into_iter().collect();
        self.lock().iter_mut().for_each(|lot| lot.is_lost_at(node));
    }

    /// What there is of each kind.
    pub(crate) fn levels(&self) -> Vec<Level> {
        let lots = self.lock();
        let all = PartySet::all(self.nodes);
        // What only some nodes hold serves in an emergency, and does not count.
        let of = |lot: &Lot| match self.quorum {
            Some(_) if !lot.is_held_by(all) => 0,
            _ => lot.left(),
        };
        let left = |kind: &Kind| held(&lots, kind).map(|lot| of(lot) as usize).sum();
        self.kinds.iter().map(|kind| Level { kind: *kind, left: left(kind) }).collect()
    }

    /// Bytes of so many items, for which there must be room.
    fn room_for(&self, kind: &Kind, count: usize) -> Result<usize> {
        self.refuse_unknown(kind)?;
        let bytes = count.saturating_mul(kind.item_bytes);
        if count == 0 || bytes > MOST_BYTES_AT_ONCE {
            return Err(Error::Misuse(format!("a run does not make {count} {}", kind.name)));
        }
        let there: usize = self.lock().iter().map(Lot::bytes).sum();
        match there + bytes <= MOST_BYTES {
            true => Ok(bytes),
            false => Err(Error::System(format!("there are {there} bytes of material already"))),
        }
    }

    /// Takes in a lot that cannot be claimed yet, except by who knows that all hold it. Of one that was here before, what was
    /// marked is spent.
    fn hold(&self, id: [u8; 16], kind: &Kind, items: Zeroizing<Vec<u8>>) -> Result<()> {
        let mark = self.store.spent_of_lot(self.marks, id).map_err(system)?;
        let mut lots = self.lock();
        if lots.iter().any(|lot| lot.id == id) {
            return Err(Error::misuse("a lot is taken in twice"));
        }
        lots.push(Lot::new(id, *kind, items, mark, PartySet::all(self.nodes)));
        Ok(())
    }

    /// Whether this node heard that all hold their parts of a lot.
    fn settle(&self, id: [u8; 16], heard_all: bool) {
        let mut lots = self.lock();
        if heard_all {
            lots.iter_mut().filter(|lot| lot.id == id).for_each(|lot| lot.standing = Standing::Held);
            self.claimed.notify_all();
        } else if self.me == PROPOSER && self.quorum.is_none() {
            // It would be the one to claim it.
            lots.retain(|lot| lot.id != id);
        } else {
            let pending = || lots.iter().filter(|lot| lot.standing == Standing::Pending);
            if pending().count() > MOST_IN_DOUBT {
                let eldest = pending().map(|lot| lot.id).next();
                lots.retain(|lot| Some(lot.id) != eldest);
            }
        }
    }

    /// At the proposer: items that it [chooses](choose), spent.
    fn propose(
        &self,
        kind: &Kind,
        count: usize,
        members: PartySet,
        enough: usize,
    ) -> Result<Option<Proposed>> {
        let (mut lots, ranges) = self.choose_or_wait(kind, count, members, enough);
        let Some(ranges) = ranges else { return Ok(None) };
        let items = self.spend(&mut lots, &ranges, count * kind.item_bytes)?;
        Ok(Some((ranges, items)))
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
            let is_refilled = self.stands() && self.missing.load(Relaxed) == 0 && holds >= count as u64;
            if !is_refilled || left.is_zero() {
                return (lots, None);
            }
            self.claimed.wait_for(&mut lots, left);
        }
    }

    /// At the others: the items of a claim, spent.
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

    /// Marks items as spent, then takes them out. They are in lots, and were never claimed.
    fn spend(&self, lots: &mut Vec<Lot>, ranges: &[Range], bytes: usize) -> Result<Zeroizing<Vec<u8>>> {
        let claimed_to =
            |lot: &Lot| ranges.iter().filter(|range| range.lot == lot.id).map(|range| range.to).max();
        let marks = lots.iter().filter_map(|lot| Some((lot.id, lot.mark_for(claimed_to(lot)?)?)));
        let marks: Vec<_> = marks.collect();
        if !marks.is_empty() {
            // Under the lock: nobody takes an item of a range that is not on the disk yet.
            self.store.spend_lots(self.marks, &marks).map_err(system)?;
        }
        // Sized at once: growing would leave copies behind.
        let mut items = Zeroizing::new(Vec::with_capacity(bytes));
        for (id, mark) in marks {
            lots.iter_mut().filter(|lot| lot.id == id).for_each(|lot| lot.marked(mark));
        }
        for range in ranges {
            lots.iter_mut().filter(|lot| lot.id == range.lot).for_each(|lot| lot.take(range, &mut items));
        }
        lots.iter_mut().for_each(Lot::shrink);
        lots.retain(|lot| lot.left() > 0);
        self.claimed.notify_all();
        Ok(items)
    }

    /// What there is of a kind that can be taken now, and what cannot, since too few of the nodes that are here hold it still.
    fn of_use(&self, kind: &Kind) -> (u64, u64) {
        let (lots, missing) = (self.lock(), PartySet::from_bits(self.missing.load(Relaxed)));
        // Where all nodes serve a lot ends with the epoch, at all of them.
        let enough = self.quorum.unwrap_or_default();
        let (mut there, mut lost) = (0, 0);
        for lot in held(&lots, kind) {
            let holders = lot.holders().without(missing).len();
            *(if holders >= enough { &mut there } else { &mut lost }) += lot.left();
        }
        (there, lost)
    }

    fn dry(&self, kind: &Kind, count: usize) -> Error {
        self.dry_with(kind, count, self.of_use(kind))
    }

    /// The same, by what the proposer has: each node hears of claims in its own time, so that others may still hold what it has spent.
    fn dry_with(&self, kind: &Kind, count: usize, (there, lost): (u64, u64)) -> Error {
        let (name, blocks) = (kind.name, count.div_ceil(kind.per_block));
        let missing: Vec<String> =
            PartySet::from_bits(self.missing.load(Relaxed)).iter().map(|node| node.to_string()).collect();
        let refilled = match &missing[..] {
            [] => "it is being refilled: wait and ask again".into(),
            missing => format!(
                "it is not refilled while a node is missing, here {}: ask again when all are back",
                missing.join(", ")
            ),
        };
        let useless = match lost {
            0 => String::new(),
            lost => format!(
                " ({lost} more are of no use now: too few of the nodes that are here still hold them, since some have started again \
                 or are missing)"
            ),
        };
        Error::OutOfMaterial {
            detail: format!(
                "the stock of the nodes holds {there} {name}{useless}, and {count} are needed at once (for up to {blocks} \
                 blocks); {refilled}, ask for less at once, or raise the level under [stock] in node.toml at every node"
            ),
        }
    }

    fn refuse_unknown(&self, kind: &Kind) -> Result<()> {
        match self.kinds.contains(kind) {
            true => Ok(()),
            false => Err(Error::Misuse(format!("no {} are kept in stock", kind.name))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Lot>> {
        self.lots.lock()
    }
}

/// What the proposer takes, and what comes of it.
type Proposed = (Vec<Range>, Zeroizing<Vec<u8>>);

impl Stock for Lots {
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        self.refuse_unknown(kind)?;
        // All know that nothing is asked for.
        if count == 0 {
            return Ok(Zeroizing::default());
        }
        if let Some(quorum) = self.quorum {
            return self.take_with_quorum(kind, count, quorum, net);
        }
        if (net.me(), net.parties(), net.members()) != (self.me, self.nodes, PartySet::all(self.nodes)) {
            return Err(Error::misuse("material is taken by all nodes that made it"));
        }
        if net.me() == PROPOSER {
            let proposed = self.propose(kind, count, PartySet::all(self.nodes), self.nodes)?;
            let ranges = proposed.as_ref().map_or(&[][..], |(ranges, _)| ranges);
            claims::tell(&self.epoch, ranges, net)?;
            return match proposed {
                Some((_, items)) => Ok(items),
                None => {
                    let (there, _) = self.of_use(kind);
                    claims::tell_left(there, net)?;
                    Err(self.dry_with(kind, count, (there, 0)))
                }
            };
        }
        match claims::hear(PROPOSER, &self.epoch, Patience::of(1), net)? {
            none if none.is_empty() => Err(self.dry_with(kind, count, (claims::hear_left(net)?, 0))),
            ranges => self.follow(kind, count, &ranges),
        }
    }
}

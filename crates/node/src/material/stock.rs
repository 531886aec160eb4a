//! The stock of this node: material made ahead and used once ([`polyclave_protocol::stock`]).
//!
//! * A **lot** is what one run of all nodes made of one kind ([`fill`]). Its name is random, and no node
//!   chooses it.
//! * A **claim** says which items a session takes: ranges of lots. The node with the lowest number, the
//!   proposer, picks them. It marks them as spent in its store, then tells the others. They follow if they
//!   know the lots, if no item was claimed here before, and if the claim leaves out at most a part of a lot
//!   ([`Refused::TooFar`]). They, too, mark the items before they use one. A refused claim costs nothing
//!   here. Sessions run side by side, so claims come in any order, and items that were left out can be
//!   claimed later; a claim that leaves out too much waits a short time for claims that are still on their
//!   way.
//! * Marks are made ahead, as for budgets: one synced write covers an eighth of a lot, or a claim if that is
//!   more.
//!
//! # Nothing is used twice
//!
//! At one node two sessions never get the same item: the node judges a claim and takes the items out under
//! one lock, and wipes here what it takes out. **Lots are in memory only**. (One that another worker has made
//! comes through the server of the store, sealed to a key that is in memory only: [`super::delivery`].) A
//! node that starts has none, so neither a crash nor an old copy of its disk brings material back, and there
//! is no key for it to lose. Nodes that start make new material instead: the first runs are short, so that
//! requests are served about a second after a start (docs/benchmarks.md). The marks guard against the
//! remaining case, an image of a running process that is put back: a node that takes such lots into use again
//! ([`Lots::hold`]) starts behind the mark. An image that goes on without noticing proposes items again that
//! it proposed before; any other node that was not put back refuses them. Not covered: an image put back
//! together with hostile memory of all other nodes.
//!
//! Lots belong to one epoch, that of the nodes' common secrets. The store refuses marks of any but the latest
//! epoch.
//!
//! # A stock that is dry
//!
//! Where all nodes serve, a claim waits until enough is made, in the order in which sessions asked, and the
//! proposer tells the others so twice a second. The wait ends if nothing is made or taken for a minute, after
//! a quarter of an hour, and as soon as a refresh waits for running requests ([`Lots::hold_back`]). The other
//! nodes wait twice as long. A session that takes much takes it in pieces ([`bounded`]), so that others get
//! their turn. Where a quorum serves, a dry stock is told at once.
//!
//! There are two ways to decide who proposes and which claims the others follow ([`claiming`]). Where all
//! nodes serve every request, the first one proposes ([`proposer`]), and all of the above holds. Where a
//! quorum serves, other nodes propose too, and a claim may leave out anything, because each node has heard of
//! some claims only: see [`quorum`], and [`census`] on what is given up.

pub(crate) mod bounded;
mod census;
mod choice;
pub(crate) mod claiming;
mod claims;
pub(crate) mod fill;
#[cfg(test)]
mod fuzz;
mod lot;
mod proposer;
mod quorum;
mod ranges;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use polyclave_protocol::net::Net;
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_store::Store;
use zeroize::Zeroizing;

use crate::Result;
use crate::error::system;
use choice::held;
use claiming::{ByProposer, ByQuorum, Claiming};
use claims::Range;
use lot::{Lot, LotStatus};

/// The most that one run makes at a time: one step of progress.
pub(crate) const MAX_BYTES_AT_ONCE: usize = 64 << 20;

/// The most material that this node holds, whatever other nodes want made.
const MAX_BYTES: usize = 8 << 30;

/// After this time without a claim the stock is filled up, however little is missing.
const QUIET: Duration = Duration::from_secs(1);

/// The most lots that are kept while only the proposer knows whether they can be used. Beyond that the oldest
/// is dropped.
const MAX_IN_DOUBT: usize = 4;

/// The material of one epoch.
pub(crate) struct Lots {
    me: Party,
    nodes: usize,
    epoch: [u8; 32],
    /// Key of the durable spent-marks.
    marks: [u8; 32],
    kinds: Vec<Kind>,
    store: Arc<Store>,
    /// How the nodes agree on what a session takes.
    claiming: Box<dyn Claiming>,
    /// The oldest first.
    lots: Mutex<Vec<Lot>>,
    claimed: Condvar,
    /// Who waits for material, in order.
    turns: Mutex<Turns>,
    /// By kind: how many items were ever made.
    made: Mutex<Vec<usize>>,
    /// At the proposer: kinds of which a session has asked for items that it could go on without.
    wanted: Mutex<Vec<Kind>>,
    /// When something was last claimed.
    last_claim: Mutex<Option<Instant>>,
    /// The nodes that are not connected. While any is missing, no material is made.
    missing: AtomicU16,
    /// No material is made, because a refresh waits for running requests.
    held_back: AtomicBool,
    /// When too few nodes last followed a claim of this node because they had spent the items.
    fell_behind: Mutex<Option<Instant>>,
}

/// Sessions that wait for material, each with its kind and its number.
#[derive(Default)]
struct Turns {
    next: u64,
    waiting: Vec<(Kind, u64)>,
}

/// How much there is of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// The kind.
    pub(crate) kind: Kind,
    /// The number of items.
    pub(crate) left: usize,
}

impl Lots {
    /// An empty stock for material of these kinds. Material of other epochs is no longer used.
    pub(crate) fn new(
        me: Party,
        nodes: usize,
        epoch: [u8; 32],
        kinds: Vec<Kind>,
        store: Arc<Store>,
    ) -> Result<Arc<Lots>> {
        Lots::begin(me, nodes, (epoch, epoch), kinds, store, Box::new(ByProposer))
    }

    /// The same for nodes that correct each other: a `quorum` of them must take the same items. `boot` is
    /// this start of the node: its lots end with it, and the epoch does not.
    pub(crate) fn permanent(
        me: Party,
        nodes: usize,
        (epoch, boot): ([u8; 32], [u8; 16]),
        kinds: Vec<Kind>,
        store: Arc<Store>,
        quorum: usize,
    ) -> Result<Arc<Lots>> {
        let mut marks = blake3::Hasher::new_derive_key("polyclave 2026 marks of lots in one start");
        let marks = marks.update(&epoch).update(&boot).finalize().into();
        Lots::begin(me, nodes, (epoch, marks), kinds, store, Box::new(ByQuorum { quorum }))
    }

    fn begin(
        me: Party,
        nodes: usize,
        (epoch, marks): ([u8; 32], [u8; 32]),
        kinds: Vec<Kind>,
        store: Arc<Store>,
        claiming: Box<dyn Claiming>,
    ) -> Result<Arc<Lots>> {
        store.begin_lots(marks).map_err(system)?;
        Ok(Arc::new(Lots {
            me,
            nodes,
            epoch,
            marks,
            made: Mutex::new(vec![0; kinds.len()]),
            kinds,
            store,
            claiming,
            lots: Mutex::default(),
            claimed: Condvar::new(),
            turns: Mutex::default(),
            wanted: Mutex::default(),
            last_claim: Mutex::default(),
            missing: AtomicU16::new(0),
            held_back: AtomicBool::new(false),
            fell_behind: Mutex::default(),
        }))
    }

    /// Notes which nodes are not connected: all are needed to make material.
    pub(crate) fn note_missing(&self, nodes: PartySet) {
        self.missing.store(nodes.bits(), Relaxed);
    }

    /// Notes whether a refresh waits for running requests. If so, no material is made, and no claim waits for
    /// material. Otherwise the refresh would wait for the request, and the request for the refresh.
    pub(crate) fn hold_back(&self, is_held_back: bool) {
        self.held_back.store(is_held_back, Relaxed);
    }

    /// Whether a refresh waits for running requests, so that no material is made.
    pub(crate) fn is_held_back(&self) -> bool {
        self.held_back.load(Relaxed)
    }

    /// Notes that a node has started again: it holds nothing any more.
    pub(crate) fn forget(&self, node: Party) {
        let node = [node].into_iter().collect();
        self.lock().iter_mut().for_each(|lot| lot.is_lost_at(node));
    }

    /// Takes items of some kinds if enough of all are there, for a session that can go on without. The same
    /// at all nodes.
    fn take_if_there(
        &self,
        wanted: &[(Kind, usize)],
        net: &mut dyn Net,
    ) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
        for (at, (kind, count)) in wanted.iter().enumerate() {
            self.refuse_unknown(kind)?;
            // Items of one kind would be chosen twice.
            if *count == 0 || wanted[..at].iter().any(|(other, _)| other == kind) {
                return Err(Error::Misuse(format!("{count} {} are claimed beside others", kind.name)));
            }
        }
        self.claiming.take_if_there(self, wanted, net)
    }

    /// How much there is of each kind.
    pub(crate) fn levels(&self) -> Vec<Level> {
        let lots = self.lock();
        let counted = |lot: &&Lot| self.claiming.counts(lot, self.nodes);
        let left = |kind: &Kind| held(&lots, kind).filter(counted).map(|lot| lot.left() as usize).sum();
        self.kinds.iter().map(|kind| Level { kind: *kind, left: left(kind) }).collect()
    }

    /// How the nodes claim from this stock.
    pub(crate) fn claiming(&self) -> &dyn Claiming {
        &*self.claiming
    }

    /// How much there is of one kind.
    pub(crate) fn left(&self, kind: &Kind) -> usize {
        self.levels().iter().find(|level| level.kind == *kind).map_or(0, |level| level.left)
    }

    /// How many items of a kind were made here since the stock began.
    fn made(&self, kind: &Kind) -> usize {
        let at = self.kinds.iter().position(|other| other == kind);
        at.map_or(0, |at| self.made.lock()[at])
    }

    /// A session asks for items that it could go on without: from now on they are made.
    fn note_wanted(&self, kind: &Kind) {
        let mut wanted = self.wanted.lock();
        if !wanted.contains(kind) {
            wanted.push(*kind);
        }
    }

    /// Whether items of this kind are made: at the proposer since a session asked for some, at the others
    /// since the proposer ordered some.
    pub(crate) fn is_wanted(&self, kind: &Kind) -> bool {
        self.wanted.lock().contains(kind) || self.made(kind) > 0
    }

    /// Whether nothing was claimed lately.
    fn is_quiet(&self) -> bool {
        self.last_claim.lock().is_none_or(|last| last.elapsed() >= QUIET)
    }

    /// An error if there is no room for some items.
    fn room_for(&self, kind: &Kind, count: usize) -> Result<()> {
        self.refuse_unknown(kind)?;
        let bytes = count.saturating_mul(kind.item_bytes);
        if count == 0 || bytes > MAX_BYTES_AT_ONCE {
            return Err(Error::Misuse(format!("a run does not make {count} {}", kind.name)));
        }
        let there: usize = self.lock().iter().map(Lot::bytes).sum();
        match there + bytes <= MAX_BYTES {
            true => Ok(()),
            false => Err(Error::System(format!("there are {there} bytes of material already"))),
        }
    }

    /// Takes in a lot. Until all nodes are known to hold it, only a node that knows this can claim it. If the
    /// lot was here before, its marked items count as spent.
    fn hold(&self, id: [u8; 16], kind: &Kind, items: Zeroizing<Vec<u8>>) -> Result<()> {
        let mark = self.store.spent_of_lot(self.marks, id).map_err(system)?;
        let mut lots = self.lock();
        if lots.iter().any(|lot| lot.id == id) {
            return Err(Error::misuse("a lot is taken in twice"));
        }
        if let Some(at) = self.kinds.iter().position(|other| other == kind) {
            self.made.lock()[at] += items.len() / kind.item_bytes.max(1);
        }
        lots.push(Lot::new(id, *kind, items, mark, PartySet::all(self.nodes)));
        Ok(())
    }

    /// Settles a new lot, once it is known whether this node heard that all nodes hold their parts.
    fn settle(&self, id: [u8; 16], heard_all: bool) {
        let mut lots = self.lock();
        if heard_all {
            lots.iter_mut().filter(|lot| lot.id == id).for_each(|lot| lot.status = LotStatus::Held);
            self.claimed.notify_all();
        } else if !self.claiming.keeps_in_doubt(self.me) {
            lots.retain(|lot| lot.id != id);
        } else {
            let pending = || lots.iter().filter(|lot| lot.status == LotStatus::Pending);
            if pending().count() > MAX_IN_DOUBT {
                let eldest = pending().map(|lot| lot.id).next();
                lots.retain(|lot| Some(lot.id) != eldest);
            }
        }
    }

    /// Marks items as spent, then takes them out. They must be in lots and not yet claimed.
    fn spend(&self, lots: &mut Vec<Lot>, ranges: &[Range], bytes: usize) -> Result<Zeroizing<Vec<u8>>> {
        let claimed_to =
            |lot: &Lot| ranges.iter().filter(|range| range.lot == lot.id).map(|range| range.to).max();
        let marks = lots.iter().filter_map(|lot| Some((lot.id, lot.mark_for(claimed_to(lot)?)?)));
        let marks: Vec<_> = marks.collect();
        if !marks.is_empty() {
            // Under the lock: no session takes an item of a range whose mark is not on the disk yet.
            self.store.spend_lots(self.marks, &marks).map_err(system)?;
        }
        // Allocated at its full size: growing would leave copies behind.
        let mut items = Zeroizing::new(Vec::with_capacity(bytes));
        for (id, mark) in marks {
            lots.iter_mut().filter(|lot| lot.id == id).for_each(|lot| lot.marked(mark));
        }
        for range in ranges {
            lots.iter_mut().filter(|lot| lot.id == range.lot).for_each(|lot| lot.take(range, &mut items));
        }
        lots.iter_mut().for_each(Lot::shrink);
        lots.retain(|lot| lot.left() > 0);
        *self.last_claim.lock() = Some(Instant::now());
        self.claimed.notify_all();
        Ok(items)
    }

    /// How much of a kind can be taken now, and how much cannot, because too few of the connected nodes still
    /// hold it.
    fn of_use(&self, kind: &Kind) -> (u64, u64) {
        let (lots, missing) = (self.lock(), PartySet::from_bits(self.missing.load(Relaxed)));
        let enough = self.claiming.least_holders();
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

    /// The same, with the numbers of the proposer: each node hears of claims at its own time, so that others
    /// may still hold what it has spent.
    fn dry_with(&self, kind: &Kind, count: usize, (there, lost): (u64, u64)) -> Error {
        let (name, blocks) = (kind.name, count.div_ceil(kind.per_block));
        let missing: Vec<String> =
            PartySet::from_bits(self.missing.load(Relaxed)).iter().map(|node| node.to_string()).collect();
        let refilled = match &missing[..] {
            _ if self.is_held_back() => {
                "the nodes are about to make fresh common secrets: ask again after that".into()
            }
            [] => "it is being refilled: wait and ask again".into(),
            missing => format!(
                "it is not refilled while a node is missing, here {}: ask again when all are back",
                missing.join(", ")
            ),
        };
        let useless = match lost {
            0 => String::new(),
            lost => format!(
                " ({lost} more are of no use now: too few of the connected nodes still hold them, because some have started again \
                 or are missing)"
            ),
        };
        Error::OutOfMaterial {
            detail: format!(
                "the stock of the nodes holds {there} {name}{useless}, and {count} are needed at once (for up to {blocks} \
                 blocks); {refilled}, ask for less at a time, or raise the level under [stock] in node.toml at every node"
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

impl Stock for Lots {
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        self.refuse_unknown(kind)?;
        // All nodes know that nothing is asked for.
        if count == 0 {
            return Ok(Zeroizing::default());
        }
        self.claiming.take(self, kind, count, net)
    }
}

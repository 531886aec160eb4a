//! What the first node has all nodes do together in the background, one thing after the other: rotations, epochs, and material
//! for the stock.

#[cfg(test)]
mod renewing;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::session::{Terms, random_bytes};
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party};
use polyclave_transport::wire::StockLevel;

use crate::core::Core;
use crate::epoch::{Epoch, meet};
use crate::peers::Order;
use crate::quarantine::judge;
use crate::stock::Lots;
use crate::stock::fill::fill;
use crate::target::Target;
use crate::threads::LOOK;
use crate::{Result, epoch, rotation};

/// Before something is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// A difference between epochs that lasts no longer is between a beat and the next.
const SETTLED: Duration = Duration::from_secs(3);
/// Blocks in one run: so many that a run is worth its rounds, and so few that levels can be seen to rise.
const BLOCKS_AT_ONCE: usize = 8;
/// Or, where material is made by the megabyte, this part of the level, and not beyond so many bytes.
const PART_AT_ONCE: usize = 8;
const BYTES_AT_ONCE: usize = 16 << 20;

/// Has the nodes prepare what is lacking, until this one stops; at the first node.
pub(crate) fn prepare<S: ServiceScheme>(core: &Arc<Core<S>>) {
    if core.me != Party(0) || !core.scheme.keeps_stock() {
        return;
    }
    let mut lacking: Option<Instant> = None;
    while !core.is_stopping() {
        thread::sleep(LOOK);
        if !epoch::is_due(core) {
            lacking = None;
        }
        let done = if rotation::is_due(core) {
            name().and_then(|name| rotation::lead(core, name))
        } else if epoch::is_due(core) {
            // Who has none at all need not wait for the others' beats.
            let since = *lacking.get_or_insert_with(Instant::now);
            if core.epoch().is_some() && since.elapsed() < SETTLED {
                continue;
            }
            name().and_then(|name| epoch::lead(core, name))
        } else {
            match lacking_kind(core) {
                Some((kind, count)) => name().and_then(|name| lead_fill(core, name, kind, count)),
                None => continue,
            }
        };
        lacking = None;
        if let Err(e) = done {
            tracing::warn!(error = %e, "the nodes could not prepare together; this is tried again");
            thread::sleep(PAUSE);
        }
    }
}

fn name() -> Result<[u8; 16]> {
    let mut name = [0; 16];
    random_bytes(&mut name)?;
    Ok(name)
}

/// A kind of which there is too little, and how many items to make in one run. The emptiest first.
fn lacking_kind<S: ServiceScheme>(core: &Core<S>) -> Option<(u8, u32)> {
    let epoch = core.epoch()?;
    if core.peers.connected().len() < core.nodes || core.is_quarantined() {
        return None;
    }
    let lacking = core.targets.iter().enumerate().filter_map(|(at, target)| {
        let (all, per_block) = (target.items(), target.kind.per_block.max(1));
        let left = left(&epoch.lots, &target.kind);
        let missing = all.saturating_sub(left);
        (missing > 0).then(|| {
            // At least a block, so that not every small request is followed by a run.
            let at_once = if epoch.lots.stands() { blocks_at_once(target) } else { BLOCKS_AT_ONCE };
            let count = missing.clamp(per_block, at_once * per_block);
            (left * 1000 / all, at, count)
        })
    });
    let (_, at, count) = lacking.min()?;
    Some((u8::try_from(at).ok()?, u32::try_from(count).ok()?))
}

fn blocks_at_once(target: &Target) -> usize {
    let fit = BYTES_AT_ONCE / (target.kind.item_bytes * target.kind.per_block).max(1);
    (target.blocks / PART_AT_ONCE).min(fit).max(BLOCKS_AT_ONCE)
}

fn lead_fill<S: ServiceScheme>(core: &Core<S>, name: [u8; 16], kind: u8, count: u32) -> Result<()> {
    for peer in Party::all(core.nodes).filter(|p| *p != core.me) {
        core.peers.order(peer, Order::Fill { name, kind, count })?;
    }
    join_fill(core, name, kind, count)
}

/// Takes part in making material. A leader that asks for much more than this node is to hold is refused; what is in stock can
/// differ a little between nodes, after a run that not all of them came to the end of.
pub(crate) fn join_fill<S: ServiceScheme>(
    core: &Core<S>,
    name: [u8; 16],
    kind: u8,
    count: u32,
) -> Result<()> {
    let Ok(_alone) = core.filling.try_lock() else {
        return Err(Error::System("material is being made already".into()));
    };
    let epoch = core.epoch().ok_or_else(|| Error::System("there is no epoch to make material in".into()))?;
    let (kind, count) = (usize::from(kind), count as usize);
    if let Some(target) = core.targets.get(kind).filter(|_| epoch.lots.stands()) {
        epoch.lots.make_room(&target.kind, count, 2 * target.items());
    }
    let fits = core
        .targets
        .get(kind)
        .is_some_and(|target| left(&epoch.lots, &target.kind).saturating_add(count) <= 2 * target.items());
    if !fits || count == 0 {
        // Perhaps claims were lost on their way here, and what they took is still here: the nodes begin anew.
        core.end_epoch("more material was ordered than there is room for");
        return Err(Error::System("more material was ordered than this node is to keep".into()));
    }
    let made = make(core, &epoch, name, kind, count);
    let outcome = if made.is_ok() { "done" } else { "failed" };
    metrics::counter!("polyclave_fills_total", "outcome" => outcome).increment(1);
    made
}

fn make<S: ServiceScheme>(
    core: &Core<S>,
    epoch: &Epoch<S>,
    name: [u8; 16],
    kind: usize,
    count: usize,
) -> Result<()> {
    let mut net = meet(core, "fill", name)?;
    let kind = &core.targets[kind].kind;
    let terms = Terms::new(core.nodes)
        .with("cluster", &core.cluster_digest)
        .with("level of the stock (node.toml)", format!("{:?}", core.targets).as_bytes());
    let terms = core.scheme.terms(terms);
    let made = fill(&epoch.lots, terms, kind, count, &mut net, |stream, net| {
        core.scheme.make_material(&epoch.setup, stream, kind, count, net)
    });
    made.inspect_err(|e| {
        judge(core, "making material", e);
    })
}

/// Items of a kind.
fn left(lots: &Lots, kind: &Kind) -> usize {
    lots.levels().iter().find(|level| level.kind == *kind).map_or(0, |level| level.left)
}

impl<S: ServiceScheme> Core<S> {
    /// What is in stock, in blocks.
    pub(crate) fn stock_levels(&self) -> Vec<StockLevel> {
        let epoch = self.epoch();
        let left = |kind: &Kind| epoch.as_ref().map_or(0, |epoch| left(&epoch.lots, kind));
        let level = |Target { kind, ciphers, blocks }: &Target| StockLevel {
            kind: kind.name.into(),
            ciphers: (*ciphers).into(),
            blocks: (left(kind) / kind.per_block.max(1)) as u64,
            level: *blocks as u64,
        };
        self.targets.iter().map(level).collect()
    }

    /// Counts of it, for monitoring.
    pub(crate) fn count_stock(&self) {
        for StockLevel { kind, blocks, level, .. } in self.stock_levels() {
            metrics::gauge!("polyclave_stock_blocks", "kind" => kind.clone()).set(blocks as f64);
            metrics::gauge!("polyclave_stock_level_blocks", "kind" => kind).set(level as f64);
        }
    }
}

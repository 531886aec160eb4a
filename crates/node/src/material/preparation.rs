//! What the first node orders all nodes to do together in the background, one thing after the other:
//! refreshes, epochs, and material for the stock.

#[cfg(test)]
mod cheating_maker;
#[cfg(test)]
mod cheating_workers;
#[cfg(test)]
mod renewing;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_api::StockLevel;
use polyclave_config::{MAX_WORKERS, Role};
use polyclave_protocol::authenticated::MAX_AT_ONCE;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{HandshakeParameters, random_bytes};
use polyclave_protocol::stock::{Kind, Purpose};
use polyclave_protocol::{Error, Party};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::material::epoch::{Epoch, LONGEST_MEETING, meet};
use crate::material::filling_order::Lacking;
use crate::material::state::Material;
use crate::material::stock::MAX_BYTES_AT_ONCE;
use crate::material::stock::claiming::FULL;
use crate::material::stock::fill::{Run, fill};
use crate::material::strategy::Preparation;
use crate::material::target::Target;
use crate::material::{delivery, epoch, refresh};
use crate::peers::exchange::tell_all;
use crate::peers::orders::{Levels, Order};
use crate::threads::{Crew, POLL_INTERVAL, give_way};

/// The pause before something is tried again for the first time.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause after several attempts in turn at which a node was missed. The nodes can be out of step: one
/// that came late to a meeting waits there for those that have left it, while these wait for it at the next
/// one. If the first node ordered attempts at shorter intervals than a node spends in such a meeting, they
/// would never all be at the same one. In this time every node ends two meetings, also if the second had to
/// wait for the first.
const LONG_PAUSE: Duration = LONGEST_MEETING.saturating_add(LONGEST_MEETING).saturating_add(ENDING);
/// How long epochs may differ between nodes before a new one is ordered. A shorter difference only means that
/// a beat is not yet here.
const SETTLED: Duration = Duration::from_secs(3);
/// How long a run may take to end at this node after it has ended at the first one.
const ENDING: Duration = Duration::from_secs(1);
/// Below this part of its level a standby pair's stock is made as fast as possible.
const URGENT_PART: usize = 8;
/// The most streams on which one run makes material.
const MAX_STREAMS: usize = 8;
const _: () = assert!(
    MAX_WORKERS * MAX_STREAMS <= MAX_AT_ONCE as usize,
    "the bounds in authenticated/guesses.rs cover all streams"
);
/// The most runs of a worker that only serves at a time.
pub(crate) const MAX_RUNS: usize = 2;
/// The most requests for parts of one lot.
const MAX_REQUESTS: usize = 16;
/// How often a worker group that makes material for others asks whether they need some.
const ASKED_EVERY: Duration = Duration::from_millis(20);

/// Runs at the first node: orders the nodes to prepare what is lacking, until this node stops.
pub(crate) fn prepare(material: &Arc<Material>) {
    if material.members.me != Party(0) {
        return;
    }
    let mut lacking: Option<Instant> = None;
    let is_quick = delivery::is_asked(material) || material.role() == Role::Serve;
    let interval = if is_quick { ASKED_EVERY } else { POLL_INTERVAL };
    let beside = Crew::new("fill", MAX_RUNS);
    let mut pause = interval;
    let mut were_missed = false;
    while !material.threads.is_stopping() {
        if wait(material, std::mem::replace(&mut pause, interval)) {
            were_missed = false;
        }
        let Some(next) = material.strategy.next(material) else {
            (lacking, were_missed) = (None, false);
            continue;
        };
        if next == Preparation::Epoch {
            // A node that has no epoch at all need not wait for the others' beats.
            let since = *lacking.get_or_insert_with(Instant::now);
            if material.epoch().is_some() && since.elapsed() < SETTLED {
                continue;
            }
        }
        let done = name().and_then(|name| match next {
            Preparation::Refresh => refresh::lead(material, name),
            Preparation::Epoch => epoch::lead(material, name),
            Preparation::Fill { kind, count, request } => {
                let wanted = Wanted { kind, count, request };
                match material.role() {
                    Role::Serve => lead_beside(material, &beside, name, wanted),
                    Role::Both | Role::Make => lead_fill(material, name, wanted),
                }
            }
        });
        lacking = None;
        let some_are_missed = matches!(done, Err(Error::Closed { .. } | Error::Timeout { .. }));
        match done {
            // A request that waits for material does not wait for a pause besides. After an epoch the other
            // nodes take a moment to take it into use.
            Ok(()) if matches!(next, Preparation::Fill { .. }) => pause = Duration::ZERO,
            Ok(()) => {}
            Err(e) => {
                tracing::warn!(
                    error = material.members.message(&e),
                    "the nodes could not prepare together; this is tried again"
                );
                pause = if some_are_missed && were_missed { LONG_PAUSE } else { PAUSE };
            }
        }
        were_missed = some_are_missed;
    }
}

/// Waits so long, or until this node stops, or until a node that was gone is back: then nobody is at an
/// earlier meeting any more, because all leave it when a node goes. Returns whether one is back.
fn wait(material: &Material, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    let mut was_complete = true;
    while Instant::now() < until && !material.threads.is_stopping() {
        let is_complete = material.network.is_complete();
        if is_complete && !was_complete {
            return true;
        }
        was_complete = is_complete;
        thread::sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
    }
    false
}

/// A random name for an order and for the stream on which the nodes meet. The leader alone draws it, and may
/// choose it. The name tells streams apart, and nothing is derived from it: ids and labels come from the
/// hello on that stream.
fn name() -> Result<[u8; 16]> {
    let mut name = [0; 16];
    random_bytes(&mut name)?;
    Ok(name)
}

/// What one run makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The number of the kind.
    pub(crate) kind: u8,
    /// How many items.
    pub(crate) count: u32,
    /// The request of another worker of this node that they are for; `None` for the stock.
    pub(crate) request: Option<[u8; 16]>,
}

/// At the leading node: the material that is made next, for the stock or for other workers.
pub(crate) fn next_lot(material: &Material) -> Option<Preparation> {
    material.turns.next(|| lacking_kind(material), || delivery::next(material))
}

/// Finds a kind with too few items in stock, and how many items to make of it in one run.
fn lacking_kind(material: &Material) -> Option<Preparation> {
    let epoch = material.epoch()?;
    if !material.role().serves() || !material.network.is_complete() || !material.may_use_mac_key() {
        return None;
    }
    let claiming = epoch.lots.claiming();
    if !material.under_way.has_place(claiming.runs_at_once()) {
        return None;
    }
    let own = material.levels();
    let lacking = material.targets.iter().enumerate().filter_map(|(at, target)| {
        let (all, per_block) = (target.items(), target.kind.per_block.max(1));
        let levels = material.network.peers.levels(at);
        let believed = claiming.believed_left(&epoch.lots, target, own.get(at).copied(), levels);
        let left = believed + material.under_way.items(u8::try_from(at).ok()?);
        let is_due = left < all && claiming.is_due(&epoch.lots, target, left);
        is_due.then(|| {
            let run = part(material, &epoch, target) * parts(material, &epoch);
            let run = run.min(*claiming.fitting(&epoch.lots, target).end());
            // At least one block, so that a small request does not cause a run each time.
            let count = all.saturating_sub(left).clamp(per_block, run.max(per_block));
            let is_waited_for = epoch.lots.is_waited_for(&target.kind);
            (Lacking { kind: at, is_waited_for, level: left * FULL / all.max(1) }, count)
        })
    });
    let (lacking, counts): (Vec<_>, Vec<_>) = lacking.unzip();
    let at = material.filling_order.next(&lacking, Instant::now())?;
    let count = counts[lacking.iter().position(|lacking| lacking.kind == at)?];
    Some(Preparation::Fill { kind: u8::try_from(at).ok()?, count: u32::try_from(count).ok()?, request: None })
}

/// At a worker that only serves: leads a run while others are under way.
fn lead_beside(material: &Arc<Material>, crew: &Crew, name: [u8; 16], wanted: Wanted) -> Result<()> {
    let Wanted { kind, count, .. } = wanted;
    material.under_way.begin(kind, count);
    let of_thread = material.clone();
    let begun = crew.spawn(&material.threads, move || {
        let done = lead_fill(&of_thread, name, wanted);
        of_thread.under_way.end(kind, count, done.is_ok());
        if let Err(e) = done {
            let error = of_thread.members.message(&e);
            tracing::warn!(error, "the nodes got no material from other workers; this is tried again");
        }
    });
    begun.inspect_err(|_| material.under_way.end(kind, count, false))
}

fn lead_fill(material: &Material, name: [u8; 16], wanted: Wanted) -> Result<()> {
    let Wanted { kind, count, request } = wanted;
    let ordered = material.network.order_all(Order::Fill { name, kind, count, request });
    let done = ordered.and_then(|()| join_fill(material, name, wanted));
    if let Some(id) = request {
        return done.inspect_err(|_| delivery::give_up(material, &id));
    }
    done.inspect_err(|_| material.filling_order.note_failed(usize::from(kind), Instant::now()))?;
    let target = &material.targets[usize::from(kind)];
    let more = count as usize * FULL / target.items().max(1);
    material.network.peers.note_made(usize::from(kind), u16::try_from(more).unwrap_or(u16::MAX));
    Ok(())
}

/// Takes part in making material. Refuses a leader that asks for much more than this node is to hold. Stocks
/// can differ a little between nodes, when some nodes did not complete a run. Nothing is given up before all
/// nodes have met; otherwise one order would be enough to empty the stock of all (`stock/census.rs`).
pub(crate) fn join_fill(material: &Material, name: [u8; 16], wanted: Wanted) -> Result<()> {
    material.refuse_uncounted()?;
    // Those that only wait for material have several runs at a time.
    let _alone = match material.role() {
        Role::Serve => None,
        Role::Both | Role::Make => {
            // The run before may be ending here.
            let alone = material.filling.try_lock_for(ENDING);
            Some(alone.ok_or_else(|| Error::System("material is being made already".into()))?)
        }
    };
    let epoch =
        material.epoch().ok_or_else(|| Error::System("there is no epoch to make material in".into()))?;
    // Before anything is looked up by what the first node says.
    if wanted.request.is_some() && !delivery::is_asked(material) {
        return Err(Error::System(
            "the first node ordered material for others, which this worker does not make".into(),
        ));
    }
    let (kind, count) = (usize::from(wanted.kind), wanted.count as usize);
    let fits = |target| epoch.lots.claiming().fitting(&epoch.lots, target).contains(&count);
    if wanted.request.is_none() && !material.targets.get(kind).is_some_and(fits) {
        // Claims may have been lost on their way here, so that what they took is still here. The nodes begin
        // anew.
        material.strategy.give_up(material, "more material was ordered than there is room for");
        return Err(Error::System("the first node ordered more material than this node keeps".into()));
    }
    let made = make(material, &epoch, name, wanted);
    let outcome = if made.is_ok() { "done" } else { "failed" };
    metrics::counter!("polyclave_fills_total", "outcome" => outcome).increment(1);
    made
}

fn make(material: &Material, epoch: &Epoch, name: [u8; 16], wanted: Wanted) -> Result<()> {
    let mut net = meet(material, "fill", name)?;
    let most = match material.role() {
        Role::Serve => {
            let part = part(material, epoch, &material.targets[usize::from(wanted.kind)]);
            (wanted.count as usize).div_ceil(part).clamp(1, parts(material, epoch))
        }
        Role::Both | Role::Make => streams_of(material.processors),
    };
    let streams = streams(most, &mut net)?;
    let made = match wanted.request {
        Some(request) => delivery::make(material, epoch, request, streams, &mut net),
        None => fill_stock(material, epoch, wanted, streams, &mut net),
    };
    made.inspect_err(|_| wanted.request.iter().for_each(|id| delivery::give_up(material, id)))
}

impl Material {
    /// Judges an error that ended making material, or one stream of it.
    pub(super) fn judge_making(&self, epoch: &Epoch, error: &Error) {
        self.strategy.judge(self, "making material", Some(epoch), error);
    }
}

fn fill_stock(
    material: &Material,
    epoch: &Epoch,
    wanted: Wanted,
    streams: usize,
    net: &mut TlsNet,
) -> Result<()> {
    let target = &material.targets[usize::from(wanted.kind)];
    let (kind, role) = (&target.kind, material.role());
    let run = Run { kind, count: wanted.count as usize, level: target.items(), streams };
    let parameters = material.config.handshake(compared(material, material.members.handshake()));
    let judge = |error: &Error| material.judge_making(epoch, error);
    let fill = || {
        fill(&epoch.lots, parameters, &run, net, &judge, |stream, count, net| match role {
            Role::Serve => delivery::ask(material, &stream, kind, count, net),
            Role::Both | Role::Make => material.config.make_material(&epoch.setup, stream, kind, count, net),
        })
    };
    // Only what a standby pair needs at once is as urgent as requests.
    let is_urgent = epoch.lots.left(kind) * URGENT_PART < target.items();
    if material.of_all.is_some() && !is_urgent { give_way(fill) } else { fill() }
}

/// Adds the parameters on which nodes that make material together have to agree.
pub(super) fn compared(material: &Material, parameters: HandshakeParameters) -> HandshakeParameters {
    parameters
        .with("duty of these workers (cluster file)", material.role().message().as_bytes())
        .with("level of the stock (node.toml)", format!("{:?}", needed(&material.targets)).as_bytes())
}

/// The levels that have to be the same at all nodes: of what sessions cannot go on without.
fn needed(targets: &[Target]) -> Vec<&Target> {
    targets.iter().filter(|target| target.kind.purpose != Purpose::Circuits).collect()
}

/// The most streams on which a node makes material: half of its processors. The other half is for requests.
fn streams_of(processors: usize) -> usize {
    (processors / 2).clamp(1, MAX_STREAMS)
}

/// How many items of a kind are made at once, by one run or for one request.
fn part(material: &Material, epoch: &Epoch, target: &Target) -> usize {
    let most = MAX_BYTES_AT_ONCE / parts(material, epoch) / target.kind.item_bytes.max(1);
    let part = epoch.lots.claiming().blocks_at_once(&epoch.lots, target) * target.kind.per_block.max(1);
    part.min(most).max(1)
}

/// In how many parts a run asks others for a lot. All runs that may be under way together ask each maker for
/// two parts, so that no maker waits for the next request.
fn parts(material: &Material, epoch: &Epoch) -> usize {
    let requests = 2 * material.members.cluster.roles().make_only.len().max(1);
    match material.role() {
        Role::Serve => (requests / epoch.lots.claiming().runs_at_once()).clamp(1, MAX_REQUESTS),
        Role::Both | Role::Make => 1,
    }
}

/// On how many streams the nodes make material, each with a thread of its own: as many as the node with the
/// fewest.
fn streams(most: usize, net: &mut dyn Net) -> Result<usize> {
    let mine = u8::try_from(most.max(1)).unwrap_or(u8::MAX);
    let theirs = tell_all(&[mine], net)?.into_iter().map(|(_, [wanted])| wanted);
    Ok(usize::from(theirs.fold(mine, u8::min).max(1)))
}

impl Material {
    /// Whether circuits are made for requests that ask for them.
    pub(crate) fn keeps_circuits(&self) -> bool {
        let is_circuit = |target: &Target| target.kind.purpose == Purpose::Circuits;
        self.targets.iter().any(|target| is_circuit(target) && target.blocks > 0)
    }

    /// Whether the protocol has garbled circuits for few blocks, whatever this node keeps of them.
    pub(crate) fn knows_circuits(&self) -> bool {
        self.targets.iter().any(|target| target.kind.purpose == Purpose::Circuits)
    }

    /// The stock of each kind, in blocks.
    pub(crate) fn stock_levels(&self) -> Vec<StockLevel> {
        let epoch = self.epoch();
        let left = |kind: &Kind| epoch.as_ref().map_or(0, |epoch| epoch.lots.left(kind));
        let level = |Target { kind, ciphers, blocks, .. }: &Target| StockLevel {
            kind: kind.name.into(),
            ciphers: (*ciphers).into(),
            blocks: (left(kind) / kind.per_block.max(1)) as u64,
            level: *blocks as u64,
        };
        // Circuits are made once somebody has asked for them.
        let is_kept = |target: &&Target| {
            target.kind.purpose != Purpose::Circuits
                || epoch.as_ref().is_some_and(|epoch| epoch.lots.is_wanted(&target.kind))
        };
        self.targets.iter().filter(is_kept).map(level).collect()
    }

    /// The same, as told to peers.
    pub(crate) fn levels(&self) -> Levels {
        let mut levels = Levels::default();
        let Some(epoch) = self.epoch() else { return levels };
        let there = epoch.lots.levels();
        for (level, target) in levels.iter_mut().zip(self.targets.iter()) {
            let left = there.iter().find(|level| level.kind == target.kind).map_or(0, |level| level.left);
            let thousandths = (left * FULL).checked_div(target.items()).unwrap_or(FULL);
            *level = u16::try_from(thousandths).unwrap_or(u16::MAX);
        }
        levels
    }

    /// Publishes the stock as metrics, for monitoring.
    pub(crate) fn count_stock(&self) {
        if self.keeps_circuits() {
            metrics::counter!("polyclave_circuit_blocks_total").absolute(self.blocks_through_circuits());
        }
        for StockLevel { kind, blocks, level, .. } in self.stock_levels() {
            metrics::gauge!("polyclave_stock_blocks", "kind" => kind.clone()).set(blocks as f64);
            metrics::gauge!("polyclave_stock_level_blocks", "kind" => kind).set(level as f64);
        }
    }
}

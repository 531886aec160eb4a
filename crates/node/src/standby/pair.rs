//! One standby pair at one of its two nodes: a cluster of two nodes in the process of a node, with its own
//! common secrets, epochs, stock and channels, and the node's clients, rules, audit log and budgets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use polyclave_config::{Cluster, StockSettings};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::catalog;
use polyclave_protocol::{Error, PartySet};

use crate::Result;
use crate::audit::faults::Seen;
use crate::control::{give_orders, take_orders};
use crate::core::{Core, PairBoard, PairState};
use crate::error::system;
use crate::keys::standby::PairShares;
use crate::material::preparation;
use crate::material::setup::Leader;
use crate::material::state::{Material, Means};
use crate::material::target::levels_in_standby;
use crate::members::Members;
use crate::peers::rollback_guard::Marks;
use crate::requests::channels::{Channels, PING_EVERY};
use crate::requests::delay::Delay;
use crate::requests::service::{OfAll, Service};
use crate::reshare::receiving::Completions;
use crate::strategy::Strategy;
use crate::threads::{POLL_INTERVAL, Threads};

/// How long a pair that ends waits for its requests. A node that stops keeps their connections until then,
/// and their clients have to ask again.
const LAST_REQUESTS: Duration = Duration::from_secs(2);
/// How long it then waits until its threads have noticed that nothing comes from the partner any more.
const LAST_THREADS: Duration = Duration::from_secs(5);

/// A pair that was not ready for this long, while all nodes were connected, begins anew. Much longer than the
/// two nodes take for their common secrets and an epoch.
const STUCK: Duration = Duration::from_secs(90);

/// A standby pair that this node is in.
pub(super) struct Pair {
    cluster: Cluster,
    /// Its two nodes, by their numbers among all.
    pub(super) set: PartySet,
    /// This node's shares for it.
    pub(super) shares: Arc<PairShares>,
    /// Under which common secrets of all nodes it was begun.
    pub(super) secrets: [u8; 32],
    /// Circuits that were compiled for keys that it was given before.
    pub(super) completions: Mutex<Completions>,
    /// Its partner has another store than before, so it has to begin anew.
    is_given_up: AtomicBool,
    /// Since when it is not ready although all nodes are connected.
    hindered: Mutex<Option<Instant>>,
    running: RwLock<Option<Running>>,
}

/// What runs of a pair once its two nodes know each other's stores.
struct Running {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
}

/// The protocol of a pair.
pub(super) fn protocol(pair: &Cluster) -> Result<AnyServiceConfig> {
    catalog::service(pair.protocol(), pair.nodes(), pair.threshold())
}

impl Pair {
    /// A pair over a store that is bound to these common secrets of all nodes.
    pub(super) fn new(cluster: Cluster, shares: Arc<PairShares>, secrets: [u8; 32]) -> Result<Arc<Pair>> {
        let set = cluster.pair().ok_or_else(|| Error::misuse("this cluster is no standby pair"))?;
        let (completions, is_given_up, hindered, running) = Default::default();
        Ok(Arc::new(Pair { cluster, set, shares, secrets, completions, is_given_up, hindered, running }))
    }

    /// Its parts, if it runs.
    pub(super) fn core(&self) -> Option<Arc<Core>> {
        self.running.read().as_ref().map(|running| running.core.clone())
    }

    /// Begins to run, once each of the two nodes knows the store of the other: they connect over these two
    /// stores only, so that no node takes a store that was made anew for an old copy. Returns whether it
    /// runs.
    pub(super) fn run(&self, all: &Arc<Core>, stock: &StockSettings) -> Result<bool> {
        if self.running.read().is_some() {
            return Ok(true);
        }
        let binding = self.shares.store.standby_binding().map_err(system)?;
        let Some((own, partner)) = binding.and_then(|binding| Some((binding.own, binding.partner?))) else {
            return Ok(false);
        };
        let core = self.core_over(all, [own.min(partner), own.max(partner)], stock)?;
        let threads = spawn_threads(&core).inspect_err(|_| core.threads.stop())?;
        *self.running.write() = Some(Running { core, threads });
        let partner = self.partner(all);
        tracing::info!(partner, "a standby pair has begun");
        Ok(true)
    }

    /// The name of the other node.
    pub(super) fn partner(&self, all: &Core) -> String {
        let others: PartySet = self.set.iter().filter(|party| *party != all.members.me).collect();
        all.members.names_of(others).concat()
    }

    /// The parts of this node, over these two stores.
    fn core_over(&self, all: &Arc<Core>, stores: [[u8; 16]; 2], stock: &StockSettings) -> Result<Arc<Core>> {
        let (cluster, store, set) = (self.cluster.clone(), self.shares.store.clone(), self.set);
        let me = cluster
            .party_named(all.members.name_of(all.members.me))
            .ok_or_else(|| Error::misuse("this node is not of the standby pair"))?;
        let config = Arc::new(protocol(&cluster)?);
        let levels = levels_in_standby(cluster.protocol(), stock);
        let mut members = Members::new(cluster, me);
        members.digest = bound(&members.digest, &self.secrets, stores);
        let members = Arc::new(members);
        let threads = Threads::of_part(&all.threads);
        let network = Arc::new(all.network.among(members.clone(), set)?);
        let incarnation = store.begin_incarnation().map_err(system)?;
        let Strategy { requests, material } = Strategy::of(&config);
        let means = Means {
            config: config.clone(),
            members: members.clone(),
            threads: threads.clone(),
            store: store.clone(),
            logbook: all.logbook.clone(),
            network: network.clone(),
            boot: incarnation.boot,
            processors: all.material.processors(),
            of_all: Some(all.material.clone()),
        };
        let material = Material::new(means, material, levels)?;
        let of_all = &all.service;
        let service = Service {
            config,
            strategy: requests,
            members: members.clone(),
            identity: of_all.identity.clone(),
            threads: threads.clone(),
            store: all.store.clone(),
            network: network.clone(),
            rollback_guard: Marks::new(
                members.clone(),
                store.clone(),
                network.clone(),
                threads.clone(),
                of_all.faults,
            ),
            material: material.clone(),
            rules: all.rules.clone(),
            clients: of_all.clients.clone(),
            keys: of_all.keys.in_standby(self.shares.clone()),
            library: Default::default(),
            channels: Channels::new(of_all.channels.most()),
            pending: Default::default(),
            memory: of_all.memory.clone(),
            delay: Delay::default(),
            foresight: Default::default(),
            circuits_from: None,
            failed_payments_an_hour: of_all.failed_payments_an_hour,
            computed: Arc::default(),
            begun_at_once: AtomicU64::default(),
            faults: of_all.faults,
            of_all: Some(OfAll { service: of_all.clone(), pair: set }),
        };
        // Nobody gives a pair orders for pairs.
        let (orders, _) = sync_channel(0);
        let core = Arc::new(Core {
            seen: Seen::new(members.clone(), all.logbook.clone()),
            tally: Default::default(),
            kept: Default::default(),
            members,
            threads,
            store,
            logbook: all.logbook.clone(),
            rules: all.rules.clone(),
            network,
            material,
            service: Arc::new(service),
            incarnation,
            dates: all.dates.clone(),
            warn_days: all.warn_days,
            most_followed: all.most_followed,
            pairs: PairBoard::new(orders),
            traces: all.traces.clone(),
        });
        core.material.load()?;
        core.material.resume_quarantine();
        Ok(core)
    }

    /// Ends the pair. Requests that still run end.
    pub(super) fn stop(&self) {
        let Some(Running { core, threads }) = self.running.write().take() else { return };
        core.threads.stop();
        core.network.peers.wake();
        for thread in threads {
            // A thread that panicked has already ended.
            let _ = thread.join();
        }
        if !core.threads.wait(LAST_REQUESTS) {
            core.network.halt();
            if !core.threads.wait(LAST_THREADS) {
                tracing::info!("some threads of a standby pair have not ended yet");
            }
        }
    }

    /// Whether it could serve a request now, and if not, why.
    pub(super) fn why_not_ready(&self) -> Option<String> {
        let Some(core) = self.core() else {
            return Some("the two nodes have not met yet, while all three were connected".into());
        };
        let missing = core.members.all().without(core.network.peers.connected());
        if !missing.is_empty() {
            return Some(format!("{} is not connected", core.members.names_of(missing).join(" and ")));
        }
        core.material.context().err().map(|refusal| core.members.message(refusal.message))
    }

    /// Notes that it has to begin anew.
    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Relaxed);
    }

    /// Whether it has to begin anew, because of what its partner has or of its own MAC key.
    pub(super) fn is_over(&self) -> bool {
        self.is_given_up.load(Relaxed) || self.core().is_some_and(|core| core.material.is_worn_out())
    }

    /// Whether it was not ready for long, although all nodes were connected: one of the two has a store that
    /// the other does not accept.
    pub(super) fn is_stuck(&self, all_are_connected: bool) -> bool {
        let mut hindered = self.hindered.lock();
        match all_are_connected && self.why_not_ready().is_some() {
            true => hindered.get_or_insert_with(Instant::now).elapsed() > STUCK,
            false => {
                *hindered = None;
                false
            }
        }
    }

    /// How it stands, while the third node is away or not, and pairs get these keys.
    pub(super) fn state(&self, all: &Core, third_is_away: bool, wanted: &BTreeSet<[u8; 16]>) -> PairState {
        let there = self.shares.ids();
        let why_not_ready = self.why_not_ready();
        PairState {
            partner: self.partner(all),
            ready: why_not_ready.is_none(),
            serves: third_is_away && why_not_ready.is_none(),
            why_not_ready,
            keys: there.len() as u64,
            lacking: wanted.difference(&there).count() as u64,
            blocks: self.core().map_or(0, |core| core.service.computed.load(Relaxed)),
        }
    }
}

fn spawn_threads(core: &Arc<Core>) -> Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    for peer in core.members.others() {
        threads.push(core.spawn("orders to a peer", move |core| give_orders(core, peer))?);
        threads.push(core.spawn("orders of a peer", move |core| take_orders(core, peer))?);
    }
    threads.push(core.spawn("housekeeping", keep_house)?);
    // Not joined: this thread may wait for the partner as long as it may compute.
    drop(core.spawn("preparation", |core| preparation::prepare(&core.material))?);
    Ok(threads)
}

/// What the nodes of a pair compare first: it belongs to one set of common secrets of all nodes, and to two
/// stores.
fn bound(cluster: &[u8; 32], secrets: &[u8; 32], stores: [[u8; 16]; 2]) -> [u8; 32] {
    let parts = [&cluster[..], secrets, stores.as_flattened()].concat();
    blake3::derive_key("polyclave 2026 standby pair", &parts)
}

/// What a pair does at regular times.
fn keep_house(core: &Arc<Core>) {
    let (mut leader, mut pinged) = (Leader::default(), Instant::now());
    while !core.threads.is_stopping() {
        thread::sleep(POLL_INTERVAL);
        if pinged.elapsed() >= PING_EVERY {
            pinged = Instant::now();
            core.service.channels.ping();
        }
        leader.lead_if_due(&core.material);
        if let Some(epoch) = core.material.epoch() {
            epoch.lots.note_missing(core.members.all().without(core.network.peers.connected()));
        }
        core.material.strategy.settle(&core.material);
    }
}

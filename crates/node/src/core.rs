//! What all threads of a node share: its keys, its policy, its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock};

use crate::{Conduct, Result};
use polyclave_protocol::PartySet;
use polyclave_protocol::any::{AnyServiceConfig, AnySetup};
use polyclave_protocol::spdz::Guesses;
use polyclave_transport::wire::{NodeStatus, Reason, Refusal};

use crate::clients::limits::Clients;
use crate::clients::rules::Rules;
use crate::computation::circuits::Library;
use crate::keys::held::Keys;
use crate::material::epoch::Epoch;
use crate::material::target::Target;
use crate::members::Members;
use crate::operator::clock::Dates;
use crate::operator::faults::Seen;
use crate::operator::logbook::Logbook;
use crate::peers::marks::Marks;
use crate::peers::network::Network;
use crate::peers::orders::State;
use crate::requests::channels::Channels;
use crate::requests::memory::Memory;
use crate::requests::pending::PendingRequests;
use crate::store::{Incarnation, Quarantine, Store};
use crate::strategy::Strategy;
use crate::threads::Threads;

/// The common secrets of the nodes, as this one holds them.
pub(crate) struct SetUp {
    pub(crate) id: [u8; 32],
    pub(crate) setup: AnySetup,
}

/// One node.
pub(crate) struct Core {
    pub(crate) scheme: AnyServiceConfig,
    pub(crate) strategy: Strategy,
    pub(crate) members: Arc<Members>,
    pub(crate) threads: Threads,
    pub(crate) network: Arc<Network>,
    pub(crate) marks: Marks,
    pub(crate) store: Arc<Store>,
    pub(crate) logbook: Arc<Logbook>,
    pub(crate) rules: Rules,
    pub(crate) keys: Keys,
    pub(crate) incarnation: Incarnation,
    /// Of the nodes' certificates.
    pub(crate) dates: Dates,
    pub(crate) set_up: RwLock<Option<Arc<SetUp>>>,
    pub(crate) setting_up: Mutex<()>,
    /// What is made afresh after every start of a node, for schemes that need it.
    pub(crate) epoch: RwLock<Option<Arc<Epoch>>>,
    /// Why this node computes nothing.
    pub(crate) quarantine: RwLock<Option<Quarantine>>,
    /// Checks that did not pass and could not be written down yet.
    pub(crate) uncounted: Mutex<Guesses>,
    /// By kind: how much material is to be in stock.
    pub(crate) targets: Arc<[Target]>,
    pub(crate) filling: Mutex<()>,
    /// The operator has ordered fresh common secrets.
    pub(crate) wants_rotation: AtomicBool,
    /// They are being made.
    pub(crate) rotating: AtomicBool,
    /// They are stored and not yet in use.
    pub(crate) prepared: AtomicBool,
    /// Requests share it; a rotation has it alone.
    pub(crate) gate: RwLock<()>,
    pub(crate) library: Library,
    pub(crate) channels: Channels,
    pub(crate) pending: PendingRequests,
    pub(crate) clients: Clients,
    pub(crate) memory: Memory,
    /// Blocks computed since this node started.
    pub(crate) computed: Arc<AtomicU64>,
    /// Channels of one peer that are followed at once.
    pub(crate) most_followed: usize,
    /// What it has seen of others' faults.
    pub(crate) seen: Seen,
    /// How it behaves.
    pub(crate) conduct: Conduct,
}

impl Core {
    /// Starts a thread of this node.
    pub(crate) fn spawn(
        self: &Arc<Core>,
        name: &str,
        work: impl FnOnce(&Arc<Core>) + Send + 'static,
    ) -> Result<JoinHandle<()>> {
        let core = self.clone();
        self.threads.spawn(name, move || work(&core))
    }

    /// The agreed common secrets.
    pub(crate) fn set_up(&self) -> Result<Arc<SetUp>, Refusal> {
        let told = "the nodes have not yet agreed on their common secrets: all of them have to be running at once, this first time";
        let set_up = self.set_up.read().clone();
        set_up.ok_or_else(|| Refusal::new(Reason::Unavailable, told))
    }

    /// What this node says of itself.
    pub(crate) fn status(&self) -> NodeStatus {
        NodeStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            cluster: self.members.cluster.id(),
            connected: self.network.peers.connected(),
            set_up: self.set_up().is_ok(),
            keys: self.keys.count(),
            prepared: self.epoch().is_some() || self.strategy.material.refuse_without_epoch(self).is_ok(),
            stock: self.stock_levels(),
            quarantined: self.is_quarantined(),
            rotating: self.rotation_wanted_by(),
            outvoted: self.seen.outvoted(),
            silent: self.seen.silent(),
            damaged: self.keys.damaged().len() as u64,
            lacking: self.lacking(),
        }
    }

    /// How many keys fewer it has than more nodes have than may lie.
    fn lacking(&self) -> u64 {
        let own = self.keys.count();
        let mut counts: Vec<u64> = self.network.peers.key_counts().into_iter().chain([own]).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.get(self.members.cluster.threshold()).map_or(0, |most| most.saturating_sub(own))
    }

    /// The nodes whose operators have ordered fresh common secrets.
    fn rotation_wanted_by(&self) -> PartySet {
        let own = self.wants_rotation.load(Relaxed).then_some(self.members.me);
        self.network.peers.which(|state| state.wants_rotation).iter().chain(own).collect()
    }

    /// What this node tells its peers of itself.
    pub(crate) fn beat(&self) -> State {
        State {
            epoch: self.epoch().map_or([0; 32], |epoch| epoch.id),
            quarantined: self.is_quarantined(),
            wants_rotation: self.wants_rotation.load(Relaxed),
            prepared: self.prepared.load(Relaxed),
            levels: self.levels(),
            keys: self.keys.count().try_into().unwrap_or(u32::MAX),
        }
    }
}

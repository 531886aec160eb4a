//! The state of one node's material, and the parts of the node that making it takes.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use polyclave_protocol::Party;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::authenticated::Guesses;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::stock::Levels;
use polyclave_store::{Quarantine, Store};

use crate::Result;
use crate::audit::logbook::Logbook;
use crate::error::system;
use crate::material::epoch::Epoch;
use crate::material::filling_order::{FillingOrder, Turns};
use crate::material::refresh::{self, Refresh};
use crate::material::setup::{self, LoadedSetup};
use crate::material::strategy::MaterialStrategy;
use crate::material::target::{Target, targets};
use crate::material::under_way::UnderWay;
use crate::members::Members;
use crate::peers::network::Network;
use crate::peers::orders::State;
use crate::threads::Threads;

/// The parts of the node that make material.
pub(crate) struct Means {
    pub(crate) config: Arc<AnyServiceConfig>,
    pub(crate) members: Arc<Members>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) store: Arc<Store>,
    pub(crate) logbook: Arc<Logbook>,
    pub(crate) network: Arc<Network>,
    /// The boot id of this start of the node.
    pub(crate) boot: [u8; 16],
    /// How many processors the node counts on.
    pub(crate) processors: usize,
    /// That of all nodes, in a standby pair: a failed check in the pair stops all.
    pub(crate) of_all: Option<Arc<Material>>,
}

/// Common secrets, epoch, quarantine, stock and refresh of one node, and the parts of the node that making
/// them takes.
pub(crate) struct Material {
    pub(crate) strategy: Box<dyn MaterialStrategy>,
    pub(crate) config: Arc<AnyServiceConfig>,
    pub(crate) members: Arc<Members>,
    pub(crate) network: Arc<Network>,
    pub(super) threads: Arc<Threads>,
    pub(super) store: Arc<Store>,
    pub(super) logbook: Arc<Logbook>,
    pub(super) boot: [u8; 16],
    /// How many processors the node counts on.
    pub(super) processors: usize,
    /// That of all nodes, in a standby pair.
    pub(super) of_all: Option<Arc<Material>>,
    /// The MAC key of this standby pair has to be replaced.
    pub(super) is_worn_out: AtomicBool,
    /// For which standby pairs this node lacks shares of keys, a bit each.
    pub(crate) lacks_standby: AtomicU8,
    /// This material, for guards that belong to it.
    pub(super) this: Weak<Material>,
    /// By kind: how much material is to be in stock.
    pub(super) targets: Arc<[Target]>,
    pub(super) setup: RwLock<Option<Arc<LoadedSetup>>>,
    pub(super) setting_up: Mutex<()>,
    /// The epoch: made afresh after every start of a node, or permanent, depending on the strategy.
    pub(super) epoch: RwLock<Option<Arc<Epoch>>>,
    /// Why this node computes nothing.
    pub(super) quarantine: RwLock<Option<Quarantine>>,
    /// Held during a comparison that can tell a bit of the MAC key (`guard.rs`): in this epoch, or in one
    /// that was given up and still runs.
    pub(super) comparing: Mutex<()>,
    /// Failed and unanswered checks that could not be written down yet.
    pub(super) uncounted: Mutex<Guesses>,
    pub(super) filling: Mutex<()>,
    pub(super) under_way: UnderWay,
    pub(super) filling_order: FillingOrder,
    pub(super) turns: Turns,
    /// Blocks that went through garbled circuits.
    pub(super) through_circuits: Arc<AtomicU64>,
    pub(super) refresh: Refresh,
    /// The edition of the store that was heard last.
    pub(super) heard: AtomicU64,
    /// The store could not be asked the last time.
    pub(super) is_cut_off: AtomicBool,
    /// This worker has to start again.
    pub(super) is_outdated: AtomicBool,
}

impl Material {
    /// A state without common secrets, epoch and stock. It has the targets, and whether this node is under
    /// quarantine.
    pub(crate) fn new(
        means: Means,
        strategy: Box<dyn MaterialStrategy>,
        levels: Levels,
    ) -> Result<Arc<Material>> {
        let Means { config, members, network, threads, store, logbook, boot, processors, of_all } = means;
        let quarantine = store.quarantined().map_err(system)?;
        let of_all_nodes: Vec<_> = Party::all(config.parties()).map(|party| config.kinds(party)).collect();
        Ok(Arc::new_cyclic(|this| Material {
            strategy,
            targets: targets(&of_all_nodes, members.me, levels).into(),
            quarantine: RwLock::new(quarantine),
            config,
            members,
            network,
            threads,
            store,
            logbook,
            boot,
            processors,
            of_all,
            is_worn_out: AtomicBool::default(),
            lacks_standby: AtomicU8::default(),
            this: this.clone(),
            setup: RwLock::default(),
            setting_up: Mutex::default(),
            epoch: RwLock::default(),
            comparing: Mutex::default(),
            uncounted: Mutex::default(),
            filling: Mutex::default(),
            under_way: UnderWay::default(),
            filling_order: FillingOrder::default(),
            turns: Turns::default(),
            through_circuits: Arc::default(),
            refresh: Refresh::default(),
            heard: AtomicU64::default(),
            is_cut_off: AtomicBool::default(),
            is_outdated: AtomicBool::default(),
        }))
    }

    /// Loads the common secrets, and how far a refresh has come, from the store.
    pub(crate) fn load(&self) -> Result<()> {
        setup::load(self)?;
        refresh::load(self)
    }

    /// Whether everything is ready that requests need, except material in stock.
    pub(crate) fn is_prepared(&self) -> bool {
        self.epoch().is_some() || self.strategy.refuse_without_epoch(self).is_ok()
    }

    /// Blocks that went through garbled circuits since the start.
    pub(crate) fn blocks_through_circuits(&self) -> u64 {
        self.through_circuits.load(Relaxed)
    }

    /// How many processors the node counts on.
    pub(crate) fn processors(&self) -> usize {
        self.processors
    }

    /// What this node tells its peers about itself.
    pub(crate) fn state(&self) -> State {
        State {
            epoch: self.epoch().map_or([0; 32], |epoch| epoch.id),
            quarantined: self.is_quarantined(),
            wants_refresh: self.refresh.wanted.load(Relaxed),
            prepared: self.refresh.prepared.load(Relaxed),
            levels: self.levels(),
            keys: self.store.count().unwrap_or_default().try_into().unwrap_or(u32::MAX),
            lacks_standby: self.lacks_standby.load(Relaxed),
            features: self.members.features(),
        }
    }
}

//! The parts of a running node, as its threads need them: those that serve clients, obey the operator, and
//! carry out orders of other nodes.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use parking_lot::Mutex;
use polyclave_api::{CertificateDate, KeysReport, NodeStatus, StandbyReport};
use polyclave_protocol::versions;
use polyclave_store::{Incarnation, Store};

use crate::Result;

use crate::audit::faults::Seen;
use crate::audit::logbook::Logbook;
use crate::clients::rules::Rules;
use crate::clients::tally::Tally;
use crate::clock::{Dates, apart};
use crate::material::state::Material;
use crate::members::Members;
use crate::peers::network::Network;
use crate::requests::service::Service;
use crate::threads::Threads;
use crate::traces::Traces;

/// One node.
pub(crate) struct Core {
    pub(crate) members: Arc<Members>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) store: Arc<Store>,
    pub(crate) logbook: Arc<Logbook>,
    pub(crate) rules: Rules,
    pub(crate) network: Arc<Network>,
    pub(crate) material: Arc<Material>,
    pub(crate) service: Arc<Service>,
    pub(crate) incarnation: Incarnation,
    /// The validity dates of the nodes' certificates.
    pub(crate) dates: Dates,
    /// How many days before its end a certificate is warned of.
    pub(crate) warn_days: u32,
    /// The most channels of one peer that this node follows at a time.
    pub(crate) most_followed: usize,
    /// The faults of other nodes that this node has seen.
    pub(crate) seen: Seen,
    /// Requests that it has answered.
    pub(crate) tally: Tally,
    /// What it told of its keys last.
    pub(crate) kept: Mutex<Option<Slow>>,
    /// The standby pairs that this node is in.
    pub(crate) pairs: PairBoard,
    /// Where traces of requests go, if somewhere.
    pub(crate) traces: Option<Traces>,
}

/// What the thread that keeps standby pairs ([`crate::standby`]) and the other threads tell each other.
pub(crate) struct PairBoard {
    /// Takes the orders of the first node to give keys to a pair.
    pub(crate) orders: SyncSender<PairOrder>,
    /// Finds out how the pairs of this node stand, if it keeps some.
    pub(crate) states: OnceLock<StatesOfPairs>,
    /// How they stood at the last look, a second ago at most. For clients: to find it out takes a read of all
    /// keys.
    pub(crate) seen: Mutex<Vec<PairState>>,
}

impl PairBoard {
    /// Of a node that keeps no pairs so far.
    pub(crate) fn new(orders: SyncSender<PairOrder>) -> PairBoard {
        PairBoard { orders, states: OnceLock::new(), seen: Mutex::default() }
    }
}

type StatesOfPairs = Box<dyn Fn(&Core) -> Vec<PairState> + Send + Sync>;

/// An order to give keys to a standby pair, by the name of the meeting and the number of the pair.
pub(crate) type PairOrder = ([u8; 16], u8);

/// How a standby pair of this node stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PairState {
    /// The name of the other node.
    pub partner: String,
    /// Whether the two are connected and have what requests need.
    pub ready: bool,
    /// Why they are not ready.
    pub why_not_ready: Option<String>,
    /// How many keys they go on with.
    pub keys: u64,
    /// How many keys they have no shares of yet.
    pub lacking: u64,
    /// Blocks that this node has computed in the pair since it started.
    pub blocks: u64,
    /// Whether the pair serves now, because the third node is away.
    pub serves: bool,
}

/// What takes long to find out for a report, and when it was found out.
#[derive(Clone)]
pub(crate) struct Slow {
    pub(crate) at: Instant,
    pub(crate) keys: Option<KeysReport>,
    pub(crate) certificates: Vec<CertificateDate>,
    pub(crate) certificates_in_all: u64,
}

impl PairState {
    /// The same for clients that watch.
    pub(crate) fn report(&self) -> StandbyReport {
        let PairState { partner, ready, serves, keys, lacking, .. } = self;
        let partner = partner.clone();
        StandbyReport { partner, ready: *ready, serves: *serves, keys: *keys, lacking: *lacking }
    }
}

impl Core {
    /// What is wrong with this node's clock, as far as certificates and peers show it.
    pub(crate) fn clock_misfit(&self) -> Option<String> {
        self.dates.misfit(SystemTime::now()).or_else(|| self.clock_apart())
    }

    /// What is wrong with this node's clock, as far as peers show it.
    pub(crate) fn clock_apart(&self) -> Option<String> {
        let ahead = self.network.peers.ahead();
        let ahead: Vec<(&str, i64)> =
            ahead.iter().map(|(peer, seconds)| (self.members.name_of(*peer), *seconds)).collect();
        apart(&ahead)
    }

    /// How the standby pairs of this node stand now.
    pub(crate) fn pair_states(&self) -> Vec<PairState> {
        self.pairs.states.get().map_or_else(Vec::new, |states| states(self))
    }

    /// Starts a thread of this node.
    pub(crate) fn spawn(
        self: &Arc<Core>,
        name: &str,
        work: impl FnOnce(&Arc<Core>) + Send + 'static,
    ) -> Result<JoinHandle<()>> {
        let core = self.clone();
        self.threads.spawn(name, move || work(&core))
    }

    /// The status that this node reports of itself.
    pub(crate) fn status(&self) -> NodeStatus {
        NodeStatus {
            version: versions::release().into(),
            cluster: self.members.cluster.id(),
            connected: self.network.peers.connected(),
            set_up: self.material.setup().is_ok(),
            keys: self.service.keys.count(),
            prepared: self.material.is_prepared(),
            stock: self.material.stock_levels(),
            quarantined: self.material.is_quarantined(),
            rotating: self.material.refresh_wanted_by(),
            outvoted: self.seen.outvoted(),
            silent: self.seen.silent(),
            damaged: self.service.keys.damaged().len() as u64,
            lacking: self.lacking(),
        }
    }

    /// How many keys this node lacks: it compares its own count with the highest count that more than
    /// `threshold` nodes report, so that liars alone cannot raise the number.
    fn lacking(&self) -> u64 {
        let own = self.service.keys.count();
        let mut counts: Vec<u64> = self.network.peers.key_counts().into_iter().chain([own]).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.get(self.members.cluster.threshold()).map_or(0, |most| most.saturating_sub(own))
    }
}

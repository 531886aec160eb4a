//! The status of a running node, for its operator.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use polyclave_api::StockLevel;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_store::Quarantine;
use polyclave_transport::CertificateDer;
use serde::{Deserialize, Serialize};

use crate::clients::authorities::AuthorityState;
use crate::core::{Core, PairState};
use crate::operator::certificates::{self, CertificateEnd};
use crate::peers::registry::Program;

/// The status of a running node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its number in the cluster, from 1.
    pub party: usize,
    /// Version of the program.
    pub version: String,
    /// The cluster's id, in hexadecimal.
    pub cluster: String,
    /// The number of this worker of the node.
    #[serde(default)]
    pub worker: u16,
    /// What the workers of this number do, in words: `serve only`.
    #[serde(default)]
    pub duty: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Number of nodes.
    pub nodes: usize,
    /// This many nodes together learn nothing.
    pub threshold: usize,
    /// How many nodes a request needs.
    pub needed: usize,
    /// The adversary that the protocol protects against.
    pub adversary: String,
    /// Whether it can serve requests now.
    pub ready: bool,
    /// Why it cannot serve requests.
    pub why_not_ready: Option<String>,
    /// Why its clock is wrong: it does not fit the nodes' certificates, or the clocks of most peers.
    pub clock: Option<String>,
    /// Whether the nodes have agreed on their common secrets.
    pub set_up: bool,
    /// Names of the nodes that it can work with now, including itself.
    pub connected: Vec<String>,
    /// Names of the nodes that it cannot work with now.
    pub missing: Vec<String>,
    /// Why some of these are missing, by their names, as far as this node knows.
    #[serde(default)]
    pub why_missing: BTreeMap<String, String>,
    /// By the name of each connected peer: BLAKE3, in hexadecimal, of the last certificate of this node in
    /// the peer's cluster file.
    #[serde(default)]
    pub listed_as: BTreeMap<String, String>,
    /// By the name of each connected peer: the program that it runs.
    #[serde(default)]
    pub programs: BTreeMap<String, PeerProgram>,
    /// Names of the features that are switched on here.
    #[serde(default)]
    pub features: Vec<String>,
    /// When certificates end: its own, and those of its peers, its clients, and authorities of clients. The
    /// first ones come first.
    #[serde(default)]
    pub certificates: Vec<CertificateEnd>,
    /// The authorities that vouch for clients.
    #[serde(default)]
    pub authorities: Vec<AuthorityState>,
    /// Number of keys.
    pub keys: u64,
    /// How often it was started.
    pub starts: u64,
    /// Whether the material that the nodes make afresh after each start of one of them is ready, or not
    /// needed.
    pub prepared: bool,
    /// The material that the nodes keep in stock; empty if the protocol needs none.
    pub stock: Vec<StockLevel>,
    /// Why this node serves nothing, if a check failed.
    pub quarantine: Option<Quarantine>,
    /// Checks that have failed under the MAC key in use, as this node has seen them.
    pub checks_failed: u32,
    /// Checks under it that a peer left without an answer.
    pub checks_unanswered: u32,
    /// Names of the nodes whose operators have ordered a refresh: fresh shares under fresh common secrets.
    pub rotating: Vec<String>,
    /// The public id of the common secrets in use, in hexadecimal: another one after each refresh.
    pub secrets: Option<String>,
    /// Since when they are in use, in seconds since 1970.
    pub refreshed: Option<u64>,
    /// Whether a refresh is under way.
    pub refreshing: bool,
    /// How many keys have fresh shares so far, while a refresh is under way.
    pub refreshed_keys: usize,
    /// Out of how many.
    pub refreshed_of: usize,
    /// Why the last attempt of a refresh failed at this node.
    pub refresh_trouble: Option<String>,
    /// Whether wrong shares are corrected while all nodes are connected.
    pub corrects: bool,
    /// Names of nodes whose shares were wrong in some request since this node started, as this one saw it.
    pub outvoted: Vec<String>,
    /// Names of nodes that fell silent in the middle of some request since then.
    pub silent: Vec<String>,
    /// Names of keys with a record that this node cannot read.
    pub damaged: Vec<String>,
    /// How many keys this node lacks that other nodes have.
    pub lacking: u64,
    /// Why the audit log cannot be written, if that is so.
    pub audit_failure: Option<String>,
    /// Whether requests are refused because the audit log cannot be written.
    pub audit_refuses: bool,
    /// How the standby pairs of this node stand.
    #[serde(default)]
    pub standby: Vec<PairState>,
    /// How blocks are computed between nodes that are far from each other; none if the protocol has one way.
    #[serde(default)]
    pub latency: Option<Latency>,
}

/// How a node computes few blocks: in rounds, or through garbled circuits where the nodes are far from each
/// other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Milliseconds there and back to the others, as the requests that this node led have shown. Only the
    /// first node measures it.
    pub round_trip_ms: Option<u64>,
    /// From so many milliseconds on few blocks go through circuits.
    pub from_ms: u64,
    /// Blocks that went through circuits since this node started.
    pub blocks: u64,
    /// How many requests have begun in one round, since the nodes had fixed their session before.
    #[serde(default)]
    pub at_once: u64,
}

/// The program of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerProgram {
    /// The release that it says it is.
    pub version: String,
    /// The version of the wire between nodes that both speak.
    pub wire: u8,
}

impl Status {
    /// The names of connected peers whose cluster file has another last certificate of this node.
    pub fn unknowing(&self, certificate: &CertificateDer<'_>) -> Vec<&str> {
        let digest = hex::encode(blake3::hash(certificate).as_bytes());
        let others = self.listed_as.iter().filter(|(_, listed)| **listed != digest);
        others.map(|(name, _)| name.as_str()).collect()
    }
}

impl Core {
    /// The status of this node, for its operator.
    pub(super) fn state(&self) -> Status {
        let (status, guesses) = (self.status(), self.material.guesses());
        let refresh = self.material.refresh_progress();
        let names = |there: bool| {
            let cards =
                self.members.cluster.cards().iter().zip(polyclave_protocol::Party::all(self.members.nodes));
            let chosen = cards.filter(|(_, party)| status.connected.contains(*party) == there);
            chosen.map(|(card, _)| card.name.clone()).collect()
        };
        Status {
            name: self.members.cluster.cards()[self.members.me.index()].name.clone(),
            party: self.members.me.index() + 1,
            version: status.version.clone(),
            cluster: hex::encode(status.cluster),
            worker: self.members.cluster.worker_group(),
            duty: self.members.cluster.role().message().into(),
            protocol: self.members.cluster.protocol().into(),
            nodes: self.members.nodes,
            threshold: self.members.cluster.threshold(),
            needed: self.service.config.quorum(),
            adversary: self.service.config.promise(),
            ready: self.is_ready(),
            why_not_ready: self.why_not_ready(),
            clock: self.clock_misfit(),
            set_up: status.set_up,
            connected: names(true),
            missing: names(false),
            why_missing: self.why_missing(),
            listed_as: self.listed_as(),
            programs: self.programs(),
            features: self.members.features().names().into_iter().map(str::to_owned).collect(),
            certificates: certificates::ends(&self.dates, &self.rules, self.warn_days),
            authorities: self.rules.authorities(),
            keys: status.keys,
            starts: self.incarnation.number,
            prepared: status.prepared,
            stock: status.stock,
            quarantine: self.material.quarantined(),
            checks_failed: guesses.failed,
            checks_unanswered: guesses.unanswered,
            rotating: self.members.names_of(status.rotating),
            secrets: self.material.setup().ok().map(|set_up| hex::encode(set_up.id)),
            refreshed: self.store.secrets_since().unwrap_or_default(),
            refreshing: refresh.running,
            refreshed_keys: refresh.refreshed,
            refreshed_of: refresh.of,
            refresh_trouble: refresh.trouble,
            corrects: self.service.strategy.corrects(),
            outvoted: self.members.names_of(status.outvoted),
            silent: self.members.names_of(status.silent),
            damaged: self.service.keys.damaged(),
            lacking: status.lacking,
            audit_refuses: self.logbook.refuses().is_some(),
            audit_failure: self.logbook.failure(),
            standby: self.pair_states(),
            latency: self.latency(),
        }
    }

    fn latency(&self) -> Option<Latency> {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.service.circuits_from.map(|from| Latency {
            round_trip_ms: self.service.delay.known().map(milliseconds),
            from_ms: milliseconds(from),
            blocks: self.material.blocks_through_circuits(),
            at_once: self.service.begun_at_once.load(Relaxed),
        })
    }

    fn listed_as(&self) -> BTreeMap<String, String> {
        let connected = self.network.peers.connected();
        let there = self.members.others().filter(|peer| connected.contains(*peer));
        let listed =
            |peer| (self.members.name_of(peer).to_owned(), hex::encode(self.network.peers.lists(peer)));
        there.map(listed).collect()
    }

    fn programs(&self) -> BTreeMap<String, PeerProgram> {
        let connected = self.network.peers.connected();
        let there = self.members.others().filter(|peer| connected.contains(*peer));
        let program = |peer| {
            let Program { release, wire, .. } = self.network.peers.program(peer)?;
            Some((self.members.name_of(peer).to_owned(), PeerProgram { version: release, wire }))
        };
        there.filter_map(program).collect()
    }

    /// Why peers are missing, by their names.
    pub(crate) fn why_missing(&self) -> BTreeMap<String, String> {
        let connected = self.network.peers.connected();
        let missing = self.members.others().filter(|peer| !connected.contains(*peer));
        let why = |peer| {
            let message = self.network.peers.trouble(peer)?;
            Some((self.members.name_of(peer).to_owned(), message))
        };
        missing.filter_map(why).collect()
    }
}

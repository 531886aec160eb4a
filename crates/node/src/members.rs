//! The nodes of the cluster, and which of them this one is.
//!
//! Protocols know parties by number, and their errors say `party 2`. Operators and clients know nodes by
//! name. [`Cluster::in_names`] therefore puts names into everything that people read: refusals, lines of the
//! log, answers to the operator.

use std::fmt::Display;

use parking_lot::Mutex;
use polyclave_api::{self as api, Refusal, Reply};
use polyclave_config::Cluster;
use polyclave_protocol::session::HandshakeParameters;
use polyclave_protocol::versions::FeatureSet;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;

/// The nodes of a cluster, as one of them sees them.
pub(crate) struct Members {
    pub(crate) me: Party,
    /// The number of nodes, including this one.
    pub(crate) nodes: usize,
    pub(crate) cluster: Cluster,
    /// Digest of everything that must be equal between the nodes.
    pub(crate) digest: [u8; 32],
    /// The features that are switched on here.
    features: Mutex<FeatureSet>,
}

impl Members {
    pub(crate) fn new(cluster: Cluster, me: Party) -> Members {
        let (nodes, digest) = (cluster.nodes(), cluster.lasting_digest());
        Members { me, nodes, digest, cluster, features: Mutex::default() }
    }

    /// The features that are switched on here: sessions from now on offer them.
    pub(crate) fn features(&self) -> FeatureSet {
        *self.features.lock()
    }

    /// Takes over which features are switched on.
    pub(crate) fn note_features(&self, features: FeatureSet) {
        *self.features.lock() = features;
    }

    /// A digest of the last certificate of a node in the cluster file. While the node changes its
    /// certificate, this is its next one, if this node has the new file.
    pub(crate) fn digest_of_last(&self, node: Party) -> [u8; 32] {
        let last = self.cluster.cards()[node.index()].certificates.last();
        last.map_or([0; 32], |certificate| blake3::hash(certificate).into())
    }

    /// Whether this is the node's first worker, which does what one of them has to do for all.
    pub(crate) fn is_first_worker(&self) -> bool {
        self.cluster.worker_group() == 0
    }

    /// All nodes, including this one.
    pub(crate) fn all(&self) -> PartySet {
        PartySet::all(self.nodes)
    }

    /// All nodes except this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = Party> {
        let me = self.me;
        Party::all(self.nodes).filter(move |p| *p != me)
    }

    /// A client's party number on its connection to this node.
    pub(crate) fn client(&self) -> Party {
        Party(self.nodes as u8)
    }

    /// What all nodes compare first in any hello round.
    pub(crate) fn handshake(&self) -> HandshakeParameters {
        HandshakeParameters::new(self.nodes).offering(self.features()).with("cluster", &self.digest)
    }

    /// The name of a node.
    pub(crate) fn name_of(&self, node: Party) -> &str {
        self.cluster.cards().get(node.index()).map_or("?", |card| &card.name)
    }

    /// The names of some nodes.
    pub(crate) fn names_of(&self, nodes: PartySet) -> Vec<String> {
        nodes.iter().map(|node| self.name_of(node).to_owned()).collect()
    }

    /// An error with nodes called by their names.
    pub(crate) fn message(&self, what: impl Display) -> String {
        self.cluster.in_names(&what.to_string(), "node")
    }

    /// Tells a client why it is refused. It does not matter whether the client receives this.
    pub(crate) fn refuse(&self, net: &mut TlsNet, refusal: &Refusal) {
        let refusal = Refusal { message: self.message(&refusal.message), ..refusal.clone() };
        let _ = api::send(net, self.client(), &Reply::Refused(refusal));
    }
}

/// An error as text, with nodes called by their names, for callers that no longer need the kind of the error.
pub(crate) fn named(error: Error, cluster: &Cluster) -> Error {
    match error {
        Error::Misuse(message) => Error::Misuse(cluster.in_names(&message, "node")),
        error => Error::System(cluster.in_names(&error.to_string(), "node")),
    }
}

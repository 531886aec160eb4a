//! Nodes by their names, in whatever people read.
//!
//! Protocols know parties by number, and their errors say `party 2`. Operators and clients know nodes by name. So whatever leaves a
//! node for people (refusals, lines of the log, answers to its operator) is put into names here, by [`Cluster::in_names`].

use std::fmt::Display;

use polyclave_config::Cluster;
use polyclave_protocol::Error;
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{self, Refusal, Reply};

use crate::core::Core;

impl Core {
    /// The same with nodes called by their names.
    pub(crate) fn told(&self, what: impl Display) -> String {
        self.cluster.in_names(&what.to_string(), "node")
    }

    /// Tells a client why it is refused. That it does not take it changes nothing.
    pub(crate) fn refuse(&self, net: &mut TlsNet, refusal: &Refusal) {
        let refusal = Refusal { message: self.told(&refusal.message), ..refusal.clone() };
        let client = polyclave_protocol::Party(self.nodes as u8);
        let _ = wire::send(net, client, &Reply::Refused(refusal));
    }
}

/// An error with nodes called by their names, where nobody asks any more of which kind it is.
pub(crate) fn named(error: Error, cluster: &Cluster) -> Error {
    match error {
        Error::Misuse(told) => Error::Misuse(cluster.in_names(&told, "node")),
        error => Error::System(cluster.in_names(&error.to_string(), "node")),
    }
}

//! The faults of other nodes that this node has seen, where the nodes continue in spite of them ([`Faults`]). They are logged, counted,
//! audited, and shown to operators and clients who ask for the status.
//!
//! Only this node knows them. A node that was outvoted sent shares that contradict the others': it cheats, or is broken. A node that was
//! told other things may not have seen it. That a node fell silent says nothing about the reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use polyclave_protocol::PartySet;
use polyclave_protocol::protocol::Faults;

use crate::members::Members;
use crate::operator::audit::Event;
use crate::operator::logbook::Logbook;

/// Nodes that were seen at fault since this one started.
pub(crate) struct Seen {
    members: Arc<Members>,
    logbook: Arc<Logbook>,
    outvoted: AtomicU16,
    silent: AtomicU16,
}

impl Seen {
    pub(crate) fn new(members: Arc<Members>, logbook: Arc<Logbook>) -> Seen {
        Seen { members, logbook, outvoted: AtomicU16::new(0), silent: AtomicU16::new(0) }
    }

    pub(crate) fn outvoted(&self) -> PartySet {
        PartySet::from_bits(self.outvoted.load(Relaxed))
    }

    pub(crate) fn silent(&self) -> PartySet {
        PartySet::from_bits(self.silent.load(Relaxed))
    }

    /// Remembers the faults that one request has shown, once for each request, whatever its outcome.
    pub(crate) fn note(&self, client: &str, operation: &str, key: &str, request: [u8; 16], faults: Faults) {
        let Faults { outvoted, silent } = faults;
        self.outvoted.fetch_or(outvoted.bits(), Relaxed);
        self.silent.fetch_or(silent.bits(), Relaxed);
        for node in outvoted.iter() {
            let name = self.members.name_of(node);
            tracing::warn!(node = name, operation, "sent wrong shares and was outvoted");
        }
        for node in silent.without(outvoted).iter() {
            let name = self.members.name_of(node);
            tracing::warn!(
                node = name,
                operation,
                "fell silent in a request: wrong shares are detected and not corrected while it is gone, and the stock is not refilled"
            );
        }
        for (what, nodes) in [("outvoted", outvoted), ("silent", silent.without(outvoted))] {
            for node in nodes.iter() {
                let name = self.members.name_of(node);
                metrics::counter!("polyclave_faults_total", "kind" => what, "node" => name.to_owned())
                    .increment(1);
                let outcome = format!("{what}-{name}");
                self.logbook.note(&Event {
                    client,
                    operation,
                    key,
                    outcome: &outcome,
                    request,
                    ..Event::default()
                });
            }
        }
    }
}

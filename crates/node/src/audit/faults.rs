//! The faults of other nodes that this node has seen and that do not stop the nodes ([`Faults`]). They are
//! logged, counted, audited, and shown to operators and clients who ask for the status.
//!
//! Only this node knows them. A node that was outvoted sent shares that contradict the others': it cheats, or
//! is broken. A node that was told other things may not have seen it. The silence of a node says nothing
//! about its reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

use polyclave_api::FaultCount;
use polyclave_protocol::protocol::Faults;
use polyclave_protocol::{Party, PartySet};

use crate::audit::Event;
use crate::audit::logbook::Logbook;
use crate::members::Members;

/// Nodes that were seen at fault since this one started.
pub(crate) struct Seen {
    members: Arc<Members>,
    logbook: Arc<Logbook>,
    outvoted: AtomicU16,
    silent: AtomicU16,
    /// By node: how often each was outvoted, and silent.
    counts: Box<[[AtomicU64; 2]]>,
}

impl Seen {
    pub(crate) fn new(members: Arc<Members>, logbook: Arc<Logbook>) -> Seen {
        let counts = (0..members.nodes).map(|_| Default::default()).collect();
        Seen { members, logbook, outvoted: AtomicU16::new(0), silent: AtomicU16::new(0), counts }
    }

    pub(crate) fn outvoted(&self) -> PartySet {
        PartySet::from_bits(self.outvoted.load(Relaxed))
    }

    pub(crate) fn silent(&self) -> PartySet {
        PartySet::from_bits(self.silent.load(Relaxed))
    }

    /// How often each node was at fault, of those that were.
    pub(crate) fn counts(&self) -> Vec<FaultCount> {
        let all =
            Party::all(self.members.nodes).zip(&self.counts).map(|(node, [outvoted, silent])| FaultCount {
                node: self.members.name_of(node).to_owned(),
                outvoted: outvoted.load(Relaxed),
                silent: silent.load(Relaxed),
            });
        all.filter(|count| count.outvoted + count.silent > 0).collect()
    }

    /// Remembers the faults that one request has shown, once for each request, also if the request failed.
    pub(crate) fn note(&self, client: &str, operation: &str, key: &str, request: [u8; 16], faults: Faults) {
        let Faults { outvoted, silent, disputed } = faults;
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
        if !disputed.is_empty() {
            self.note_dispute((client, operation, key), request, disputed);
        }
        for (which, (what, nodes)) in
            [("outvoted", outvoted), ("silent", silent.without(outvoted))].into_iter().enumerate()
        {
            for node in nodes.iter() {
                self.counts[node.index()][which].fetch_add(1, Relaxed);
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

    /// Two nodes contradict each other. The others went on without one of them, and cannot tell which cheats.
    fn note_dispute(
        &self,
        (client, operation, key): (&str, &str, &str),
        request: [u8; 16],
        disputed: PartySet,
    ) {
        let names = self.members.names_of(disputed);
        tracing::warn!(
            nodes = names.join(", "),
            operation,
            "contradict each other about what one told the other: one of the two cheats, or its memory or disk is damaged. \
             The nodes went on without one of them"
        );
        for name in &names {
            metrics::counter!("polyclave_faults_total", "kind" => "disputed", "node" => name.clone())
                .increment(1);
        }
        let outcome = format!("disputed-{}", names.join("-"));
        self.logbook.note(&Event { client, operation, key, outcome: &outcome, request, ..Event::default() });
    }
}

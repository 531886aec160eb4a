//! Peers remember how far each other's stores have come ([`polyclave_store::Mark`]), so that they refuse a
//! node that was put back to an old copy.
//!
//! A node tells its mark in its greeting and with every beat, never before the mark is on its own disk. A
//! peer writes the mark down, and says in its next beat, which it sends at once, which mark it holds. Each
//! mark that moved costs one synced write; several that moved meanwhile share one.
//!
//! A node acts on a change of its store only when peers hold the mark of that change ([`Marks::protect`]):
//! before it computes the first block of a range of a budget, before it announces a key whose shares it
//! stored, before it confirms a deletion. So there is no moment at which such a change has had an effect and
//! only its own node knows of it. Any node that serves a request may be put back. Among the other nodes that
//! serve it, so many hold its mark that one of them follows the protocol, or all of them hold it. What is
//! left: nodes that do not serve the request learn the mark with the next beat, within half a second, or when
//! they are connected again. If a node is put back before that, and then serves only with such nodes, they do
//! not notice it. The others notice it as soon as they meet it.

use std::sync::Arc;
use std::time::Duration;

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::{Party, PartySet};
use polyclave_store::{Mark, Past, Store};

use crate::clock::now;
use crate::error::{of_store, stops, system};
use crate::members::Members;
use crate::peers::network::Network;
use crate::peers::orders::{Beat, State};
use crate::threads::Threads;
use crate::{FaultInjection, Result};

/// How long to wait until connected peers hold a mark.
const HOLD: Duration = Duration::from_secs(6);

/// On which of a peer's two control streams it said something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The stream on which the peer reports its mark, in order.
    Here,
    /// The other stream, which may lag behind.
    Beside,
}

/// Which marks of peers this node holds, and which of this node's marks they hold.
pub(crate) struct Marks {
    members: Arc<Members>,
    store: Arc<Store>,
    network: Arc<Network>,
    threads: Arc<Threads>,
    faults: FaultInjection,
}

impl Marks {
    pub(crate) fn new(
        members: Arc<Members>,
        store: Arc<Store>,
        network: Arc<Network>,
        threads: Arc<Threads>,
        faults: FaultInjection,
    ) -> Marks {
        Marks { members, store, network, threads, faults }
    }

    /// The beat that this node, in this state, sends to one peer.
    pub(crate) fn beat_to(&self, peer: Party, state: State) -> Beat {
        // If the store cannot be read, the beat has no marks. Code that needs the store reports why.
        let mark = self.store.mark().unwrap_or_default();
        Beat { state, mark, holds: self.held_of(peer), now: now() }
    }

    /// The latest change of a peer's store that this node remembers durably.
    pub(crate) fn held_of(&self, peer: Party) -> u64 {
        if self.faults.denies_marks() { 0 } else { self.store.held_of(peer).unwrap_or_default() }
    }

    /// Refuses a peer whose past does not continue what was seen of it. Returns the boot id of the start that
    /// it is in.
    pub(crate) fn judge_past(&self, peer: Party, past: &Past, judged: Judged) -> Result<[u8; 16]> {
        match judged {
            Judged::Here => self.store.peer_seen(peer, past),
            Judged::Beside => self.store.peer_known(peer, past),
        }
        .map_err(system)?;
        past.starts.first().map(|start| start.boot).ok_or_else(|| system("a peer that was never started"))
    }

    /// Takes note of how far a peer says that its store has come.
    pub(crate) fn note_mark(&self, peer: Party, boot: [u8; 16], mark: Mark) -> Result<()> {
        if mark == Mark::default() {
            return Ok(());
        }
        let before = self.store.held_of(peer).map_err(system)?;
        self.store.peer_moved(peer, boot, mark).map_err(system)?;
        if mark.number > before {
            self.network.peers.beat_now(peer);
        }
        Ok(())
    }

    /// Notes the mark of this node that a peer says it holds.
    pub(crate) fn note_holds(&self, peer: Party, holds: u64) {
        let own = self.store.mark().unwrap_or_default().number;
        if holds > own {
            tracing::error!(
                peer = self.members.name_of(peer),
                "remembers more of this node than its own store does (mark {holds}, here {own}): this node was put back to an old \
                 copy of its disk or restored from a backup, and is refused until the operator of that node readmits it"
            );
            return;
        }
        self.network.peers.note_holds(peer, holds);
    }

    /// Waits until other serving nodes hold the mark of this node's latest change: any `threshold + 1` of
    /// them, so at least one that follows the protocol, or all if there are no more.
    pub(crate) fn protect(&self, serving: PartySet) -> Result<(), Refusal> {
        let mark = self.store.mark().map_err(of_store)?;
        let others: PartySet = serving.iter().filter(|p| *p != self.members.me).collect();
        let enough = others.len().min(self.members.cluster.threshold() + 1);
        // A node that stops hears of no more marks.
        let ends = || self.threads.is_stopping();
        if self.network.peers.wait_held(mark.number, others, enough, Duration::ZERO, &ends).is_ok() {
            return Ok(());
        }
        others.iter().for_each(|peer| self.network.peers.beat_now(peer));
        let held = self.network.peers.wait_held(mark.number, others, enough, HOLD, &ends);
        held.map_err(|lacking| {
            if ends() {
                return stops(self.members.me);
            }
            let absent = lacking.without(self.network.peers.connected());
            let why = if absent.is_empty() { format!(" in {} s", HOLD.as_secs()) } else { ": not connected".into() };
            let message = format!(
                "{} did not confirm{why}; this node has written a change to its disk, which others have to confirm before it \
                 computes; try again later",
                self.members.names_of(if absent.is_empty() { lacking } else { absent }).join(" and "),
            );
            let refusal = Refusal::new(Reason::Unavailable, message);
            lacking.iter().next().map_or(refusal.clone(), |peer| refusal.because_of(peer))
        })
    }
}

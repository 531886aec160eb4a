//! Standby pairs: any two of three nodes under `replicated-active` go on with the keys while the third one is
//! away, still against one node that cheats.
//!
//! Each of the three pairs is a cluster of its own, of two nodes under `spdz-tower` ([`pair`]). Its common
//! secrets, with a MAC key, its epochs and its stock are made while its two nodes are connected. All three
//! nodes give it every key by a handover ([`transfer`]), and keep count of what it lacks ([`keeper`]). A
//! client that cannot reach one of the nodes asks the other two.
//!
//! **Adversary**: one node of the three, static between two refreshes. The same node may cheat in the
//! handover and in both of its pairs.
//!
//! * *A key stays secret.* What a node has of a key are two of three components of a replicated sharing, and
//!   one of two summands in each of its two pairs. The handover makes the summands of the honest node of a
//!   pair uniform, and independent of all else that the cheater knows (`protocol/src/handover.rs`: masks from
//!   both sets, a check by coins). So the three sharings are independent, and each hides the key from one
//!   node. The pair of the two honest nodes hides it from the third, which sees masked openings only. What
//!   the pairs compute is the protocol of two nodes, with its own argument (docs/security/spdz.md).
//! * *Answers are right or refused.* A key that a pair stores has MACs under a key of which the cheater knows
//!   one summand at most. The handover gives the pair the value that the three nodes have, or fails, but for
//!   2^-128 a byte. From then on a share or a MAC that is altered makes the check fail, except for a guess at
//!   the MAC key. A failed check puts the honest node under quarantine in all, not only in the pair
//!   (`material/quarantine.rs`), and is counted under the pair's MAC key.
//! * *What must not repeat.* Session ids, and the nonces that come from them, are drawn by the nodes that
//!   serve, and do not repeat as long as one of them is honest (`protocol/src/interface/session.rs`): every
//!   pair has one. Uses in a pair are charged twice to the budget of a key, so that it is not exceeded
//!   although each honest node knows of only a part of them (`requests/service.rs`). Approvals are used
//!   once, so requests that need one wait for all nodes.
//! * *Only uses.* Nothing makes, changes or deletes a key in a pair. So there is nothing that the third node
//!   has missed when it is back, and no state in which a pair "serves" that would have to be agreed on or
//!   ended: all three nodes and any two of them may serve at the same time. A node that pretends that another
//!   one is gone makes requests slower, and changes nothing else.
//! * *Deleted keys.* A deletion is made by all nodes. Each removes its shares for both of its pairs in the
//!   same step, before it reports (`keys/standby.rs`). Shares of a key that this node does not have any more
//!   are removed at every start and every second.
//! * *Refreshes.* A pair belongs to the common secrets of all nodes, under which its keys were given to it.
//!   When these are replaced, every node ends its pairs, overwrites their stores and begins new ones. So a
//!   share or a MAC key from before a refresh is of no use together with one from after it.
//! * *Old copies of a disk.* The store of a pair is a file of its own, and in no backup. The two nodes
//!   connect over exactly two stores, whose ids they have told each other among all three. If one of these is
//!   gone, or was put back to an older copy, the pair begins anew. It loses nothing: the three nodes give the
//!   keys again.
//!
//! What is left: a request that runs when the third node goes is lost, as before. Keys that were made a
//! moment before have no shares in the pairs yet.

mod keeper;
mod pair;
mod transfer;

use std::sync::Arc;

use parking_lot::RwLock;
use polyclave_config::Cluster;
use polyclave_protocol::{Party, PartySet};

use crate::core::{Core, PairState};
use pair::Pair;

pub(crate) use keeper::{give, keep};

/// The standby pairs that this node is in.
#[derive(Default)]
pub(crate) struct Pairs(RwLock<Vec<Arc<Pair>>>);

impl Pairs {
    /// The parts of this node in the pair of these two nodes.
    pub(crate) fn core_of(&self, set: PartySet) -> Option<Arc<Core>> {
        self.of(set)?.core()
    }

    fn of(&self, set: PartySet) -> Option<Arc<Pair>> {
        self.0.read().iter().find(|pair| pair.set == set).cloned()
    }
}

/// How the pairs of a node stand now, also those that have not begun.
pub(crate) fn states(core: &Core, pairs: &Pairs) -> Vec<PairState> {
    let (connected, wanted) =
        (core.network.peers.connected(), core.service.keys.standby().wanted(&core.store));
    let state = |set: PartySet| {
        let others: PartySet = set.iter().filter(|party| *party != core.members.me).collect();
        let partner = core.members.names_of(others).concat();
        let not_ready = |why: String| PairState { partner, why_not_ready: Some(why), ..PairState::default() };
        match (pairs.of(set), &wanted) {
            (Some(pair), Ok(wanted)) => {
                let third = core.members.all().without(set);
                pair.state(core, !third.without(connected).is_empty(), wanted)
            }
            (None, Ok(wanted)) => {
                PairState { lacking: wanted.len() as u64, ..not_ready("it has not begun yet".into()) }
            }
            (_, Err(e)) => not_ready(core.members.message(e)),
        }
    };
    sets_of(&core.members.cluster, core.members.me).into_iter().map(state).collect()
}

/// The standby pairs of a cluster that a node is in, each with its number among all pairs.
fn pairs_of(cluster: &Cluster, me: Party) -> Vec<(u8, Cluster)> {
    let is_of = |pair: &Cluster| pair.pair().is_some_and(|set| set.contains(me));
    (0..).zip(cluster.pairs()).filter(|(_, pair)| is_of(pair)).collect()
}

/// The sets of nodes that are such pairs.
pub(crate) fn sets_of(cluster: &Cluster, me: Party) -> Vec<PartySet> {
    pairs_of(cluster, me).iter().filter_map(|(_, pair)| pair.pair()).collect()
}

//! Beginning a request with as many nodes as it needs.
//!
//! A node that refuses for a reason of its own (it has no such key or cannot read its share, its policy
//! forbids the request, its part of the budget is spent) is left out, and another node is asked in its place.
//! This gives a client nothing that it should not have: every node judges for itself, a client may always
//! choose which nodes it asks, and fewer nodes than the protocol needs serve nobody. So a request stays
//! refused if more nodes refuse than it can do without. And every node charges the requests that it serves,
//! so the budget holds whichever nodes are left out.

use polyclave_api::{Operation, Reason, Refusal};
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::{Party, PartySet};

use crate::session::conversation::{Accepted, BACK_OFF, Conversation, MAX_TRIES};
use crate::session::first::First;
use crate::session::group::Workers;
use crate::session::refusals::is_own;
use crate::{Error, Result};

/// The nodes that a request does without.
#[derive(Default)]
struct Without {
    /// Nodes that did not accept a connection.
    lost: PartySet,
    /// Nodes that refused for a reason of their own.
    left_out: PartySet,
    /// Nodes that others blame for a failure, or that could not serve just then: asked last.
    accused: PartySet,
    /// What a person is told about some of them.
    why: Vec<(PartySet, Reason, String)>,
    /// The last refusal of a node that is left out.
    refusal: Option<Error>,
}

impl Without {
    fn nodes(&self) -> PartySet {
        self.lost.and(self.left_out)
    }

    fn lose(&mut self, nodes: PartySet, why: &str) {
        self.lost = self.lost.and(nodes);
        self.why.push((nodes, Reason::Unavailable, why.into()));
    }

    /// Learns from a failed attempt: which nodes refused for a reason of their own, or else which node most
    /// others blame. Returns whether any node refused for a reason of its own.
    fn learn(&mut self, workers: Workers<'_>, refused: &[(Party, Refusal)], failed: &Error) -> bool {
        let only = |node: Party| -> PartySet { [node].into_iter().collect() };
        let own: Vec<_> = refused.iter().filter(|(_, refusal)| is_own(refusal)).collect();
        for (node, refusal) in &own {
            let message = workers.refused(*node, refusal.clone());
            self.left_out = self.left_out.and(only(*node));
            self.why.push((only(*node), refusal.reason, message.to_string()));
            self.refusal = Some(message);
        }
        // Nodes that cannot serve just now, and blame no other node.
        let just_now = |refusal: &Refusal| {
            matches!(refusal.reason, Reason::Busy | Reason::Unavailable) && refusal.blames.is_none()
        };
        let cannot = refused.iter().filter(|(_, refusal)| just_now(refusal)).map(|(node, _)| *node);
        self.accused = self.accused.and(cannot.collect());
        let votes =
            |node: &Party| refused.iter().filter(|(_, refusal)| refusal.blames == Some(*node)).count();
        let most = refused.iter().filter_map(|(_, refusal)| refusal.blames).max_by_key(votes);
        if let Some(node) = most.or(failed.peer()).filter(|_| own.is_empty()) {
            self.accused = self.accused.and(only(node));
            let why = format!("{} is taken to be the cause of this: {failed}", workers.group.node_name(node));
            self.why.push((only(node), Reason::Disagreement, why));
        }
        !own.is_empty()
    }

    /// Tells the user which of them take no part, and why.
    fn tell(&self, workers: Workers<'_>, serving: PartySet) {
        for (nodes, reason, why) in &self.why {
            if nodes.without(serving) == *nodes {
                workers.caller.remark_left_out(*nodes, *reason, why);
            }
        }
    }
}

/// Finds as many nodes as needed that accept the use of a key.
pub(super) fn begin<'c>(
    workers: Workers<'c>,
    operation: &Operation,
    first: First<'_>,
) -> Result<(Conversation<'c>, Accepted)> {
    let nodes = workers.group.cluster.nodes();
    let needed = workers.group.config.quorum();
    let (suspects, mut without) = (workers.group.suspects(), Without::default());
    let (mut last, mut failures) = (None, 0);
    for attempt in 0.. {
        let candidates = PartySet::all(nodes).without(without.nodes());
        let trusted = candidates.without(suspects);
        let preferred = [trusted.without(without.accused), trusted, candidates];
        let Some(serving) = preferred.into_iter().find_map(|of| choose(of, needed, attempt)) else {
            break;
        };
        let mut conversation = match Conversation::call(workers, serving) {
            Ok(conversation) => conversation,
            Err((failed, why)) => {
                without.lose(failed, &why);
                last = Some(why);
                continue;
            }
        };
        let failed = match conversation.ask(operation, first) {
            Ok(accepted) => {
                let gone = without.left_out.and(without.accused.without(serving));
                gone.iter().for_each(|node| workers.suspect(node));
                without.tell(workers, serving);
                return Ok((conversation, accepted));
            }
            Err(e) => e,
        };
        let is_asked_again = if without.learn(workers, &conversation.refused, &failed) {
            nodes - without.nodes().len() >= needed
        } else {
            failures += 1;
            let may_pass_soon = failed.is_busy() || failed.is_disagreement();
            let tries = if workers.group.has_standby && !may_pass_soon { 1 } else { MAX_TRIES };
            failures < tries && (failed.others_might() || failed.is_disagreement())
        };
        if !is_asked_again {
            return Err(failed);
        }
        // Nodes that make a version disagree for a moment about which one is current.
        if failed.is_busy() || failed.is_disagreement() {
            std::thread::sleep(BACK_OFF * (1 << failures));
        }
        last = Some(failed.to_string());
    }
    let why = last.unwrap_or_default();
    let too_few = Error::TooFewNodes { reached: nodes - without.lost.len(), nodes, needed, why };
    Err(without.refusal.unwrap_or(too_few))
}

/// The `attempt`-th choice of a number of nodes: the first ones at first, then others in turn.
fn choose(candidates: PartySet, needed: usize, attempt: usize) -> Option<PartySet> {
    let candidates: Vec<Party> = candidates.iter().collect();
    if candidates.len() < needed {
        return None;
    }
    let turn = candidates.iter().cycle().skip(attempt % candidates.len());
    Some(turn.take(needed).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_left_out_in_its_turn() {
        let five = PartySet::all(5);
        let sets: Vec<PartySet> = (0..5).filter_map(|attempt| choose(five, 3, attempt)).collect();
        assert!(sets.iter().all(|set| set.len() == 3));
        assert!(five.iter().all(|p| sets.iter().any(|set| !set.contains(p))));
        assert_eq!(choose(PartySet::all(2), 3, 0), None);
    }
}

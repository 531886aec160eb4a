//! Nodes that guarantee the output: the client waits for enough replies to correct any wrong ones among them.
//!
//! The protocol's code combines the replies, and decides whether those so far are enough. The client stops
//! waiting for a node that is silent, garbles its replies or refuses, and suspects it ([`judgement`]). A node
//! that computes says so every second; the client waits for it as long as enough nodes do, and at most for
//! [`LONGEST`]. It does not give up on a silent node while nodes may still be waiting for each other: not
//! after a refusal, which may be what they wait for.

mod begin;
mod choices;
mod judgement;

use std::time::{Duration, Instant};

use polyclave_api::{self as api, KeyInfo, Operation, Refusal, Reply, Step};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, PartySet};

use super::{Answers, Outcome, PutTogether, Strategy, different_keys};
use crate::session::conversation::{Accepted, Conversation, Part};
use crate::session::group::{ANSWER, Workers};
use crate::session::replies::{LONGEST, OTHER_REASONS, receive, send_to_each};
use crate::{Error, Result};
use judgement::agreed;

/// At the beginning all serving nodes have to agree. After a refusal, which may be a lie, this is how long
/// the client waits for the others.
const OTHERS_BEGIN: Duration = Duration::from_secs(3);
/// The same after a refusal of the leading node: without it the others wait much longer for nothing.
const OTHERS_ARE_LED: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(super) struct Guaranteed {
    /// How many nodes serve a request, and must say the same.
    pub(super) quorum: usize,
    /// How many nodes may cheat.
    pub(super) tolerated: usize,
}

impl Strategy for Guaranteed {
    fn begin<'c>(
        &self,
        workers: Workers<'c>,
        operation: &Operation,
        first: Option<&Step>,
    ) -> Result<(Conversation<'c>, Accepted)> {
        self.begin_with_most(workers, operation, first)
    }

    fn send(&self, conversation: &mut Conversation<'_>, message: &[u8]) -> Result<()> {
        let there = conversation.there;
        send_to_each(&mut conversation.net, there, message).map_err(|e| conversation.workers.named(e.into()))
    }

    fn settle(&self, conversation: &mut Conversation<'_>, put_together: &mut PutTogether<'_>) -> Result<()> {
        self.settle_with_most(conversation, put_together).map_err(|e| conversation.workers.named(e))
    }

    /// The other nodes can continue without that node.
    fn refuse_unexpected(&self, _: Workers<'_>, _: Party) -> Result<()> {
        Ok(())
    }

    fn alike(&self, _: usize) -> usize {
        self.quorum
    }

    /// A part is dropped if its length differs from that of most parts.
    fn drop_misfits(&self, parts: &mut Vec<Part<'_>>) {
        let mut lengths: Vec<usize> = parts.iter().map(|(_, part)| part.len()).collect();
        lengths.sort_unstable();
        let due = lengths.get(lengths.len() / 2).copied();
        parts.retain(|(_, part)| Some(part.len()) == due);
    }

    fn done(&self, said: &[Option<&KeyInfo>]) -> Result<Option<KeyInfo>> {
        let found: Vec<&KeyInfo> = said.iter().flatten().copied().collect();
        let agreed = |key: &&&KeyInfo| found.iter().filter(|other| other == key).count() > self.tolerated;
        match found.iter().find(agreed) {
            Some(key) => Ok(Some((*key).clone())),
            None if said.len() - found.len() > self.tolerated => Ok(None),
            None => Err(different_keys()),
        }
    }

    /// Nodes that are suspected need not be waited for if the others say enough.
    fn asked_for_key(&self, all: PartySet, suspects: PartySet) -> Vec<PartySet> {
        vec![all.without(suspects), all]
    }

    /// What more nodes report than may lie.
    fn outcome(&self, answers: &Answers) -> Option<Outcome> {
        let known = || answers.iter().filter_map(|(_, answer)| answer.as_ref().ok());
        let is_alike = |info: &KeyInfo| known().filter(|other| *other == info).count() > self.tolerated;
        let at =
            answers.iter().position(|(_, answer)| answer.as_ref().is_ok_and(is_alike)).or_else(|| {
                let refusal = |(party, answer): &(Party, Result<KeyInfo>)| match answer {
                    Err(Error::Refused { refusal, .. }) => Some((*party, refusal.clone())),
                    _ => None,
                };
                let refused: Vec<(Party, Refusal)> = answers.iter().filter_map(refusal).collect();
                let (agreed, _) = agreed(&refused, self.tolerated)?;
                answers.iter().position(|(party, _)| party == agreed)
            })?;
        Some(Outcome { at, left_out: PartySet::default() })
    }

    fn no_outcome(&self, key: &str, answers: Vec<(Party, Result<KeyInfo>)>) -> Error {
        let (nodes, needed) = (answers.len(), self.tolerated + 1);
        let reached = answers.iter().filter(|(_, answer)| answer.is_ok()).count();
        match answers.into_iter().find_map(|(_, answer)| answer.err()) {
            Some(e) if reached < needed => Error::TooFewNodes { reached, nodes, needed, why: e.to_string() },
            _ => Error::Contested(format!("they report different keys named '{key}'")),
        }
    }

    /// The node is left out for a while.
    fn note_silent(&self, workers: Workers<'_>, node: Party) {
        workers.suspect(node);
    }
}

impl Guaranteed {
    fn settle_with_most(
        &self,
        conversation: &mut Conversation<'_>,
        put_together: &mut PutTogether<'_>,
    ) -> Result<()> {
        let least = self.quorum;
        let (mut replies, mut refused, mut apart) = (Vec::new(), Vec::new(), None);
        let mut awaited = conversation.there;
        let began = Instant::now();
        // When more nodes claim to work than may cheat, all of them get more time.
        let (mut overdue, mut working) = (began + ANSWER, PartySet::default());
        let mut at_most = began + LONGEST;
        let mut turns: Vec<Party> = conversation.there.iter().collect();
        while !awaited.is_empty() {
            if conversation.there.len() < least {
                // The others may say the same.
                at_most = at_most.min(Instant::now() + OTHER_REASONS);
            }
            let until = overdue.min(at_most);
            let within = until.saturating_duration_since(Instant::now());
            let party =
                if within.is_zero() { None } else { conversation.next(awaited, &mut turns, within)? };
            let reply = party.and_then(|party| Some((party, receive(&mut conversation.net, party)?)));
            let lost = conversation.net.lost();
            let gone = match (party, &reply) {
                (None, _) if Instant::now() >= overdue.min(began + LONGEST) => awaited,
                (Some(party), None) => lost.and([party].into_iter().collect()),
                _ => lost,
            };
            conversation.leave_behind(gone);
            if party.is_none() {
                break;
            }
            awaited = awaited.without(gone);
            let Some((party, reply)) = reply else { continue };
            let is_late = std::mem::take(&mut conversation.owed[party.index()]);
            let one: PartySet = [party].into_iter().collect();
            match api::decode(&reply, party) {
                Ok(Reply::Refused(refusal)) => {
                    refused.push((party, refusal));
                    conversation.there = conversation.there.without(one);
                    awaited = awaited.without(one);
                    if let Some(patience) = conversation.patience_after_refusal(party) {
                        at_most = at_most.min(Instant::now() + patience);
                    }
                }
                Ok(Reply::Working { .. }) if is_late > 0 => conversation.owed[party.index()] = is_late,
                Ok(Reply::Working { done, of }) => {
                    (conversation.workers.caller.work)(done, of);
                    working = working.and(one);
                    if working.len() > self.tolerated {
                        (overdue, working) = (Instant::now() + ANSWER, PartySet::default());
                    }
                }
                Ok(_) if is_late > 0 => conversation.owed[party.index()] = is_late - 1,
                Ok(reply) => {
                    replies.push((party, reply));
                    awaited = awaited.without(one);
                    if replies.len() >= least {
                        match put_together(conversation, &replies) {
                            Ok(()) => {
                                awaited.iter().for_each(|late| conversation.owed[late.index()] += 1);
                                return Ok(());
                            }
                            Err(e) => apart = Some(e),
                        }
                    }
                }
                Err(_) => {
                    conversation.leave_behind(one);
                    awaited = awaited.without(one);
                }
            }
        }
        let failed = conversation.not_settled(&refused, apart);
        conversation.refused = refused;
        Err(failed)
    }
}

impl Conversation<'_> {
    /// A node from which something has arrived. If there are several, the one whose turn was longest ago, so
    /// that a node that sends endlessly does not hide what the others send.
    fn next(
        &mut self,
        awaited: PartySet,
        turns: &mut Vec<Party>,
        within: Duration,
    ) -> polyclave_protocol::Result<Option<Party>> {
        let mut next = None;
        for party in turns.iter().filter(|party| awaited.contains(**party)) {
            next = self.net.wait_for_any([*party].into_iter().collect(), Duration::ZERO)?;
            if next.is_some() {
                break;
            }
        }
        if next.is_none() {
            next = self.net.wait_for_any(awaited.without(self.net.lost()), within)?;
        }
        if let Some(at) = turns.iter().position(|party| Some(*party) == next) {
            let party = turns.remove(at);
            turns.push(party);
        }
        Ok(next)
    }

    /// How long to wait for the others after a refusal, since they may continue without the node that
    /// refused. `None` once all nodes have agreed to begin: then they do continue, and the client waits for
    /// them as before.
    fn patience_after_refusal(&self, party: Party) -> Option<Duration> {
        match self.leader() {
            _ if self.has_begun => None,
            Some(leader) if leader == party => Some(OTHERS_ARE_LED),
            _ => Some(OTHERS_BEGIN),
        }
    }

    /// Gives up on nodes that do not answer as they should.
    fn leave_behind(&mut self, nodes: PartySet) {
        for node in nodes.iter().filter(|node| self.there.contains(*node)) {
            self.workers.suspect(node);
            self.caught = self.caught.and([node].into_iter().collect());
        }
        self.there = self.there.without(nodes);
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::Reason;

    use super::*;
    use crate::session::strategy::tests::info;

    #[test]
    fn a_key_is_as_more_nodes_report_than_may_lie() {
        let strategy = Guaranteed { quorum: 3, tolerated: 1 };
        let outcome = |answers: Vec<Result<KeyInfo>>| {
            let answers: Vec<_> = (0..).map(Party).zip(answers).collect();
            strategy.outcome(&answers).map(|outcome| outcome.at)
        };
        let refused =
            |reason| Err(Error::Refused { node: "a node".into(), refusal: Refusal::new(reason, "") });
        assert_eq!(outcome(vec![Ok(info(1))]), None, "one may lie");
        assert_eq!(outcome(vec![Ok(info(1)), Ok(info(2))]), None);
        assert_eq!(outcome(vec![Ok(info(1)), Ok(info(2)), Ok(info(2))]), Some(1));
        assert_eq!(outcome(vec![refused(Reason::Denied), Ok(info(1))]), None);
        assert_eq!(outcome(vec![refused(Reason::Denied), Ok(info(1)), refused(Reason::Denied)]), Some(0));
        let no_outcome =
            |answers: Vec<Result<KeyInfo>>| strategy.no_outcome("k", (0..).map(Party).zip(answers).collect());
        assert!(matches!(no_outcome(vec![Ok(info(1)), Ok(info(2))]), Error::Contested(_)));
        let lost = || Err(Error::Contested(String::new()));
        let too_few = no_outcome(vec![lost(), Ok(info(1)), lost(), lost()]);
        assert!(matches!(too_few, Error::TooFewNodes { reached: 1, nodes: 4, needed: 2, .. }));
    }
}

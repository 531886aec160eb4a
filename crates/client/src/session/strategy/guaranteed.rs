//! Nodes that guarantee the output: the client waits for enough replies to correct any wrong ones among them.
//!
//! The protocol's code combines the replies, and decides whether those so far are enough. The client stops
//! waiting for a node that is silent, garbles its replies or refuses, and suspects it ([`waiting`] and
//! [`judgement`], which ask nothing). A node that computes says so every second; the client waits for it as
//! long as enough nodes do, and at most for 15 minutes. It does not give up on a silent node while nodes may
//! still be waiting for each other: not after a refusal, which may be what they wait for.

mod begin;
mod choices;
mod judgement;
mod waiting;

use std::time::{Duration, Instant};

use polyclave_api::{self as api, KeyInfo, Operation, Refusal, Reply};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, PartySet};

use super::{Answers, Outcome, PutTogether, Strategy, different_keys};
use crate::session::conversation::{Accepted, Conversation, Part};
use crate::session::first::First;
use crate::session::group::Workers;
use crate::session::replies::{receive, send_to_each};
use crate::{Error, Result};
use judgement::agreed;
use waiting::{Heard, NextStep, Waiting};

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
        first: First<'_>,
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
        let there = conversation.there;
        let (mut turns, mut apart): (Vec<Party>, _) = (there.iter().collect(), None);
        let leads = (conversation.leader(), conversation.has_begun);
        let owed = conversation.owed.clone();
        let mut waiting = Waiting::new((self.quorum, self.tolerated), there, leads, owed, Instant::now());
        let mut step = waiting.or_end(NextStep::Wait);
        while step != NextStep::End {
            let now = Instant::now();
            waiting.hurry(conversation.net.lost(), now);
            let within = waiting.until(now).saturating_duration_since(now);
            let heard = conversation.hear(waiting.awaited, &mut turns, within)?;
            step = waiting.note(heard, conversation.net.lost(), Instant::now());
            conversation.owed.clone_from(&waiting.owed);
            conversation.go_on_with(&waiting);
            if step == NextStep::Combine {
                match put_together(conversation, &waiting.replies) {
                    Ok(()) => {
                        waiting.awaited.iter().for_each(|late| conversation.owed[late.index()] += 1);
                        return Ok(());
                    }
                    Err(e) => apart = Some(e),
                }
                step = waiting.or_end(NextStep::Wait);
            }
        }
        let failed = conversation.not_settled(&waiting.refused, apart);
        conversation.refused = waiting.refused;
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

    /// What one of these nodes says, if it comes in time.
    fn hear(
        &mut self,
        awaited: PartySet,
        turns: &mut Vec<Party>,
        within: Duration,
    ) -> polyclave_protocol::Result<Heard> {
        // Not asked when the time is over: claims to work may come without end.
        let party = if within.is_zero() { None } else { self.next(awaited, turns, within)? };
        let Some(party) = party else { return Ok(Heard::Nothing) };
        let reply = receive(&mut self.net, party).and_then(|bytes| api::decode(&bytes, party).ok());
        let Some(reply) = reply else { return Ok(Heard::Garbage(party)) };
        if let Reply::Working { done, of } = reply
            && self.owed[party.index()] == 0
        {
            (self.workers.caller.work)(done, of);
        }
        Ok(Heard::Reply(party, reply.into()))
    }

    /// Goes on with the nodes that are there, and suspects those that did not answer as they should.
    fn go_on_with(&mut self, waiting: &Waiting) {
        waiting.given_up.without(self.caught).iter().for_each(|node| self.workers.suspect(node));
        self.caught = self.caught.and(waiting.given_up);
        self.there = waiting.there;
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

//! Nodes of which any may end a request: all serving nodes have to reply, and a refusal by any of them is the
//! outcome.
//!
//! A node that computes says so every second; the client waits for it as long as it does, and at most for 15
//! minutes ([`waiting`]). The client reads replies as they arrive, because a node that hangs must not hide
//! what the others say about it.

mod begin;
mod waiting;

use std::time::{Duration, Instant};

use polyclave_api::{self as api, KeyInfo, Operation, Refusal, Reply};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, PartySet};

use super::{Answers, Outcome, PutTogether, Strategy, different_keys};
use crate::session::conversation::{Accepted, Conversation, Part};
use crate::session::first::First;
use crate::session::group::Workers;
use crate::session::refusals::{is_own, is_vague, most_telling};
use crate::session::replies::BEGUN;
use crate::{Error, Result};
use waiting::Waiting;

/// See the [module](self).
pub(super) struct Abort {
    /// How many nodes a request can do without.
    pub(super) spare: usize,
}

impl Strategy for Abort {
    fn begin<'c>(
        &self,
        workers: Workers<'c>,
        operation: &Operation,
        first: First<'_>,
    ) -> Result<(Conversation<'c>, Accepted)> {
        begin::begin(workers, operation, first)
    }

    fn send(&self, conversation: &mut Conversation<'_>, message: &[u8]) -> Result<()> {
        if !conversation.net.is_alive()
            && let Some(refused) = conversation.last_words()
        {
            return Err(refused);
        }
        conversation.send_to_each(|_| message).map_err(|e| conversation.workers.named(e.into()))
    }

    fn settle(&self, conversation: &mut Conversation<'_>, put_together: &mut PutTogether<'_>) -> Result<()> {
        let replies = conversation.replies().map_err(|e| conversation.workers.named(e))?;
        put_together(conversation, &replies)
    }

    fn refuse_unexpected(&self, workers: Workers<'_>, node: Party) -> Result<()> {
        Err(Error::Answers(format!("node {} answered another question", workers.group.node_name(node))))
    }

    fn alike(&self, serving: usize) -> usize {
        serving
    }

    /// The protocol refuses such parts, or verifies the combined answer.
    fn drop_misfits(&self, _: &mut Vec<Part<'_>>) {}

    fn done(&self, said: &[Option<&KeyInfo>]) -> Result<Option<KeyInfo>> {
        let mut found = said.iter().flatten();
        let Some(first) = found.next() else { return Ok(None) };
        match found.all(|key| key == first) {
            true => Ok(Some((*first).clone())),
            false => Err(different_keys()),
        }
    }

    fn asked_for_key(&self, all: PartySet, _: PartySet) -> Vec<PartySet> {
        all.iter().map(|node| [node].into_iter().collect()).collect()
    }

    /// The answer of the first node that does not refuse. A refusal, if more nodes refuse than a request can
    /// do without.
    fn outcome(&self, answers: &Answers) -> Option<Outcome> {
        let refused: PartySet =
            answers.iter().filter(|(_, answer)| refuses(answer)).map(|(party, _)| *party).collect();
        let is_outcome = |(_, answer): &(Party, Result<KeyInfo>)| match answer {
            Ok(_) => true,
            Err(e) => !refuses(answer) && !e.may_pass(),
        };
        match answers.iter().position(is_outcome) {
            Some(at) if answers[at].1.is_ok() => Some(Outcome { at, left_out: refused }),
            Some(at) => Some(Outcome { at, left_out: PartySet::default() }),
            None if refused.len() > self.spare => {
                let at = answers.iter().position(|(_, answer)| refuses(answer))?;
                Some(Outcome { at, left_out: PartySet::default() })
            }
            None => None,
        }
    }

    fn no_outcome(&self, _: &str, mut answers: Vec<(Party, Result<KeyInfo>)>) -> Error {
        let refusal = answers.iter().position(|(_, answer)| refuses(answer));
        let last = answers.len().checked_sub(1);
        let telling = refusal.or(last).and_then(|at| answers.swap_remove(at).1.err());
        telling.unwrap_or_else(|| Error::Misuse("the cluster has no nodes".into()))
    }

    fn note_silent(&self, _: Workers<'_>, _: Party) {}
}

/// A refusal that says only that the nodes could not serve, with the node whose connection with this client
/// has ended, if one has. When a node goes, the others end what they do together, and each may blame another
/// one that has noticed it first. Only which nodes are asked next depends on it.
fn blaming(refusal: Refusal, gone: Option<Party>) -> Refusal {
    match gone {
        Some(gone) if is_vague(&refusal) => refusal.because_of(gone),
        _ => refusal,
    }
}

/// Whether a node refuses for a reason of its own.
fn refuses(answer: &Result<KeyInfo>) -> bool {
    matches!(answer, Err(Error::Refused { refusal, .. }) if is_own(refusal))
}

impl Conversation<'_> {
    /// The refusal with which nodes ended the conversation while this client was busy, for example waiting
    /// for its input. It is looked for among the messages that have arrived.
    pub(in crate::session) fn last_words(&mut self) -> Option<Error> {
        let mut refused = Vec::new();
        self.net.set_deadline(Some(Instant::now() + BEGUN));
        while let Some(party) = self.net.arrived().iter().next() {
            let Ok(bytes) = api::receive_bytes(&mut self.net, party) else { break };
            if let Ok(Reply::Refused(refusal)) = api::decode(&bytes, party) {
                refused.push((party, refusal));
            }
        }
        self.net.set_deadline(None);
        most_telling(&refused).map(|(party, refusal)| self.workers.refused(*party, refusal.clone()))
    }

    /// One reply of each node. A refusal by any of them is the outcome.
    fn replies(&mut self) -> Result<Vec<(Party, Reply)>> {
        let mut waiting = Waiting::new(self.serving, self.net.parties(), Instant::now());
        let mut gone = None;
        while !waiting.awaited.is_empty() {
            let left = waiting.until().saturating_duration_since(Instant::now());
            match self.next_reply(waiting.awaited, left) {
                Ok(Some((party, reply))) => waiting.note(party, reply, Instant::now()),
                Ok(None) => waiting.end(None, Instant::now())?,
                Err(e) => {
                    if let polyclave_protocol::Error::Closed { peer, .. } = &e {
                        gone = Some(*peer);
                    }
                    waiting.end(Some(e), Instant::now())?;
                }
            }
        }
        waiting.replies.sort_by_key(|(party, _)| *party);
        self.refused = waiting.refused;
        match most_telling(&self.refused) {
            Some((party, refusal)) => Err(self.workers.refused(*party, blaming(refusal.clone(), gone))),
            None => Ok(waiting.replies),
        }
    }

    /// What one of these nodes says, if it comes in time.
    fn next_reply(
        &mut self,
        awaited: PartySet,
        within: Duration,
    ) -> polyclave_protocol::Result<Option<(Party, Reply)>> {
        // Not asked when the time is over: claims to work may come without end.
        let party = if within.is_zero() { None } else { self.net.wait(awaited, within)? };
        let Some(party) = party else { return Ok(None) };
        let reply = api::receive_bytes(&mut self.net, party).and_then(|bytes| api::decode(&bytes, party))?;
        if let Reply::Working { done, of } = reply {
            (self.workers.caller.work)(done, of);
        }
        Ok(Some((party, reply)))
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::Reason;

    use super::*;
    use crate::session::strategy::tests::info;

    fn refused(reason: Reason) -> Result<KeyInfo> {
        Err(Error::Refused { node: "a node".into(), refusal: Refusal::new(reason, "") })
    }

    /// Node 3 was killed; node 1 noticed that node 2 had noticed it.
    #[test]
    fn a_node_that_this_client_sees_go_is_blamed_and_not_one_that_others_saw_go() {
        let of_others = |reason| Refusal::new(reason, "").because_of(Party(1));
        let blamed = |reason, gone| blaming(of_others(reason), gone).blames;
        assert_eq!(blamed(Reason::Unavailable, Some(Party(2))), Some(Party(2)));
        assert_eq!(blamed(Reason::Unavailable, None), Some(Party(1)));
        assert_eq!(blamed(Reason::Spent, Some(Party(2))), Some(Party(1)), "that is a reason of its own");
    }

    #[test]
    fn the_first_node_that_does_not_refuse_tells_of_a_key_unless_too_many_refuse() {
        let strategy = Abort { spare: 1 };
        let outcome = |answers: Vec<Result<KeyInfo>>| {
            let answers: Vec<_> = (0..).map(Party).zip(answers).collect();
            strategy.outcome(&answers).map(|outcome| (outcome.at, outcome.left_out.bits()))
        };
        let lost = || Err(Error::Contested(String::new()));
        assert_eq!(outcome(vec![Ok(info(1))]), Some((0, 0)));
        assert_eq!(outcome(vec![refused(Reason::Denied)]), None, "another may tell");
        assert_eq!(outcome(vec![refused(Reason::Denied), Ok(info(1))]), Some((1, 0b1)), "it is left out");
        assert_eq!(outcome(vec![lost(), refused(Reason::Key), refused(Reason::Denied)]), Some((1, 0)));
        assert_eq!(outcome(vec![lost(), lost()]), None);
        assert_eq!(outcome(vec![lost(), Err(Error::Ended)]), Some((1, 0)), "it will not pass");
        let none = vec![(Party(0), lost()), (Party(1), refused(Reason::Denied)), (Party(2), lost())];
        assert!(matches!(strategy.no_outcome("k", none), Error::Refused { .. }), "a refusal says more");
    }
}

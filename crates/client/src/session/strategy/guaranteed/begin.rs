//! Beginning a request with all nodes that can be reached, then without those that are suspected.

use polyclave_api::Operation;
use polyclave_protocol::PartySet;
use polyclave_protocol::service::ServiceConfig;

use super::Guaranteed;
use super::choices::{CAUGHT, Choices};
use crate::session::conversation::{Accepted, BACK_OFF, Conversation, MAX_TRIES};
use crate::session::first::First;
use crate::session::group::Workers;
use crate::session::refusals::is_own;
use crate::{Error, Result};

impl Guaranteed {
    /// Asks all nodes that can be reached. If they cannot agree, leaves out one suspected node after another.
    /// The nodes that an attempt reaches charge it to the key's budget, so the client remembers for a while
    /// which nodes were left out when it succeeded.
    pub(super) fn begin_with_most<'c>(
        &self,
        workers: Workers<'c>,
        operation: &Operation,
        first: First<'_>,
    ) -> Result<(Conversation<'c>, Accepted)> {
        let (nodes, needed) = (workers.group.cluster.nodes(), self.quorum);
        let (mut lost, mut contested, mut last, mut why) =
            (PartySet::default(), PartySet::default(), None, None);
        let mut choices = Choices::without(workers.group.suspects(), self.tolerated);
        for attempt in 0..nodes + MAX_TRIES {
            let Some(serving) = choices.next(PartySet::all(nodes).without(lost), needed) else { break };
            let mut conversation = match Conversation::call(workers, serving) {
                Ok(conversation) => conversation,
                Err((failed, message)) => {
                    why = Some(message);
                    lost = lost.and(failed);
                    continue;
                }
            };
            match conversation.ask(operation, first) {
                Ok(accepted) => {
                    conversation.remark_on_missing(why.as_deref());
                    workers.group.trust(conversation.there);
                    contested.without(serving).iter().for_each(|node| workers.suspect(node));
                    return Ok((conversation, accepted));
                }
                Err(e @ (Error::Contested(_) | Error::Connection { .. })) => {
                    conversation.caught.iter().for_each(|node| choices.suspect(node, CAUGHT));
                    conversation.against.iter().for_each(|(node, weight)| choices.suspect(*node, *weight));
                    contested = contested.and(serving);
                    why = Some(conversation.own_refusals().unwrap_or(e.to_string()));
                    last = Some(e);
                }
                Err(e) if e.is_busy() && attempt + 1 < MAX_TRIES => {
                    std::thread::sleep(BACK_OFF * (1 << attempt));
                    // None of them is to blame.
                    choices.allow_again(serving);
                    last = Some(e);
                }
                Err(e) => return Err(e),
            }
        }
        match last {
            Some(e) if lost.len() + needed <= nodes => Err(e),
            _ => {
                let why = why.unwrap_or_default();
                Err(Error::TooFewNodes { reached: nodes - lost.len(), nodes, needed, why })
            }
        }
    }
}

impl Conversation<'_> {
    /// The error from nodes that refused for a reason of their own, if any did.
    fn own_refusals(&self) -> Option<String> {
        let own = self.refused.iter().filter(|(_, refusal)| is_own(refusal));
        let message: Vec<String> =
            own.map(|(node, refusal)| self.workers.refused(*node, refusal.clone()).to_string()).collect();
        (!message.is_empty()).then(|| message.join(", "))
    }

    /// Tells the user which nodes are left out, and what that means.
    fn remark_on_missing(&self, why: Option<&str>) {
        let missing = PartySet::all(self.workers.group.cluster.nodes()).without(self.serving);
        if missing.is_empty() {
            return;
        }
        let names = missing.iter().map(|p| self.workers.group.node_name(p)).collect::<Vec<_>>().join(", ");
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let material = match self.workers.group.config.keeps_stock() {
            true => ". The nodes go on with the material in stock, and make no more while one is missing",
            false => "",
        };
        self.workers.caller.remark(&format!(
            "{names} takes no part{why}. Correction is off: if another node sent something wrong it would be noticed, and there \
             would be no answer{material}"
        ));
    }
}

//! What differs for a client between nodes of which any may end a request ([`abort`]), and nodes that
//! guarantee the output ([`guaranteed`]). One of the two is chosen when the client is opened.

mod abort;
mod guaranteed;

use polyclave_api::{KeyInfo, Operation};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::{Party, PartySet};

use crate::session::conversation::{Accepted, Conversation, Part};
use crate::session::first::First;
use crate::session::group::Workers;
use crate::session::replies::Replies;
use crate::{Error, Result};
use abort::Abort;
use guaranteed::Guaranteed;

/// Combines the replies so far into an answer; an error if they are not enough or do not fit.
pub(crate) type PutTogether<'p> = dyn FnMut(&Conversation<'_>, &Replies) -> Result<()> + 'p;

/// What nodes say of a key.
pub(crate) type Answers = [(Party, Result<KeyInfo>)];

/// One of some answers, as the outcome.
pub(crate) struct Outcome {
    /// Which one.
    pub(crate) at: usize,
    /// Nodes that refused, and that requests can do without.
    pub(crate) left_out: PartySet,
}

/// How a client gets one answer from several nodes.
pub(crate) trait Strategy: Send + Sync {
    /// Finds nodes that accept the use of a key. If nodes fail before they have accepted, others are asked:
    /// nothing has happened yet.
    fn begin<'c>(
        &self,
        workers: Workers<'c>,
        operation: &Operation,
        first: First<'_>,
    ) -> Result<(Conversation<'c>, Accepted)>;

    /// Sends the same encoded message to all nodes of a conversation that still answer.
    fn send(&self, conversation: &mut Conversation<'_>, message: &[u8]) -> Result<()>;

    /// Receives the replies to the oldest message that has no answer yet, until they can be combined.
    fn settle(&self, conversation: &mut Conversation<'_>, put_together: &mut PutTogether<'_>) -> Result<()>;

    /// Handles a reply to another question. An error if that ends the conversation.
    fn refuse_unexpected(&self, workers: Workers<'_>, node: Party) -> Result<()>;

    /// How many of the serving nodes have to say the same.
    fn alike(&self, serving: usize) -> usize;

    /// Drops parts of an answer that cannot be combined with the others.
    fn drop_misfits(&self, parts: &mut Vec<Part<'_>>);

    /// The key that the nodes have made or deleted, by what each said. If a deletion is repeated, only some
    /// nodes still have the key.
    fn done(&self, said: &[Option<&KeyInfo>]) -> Result<Option<KeyInfo>>;

    /// Which nodes are asked for the properties of a key, one set after the other until one answer is the
    /// outcome.
    fn asked_for_key(&self, all: PartySet, suspects: PartySet) -> Vec<PartySet>;

    /// The answer that is the outcome, if those so far show that.
    fn outcome(&self, answers: &Answers) -> Option<Outcome>;

    /// The error if no answer is the outcome.
    fn no_outcome(&self, key: &str, answers: Vec<(Party, Result<KeyInfo>)>) -> Error;

    /// Notes that a node did not answer a question that each node answers alone.
    fn note_silent(&self, workers: Workers<'_>, node: Party);
}

/// The strategy for a protocol. This is the only place that distinguishes the two.
pub(crate) fn of(config: &AnyServiceConfig, nodes: usize, tolerated: usize) -> Box<dyn Strategy> {
    match config.adversary() {
        Adversary::Passive | Adversary::Abort => Box::new(Abort { spare: nodes - config.quorum() }),
        Adversary::GuaranteedOutput => Box::new(Guaranteed { quorum: config.quorum(), tolerated }),
    }
}

fn different_keys() -> Error {
    Error::Answers("they tell of different keys".into())
}

#[cfg(test)]
mod tests {
    use polyclave_api::{Mode, NewKey, Origin};

    use super::*;

    /// Some key, of which nodes may say different things.
    pub(super) fn info(made: u64) -> KeyInfo {
        let new = NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 100);
        KeyInfo::first(new, [7; 16], Origin::Generated, made, vec![1; 5])
    }
}

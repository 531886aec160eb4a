//! What differs for a client between nodes of which any may end a request ([`abort`]), and nodes that guarantee the output
//! ([`guaranteed`]). One of the two is chosen when the client is opened.

mod abort;
mod guaranteed;

use polyclave_api::{KeyInfo, Operation, Reply, Step};
use polyclave_protocol::Party;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::ServiceConfig;

use crate::Result;
use crate::client::Client;
use crate::conversation::replies::Replies;
use crate::conversation::{Accepted, Conversation, Part};
use crate::group::Workers;
use abort::Abort;
use guaranteed::Guaranteed;

/// Combines the replies so far into an answer; an error if they are not enough or do not fit.
pub(crate) type PutTogether<'p> = dyn FnMut(&Conversation<'_>, &Replies) -> Result<()> + 'p;

/// How a client gets one answer from several nodes.
pub(crate) trait Strategy: Send + Sync {
    /// Finds nodes that accept the use of a key. If nodes fail before they have accepted, others are asked: nothing has happened yet.
    fn begin<'c>(
        &self,
        workers: Workers<'c>,
        operation: &Operation,
        first: Option<&Step>,
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

    /// The key that the nodes have made or deleted, by what each said. If a deletion is repeated, only some nodes still have the key.
    fn done(&self, said: &[Option<&KeyInfo>]) -> Result<Option<KeyInfo>>;

    /// The properties of a key, by what the nodes say.
    fn info(&self, client: &Client, key: &str) -> Result<KeyInfo>;

    /// Notes that a node did not answer a question that each node answers alone.
    fn note_silent(&self, workers: Workers<'_>, node: Party);
}

/// The strategy for a protocol. This is the only place that distinguishes the two.
pub(crate) fn of(config: &AnyServiceConfig, tolerated: usize) -> Box<dyn Strategy> {
    match config.adversary() {
        Adversary::Passive | Adversary::Abort => Box::new(Abort),
        Adversary::GuaranteedOutput => Box::new(Guaranteed { quorum: config.quorum(), tolerated }),
    }
}

fn different_keys() -> crate::Error {
    crate::Error::Answers("they tell of different keys".into())
}

fn first_key(reply: Reply) -> Option<KeyInfo> {
    match reply {
        Reply::Keys { keys, .. } => keys.into_iter().next(),
        _ => None,
    }
}

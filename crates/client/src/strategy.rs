//! What a client does differently with nodes of which any may end a request ([`abort`]), and with nodes that guarantee the output
//! ([`guaranteed`]). One of the two is chosen when the client is opened.

mod abort;
mod guaranteed;

use polyclave_protocol::Party;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::ServiceConfig;
use polyclave_transport::wire::{KeyInfo, Operation, Reply, Step};

use crate::Result;
use crate::client::Client;
use crate::conversation::replies::Replies;
use crate::conversation::{Accepted, Conversation, Part};
use abort::Abort;
use guaranteed::Guaranteed;

/// Puts an answer together from the replies so far; an error if they do not make one.
pub(crate) type PutTogether<'p> = dyn FnMut(&Conversation<'_>, &Replies) -> Result<()> + 'p;

/// How a client gets one answer from several nodes.
pub(crate) trait Strategy: Send + Sync {
    /// Has nodes accept the use of a key. If nodes fail before they have accepted, others are asked: nothing has happened yet.
    fn begin<'c>(
        &self,
        client: &'c Client,
        operation: &Operation,
        first: Option<&Step>,
    ) -> Result<(Conversation<'c>, Accepted)>;

    /// Sends the same encoded message to all nodes of a conversation that still answer.
    fn send(&self, conversation: &mut Conversation<'_>, message: &[u8]) -> Result<()>;

    /// Receives the replies to the oldest message that has no answer yet, until they make one.
    fn settle(&self, conversation: &mut Conversation<'_>, put_together: &mut PutTogether<'_>) -> Result<()>;

    /// A node answered another question: whether that ends the conversation.
    fn refuse_unexpected(&self, client: &Client, node: Party) -> Result<()>;

    /// How many of the serving nodes have to say the same.
    fn alike(&self, serving: usize) -> usize;

    /// Drops parts of an answer that cannot be put together with the others.
    fn drop_misfits(&self, parts: &mut Vec<Part<'_>>);

    /// Which key the nodes have made or deleted, by what each said. One that deletes again finds the key at some nodes only.
    fn done(&self, said: &[Option<&KeyInfo>]) -> Result<Option<KeyInfo>>;

    /// What the nodes say of a key.
    fn info(&self, client: &Client, key: &str) -> Result<KeyInfo>;

    /// A node did not answer a question that each answers for itself.
    fn note_silent(&self, client: &Client, node: Party);
}

/// The strategy for a protocol. The only place that asks which of the two it is.
pub(crate) fn of(scheme: &AnyServiceConfig, tolerated: usize) -> Box<dyn Strategy> {
    match scheme.adversary() {
        Adversary::Passive | Adversary::Abort => Box::new(Abort),
        Adversary::GuaranteedOutput => Box::new(Guaranteed { quorum: scheme.quorum(), tolerated }),
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

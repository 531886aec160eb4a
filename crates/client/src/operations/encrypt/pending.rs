//! A message of GCM that is under way: the nodes have drawn its nonce, and wait for the message.
//!
//! Programs written for some HSMs learn the nonce when they begin an operation, and give the message in a
//! later call. The conversation with the nodes waits in between. Nodes hang up after 20 s of silence, and
//! then the message fails: another conversation would have another nonce. A message that has begun holds one
//! of the channels of the nodes. So they hang up after 5 s already if a client waits for a channel that has
//! fewer requests under way.

use super::aead::{Aead, NONCE};
use super::gcm::Message;
use super::pieces::Source;
use crate::client::Client;
use crate::session::conversation::Paused;
use crate::session::first::First;
use crate::{Error, Result};

/// A message under way, whose nonce is known.
pub struct Pending {
    client: Client,
    paused: Paused,
    nonce: [u8; NONCE],
    tag_bytes: usize,
}

impl Aead<'_> {
    /// Has the nodes draw a nonce for one message of GCM, and wait for the message.
    pub fn begin(&self) -> Result<Pending> {
        let (conversation, accepted) = self.begin_gcm(First::Nothing)?;
        let nonce = accepted.start.as_slice().try_into();
        let nonce = nonce.map_err(|_| Error::Answers("they gave no nonce".into()))?;
        let paused = conversation.pause();
        Ok(Pending { client: self.key.client.again(), paused, nonce, tag_bytes: self.tag_bytes })
    }
}

impl Pending {
    /// The nonce of the message.
    pub fn nonce(&self) -> &[u8] {
        &self.nonce
    }

    /// Encrypts the message: ciphertext and tag.
    pub fn encrypt(self, message: &[u8]) -> Result<Vec<u8>> {
        let workers = self.client.group_of(&self.paused.cluster);
        let mut conversation = self.paused.resume(workers);
        let mut out = Vec::with_capacity(message.len() + self.tag_bytes);
        let mut message = Message::new(Source::Memory(message))?;
        conversation.step(&message.first_step())?;
        message.encrypt(conversation, self.tag_bytes, &mut out, &mut |_| ())?;
        Ok(out)
    }
}

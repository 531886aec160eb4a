//! A message of GCM that has begun: the nodes have drawn its nonce, and wait for the message.
//!
//! Programs written for some HSMs learn the nonce when they begin an operation, and give the message in a later call. The conversation with the
//! nodes waits in between. Nodes hang up after 20 s of silence, and then the message fails: another conversation would have another nonce. A
//! message that has begun holds one of the channels of the nodes. So they hang up after 5 s already if a client waits for a channel that has
//! fewer requests under way.

use std::sync::Arc;

use polyclave_api::{CHUNK, KeyInfo, Step, Use};

use crate::client::Client;
use crate::conversation::Paused;
use crate::known::{NONCE, encrypt_pieces};
use crate::{Error, Result};

/// A message whose nonce is known.
pub struct GcmBegun {
    client: Arc<Client>,
    paused: Paused,
    nonce: [u8; NONCE],
    tag_bytes: usize,
}

impl GcmBegun {
    /// Has the nodes draw a nonce for one message under a version of a key. `tag_bytes`: 12 to 16.
    pub fn begin(
        client: Arc<Client>,
        key: &KeyInfo,
        additional: &[u8],
        tag_bytes: usize,
    ) -> Result<GcmBegun> {
        let how = Use::GcmEncrypt { additional: additional.to_vec(), nonce: None };
        let (conversation, accepted) = client.begin_known(key, how, None)?;
        let nonce = accepted.start.as_slice().try_into();
        let nonce = nonce.map_err(|_| Error::Answers("they gave no nonce".into()))?;
        let paused = conversation.pause();
        Ok(GcmBegun { client, paused, nonce, tag_bytes })
    }

    /// The nonce of the message.
    pub fn nonce(&self) -> &[u8] {
        &self.nonce
    }

    /// Encrypts the message: ciphertext and tag.
    pub fn encrypt(self, message: &[u8]) -> Result<Vec<u8>> {
        let mut conversation = self.paused.resume(&self.client);
        let pieces: Vec<&[u8]> = message.chunks(CHUNK).collect();
        conversation.step(&first_step(&pieces))?;
        let mut out = Vec::with_capacity(message.len() + self.tag_bytes);
        encrypt_pieces(conversation, &pieces, self.tag_bytes, &mut out)?;
        Ok(out)
    }
}

/// What the nodes are asked first about a message.
pub(crate) fn first_step(pieces: &[&[u8]]) -> Step {
    pieces.first().map_or(Step::Tag, |piece| Step::Keystream { bytes: piece.len() as u32 })
}

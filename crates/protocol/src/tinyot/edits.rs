//! A party of a test that changes what it sends.

use crate::interface::net::Net;
use crate::mesh::Mesh;
use crate::{Error, Party, Result};

/// Bytes of one message, counted from 0, and what is added to them.
#[derive(Clone, Default)]
pub(super) struct Edits {
    pub(super) at: u64,
    pub(super) bytes: Vec<(usize, u8)>,
    /// Other messages, and what is added to them.
    pub(super) also: Vec<(u64, Vec<(usize, u8)>)>,
    /// Whom the message is for: all peers, if nobody is named.
    pub(super) to: Vec<usize>,
    /// Whether the cheater goes on as if it had meant what it told all peers.
    pub(super) knows: bool,
    /// Whether it leaves before the message.
    pub(super) leaves: bool,
}

/// A network that adds to bytes of a message.
pub(super) struct Edited {
    pub(super) net: Mesh,
    pub(super) edits: Edits,
    pub(super) sent: u64,
}

impl Net for Edited {
    crate::forward_net!(self => self.net; me, parties, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let mut messages: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        let Edits { at, bytes, also, to, knows, leaves } = &self.edits;
        let other = also.iter().find(|(at, _)| self.sent == *at).map(|(_, bytes)| bytes);
        let is_due = self.sent == *at || other.is_some();
        let bytes = other.unwrap_or(bytes);
        // Places wrap around at the message's length.
        let add = |message: &mut [u8]| {
            let len = message.len();
            bytes.iter().for_each(|(byte, error)| message[byte % len] ^= error);
        };
        let peers: Vec<_> = self.me().peers(self.parties()).map(Party::index).collect();
        if is_due && *leaves {
            return Err(Error::System("it left".into()));
        }
        if is_due {
            let text = peers.iter().filter(|peer| to.is_empty() || to.contains(peer));
            text.for_each(|peer| add(&mut messages[*peer]));
        }
        self.net.exchange(&messages.iter().map(Vec::as_slice).collect::<Vec<_>>(), into)?;
        if is_due && *knows {
            add(&mut *into[peers[0]]);
        }
        self.sent += 1;
        Ok(())
    }
}

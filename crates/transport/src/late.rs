//! Messages that a peer still owes from earlier gatherings. They are read and discarded when they arrive.

use std::collections::VecDeque;

use crate::broken::Broken;
use crate::frame::Passage;
use crate::socket::Socket;

/// Late messages of one peer, in order.
#[derive(Default)]
pub(crate) struct Late {
    messages: VecDeque<Message>,
    bytes: usize,
}

struct Message {
    len: usize,
    /// How much of the first message came in time. The later messages cannot have begun to arrive by then.
    passage: Passage,
}

impl Message {
    /// Its bytes and what it takes to remember it, so that short ones do not add up unseen.
    fn weight(&self) -> usize {
        self.len + size_of::<Message>()
    }
}

impl Late {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How many bytes are owed.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rest of a message of `len` bytes is late now.
    pub(crate) fn push(&mut self, len: usize, passage: Passage) {
        let message = Message { len, passage };
        self.bytes += message.weight();
        self.messages.push_back(message);
    }

    /// Discards a piece of what has arrived.
    pub(crate) fn skip(&mut self, socket: &mut Socket, max_frame: usize) -> Result<(), Broken> {
        if let Some(message) = self.messages.front_mut()
            && message.passage.skip(socket, message.len, max_frame)?
        {
            self.bytes -= message.weight();
            self.messages.pop_front();
        }
        Ok(())
    }
}

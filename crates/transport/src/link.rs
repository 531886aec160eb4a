//! This party's side of its connection with one peer, within one stream.

use std::time::Instant;

use polyclave_protocol::Party;
use rustix::event::PollFlags;

use crate::broken::Broken;
use crate::frame::Passage;
use crate::socket::Socket;

/// A connection and the messages that are on their way over it.
pub(crate) struct Link {
    pub(crate) peer: Party,
    socket: Socket,
    sending: Option<Passage>,
    receiving: Option<Passage>,
    /// When bytes last moved, or the present messages began.
    pub(crate) moved_at: Instant,
    /// When the present messages began.
    pub(crate) began_at: Instant,
}

impl Link {
    pub(crate) fn new(peer: Party, socket: Socket) -> Self {
        Link {
            peer,
            socket,
            sending: None,
            receiving: None,
            moved_at: Instant::now(),
            began_at: Instant::now(),
        }
    }

    /// A message is to be sent, or received, or both.
    pub(crate) fn begin(&mut self, send: bool, receive: bool, now: Instant) {
        self.sending = send.then(Passage::default);
        self.receiving = receive.then(Passage::default);
        self.moved_at = now;
        self.began_at = now;
    }

    /// Does what can be done without waiting; true if any bytes moved.
    pub(crate) fn step(&mut self, out: &[u8], into: &mut [u8], max_frame: usize) -> Result<bool, Broken> {
        if let Some(passage) = &mut self.sending
            && passage.send(&mut self.socket, out, max_frame)?
        {
            self.sending = None;
        }
        if !self.socket.is_flushed() {
            self.socket.flush()?;
        }
        if let Some(passage) = &mut self.receiving
            && passage.receive(&mut self.socket, into, max_frame)?
        {
            self.receiving = None;
        }
        let moved = self.socket.take_moved();
        if moved {
            self.moved_at = Instant::now();
        }
        Ok(moved)
    }

    /// Takes in what has arrived; an end that leaves nothing to be read is an error.
    pub(crate) fn look(&mut self, limit: usize) -> Result<(), Broken> {
        self.socket.look(limit)
    }

    /// Whether something lies here that nobody has received.
    pub(crate) fn has_early(&self) -> bool {
        self.socket.has_early()
    }

    /// Takes in what nobody waits for yet, so that the peer can go on; true if any bytes moved.
    pub(crate) fn read_ahead(&mut self, limit: usize) -> Result<bool, Broken> {
        if self.receiving.is_none() && !self.socket.inbound_is_full_or_ended(limit) {
            let _drained = self.socket.read_ahead()?;
        }
        Ok(self.socket.take_moved())
    }

    /// Whether all of this party's bytes are with the operating system.
    pub(crate) fn is_sent(&self) -> bool {
        self.sending.is_none() && self.socket.is_flushed()
    }

    /// Whether there is nothing left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.is_sent() && self.receiving.is_none()
    }

    /// What to wait for; with `ahead` also for what `read_ahead` would take.
    pub(crate) fn interest(&self, ahead: Option<usize>) -> PollFlags {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::OUT, !self.is_sent());
        let ahead = ahead.is_some_and(|limit| !self.socket.inbound_is_full_or_ended(limit));
        interest.set(PollFlags::IN, self.receiving.is_some() || ahead);
        interest
    }

    /// Whether the connection has not ended, as far as can be told without waiting.
    pub(crate) fn is_open(&mut self, limit: usize) -> bool {
        self.socket.is_open(limit)
    }

    /// The connection, which is between two messages unless one failed.
    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    /// For readiness.
    pub(crate) fn tcp(&self) -> &std::net::TcpStream {
        self.socket.tcp()
    }
}

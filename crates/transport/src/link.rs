//! This party's side of its connection with one peer, within one stream.
//!
//! After a gathering a link may have unfinished work: bytes that the operating system did not take, and
//! messages that the peer still has to send. Every later step begins with these.

use std::time::{Duration, Instant};

use polyclave_protocol::{Error, Party};
use rustix::event::PollFlags;

use crate::broken::Broken;
use crate::buffer::Buffer;
use crate::frame::Passage;
use crate::late::Late;
use crate::limits::Limits;
use crate::socket::Socket;

/// A peer may owe this many times as much as may be kept for it.
const LATE_FOR_UNSENT: usize = 16;

/// A connection and the messages that are being sent and received over it.
pub(crate) struct Link {
    pub(crate) peer: Party,
    socket: Socket,
    sending: Option<Passage>,
    receiving: Option<Passage>,
    /// Whether the current call sends anything.
    sends: bool,
    /// Frames of earlier gatherings that are still to be sent.
    unsent: Buffer,
    /// What the peer owes from earlier gatherings.
    late: Late,
    /// Set, in a gathering, when nothing can be sent any more though something may still be received.
    deaf: Option<Broken>,
    /// When bytes last moved, or the present messages began. The latter not in a gathering of a peer that is
    /// late.
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
            sends: false,
            unsent: Buffer::default(),
            late: Late::default(),
            deaf: None,
            moved_at: Instant::now(),
            began_at: Instant::now(),
        }
    }

    /// Begins to send a message, or to receive one, or both.
    pub(crate) fn begin(&mut self, send: bool, receive: bool, now: Instant) {
        self.sends = send;
        self.sending = send.then(Passage::default);
        self.receiving = receive.then(Passage::default);
        if send || receive {
            self.moved_at = now;
        }
        self.began_at = now;
    }

    /// The same in a gathering. There a peer that owes messages gets no new time.
    pub(crate) fn begin_gathering(&mut self, send: bool, receive: bool, now: Instant) {
        let moved_at = self.moved_at;
        self.begin(send && self.deaf.is_none(), receive, now);
        if self.is_late() {
            self.moved_at = moved_at;
        }
    }

    /// Does what can be done without waiting; true if any bytes moved.
    pub(crate) fn step(&mut self, out: &[u8], into: &mut [u8], max_frame: usize) -> Result<bool, Broken> {
        self.push(out, max_frame)?;
        self.pull(into, max_frame)?;
        Ok(self.note_moved())
    }

    /// The same in a gathering. A peer that takes nothing any more may have left messages, for this call and
    /// for later ones.
    pub(crate) fn step_gathering(
        &mut self,
        out: &[u8],
        into: &mut [u8],
        max_frame: usize,
    ) -> Result<bool, Broken> {
        self.push_while_it_hears(out, max_frame);
        self.pull(into, max_frame)?;
        Ok(self.note_moved())
    }

    /// Sends what it can, until the peer takes nothing any more.
    fn push_while_it_hears(&mut self, out: &[u8], max_frame: usize) {
        if let Err(broken) = self.push(out, max_frame) {
            (self.deaf, self.sending, self.unsent) = (Some(broken), None, Buffer::default());
        }
    }

    /// Ends the call in a gathering. What the operating system does not take now is kept, and what has not
    /// arrived of the message of `due` bytes is late. An error if that is too much, or if messages were late
    /// before and nothing has moved for `patience`.
    pub(crate) fn suspend(
        &mut self,
        out: &[u8],
        due: usize,
        limits: &Limits,
        patience: Duration,
    ) -> Result<(), Error> {
        let receiving = self.receiving.take();
        if self.sending.is_some() || self.has_debts() {
            self.settle(out, limits.max_frame).map_err(|broken| broken.of(self.peer))?;
        }
        if self.is_late() && self.moved_at.elapsed() >= patience {
            return Err(Error::Timeout { peer: self.peer, waited: patience });
        }
        let most = limits.max_backlog;
        if let Some(passage) = self.sending.take() {
            // What was kept before: a single message is never too much.
            if self.unsent.len() > most {
                return Err(self.given_up(format!("it has not taken {most} bytes and more")));
            }
            passage.keep_rest(out, limits.max_frame, &mut self.unsent);
        }
        if let Some(passage) = receiving {
            // Likewise; and what is late takes no memory here.
            let most = most.saturating_mul(LATE_FOR_UNSENT);
            if self.late.bytes() > most {
                return Err(self.given_up(format!("it owes more than {most} bytes from before")));
            }
            self.late.push(due, passage);
        }
        Ok(())
    }

    /// Sends as long as the operating system takes something, and discards some of what is late. If the peer
    /// takes nothing any more, that is no error, because it may have left messages.
    pub(crate) fn settle(&mut self, out: &[u8], max_frame: usize) -> Result<(), Broken> {
        while self.deaf.is_none() && !self.is_flushed() {
            self.push_while_it_hears(out, max_frame);
            if !self.note_moved() {
                break;
            }
        }
        self.late.skip(&mut self.socket, max_frame)?;
        self.note_moved();
        Ok(())
    }

    /// Takes in what has arrived. If the connection has ended and there is nothing left to read, that is an
    /// error.
    pub(crate) fn look(&mut self, limit: usize) -> Result<(), Broken> {
        while !self.late.is_empty() {
            self.late.skip(&mut self.socket, limit)?;
            if !self.note_moved() {
                return Ok(());
            }
        }
        self.socket.look(limit)
    }

    /// Tells the peer that nothing more will be sent.
    pub(crate) fn say_goodbye(&mut self) {
        self.socket.say_goodbye();
    }

    /// Whether something has arrived that nobody has received.
    pub(crate) fn has_early(&self) -> bool {
        self.late.is_empty() && self.socket.has_early()
    }

    /// Takes in what nobody waits for yet, so that the peer can go on; true if any bytes moved.
    pub(crate) fn read_ahead(&mut self, limit: usize) -> Result<bool, Broken> {
        if self.receiving.is_none() && !self.socket.inbound_is_full_or_ended(limit) {
            let _drained = self.socket.read_ahead()?;
        }
        Ok(self.socket.take_moved())
    }

    /// Whether the operating system has taken everything that the current call sends.
    pub(crate) fn is_sent(&self) -> bool {
        !self.sends || self.is_flushed()
    }

    /// Whether the current call waits for a message.
    pub(crate) fn is_receiving(&self) -> bool {
        self.receiving.is_some()
    }

    /// Whether the current call is finished.
    pub(crate) fn is_done(&self) -> bool {
        self.is_sent() && self.receiving.is_none()
    }

    /// Whether the peer owes messages of earlier gatherings.
    pub(crate) fn is_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Whether anything of earlier calls is still to be sent or received.
    pub(crate) fn has_debts(&self) -> bool {
        !self.late.is_empty() || !self.unsent.is_empty() || !self.socket.is_flushed()
    }

    /// Whether anything of earlier calls is still to be sent, and nothing else.
    pub(crate) fn has_unsent(&self) -> bool {
        self.sending.is_none() && self.deaf.is_none() && !self.is_flushed()
    }

    /// Whether there is nothing to do at all.
    pub(crate) fn is_idle(&self) -> bool {
        self.sending.is_none() && self.receiving.is_none() && !self.has_debts()
    }

    /// The events to wait for; with `ahead` also those for what `read_ahead` would take.
    pub(crate) fn interest(&self, ahead: Option<usize>) -> PollFlags {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::OUT, self.deaf.is_none() && !self.is_flushed());
        let ahead = ahead.is_some_and(|limit| !self.socket.inbound_is_full_or_ended(limit));
        interest.set(PollFlags::IN, self.receiving.is_some() || !self.late.is_empty() || ahead);
        interest
    }

    /// Whether the connection has not ended, as far as that is known without waiting.
    pub(crate) fn is_open(&mut self, limit: usize) -> bool {
        self.socket.is_open(limit)
    }

    /// The connection. It is between two messages unless a call failed.
    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    /// The version that both ends speak.
    pub(crate) fn version(&self) -> u8 {
        self.socket.version
    }

    /// Whether this process made the connection.
    pub(crate) fn is_own(&self) -> bool {
        self.socket.is_own()
    }

    /// The socket, to wait for its readiness.
    pub(crate) fn tcp(&self) -> &std::net::TcpStream {
        self.socket.tcp()
    }

    /// Sends what it can, unfinished messages first.
    fn push(&mut self, out: &[u8], max_frame: usize) -> Result<(), Broken> {
        if let Some(broken) = &self.deaf {
            return if self.sending.is_some() { Err(broken.clone()) } else { Ok(()) };
        }
        if !self.unsent.is_empty() {
            let taken = self.socket.write(&[], self.unsent.filled())?;
            self.unsent.consumed(taken);
            if self.unsent.is_empty() {
                // Gives its memory back.
                self.unsent = Buffer::default();
            }
        }
        if self.unsent.is_empty()
            && let Some(passage) = &mut self.sending
            && passage.send(&mut self.socket, out, max_frame)?
        {
            self.sending = None;
        }
        if !self.socket.is_flushed() {
            self.socket.flush()?;
        }
        Ok(())
    }

    /// Receives what it can, late messages first.
    fn pull(&mut self, into: &mut [u8], max_frame: usize) -> Result<(), Broken> {
        self.late.skip(&mut self.socket, max_frame)?;
        if self.late.is_empty()
            && let Some(passage) = &mut self.receiving
            && passage.receive(&mut self.socket, into, max_frame)?
        {
            self.receiving = None;
        }
        Ok(())
    }

    /// Whether everything there was to send is with the operating system.
    fn is_flushed(&self) -> bool {
        self.sending.is_none() && self.unsent.is_empty() && self.socket.is_flushed()
    }

    fn note_moved(&mut self) -> bool {
        let moved = self.socket.take_moved();
        if moved {
            self.moved_at = Instant::now();
        }
        moved
    }

    fn given_up(&self, why: String) -> Error {
        Error::Closed { peer: self.peer, detail: format!("given up: {why}") }
    }
}

//! One non-blocking TCP connection under TLS, as a stream of bytes in both directions.
//!
//! rustls runs here without buffers of its own. Ciphertext is received in large pieces into one buffer and
//! decrypted in place, and the plaintext goes from there directly to the caller's memory. Plaintext to send
//! is encrypted from the caller's memory into one outgoing buffer. No call blocks. Each does what it can at
//! once, and `take_moved` says whether that was anything.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use polyclave_kernels::process::Process;
use polyclave_protocol::Error;
use rustls::pki_types::CertificateDer;

use crate::broken::Broken;
use crate::buffer::Buffer;
use crate::machine::{Arrived, Did, Sink, Task};
use crate::meter::WireMeter;
use crate::side::Tls;
use crate::tcp::set_up;

/// Plaintext of one full TLS record.
const RECORD: usize = 16 << 10;
/// How much plaintext is encrypted before it is passed to the socket. Large enough to make system calls rare;
/// small enough to stay in cache, and to let data for one peer flow while that for the next is encrypted.
const CHUNK: usize = 64 << 10;
/// Free space offered to each receive, once the peer has shown who it is. Measured: twice as much costs a
/// tenth more processor time, because of caches.
const RECEIVE: usize = 64 << 10;
/// The same before the peer has shown who it is: strangers get little memory.
const RECEIVE_FROM_STRANGER: usize = 4 << 10;
/// The most unprocessed ciphertext that the TLS machine may leave: a handshake message or a record in
/// progress.
const MAX_UNPROCESSED: usize = 128 << 10;

/// A TLS connection in progress or established.
pub(crate) struct Socket {
    /// The process that made it. A child of a fork has the same keys, the same record numbers and the same
    /// TCP connection: it neither sends nor receives.
    process: Process,
    tcp: TcpStream,
    tls: Tls,
    /// Ciphertext that arrived.
    inbound: Buffer,
    /// Plaintext that arrived before anyone asked for it.
    early: Buffer,
    /// Ciphertext to be sent.
    outbound: Buffer,
    /// Header and beginning of a message, to share one record.
    staging: Vec<u8>,
    /// Set when the peer will send nothing more.
    ended: Option<Broken>,
    /// Set by an error of the TLS machine.
    failed: bool,
    has_said_goodbye: bool,
    moved: bool,
    meter: Arc<WireMeter>,
    /// The version of what follows the greetings, once they are exchanged.
    pub(crate) version: u8,
}

impl Socket {
    /// Begins the TLS handshake on a TCP connection.
    pub(crate) fn new(tcp: TcpStream, tls: Tls, meter: Arc<WireMeter>) -> Result<Self, Error> {
        set_up(&tcp)?;
        Ok(Socket {
            process: Process::current(),
            tcp,
            tls,
            inbound: Buffer::default(),
            early: Buffer::default(),
            outbound: Buffer::default(),
            staging: Vec::new(),
            ended: None,
            failed: false,
            has_said_goodbye: false,
            moved: false,
            meter,
            version: 0,
        })
    }

    /// Goes on with the TLS handshake; true once it is complete.
    pub(crate) fn handshake(&mut self) -> Result<bool, Broken> {
        let mut drained = false;
        while self.tls.is_handshaking() {
            match self.advance(Task::Read, None)? {
                Did::Something => {}
                Did::Ended => {
                    return Err(Broken::Closed("it ended the connection in the TLS handshake".into()));
                }
                Did::Task | Did::Nothing if drained => break,
                Did::Task | Did::Nothing => {
                    self.flush()?;
                    drained = self.receive(RECEIVE_FROM_STRANGER)?;
                    if let Some(ended) = &self.ended {
                        return Err(ended.clone());
                    }
                }
            }
        }
        // The last flight of either side is still to be encoded.
        while !self.tls.is_handshaking() && matches!(self.advance(Task::Read, None)?, Did::Something) {}
        self.flush()?;
        Ok(!self.tls.is_handshaking())
    }

    /// The certificate whose key the peer has proved to hold, after the handshake.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.peer_certificates().first()
    }

    /// The same, and after it those that came with it.
    pub(crate) fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.tls.peer_certificates()
    }

    /// Encrypts and sends a piece of `head` and then `body`. Returns how many bytes were taken; 0 if the
    /// socket is full.
    pub(crate) fn write(&mut self, head: &[u8], body: &[u8]) -> Result<usize, Broken> {
        self.flush()?;
        if !self.outbound.is_empty() {
            return Ok(0);
        }
        let mut taken = 0;
        if !head.is_empty() {
            let along = body.len().min(RECORD - head.len().min(RECORD));
            let mut staging = std::mem::take(&mut self.staging);
            staging.clear();
            staging.extend_from_slice(head);
            staging.extend_from_slice(&body[..along]);
            self.encrypt(&staging)?;
            self.staging = staging;
            taken += along;
        }
        let rest = &body[taken..body.len().min(CHUNK)];
        if !rest.is_empty() {
            self.encrypt(rest)?;
            taken += rest.len();
        }
        self.flush()?;
        self.moved = true;
        Ok(head.len() + taken)
    }

    /// Passes as many bytes to the operating system as it takes.
    pub(crate) fn flush(&mut self) -> Result<(), Broken> {
        while !self.outbound.is_empty() {
            self.refuse_child()?;
            match self.tcp.write(self.outbound.filled()) {
                Ok(count) => {
                    self.outbound.consumed(count);
                    self.meter.count_sent(count);
                    self.moved = true;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Whether the operating system has taken everything that was written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.outbound.is_empty()
    }

    /// Fills `head` and then `body` with what has arrived. Returns how many bytes that were.
    pub(crate) fn read(&mut self, head: &mut [u8], body: &mut [u8]) -> Result<usize, Broken> {
        let mut sink = Sink { head, body, filled: 0 };
        sink.take_from(&mut self.early);
        let mut drained = false;
        while !sink.is_full() {
            match self.advance(Task::Read, Some(&mut sink))? {
                Did::Something | Did::Ended => {}
                Did::Task | Did::Nothing => match &self.ended {
                    Some(ended) if sink.filled == 0 => return Err(ended.clone()),
                    Some(_) => break,
                    None if drained => break,
                    None => drained = self.receive(RECEIVE)?,
                },
            }
        }
        self.moved |= sink.filled > 0;
        Ok(sink.filled)
    }

    /// Reads bytes from the network that nobody waits for yet, so that the peer can go on sending. True if
    /// there are no more for now.
    pub(crate) fn read_ahead(&mut self) -> Result<bool, Broken> {
        let drained = self.ended.is_some() || self.receive(RECEIVE)?;
        while matches!(self.advance(Task::Read, None)?, Did::Something) {}
        Ok(drained)
    }

    /// Whether the connection has not ended, as far as that is known without waiting, and without holding
    /// more than `limit` bytes that nobody asked for.
    pub(crate) fn is_open(&mut self, limit: usize) -> bool {
        while !self.inbound_is_full_or_ended(limit) {
            match self.read_ahead() {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => return false,
            }
        }
        self.ended.is_none() && self.is_own()
    }

    /// Whether this process made it.
    pub(crate) fn is_own(&self) -> bool {
        self.process.is_current()
    }

    /// Takes in what has arrived. If the connection has ended and there is nothing left to read, that is an
    /// error.
    pub(crate) fn look(&mut self, limit: usize) -> Result<(), Broken> {
        while !self.inbound_is_full_or_ended(limit) {
            if self.read_ahead()? {
                break;
            }
        }
        match &self.ended {
            Some(ended) if self.early.is_empty() => Err(ended.clone()),
            _ => Ok(()),
        }
    }

    /// Whether something has arrived that nobody has received.
    pub(crate) fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    /// Whether the peer is gone and has left nothing to be read.
    pub(crate) fn has_left(&mut self) -> bool {
        !self.is_open(1) && self.early.is_empty()
    }

    /// Whether `read_ahead` is useless, because nothing will come, or more than `limit` bytes are here
    /// already.
    pub(crate) fn inbound_is_full_or_ended(&self, limit: usize) -> bool {
        self.ended.is_some() || self.early.len() >= limit
    }

    /// Whether any bytes went in or out, of the network or of the caller, since this was last asked.
    pub(crate) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Counts into another meter from now on.
    pub(crate) fn set_meter(&mut self, meter: Arc<WireMeter>) {
        self.meter = meter;
    }

    /// Sends the closing alert, once, so that the peer can distinguish an end from a broken connection. Never
    /// waits.
    pub(crate) fn say_goodbye(&mut self) {
        let can = !self.failed && !self.tls.is_handshaking() && self.outbound.is_empty() && self.is_own();
        if !self.has_said_goodbye && can {
            self.has_said_goodbye = true;
            while matches!(self.advance(Task::SayGoodbye, None), Ok(Did::Something)) {}
            let _ = self.flush();
        }
    }

    /// The TCP socket, to wait for its readiness.
    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    fn encrypt(&mut self, plaintext: &[u8]) -> Result<(), Broken> {
        loop {
            match self.advance(Task::Encrypt(plaintext), None)? {
                Did::Something | Did::Ended => {}
                Did::Task => return Ok(()),
                Did::Nothing => return Err(Broken::Misbehaved("its TLS handshake is not complete".into())),
            }
        }
    }

    /// An error in a child of the process that made it.
    fn refuse_child(&self) -> Result<(), Broken> {
        match self.is_own() {
            true => Ok(()),
            false => Err(Broken::Closed(
                "the connection belongs to the process that this one was forked from".into(),
            )),
        }
    }

    /// Receives once, offering room for `room` bytes; true if there is nothing more for now.
    fn receive(&mut self, room: usize) -> Result<bool, Broken> {
        self.refuse_child()?;
        if self.inbound.len() > MAX_UNPROCESSED {
            return Err(Broken::Misbehaved("it sent a TLS handshake message without end".into()));
        }
        let least = room.min(RECORD + 1024);
        if self.inbound.is_empty() {
            self.inbound.free_mut(room);
        }
        let free = self.inbound.free_mut(least);
        let offered = free.len();
        match self.tcp.read(free) {
            Ok(0) => self.ended = Some(Broken::Closed("the connection broke off without a goodbye".into())),
            Ok(count) => {
                self.inbound.produced(count);
                self.meter.count_received(count);
                self.moved = true;
                return Ok(count < offered);
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(false),
            Err(e) => self.ended = Some(e.into()),
        }
        Ok(true)
    }

    /// One step of the TLS machine; plaintext goes to `sink` and what does not fit there to `early`.
    fn advance(&mut self, task: Task<'_>, sink: Option<&mut Sink<'_>>) -> Result<Did, Broken> {
        let was_handshaking = self.tls.is_handshaking();
        let did = self.raw_advance(task, sink);
        if let Ok(Did::Ended) = did {
            self.ended = Some(Broken::Closed("it said goodbye".into()));
        }
        did.map_err(|e| {
            // The next step encodes the alert that tells the peer why, if there is one. Nobody waits for it
            // to go.
            if !self.failed {
                self.failed = true;
                let _ = self.raw_advance(Task::Read, None);
                let _ = self.flush();
            }
            if was_handshaking { e.into() } else { Broken::after_handshake(e) }
        })
    }

    fn raw_advance(&mut self, task: Task<'_>, sink: Option<&mut Sink<'_>>) -> Result<Did, rustls::Error> {
        // All of `inbound` for every task, since the TLS machine keeps positions within it.
        let inbound = self.inbound.filled_mut();
        let mut arrived = Arrived { sink, early: &mut self.early };
        let (discard, did) = self.tls.step(inbound, &mut self.outbound, task, &mut arrived);
        self.inbound.consumed(discard);
        did
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.say_goodbye();
    }
}

#[cfg(test)]
pub(crate) mod tests;

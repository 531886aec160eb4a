//! One step of the TLS state machine: this module does what rustls wants done next.
//!
//! rustls' unbuffered interface returns states. Each is handled here at once, so that callers see only
//! plaintext, a buffer of ciphertext to send, and a short report of what happened.

use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};

use crate::buffer::Buffer;

/// What the TLS state machine is asked to do besides reading.
pub(crate) enum Task<'a> {
    Read,
    Encrypt(&'a [u8]),
    SayGoodbye,
}

/// What the TLS state machine did.
pub(crate) enum Did {
    /// It returned plaintext, or did something of its own. Ask it again.
    Something,
    /// It did the task, and has read everything there was.
    Task,
    /// Nothing. It needs more from the peer.
    Nothing,
    /// It learned that the peer will send nothing more.
    Ended,
}

/// Handles one state of the TLS state machine. Also returns how many bytes of its input are used up.
pub(crate) fn step<Side>(
    status: UnbufferedStatus<'_, '_, Side>,
    outbound: &mut Buffer,
    task: Task<'_>,
    arrived: &mut Arrived<'_, '_, '_>,
) -> (usize, Result<Did, rustls::Error>) {
    let mut discard = status.discard;
    let state = match status.state {
        Ok(state) => state,
        Err(e) => return (discard, Err(e)),
    };
    let did = match state {
        ConnectionState::ReadTraffic(mut traffic) => loop {
            match traffic.next_record() {
                Some(Ok(record)) => {
                    discard += record.discard;
                    arrived.put(record.payload);
                }
                Some(Err(e)) => break Err(e),
                None => break Ok(Did::Something),
            }
        },
        ConnectionState::EncodeTlsData(mut data) => loop {
            match data.encode(outbound.free_mut(0)) {
                Ok(count) => {
                    outbound.produced(count);
                    break Ok(Did::Something);
                }
                Err(EncodeError::InsufficientSize(e)) => _ = outbound.free_mut(e.required_size),
                Err(e @ EncodeError::AlreadyEncoded) => break Err(rustls::Error::General(e.to_string())),
            }
        },
        // What was encoded lies in order before everything that follows; it need not be sent at once.
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Ok(Did::Something)
        }
        ConnectionState::WriteTraffic(mut traffic) => loop {
            let written = match task {
                Task::Read => break Ok(Did::Task),
                Task::Encrypt(plaintext) => traffic.encrypt(plaintext, outbound.free_mut(0)),
                Task::SayGoodbye => traffic.queue_close_notify(outbound.free_mut(0)),
            };
            match written {
                Ok(count) => {
                    outbound.produced(count);
                    break Ok(Did::Task);
                }
                Err(EncryptError::InsufficientSize(e)) => _ = outbound.free_mut(e.required_size),
                Err(EncryptError::EncryptExhausted) => break Err(rustls::Error::EncryptError),
            }
        },
        ConnectionState::BlockedHandshake => Ok(Did::Nothing),
        ConnectionState::PeerClosed => Ok(Did::Ended),
        state => Err(rustls::Error::General(format!("unexpected state {state:?}"))),
    };
    (discard, did)
}

/// Where plaintext is to be written.
pub(crate) struct Sink<'a> {
    pub(crate) head: &'a mut [u8],
    pub(crate) body: &'a mut [u8],
    pub(crate) filled: usize,
}

impl Sink<'_> {
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.head.len() + self.body.len()
    }

    /// Takes what fits and returns the rest.
    pub(crate) fn put<'p>(&mut self, plaintext: &'p [u8]) -> &'p [u8] {
        let mut rest = plaintext;
        let head = self.head.len();
        for (part, before) in [(&mut *self.head, 0), (&mut *self.body, head)] {
            let part = part.get_mut(self.filled.saturating_sub(before)..).unwrap_or_default();
            let (now, later) = rest.split_at(part.len().min(rest.len()));
            part[..now.len()].copy_from_slice(now);
            self.filled += now.len();
            rest = later;
        }
        rest
    }

    pub(crate) fn take_from(&mut self, early: &mut Buffer) {
        let rest = self.put(early.filled()).len();
        early.consumed(early.len() - rest);
    }
}

/// What happens to arriving plaintext.
pub(crate) struct Arrived<'a, 's, 'm> {
    pub(crate) sink: Option<&'a mut Sink<'s>>,
    pub(crate) early: &'m mut Buffer,
}

impl Arrived<'_, '_, '_> {
    fn put(&mut self, plaintext: &[u8]) {
        let rest = self.sink.as_mut().map_or(plaintext, |sink| sink.put(plaintext));
        self.early.append(rest);
    }
}

//! The connection to a client during one request.

use std::time::{Duration, Instant};

use polyclave_api::{self as api, Reason, Refusal, Reply, Step};
use polyclave_protocol::{Error, Party};
use polyclave_traces::part;
use polyclave_transport::TlsNet;

use super::keepalive::Keepalive;

/// The time limit for a client to send a step, and to take an answer, however slowly the bytes move: the
/// other nodes wait, and another client may need the channel.
pub(super) const STEP: Duration = Duration::from_secs(20);

/// The connection to a client during one request.
pub(crate) struct ClientConnection<'l> {
    pub(super) net: &'l mut TlsNet,
    pub(super) client: Party,
    /// Why the client cannot be reached any more. The nodes end the request together, at the next step at the
    /// latest.
    pub(super) gone: Option<Refusal>,
    pub(super) keepalive: Keepalive,
}

impl<'l> ClientConnection<'l> {
    pub(super) fn new(net: &'l mut TlsNet, client: Party) -> ClientConnection<'l> {
        ClientConnection { net, client, gone: None, keepalive: Keepalive::now() }
    }

    /// Notices if the client has ended its connection.
    pub(super) fn look(&mut self) {
        if !self.net.is_alive() {
            self.gone.get_or_insert_with(went_away);
        }
    }

    pub(crate) fn reply(&mut self, reply: &Reply) {
        let _part = part("answer");
        self.net.set_deadline(Some(Instant::now() + STEP));
        let sent = api::send(self.net, self.client, reply);
        self.net.set_deadline(None);
        if let Err(e) = sent {
            self.gone.get_or_insert(lost(&e, "took no answer"));
        }
        self.keepalive = Keepalive::now();
    }

    /// Receives the step that has begun to arrive.
    pub(super) fn step(&mut self, until: Instant) -> Result<(Step, [u8; 32]), Refusal> {
        self.net.set_deadline(Some(until));
        let received = api::receive_bytes(self.net, self.client);
        self.net.set_deadline(None);
        let bytes = received.map_err(|e| lost(&e, "sent nothing"))?;
        let step =
            api::decode(&bytes, self.client).map_err(|e| Refusal::new(Reason::Malformed, e.to_string()))?;
        self.keepalive = Keepalive::now();
        Ok((step, blake3::derive_key("polyclave 2026 step of a request", &bytes)))
    }
}

/// The refusal for a client that went away in the middle of its request, or that exceeded a time limit.
pub(super) fn lost(error: &Error, undone: &str) -> Refusal {
    let message = match error {
        Error::Timeout { .. } => {
            format!("the client {undone} for {} s in the middle of its request", STEP.as_secs())
        }
        _ => return went_away(),
    };
    Refusal::new(Reason::Unavailable, message)
}

fn went_away() -> Refusal {
    Refusal::new(Reason::Unavailable, "the client went away in the middle of its request")
}

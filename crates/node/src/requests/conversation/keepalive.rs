//! Looks after a client while its request is computed: tells the client that work goes on, and ends the work
//! when the client is gone.
//!
//! The computing thread does both whenever the protocol exchanges messages with the other nodes, which
//! happens many times a second. While it waits for another node it tells the client nothing: then no work
//! goes on here.
//!
//! A client is gone when its connection has ended. Then this node ends the session, and with it the sessions
//! of the other nodes. Under a protocol that corrects wrong shares this node continues: a client that ends
//! one of its connections must not make this node look silent to the others. The nodes then end together at
//! the next step; the level of their stock limits what one step can take.

use std::time::{Duration, Instant};

use polyclave_api::Reply;
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Error, Party, PartySet};

use super::client_connection::ClientConnection;
use crate::computation::progress::Progress;
use crate::{InjectedNet, Result};

/// How often the node checks whether the client is still connected.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often the node tells the client that work goes on.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// When these two things last happened.
pub(super) struct Keepalive {
    looked: Instant,
    signed: Instant,
}

impl Keepalive {
    pub(super) fn now() -> Keepalive {
        let now = Instant::now();
        Keepalive { looked: now, signed: now }
    }
}

/// The network to the other nodes, which also looks after the client.
pub(crate) struct KeptAlive<'n, 'l> {
    pub(super) net_of_peers: InjectedNet<'n>,
    pub(super) connection: &'n mut ClientConnection<'l>,
    pub(super) progress: &'n Progress,
    /// Whether the session ends here when the client is gone.
    pub(super) ends: bool,
}

impl KeptAlive<'_, '_> {
    fn attend(&mut self) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(self.connection.keepalive.looked) >= POLL_INTERVAL {
            self.connection.keepalive.looked = now;
            self.connection.look();
            if self.connection.gone.is_none()
                && now.duration_since(self.connection.keepalive.signed) >= HEARTBEAT
            {
                let (done, of) = self.progress.now();
                self.connection.reply(&Reply::Working { done, of });
                self.connection.keepalive.signed = now;
            }
        }
        match &self.connection.gone {
            Some(gone) if self.ends => Err(Error::System(gone.message.clone())),
            _ => Ok(()),
        }
    }
}

impl Net for KeptAlive<'_, '_> {
    polyclave_protocol::forward_net!(self => self.net_of_peers; me, parties, members, lost, fork, fork_among);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.attend()?;
        self.net_of_peers.send(to, message)
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.attend()?;
        self.net_of_peers.recv(from, into)
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.attend()?;
        self.net_of_peers.exchange(out, into)
    }

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        self.attend()?;
        self.net_of_peers.gather(out, into, patience, enough)
    }
}

//! Looks after a client while its request is computed: tells the client that work goes on, and ends the work
//! when the client is gone.
//!
//! The computing thread does both whenever the protocol exchanges messages with the other nodes, which
//! happens many times a second. While it waits for another node it tells the client nothing: then no work
//! goes on here.
//!
//! A client is gone when its connection has ended. Then this node ends the session, and with it the sessions
//! of the other nodes. A client that ends one of its connections must not make this node look like a cheater
//! to the others ([`WithoutClient`]):
//!
//! * Under a protocol with checks, a node that falls silent in the middle of one is counted if there is a MAC
//!   key, and the epoch ends. It also ends if a claim of material fails. So this node ends the session before
//!   it computes another piece ([`crate::computation::pieces`]), when neither is under way. The memory of a
//!   request limits what one piece takes.
//! * Under a protocol that corrects wrong shares, a node that falls silent is named to the client. So this
//!   node continues, and the nodes end together at the next step. The level of their stock limits what one
//!   step can take.

use std::time::{Duration, Instant};

use polyclave_api::Reply;
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Error, Party, PartySet};

use super::client_connection::ClientConnection;
use crate::computation::progress::Progress;
use crate::requests::strategy::WithoutClient;
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
    /// When the session ends here, if the client is gone.
    pub(super) without_client: WithoutClient,
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
        let Some(gone) = &self.connection.gone else { return Ok(()) };
        match self.without_client {
            WithoutClient::EndsAtOnce => return Err(Error::System(gone.message.clone())),
            WithoutClient::EndsBetweenPieces => self.progress.end(&gone.message),
            WithoutClient::GoesOn => {}
        }
        Ok(())
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

//! Connections with the other nodes: the control streams of [`Peers`], and streams that are opened for one
//! purpose.

use std::sync::Arc;
use std::time::Duration;

use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::{Mesh, TlsNet};

use crate::Result;
use crate::members::Members;
use crate::peers::orders::Order;
use crate::peers::registry::Peers;

/// The time limit for opening a channel or control stream that was ordered.
pub(crate) const CONNECT: Duration = Duration::from_secs(2);

/// The connections of this node to the others.
pub(crate) struct Network {
    members: Arc<Members>,
    mesh: Mesh,
    /// Which of them are connected, and what they said last.
    pub(crate) peers: Arc<Peers>,
}

impl Network {
    pub(crate) fn new(members: Arc<Members>, mesh: Mesh) -> Network {
        let peers = Peers::new(members.me, members.nodes);
        Network { members, mesh, peers }
    }

    /// The connections of this node with some of the others, who have numbers of their own among themselves.
    pub(crate) fn among(&self, members: Arc<Members>, set: PartySet) -> Result<Network> {
        Ok(Network::new(members, self.mesh.among(set)?))
    }

    /// Opens a stream among some nodes. All of them open it under this name.
    pub(crate) fn open(&self, name: &str, among: PartySet) -> Result<TlsNet> {
        self.mesh.open(name, among, CONNECT)
    }

    /// Opens a stream among some nodes, as long as those of them stay connected that are so now. So all leave
    /// a meeting at once when one goes, and none waits at it while the others are at the next one.
    pub(crate) fn open_together(&self, name: &str, among: PartySet) -> Result<TlsNet> {
        let there = among.without(among.without(self.peers.connected()));
        let gone = || there.without(self.peers.connected()).iter().next();
        let goes_on = || gone().is_none();
        let opened = self.mesh.open_while(name, among, CONNECT, Some(&goes_on));
        opened.map_err(|e| match gone() {
            Some(peer) => Error::System(format!("{peer} has gone while the nodes met")),
            None => e,
        })
    }

    /// Opens a stream between this node and a peer.
    pub(crate) fn open_with(&self, peer: Party, name: &str) -> Result<TlsNet> {
        self.open(name, [self.members.me, peer].into_iter().collect())
    }

    /// Orders a new channel and connects to it.
    pub(crate) fn open_channel(&self, serving: PartySet) -> Result<TlsNet> {
        let mut name = [0; 16];
        random_bytes(&mut name)?;
        for peer in serving.iter().filter(|p| *p != self.members.me) {
            self.peers.order(peer, Order::Channel { serving, name })?;
        }
        self.follow_channel(serving, &name)
    }

    /// Connects to a channel that a peer has ordered.
    pub(crate) fn follow_channel(&self, serving: PartySet, name: &[u8; 16]) -> Result<TlsNet> {
        self.open_together(&channel_name(name), serving)
    }

    /// Orders all other nodes to do something.
    pub(crate) fn order_all(&self, order: Order) -> Result<()> {
        self.members.others().try_for_each(|peer| self.peers.order(peer, order))
    }

    /// Ends all streams, and those of standby pairs: a peer that stalls holds up no thread any more.
    pub(crate) fn halt(&self) {
        self.mesh.halt();
    }

    /// Whether all nodes are connected.
    pub(crate) fn is_complete(&self) -> bool {
        self.peers.connected().len() == self.members.nodes
    }
}

/// The name of the stream of a channel.
fn channel_name(name: &[u8; 16]) -> String {
    format!("channel {}", hex::encode(name))
}

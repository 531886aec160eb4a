//! What nodes tell each other outside of requests: that they are alive, and which channels to open.
//!
//! From every node to every other goes one control stream. It begins with a greeting in both directions: the cluster, and the
//! incarnation, by which a node that was rolled back to an old copy of its disk is recognised and refused (until an operator
//! readmits it). Then the sender sends orders, or a beat when there are none.

use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Result;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::{TlsNet, wire};
use serde::{Deserialize, Serialize};

use crate::store::Incarnation;

const BEAT_EVERY: Duration = Duration::from_millis(500);
/// A peer that is silent for so long is taken for gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(8);
/// Orders that may wait to be sent.
const WAITING: usize = 64;
const ORDER: usize = 19;

/// What a node asks of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nothing: the sender is alive.
    Beat,
    /// Open a channel among a set of nodes, of which the sender is the first.
    Channel { serving: PartySet, name: [u8; 16] },
    /// Agree on common secrets, all nodes together.
    SetUp { name: [u8; 16] },
}

impl Order {
    fn encode(self) -> [u8; ORDER] {
        let (kind, serving, name) = match self {
            Order::Beat => (0, 0, [0; 16]),
            Order::Channel { serving, name } => (1, serving.bits(), name),
            Order::SetUp { name } => (2, 0, name),
        };
        let mut bytes = [kind; ORDER];
        bytes[1..3].copy_from_slice(&serving.to_le_bytes());
        bytes[3..].copy_from_slice(&name);
        bytes
    }

    fn decode(bytes: &[u8; ORDER], from: Party) -> Result<Order> {
        let serving = PartySet::from_bits(u16::from_le_bytes([bytes[1], bytes[2]]));
        let mut name = [0; 16];
        name.copy_from_slice(&bytes[3..]);
        match bytes[0] {
            0 => Ok(Order::Beat),
            1 => Ok(Order::Channel { serving, name }),
            2 => Ok(Order::SetUp { name }),
            kind => Err(Error::Peer { peer: from, detail: format!("an order of kind {kind}") }),
        }
    }
}

/// What a node says of itself at the beginning of a control stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// Everything that must be equal between nodes.
    pub(crate) cluster: [u8; 32],
    /// By its store.
    pub(crate) incarnation: Incarnation,
    /// Of the agreed common secrets, or zeros.
    pub(crate) setup: [u8; 32],
}

impl Greeting {
    /// Exchanges greetings with the only peer of a control stream.
    pub(crate) fn exchange(&self, peer: Party, net: &mut TlsNet) -> Result<Greeting> {
        wire::send(net, peer, self)?;
        wire::decode(&wire::receive_bytes(net, peer)?, peer)
    }
}

/// Which peers are there, and how to give them orders.
pub(crate) struct Peers {
    me: Party,
    /// By party: where its sending thread takes orders from.
    queues: Vec<SyncSender<Order>>,
    taken: Mutex<Vec<Option<Receiver<Order>>>>,
    /// Peers whose orders arrive, and peers that take ours.
    heard: AtomicU16,
    reached: AtomicU16,
    /// Peers that have agreed on the common secrets.
    set_up: AtomicU16,
}

impl Peers {
    pub(crate) fn new(me: Party, nodes: usize) -> Arc<Peers> {
        let (queues, taken) = Party::all(nodes)
            .map(|_| {
                let (sender, receiver) = sync_channel(WAITING);
                (sender, Some(receiver))
            })
            .unzip();
        let (heard, reached, set_up) = Default::default();
        Arc::new(Peers { me, queues, taken: Mutex::new(taken), heard, reached, set_up })
    }

    /// The nodes that this one can work with now, itself included.
    pub(crate) fn connected(&self) -> PartySet {
        PartySet::from_bits(self.heard.load(Relaxed) & self.reached.load(Relaxed) | 1 << self.me.0)
    }

    /// Remembers whether a peer has agreed on the common secrets.
    pub(crate) fn note_set_up(&self, peer: Party, agreed: bool) {
        let bit = 1 << peer.0;
        if agreed {
            self.set_up.fetch_or(bit, Relaxed)
        } else {
            self.set_up.fetch_and(!bit, Relaxed)
        };
    }

    /// All nodes have just agreed.
    pub(crate) fn note_all_set_up(&self) {
        self.set_up.store(u16::MAX, Relaxed);
    }

    /// Whether all peers have agreed on the common secrets.
    pub(crate) fn all_set_up(&self) -> bool {
        let agreed = PartySet::from_bits(self.set_up.load(Relaxed) | 1 << self.me.0);
        Party::all(self.queues.len()).all(|p| agreed.contains(p))
    }

    /// Gives an order. A full queue means that the peer does not listen.
    pub(crate) fn order(&self, peer: Party, order: Order) -> Result<()> {
        let gone = || Error::Closed { peer, detail: "it takes no orders at present".into() };
        if !self.connected().contains(peer) {
            return Err(gone());
        }
        self.queues[peer.index()].try_send(order).map_err(|_| gone())
    }

    /// The orders that wait for a peer; for its one sending thread.
    pub(crate) fn queue(&self, peer: Party) -> Option<Receiver<Order>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)[peer.index()].take()
    }

    /// Sends orders and beats until it fails or `stop` says so.
    pub(crate) fn send_orders(
        &self,
        peer: Party,
        queue: &Receiver<Order>,
        net: &mut TlsNet,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        // What waited for a connection before this one is out of date.
        while queue.try_recv().is_ok() {}
        let bit = 1 << peer.0;
        self.reached.fetch_or(bit, Relaxed);
        let outcome = loop {
            if stop() {
                break Ok(());
            }
            let order = match queue.recv_timeout(BEAT_EVERY) {
                Ok(order) => order,
                Err(RecvTimeoutError::Timeout) => Order::Beat,
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if let Err(e) = net.send(peer, &order.encode()) {
                break Err(e);
            }
        };
        self.reached.fetch_and(!bit, Relaxed);
        outcome
    }

    /// Receives orders until it fails.
    pub(crate) fn receive_orders(
        &self,
        peer: Party,
        net: &mut TlsNet,
        stop: &dyn Fn() -> bool,
        mut carry_out: impl FnMut(Order),
    ) -> Result<()> {
        net.set_idle_limit(SILENCE);
        let bit = 1 << peer.0;
        self.heard.fetch_or(bit, Relaxed);
        let outcome = loop {
            if stop() {
                break Ok(());
            }
            let mut bytes = [0; ORDER];
            match net.recv(peer, &mut bytes).and_then(|()| Order::decode(&bytes, peer)) {
                Ok(Order::Beat) => {}
                Ok(order) => carry_out(order),
                Err(e) => break Err(e),
            }
        };
        self.heard.fetch_and(!bit, Relaxed);
        outcome
    }
}

/// The name of the control stream from one node to another.
pub(crate) fn control_stream(from: Party, to: Party) -> String {
    format!("orders of {from} to {to}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_back_and_others_are_refused() {
        let orders = [
            Order::Beat,
            Order::Channel { serving: PartySet::all(3), name: [7; 16] },
            Order::SetUp { name: [9; 16] },
        ];
        for order in orders {
            assert_eq!(Order::decode(&order.encode(), Party(1)), Ok(order));
        }
        assert!(Order::decode(&[9; ORDER], Party(1)).is_err());
    }
}

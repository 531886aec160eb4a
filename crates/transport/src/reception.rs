//! [`Reception`]: where a node accepts connections of clients.
//!
//! A client is an outside party, identified by its certificate. The TLS handshake of every connection asks
//! the policy anew whether the client is admitted, so the policy can change while the node runs. A client
//! that is not admitted gets the alert `access_denied` and nothing else.

use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use polyclave_protocol::{Error, Party, PartySet, Result};
use rustls::pki_types::CertificateDer;

use crate::accept::{Acceptor, Desk, Guest};
use crate::arrival::{Door, Guests, Refusal};
use crate::greeting::Terms;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::listen::listen;
use crate::mesh::MAX_NODES;
use crate::meter::WireMeter;
use crate::net::TlsNet;
use crate::pinned::Admits;
use crate::stream::StreamId;

/// How many clients may wait for [`Reception::next`]. More are refused.
const QUEUE: usize = 256;

/// Accepts clients. Dropping it frees the port; clients that [`Reception::next`] returned stay connected.
pub struct Reception {
    queue: Arc<Queue>,
    me: Party,
    nodes: usize,
    /// The sets of some of the nodes that clients can ask for.
    sets: Vec<PartySet>,
    limits: Limits,
    local_addr: SocketAddr,
    meter: Arc<WireMeter>,
    turned_away: Arc<AtomicU64>,
    /// Kept because dropping it ends the acceptor.
    #[expect(dead_code, reason = "ends the accepting thread when the reception is dropped")]
    acceptor: Acceptor,
}

/// A client that has shown its certificate.
pub struct Caller {
    /// The client's certificate, and after it those that came with it.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Where it called from.
    pub from: SocketAddr,
    /// The nodes that it asks, if these are some of them.
    pub among: Option<PartySet>,
    /// This node and the client, which has the number after the last node. If it asks some of the nodes, they
    /// have the numbers that they have among themselves.
    pub net: TlsNet,
}

impl Reception {
    /// Listens on `address` as node `me` of `nodes`. `admits` decides whether a certificate is admitted. It
    /// runs in the one thread that accepts, so it must neither wait nor panic. Only clients that use the same
    /// `cluster` and the same limit on frames connect.
    pub fn start(
        address: impl ToSocketAddrs,
        identity: Identity,
        limits: Limits,
        me: Party,
        nodes: usize,
        cluster: [u8; 16],
        admits: Admits,
    ) -> Result<Reception> {
        limits.check()?;
        identity.check_time()?;
        if nodes > MAX_NODES || me.index() >= nodes {
            let message = format!("a door of {me} of {nodes} nodes; a cluster has at most {MAX_NODES}");
            return Err(Error::misuse(message));
        }
        let (listener, local_addr) = listen(address)?;
        let (turned_away, meter) = (Arc::<AtomicU64>::default(), Arc::<WireMeter>::default());
        let door = Door {
            config: identity.server_config(admits, turned_away.clone())?,
            guests: Guests::Clients(Party(nodes as u8)),
            terms: Terms::clients(&limits, &cluster),
            meter: meter.clone(),
        };
        let queue = Arc::new(Queue::default());
        let acceptor = Acceptor::start(listener, door, limits.handshake, queue.clone())?;
        let sets = Vec::new();
        Ok(Reception { queue, me, nodes, sets, limits, local_addr, meter, turned_away, acceptor })
    }

    /// The same, where clients can also ask some of the nodes, which have numbers of their own among
    /// themselves. This node is one of each set.
    pub fn for_some(self, sets: Vec<PartySet>) -> Reception {
        Reception { sets, ..self }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The next client; `None` if nobody came within this time. Several threads may wait.
    pub fn next(&self, within: Duration) -> Option<Caller> {
        let Guest { stream, socket, from, .. } = self.queue.next(within)?;
        let certificates = socket.peer_certificates().to_vec();
        let among = self.sets.iter().find(|set| StreamId::root().of_some(**set) == stream).copied();
        let before = |set: PartySet| set.iter().filter(|party| *party < self.me).count();
        let (me, nodes) = match among {
            Some(set) => (Party(before(set) as u8), set.len()),
            None => (self.me, self.nodes),
        };
        let client = Party(nodes as u8);
        let net = TlsNet::of_sockets(me, nodes + 1, self.limits, self.meter.clone(), vec![(client, socket)]);
        Some(Caller { certificates, from, among, net })
    }

    /// How many connections were refused for their certificate: it was not admitted, or not within its dates.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }

    /// Bytes on the wire, of all clients.
    pub fn wire_meter(&self) -> Arc<WireMeter> {
        self.meter.clone()
    }
}

/// Clients that nobody has taken yet.
#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<Guest>>,
    came: Condvar,
}

impl Queue {
    fn next(&self, within: Duration) -> Option<Guest> {
        let began = Instant::now();
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(mut guest) = waiting.pop_front() {
                if guest.socket.has_left() {
                    continue;
                }
                return Some(guest);
            }
            let left = within.checked_sub(began.elapsed()).filter(|left| !left.is_zero())?;
            self.came.wait_for(&mut waiting, left);
        }
    }
}

impl Desk for Queue {
    fn welcome(&self, guest: Guest) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < QUEUE {
            waiting.push_back(guest);
            self.came.notify_one();
        }
    }

    /// It has been told, and nobody waits for it in particular.
    fn refused(&self, _from: SocketAddr, _refusal: Refusal) {}

    fn tidy(&self) -> Option<Instant> {
        None
    }
}

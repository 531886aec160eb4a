//! [`Mesh`]: a node's connections with the other nodes of its cluster, for as long as it runs.
//!
//! Nodes come and go: a stream is opened among those that are to take part in something, under a name that they have
//! agreed on, and is gone with it. Nothing is left behind by a node that left, so one that comes back, under the same
//! address and any of its certificates, takes part in the next stream.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use polyclave_protocol::{Error, Party, PartySet, Result};
use rustls::pki_types::CertificateDer;

use crate::accept::Acceptor;
use crate::dial::Patience;
use crate::greeting::Terms;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::listen::listen;
use crate::meter::WireMeter;
use crate::net::TlsNet;
use crate::session::{Session, Setup};
use crate::stream::StreamId;

/// The most nodes of a cluster: a set of parties also names its client.
pub(crate) const MOST_NODES: usize = PartySet::MOST - 1;

/// Where a node listens and what it identifies itself with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `host:port`.
    pub address: String,
    /// Any of these: several while a certificate is being replaced.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// Opens streams to other nodes and accepts theirs, from many threads at once. Dropping it frees the port; streams that
/// are open stay.
pub struct Mesh {
    session: Arc<Session>,
    local_addr: SocketAddr,
    /// Held for its `Drop`.
    #[expect(dead_code, reason = "ends the accepting thread when the mesh is dropped")]
    acceptor: Acceptor,
}

impl Mesh {
    /// Listens on `listen` as node `me` of `nodes`, which lists all, in the same order at every node. Only nodes that
    /// use the same `cluster` and the same limit on frames connect.
    pub fn start(
        address: impl ToSocketAddrs,
        identity: Identity,
        limits: Limits,
        me: Party,
        nodes: &[Node],
        cluster: [u8; 16],
    ) -> Result<Mesh> {
        limits.check()?;
        if !(2..=MOST_NODES).contains(&nodes.len()) {
            let told = format!("a cluster of {} nodes; it takes 2 to {MOST_NODES}", nodes.len());
            return Err(Error::misuse(told));
        }
        let (listener, local_addr) = listen(address)?;
        let setup = Setup {
            identity: &identity,
            limits,
            me,
            nodes,
            terms: Terms::nodes(&limits, &cluster),
            patience: Patience::Mesh,
            // By then its peer, which waits for the first bytes, has given up too.
            keep: Some(limits.idle),
            meter: Arc::default(),
        };
        let (session, acceptor) = Session::start(listener, setup)?;
        Ok(Mesh { session: Arc::new(session), local_addr, acceptor })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Opens a stream among `members`, this node included, under a name that all of them use; nobody else need do
    /// anything. Members with lower numbers are waited for, those with higher numbers are called again and again, all
    /// within `within`; one that was reached may still be busy and answer later. An error concerns this stream only. One
    /// name stands for one stream at a time.
    pub fn open(&self, name: &str, members: PartySet, within: Duration) -> Result<TlsNet> {
        let (me, nodes) = (self.session.me, self.session.parties);
        let strangers = members.iter().any(|member| member.index() >= nodes);
        if strangers || !members.contains(me) || members.len() < 2 {
            return Err(Error::misuse(format!(
                "a stream of {me} among {members}; it takes {me} and others of {nodes} nodes"
            )));
        }
        let peers: Vec<Party> = members.iter().filter(|member| *member != me).collect();
        TlsNet::open(self.session.clone(), None, StreamId::among(members), name, &peers, within)
    }

    /// Bytes on the wire, of all streams of this mesh.
    pub fn wire_meter(&self) -> Arc<WireMeter> {
        self.session.meter.clone()
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.session.switchboard.close();
    }
}

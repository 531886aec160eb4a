//! [`Mesh`]: a node's connections with the other nodes of its cluster, for as long as it runs.
//!
//! Nodes come and go. A stream is opened among the nodes that take part in something, under a name that they
//! have agreed on, and ends with it. A node that left leaves nothing behind. So a node that comes back, under
//! the same address and any of its certificates, takes part in the next stream.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use polyclave_protocol::{Error, Party, PartySet, Result};

use crate::accept::Acceptor;
use crate::attempt::Attempt;
use crate::dial::Patience;
use crate::greeting::Terms;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::listen::listen;
use crate::meter::WireMeter;
use crate::net::TlsNet;
use crate::node::Node;
use crate::session::{Session, Setup};

/// The most nodes of a cluster: a set of parties also names its client.
pub(crate) const MAX_NODES: usize = PartySet::MAX - 1;

/// Opens streams to other nodes and accepts theirs, from many threads at once. If it is dropped, its port is
/// free; open streams stay open.
pub struct Mesh {
    session: Arc<Session>,
    local_addr: SocketAddr,
    /// Ends the accepting thread when it is dropped. `None` in a mesh of some nodes, which accepts through
    /// that of all.
    acceptor: Option<Acceptor>,
}

impl Mesh {
    /// Listens on `listen` as node `me`. `nodes` lists all nodes, in the same order at every node. Only nodes
    /// that use the same `cluster` and the same limit on frames connect.
    pub fn start(
        address: impl ToSocketAddrs,
        identity: Identity,
        limits: Limits,
        me: Party,
        nodes: &[Node],
        cluster: [u8; 16],
    ) -> Result<Mesh> {
        limits.check()?;
        if !(2..=MAX_NODES).contains(&nodes.len()) {
            let message = format!("a cluster of {} nodes; it takes 2 to {MAX_NODES}", nodes.len());
            return Err(Error::misuse(message));
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
        Ok(Mesh { session: Arc::new(session), local_addr, acceptor: Some(acceptor) })
    }

    /// A mesh of some of the nodes, this one included, over the same port. Among themselves they have numbers
    /// in the order of their numbers here. It is of no use any more when this mesh is dropped.
    pub fn among(&self, members: PartySet) -> Result<Mesh> {
        let session = Arc::new(self.session.among(members)?);
        Ok(Mesh { session, local_addr: self.local_addr, acceptor: None })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Opens a stream among `members`, this node included, under a name that all of them use. Other nodes
    /// need not do anything. This node waits for members with lower numbers and calls those with higher
    /// numbers again and again, all within `within`. A member that was reached may still be busy and answer
    /// later. An error concerns this stream only. A name stands for one stream at a time.
    pub fn open(&self, name: &str, members: PartySet, within: Duration) -> Result<TlsNet> {
        self.open_while(name, members, within, None)
    }

    /// The same, but fails as soon as `goes_on` is false.
    pub fn open_while(
        &self,
        name: &str,
        members: PartySet,
        within: Duration,
        goes_on: Option<&(dyn Fn() -> bool + Sync)>,
    ) -> Result<TlsNet> {
        let (me, nodes) = (self.session.me, self.session.parties);
        let strangers = members.iter().any(|member| member.index() >= nodes);
        if strangers || !members.contains(me) || members.len() < 2 {
            return Err(Error::misuse(format!(
                "a stream of {me} among {members}; it takes {me} and others of {nodes} nodes"
            )));
        }
        let peers: Vec<Party> = members.iter().filter(|member| *member != me).collect();
        let (session, family) = (self.session.clone(), self.session.root.among(members));
        let attempt = Attempt::ended_by(session.halt.clone(), within).only_while(goes_on);
        TlsNet::open(session, None, family, name, &peers, &attempt)
    }

    /// Ends all streams of this mesh, and of meshes of some of its nodes: whatever waits for a peer fails
    /// within 500 ms, and nothing opens any more.
    pub fn halt(&self) {
        self.session.halt.halt();
    }

    /// Bytes on the wire, of all streams of this mesh.
    pub fn wire_meter(&self) -> Arc<WireMeter> {
        self.session.meter.clone()
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        if self.acceptor.is_some() {
            self.session.switchboard.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::versions::Spoken;

    use super::*;
    use crate::socket::Socket;
    use crate::switchboard::Calls;

    /// What two nodes that speak these versions have with each other.
    fn between(spoken: [(u8, u8); 2]) -> Vec<Result<Vec<u8>>> {
        let identities: Vec<Identity> = (0..2).map(|_| Identity::generate().expect("made")).collect();
        let nodes: Vec<Node> = identities
            .iter()
            .map(|identity| {
                let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
                let address = free.expect("a port").to_string();
                Node { address, certificates: vec![identity.certificate()] }
            })
            .collect();
        let start = |me: usize| {
            let limits = Limits::default();
            let mut terms = Terms::nodes(&limits, &[7; 16]);
            let (oldest, newest) = spoken[me];
            terms.spoken = Spoken { oldest, newest };
            let (listener, _) = listen(nodes[me].address.as_str()).expect("its port");
            let setup = Setup {
                identity: &identities[me],
                limits,
                me: Party(me as u8),
                nodes: &nodes,
                terms,
                patience: Patience::Mesh,
                keep: Some(limits.idle),
                meter: Arc::default(),
            };
            Session::start(listener, setup).expect("started")
        };
        let sessions = [start(0), start(1)];
        let opened: Vec<Result<Vec<(Party, Socket)>>> = std::thread::scope(|scope| {
            let open = |(me, (session, _)): (usize, &(Session, Acceptor))| {
                let peer = Party(1 - me as u8);
                let among = session.root.among([Party(0), Party(1)].into_iter().collect());
                session.open(among, Calls::Again, &[peer], &Attempt::new(Duration::from_secs(60)))
            };
            let ends: Vec<_> =
                sessions.iter().enumerate().map(|end| scope.spawn(move || open(end))).collect();
            ends.into_iter().map(|end| end.join().expect("no panic")).collect()
        });
        // All connections stay open until both ends have them.
        let version =
            |sockets: &Vec<(Party, Socket)>| sockets.iter().map(|(_, socket)| socket.version).collect();
        opened.iter().map(|end| end.as_ref().map(version).map_err(Clone::clone)).collect()
    }

    #[test]
    fn nodes_use_the_newest_version_that_both_speak() {
        for (spoken, version) in [([(5, 6), (4, 5)], 5), ([(4, 5), (5, 6)], 5), ([(5, 6), (5, 6)], 6)] {
            assert_eq!(between(spoken), [Ok(vec![version]), Ok(vec![version])], "{spoken:?}");
        }
    }

    /// The older one is named at both ends, by whichever of the two it is.
    #[test]
    fn nodes_two_releases_apart_both_say_which_of_them_has_to_be_upgraded() {
        for newer in [0, 1] {
            let spoken = if newer == 0 { [(7, 8), (5, 6)] } else { [(5, 6), (7, 8)] };
            for (me, outcome) in between(spoken).into_iter().enumerate() {
                let message = outcome.expect_err("two releases apart").to_string();
                let older = if me == newer { "upgrade that one" } else { "upgrade this party" };
                assert!(
                    message.contains(older) && message.contains(&format!("party {}", 2 - me)),
                    "{message}"
                );
            }
        }
    }
}

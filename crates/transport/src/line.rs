//! The client's side: its connections with some of the nodes, and the network that it builds from them.
//!
//! A client's number is the one after the last node's. It keeps its lines between requests. For a request it
//! combines the lines of the nodes that serve it to a [`TlsNet`].

use std::sync::Arc;
use std::thread;

use polyclave_protocol::{Error, Party, PartySet, Result};

use crate::attempt::Attempt;
use crate::dial::{Dialer, Patience};
use crate::greeting::Terms;
use crate::halt::Halt;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::mesh::MAX_NODES;
use crate::net::TlsNet;
use crate::node::Node;
use crate::socket::Socket;
use crate::stream::StreamId;

/// A connection with one node, on which no message is on its way.
pub struct Line {
    socket: Socket,
}

/// Calls the nodes of `which` at once. Returns for each the connection, or why there is none. Each attempt
/// ends within [`Limits::connect`], soon if nothing listens, and soon after `halt`. That a node accepts the
/// connection does not mean that the client may do anything. If `nodes` are some of the nodes of the cluster,
/// `among` says which.
pub fn call(
    identity: &Identity,
    limits: Limits,
    nodes: &[Node],
    (cluster, among): ([u8; 16], Option<PartySet>),
    which: PartySet,
    halt: &Halt,
) -> Vec<(Party, Result<Line>)> {
    let ready = limits.check().and_then(|()| identity.check_time()).and_then(|()| check(nodes, which));
    if let Err(e) = ready {
        return which.iter().map(|party| (party, Err(e.clone()))).collect();
    }
    let terms = Terms::clients(&limits, &cluster);
    let stream = among.map_or(StreamId::root(), |some| StreamId::root().of_some(some));
    thread::scope(|scope| {
        let call = |party: Party| {
            let node = &nodes[party.index()];
            let call = move || dial(identity, &limits, (party, node), (terms, stream), halt);
            (party, thread::Builder::new().spawn_scoped(scope, call))
        };
        let calls: Vec<_> = which.iter().map(call).collect();
        let ends = calls.into_iter().map(|(party, call)| {
            let call = call.map_err(|e| Error::System(format!("cannot start a thread to connect: {e}")));
            let broken = |_| Err(Error::System("a connecting thread failed".into()));
            (party, call.and_then(|call| call.join().unwrap_or_else(broken)))
        });
        ends.collect()
    })
}

fn check(nodes: &[Node], which: PartySet) -> Result<()> {
    let n = nodes.len();
    if n == 0 || n > MAX_NODES || which.iter().any(|party| party.index() >= n) {
        let message = format!("a call of {which} of {n} nodes; a cluster has at most {MAX_NODES}");
        return Err(Error::misuse(message));
    }
    Ok(())
}

fn dial(
    identity: &Identity,
    limits: &Limits,
    (peer, node): (Party, &Node),
    (terms, stream): (Terms, StreamId),
    halt: &Halt,
) -> Result<Line> {
    let config = identity.client_config(node.certificates.clone())?;
    let (address, patience) = (node.address.clone(), Patience::Client { refused: limits.refused });
    let dialer = Dialer { peer, address, config, terms, patience, meter: Arc::default() };
    let attempt = Attempt::ended_by(halt.clone(), limits.connect);
    let socket = dialer.dial(stream, &attempt)?;
    let socket = socket.ok_or(Error::Timeout { peer, waited: limits.connect })?;
    Ok(Line { socket })
}

impl Line {
    /// The version of the wire of clients that both ends speak.
    pub fn version(&self) -> u8 {
        self.socket.version
    }

    /// Whether the node has not ended it, as far as that is known without waiting.
    pub fn is_alive(&mut self) -> bool {
        // Between two messages there is nothing to read.
        self.socket.is_open(1) && !self.socket.has_early()
    }
}

impl TlsNet {
    /// The network of a client, `Party(nodes)`, from these lines to `nodes` nodes. A line to any other party,
    /// or a second one to the same node, is a misuse, which the first call on the network reports.
    pub fn of_lines(nodes: usize, limits: Limits, lines: Vec<(Party, Line)>) -> TlsNet {
        let me = Party(nodes.min(MAX_NODES) as u8);
        let sockets = lines.into_iter().map(|(party, line)| (party, line.socket)).collect();
        TlsNet::of_sockets(me, me.index() + 1, limits, Arc::default(), sockets)
    }

    /// Takes a client's network apart into its lines. If the network has failed, its connections are closed
    /// instead.
    pub fn into_lines(self) -> Result<Vec<(Party, Line)>> {
        let sockets = self.into_sockets()?;
        Ok(sockets.into_iter().map(|(party, socket)| (party, Line { socket })).collect())
    }
}

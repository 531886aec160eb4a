//! A client that need not follow the rules: it can tell every node something else.

use std::time::Duration;

use polyclave_api::{self as api, Mode, Operation, Refusal, Reply, Request, Step, Use, operations};
use polyclave_config::Cluster;
use polyclave_protocol::net::Net;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::{Halt, Identity, Limits, Node, TlsNet, call};
use serde::Serialize;

use super::{TestCluster, name_for};

/// Longer than any node takes for anything.
const LONG: Duration = Duration::from_secs(45);

/// One connection with each of some nodes.
pub struct Raw {
    lines: Vec<Option<TlsNet>>,
}

/// How a node ended a conversation.
#[derive(Debug)]
pub struct Ending {
    /// What it said before.
    pub replies: Vec<Reply>,
    /// None if it just closed the connection.
    pub refusal: Option<Refusal>,
}

impl Ending {
    /// Whether it gave a share of anything that it computed.
    pub fn gave_data(&self) -> bool {
        self.replies.iter().any(|reply| matches!(reply, Reply::Data { data, .. } if !data.is_empty()))
    }

    /// Why it refused; empty if it closed the connection.
    pub fn message(&self) -> String {
        self.refusal.as_ref().map_or(String::new(), |refusal| format!("{:?}: {refusal}", refusal.reason))
    }
}

impl Raw {
    /// Calls all nodes as the client that may do everything.
    pub fn call(cluster: &TestCluster) -> Raw {
        Raw::call_as(cluster, &cluster.identity())
    }

    /// Calls all nodes as some client.
    pub fn call_as(cluster: &TestCluster, identity: &Identity) -> Raw {
        Raw::call_nodes(&cluster.file(), identity)
    }

    /// Calls the two nodes of a standby pair as the client that may do everything.
    pub fn call_pair(cluster: &TestCluster, number: usize) -> Raw {
        Raw::call_nodes(&cluster.file().pairs()[number], &cluster.identity())
    }

    fn call_nodes(file: &Cluster, identity: &Identity) -> Raw {
        let address = |card: &polyclave_config::Card| Node {
            address: card.client_address.clone(),
            certificates: card.certificates.clone(),
        };
        let nodes: Vec<Node> = file.cards().iter().map(address).collect();
        let limits = Limits { idle: LONG, ..Limits::for_clients() };
        let all = PartySet::all(nodes.len());
        let lines =
            call(identity, limits, &nodes, (file.id(), file.pair()), all, &Halt::default()).into_iter();
        let net = |party, line| TlsNet::of_lines(nodes.len(), limits, vec![(party, line)]);
        Raw { lines: lines.map(|(party, line)| Some(net(party, line.ok()?))).collect() }
    }

    /// The same, but with another's connection with one node.
    pub fn with_line_of(mut self, mut other: Raw, node: usize) -> Raw {
        self.lines[node] = other.lines[node].take();
        self
    }

    pub fn nodes(&self) -> usize {
        self.lines.len()
    }

    fn line(&mut self, node: usize) -> &mut TlsNet {
        self.lines[node].as_mut().expect("a connection")
    }

    /// Sends one node a message. That the node no longer wants it will show later.
    pub fn tell<T: Serialize>(&mut self, node: usize, message: &T) {
        let _ = api::send(self.line(node), Party(node as u8), message);
    }

    /// Sends the same to all.
    pub fn tell_all<T: Serialize>(&mut self, message: &T) {
        (0..self.nodes()).for_each(|node| self.tell(node, message));
    }

    /// Sends bytes as they are.
    pub fn tell_bytes(&mut self, node: usize, bytes: &[u8]) {
        let _ = self.line(node).send(Party(node as u8), bytes);
    }

    /// One reply of a node; none if it ended the connection.
    pub fn reply(&mut self, node: usize) -> Option<Reply> {
        let party = Party(node as u8);
        let bytes = api::receive_bytes(self.line(node), party).ok()?;
        Some(api::decode(&bytes, party).expect("nodes send whole replies"))
    }

    /// Whether every node is connected and has said nothing that was not read.
    pub fn is_quiet(&mut self) -> bool {
        let of_node = |node: usize| [Party(node as u8)].into_iter().collect();
        (0..self.nodes()).all(|node| matches!(self.line(node).wait(of_node(node), Duration::ZERO), Ok(None)))
    }

    /// One reply of every node, none of them a refusal.
    pub fn replies(&mut self) -> Vec<Reply> {
        let nodes = 0..self.nodes();
        let replies: Vec<Reply> = nodes.map(|node| self.reply(node).expect("a reply")).collect();
        assert!(!replies.iter().any(|r| matches!(r, Reply::Refused(_))), "{replies:?}");
        replies
    }

    /// Reads until a node ends the conversation.
    pub fn ending(&mut self, node: usize) -> Ending {
        let mut replies = Vec::new();
        loop {
            match self.reply(node) {
                Some(Reply::Refused(refusal)) => return Ending { replies, refusal: Some(refusal) },
                Some(reply) => replies.push(reply),
                None => return Ending { replies, refusal: None },
            }
        }
    }

    /// Reads until every node has ended the conversation.
    pub fn endings(&mut self) -> Vec<Ending> {
        (0..self.nodes()).map(|node| self.ending(node)).collect()
    }

    /// Hangs up on one node.
    pub fn hang_up(&mut self, node: usize) {
        self.lines[node] = None;
    }
}

/// A use of the key for its mode, of those whose names begin like this.
pub fn use_of(name: &str, how: Use) -> Operation {
    let mode = match how {
        Use::CtrEncrypt | Use::CtrDecrypt { .. } | Use::CbcEncrypt { .. } | Use::CbcDecrypt => Mode::Ctr,
        Use::EcbEncrypt { .. } | Use::EcbDecrypt { .. } => Mode::Ecb,
        Use::MessageEncrypt { ref message, .. } | Use::MessageDecrypt { ref message, .. } => message.mode,
        Use::Tokenize(_) => Mode::Ff1,
        Use::XaesEncrypt { .. } | Use::XaesDecrypt { .. } => Mode::Xaes,
        _ => Mode::Gcm,
    };
    Operation::Use(operations::UseKey { key: name_for(name, mode), id: None, how })
}

/// A request of three nodes with a fresh id.
pub fn request(operation: Operation, first: Option<Step>) -> Request {
    let mut id = [0; 16];
    random_bytes(&mut id).expect("random bytes");
    let (serving, on_behalf_of) = (PartySet::all(3), String::new());
    Request {
        version: api::VERSION,
        id,
        serving,
        operation,
        first,
        dealt: Vec::new(),
        approval: None,
        on_behalf_of,
        trace: None,
    }
}

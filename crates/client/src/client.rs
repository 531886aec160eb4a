//! A client of a cluster: its identity, the addresses of the nodes, and the connections that it keeps.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::{self as api, Approval, NodeStatus, Operation, Reason, Refusal, Reply, Request, Step};
use polyclave_config::{ClientDir, Cluster, check_name};
use polyclave_kernels::process::PerProcess;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::catalog;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::{
    CLIENT_CONNECT, CertificateDer, Halt, Identity, Limits, Line, NOT_ADMITTED, Node, TlsNet, call,
};

use crate::approval::Approvals;
use crate::conversation::replies::{LATE, receive, send_to_each};
use crate::kept::Kept;
use crate::load::Busy;
use crate::state::State;
use crate::strategy::{self, Strategy};
use crate::{Error, Result};

/// A node that does not answer within this time is taken for gone.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// The same for questions that a node answers alone.
const ALONE: Duration = Duration::from_secs(10);
/// A node that did not accept a connection, or caused a failure, is asked last for this time.
const SUSPECT: Duration = Duration::from_secs(10);

/// What a client is told whose file is that of a cluster from before.
const OTHER_CLUSTER: &str = "it serves another cluster than that of this client's file. If the keys have moved to other nodes or another protocol (a \
     reshare), get the new cluster's file, compare its fingerprint with the operators of the nodes, and take it with `polyclave client join`";
/// Receives remarks for a person.
type Remarks = Arc<dyn Fn(&str) + Send + Sync>;
/// Sets of nodes that were left out, and why.
type LeftOut = Arc<PerProcess<Mutex<HashSet<(u16, Reason)>>>>;
/// Receives how many blocks are computed, and of how many.
type Work = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A client. Many threads may use it at once. A child of a fork may use it too: it makes connections of its own.
pub struct Client {
    name: String,
    /// For whom it asks; empty if for itself.
    on_behalf_of: String,
    identity: Identity,
    cluster: Cluster,
    /// The same client for further worker groups, if nodes have several workers: this one asks the first.
    others: Vec<Client>,
    nodes: Vec<Node>,
    limits: Limits,
    pub(crate) config: Arc<AnyServiceConfig>,
    pub(crate) strategy: Arc<dyn Strategy>,
    state: Arc<PerProcess<State>>,
    /// What the user was told about nodes that were left out.
    left_out: LeftOut,
    /// Receives remarks that a person should read although nothing failed.
    remarks: Remarks,
    /// Ends its requests.
    halt: Halt,
    /// What happens to its requests.
    pub(crate) approvals: Approvals,
    /// Receives the progress of the nodes.
    work: Work,
}

impl Client {
    /// Opens the client of a directory.
    pub fn open(dir: &ClientDir) -> Result<Client> {
        let cluster = dir.cluster()?.ok_or_else(|| {
            Error::Misuse(format!(
                "{} has no cluster file yet; give it that of the nodes",
                dir.path().display()
            ))
        })?;
        let mut first = Client::of_worker_group(dir, &cluster, Arc::default(), Halt::default())?;
        // A file has at most so many, and further ones are none.
        first.others = (1..=u16::MAX)
            .map_while(|number| cluster.of_worker_group(number))
            .map(|worker_group| {
                Client::of_worker_group(dir, &worker_group, first.left_out.clone(), first.halt.clone())
            })
            .collect::<Result<_>>()?;
        if !first.others.is_empty() {
            first.limits.refused = Duration::ZERO;
            first.others.iter_mut().for_each(|other| other.limits.refused = Duration::ZERO);
        }
        Ok(first)
    }

    fn of_worker_group(dir: &ClientDir, cluster: &Cluster, left_out: LeftOut, halt: Halt) -> Result<Client> {
        let identity = Identity::from_der(&dir.identity().certificate, &dir.identity().key)?;
        let config = catalog::service(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
        let address = |card: &polyclave_config::Card| Node {
            address: card.client_address.clone(),
            certificates: card.certificates.clone(),
        };
        let nodes: Vec<Node> = cluster.cards().iter().map(address).collect();
        let limits = Limits { connect: CLIENT_CONNECT, idle: ANSWER, ..Limits::for_clients() };
        let (remarks, work) = (Arc::new(|_: &str| ()), Arc::new(|_: u64, _: u64| ()));
        Ok(Client {
            name: dir.name().to_owned(),
            on_behalf_of: String::new(),
            identity,
            nodes,
            limits,
            strategy: strategy::of(&config, cluster.threshold()).into(),
            cluster: cluster.clone(),
            others: Vec::new(),
            config: Arc::new(config),
            state: Arc::default(),
            left_out,
            remarks,
            halt,
            approvals: Approvals::None,
            work,
        })
    }

    /// Sets the function that receives remarks that a person should read although nothing failed: that nodes are missing, and what that
    /// means.
    pub fn on_remark(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Client {
        self.set_remarks(&(Arc::new(tell) as Remarks));
        self
    }

    /// Sets the function that receives the progress of a step that takes long: the blocks that the nodes have computed, and all blocks.
    /// Each node reports it about once a second.
    pub fn on_work(mut self, tell: impl Fn(u64, u64) + Send + Sync + 'static) -> Client {
        self.set_work(&(Arc::new(tell) as Work));
        self
    }

    /// The same client, with the same connections, for requests on behalf of somebody else: what a gateway asks for one of its users. Nodes
    /// judge this client as before, and write the name into their audit logs. It asks without an approval.
    pub fn on_behalf_of(&self, whom: &str) -> Result<Client> {
        check_name("user of a client", whom)?;
        Ok(self.sharing(whom, &self.halt))
    }

    /// The same client, with the same connections, for some of its requests: [`Client::halt`] of it ends only these. It asks without an
    /// approval.
    pub fn for_some_requests(&self) -> Client {
        self.sharing(&self.on_behalf_of, &self.halt.child())
    }

    fn sharing(&self, on_behalf_of: &str, halt: &Halt) -> Client {
        Client {
            name: self.name.clone(),
            on_behalf_of: on_behalf_of.into(),
            identity: self.identity.clone(),
            cluster: self.cluster.clone(),
            others: self.others.iter().map(|other| other.sharing(on_behalf_of, halt)).collect(),
            nodes: self.nodes.clone(),
            limits: self.limits,
            config: self.config.clone(),
            strategy: self.strategy.clone(),
            state: self.state.clone(),
            left_out: self.left_out.clone(),
            remarks: self.remarks.clone(),
            halt: halt.clone(),
            approvals: Approvals::None,
            work: self.work.clone(),
        }
    }

    /// What this process remembers. A child of a fork begins anew.
    fn state(&self) -> &State {
        self.state.get(|parent| parent.map_or_else(|| State::new(self.nodes.len()), State::of_child))
    }

    fn set_remarks(&mut self, tell: &Remarks) {
        self.remarks = tell.clone();
        self.others.iter_mut().for_each(|other| other.set_remarks(tell));
    }

    fn set_work(&mut self, tell: &Work) {
        self.work = tell.clone();
        self.others.iter_mut().for_each(|other| other.set_work(tell));
    }

    /// The clients of all worker groups that serve, in the order in which they are asked: those of whose nodes fewer are suspected, then those with fewer requests under way,
    /// and in turn. A request with an approval, or a draft of one, is for the first worker group.
    pub(crate) fn by_preference(&self) -> Vec<&Client> {
        if self.others.is_empty() || !matches!(self.approvals, Approvals::None) {
            return vec![self];
        }
        let serves = |client: &&Client| client.cluster.role().serves();
        let mut worker_groups: Vec<&Client> = [self].into_iter().chain(&self.others).filter(serves).collect();
        let turn = self.state().load.turn() % worker_groups.len();
        worker_groups.rotate_left(turn);
        worker_groups.sort_by_cached_key(|client| (client.suspects().len(), client.state().load.running()));
        worker_groups
    }

    /// The client of the worker group of which this number is that of its workers.
    pub(crate) fn worker_group(&self, number: u16) -> &Client {
        self.others.iter().find(|other| other.cluster.worker_group() == number).unwrap_or(self)
    }

    /// Counts a request of this worker group as long as it is kept.
    pub(crate) fn begin_request(&self) -> Busy {
        self.state().load.begin()
    }

    /// A request with a fresh id.
    pub(crate) fn request(
        &self,
        operation: Operation,
        serving: PartySet,
        first: Option<Step>,
        approval: Option<Approval>,
    ) -> Result<Request> {
        let mut id = [0; 16];
        random_bytes(&mut id)?;
        let on_behalf_of = self.on_behalf_of.clone();
        Ok(Request { version: api::VERSION, id, serving, operation, first, approval, on_behalf_of })
    }

    pub(crate) fn tell_work(&self, done: u64, of: u64) {
        (self.work)(done, of);
    }

    pub(crate) fn remark(&self, message: &str) {
        (self.remarks)(message);
    }

    /// Says that some nodes are left out, once for each kind of reason.
    pub(crate) fn remark_left_out(&self, nodes: PartySet, reason: Reason, why: &str) {
        let mut message = self.left_out.get(|_| Mutex::default()).lock();
        if message.insert((nodes.bits(), reason)) {
            self.remark(&format!("{why} (left out; the others serve)"));
        }
    }

    /// Ends all requests that are under way, in whatever thread, with [`Error::Ended`]. Their connections are closed, so the nodes end them too. No
    /// request begins any more.
    pub fn halt(&self) {
        self.halt.halt();
    }

    /// Whether [`Client::halt`] was called.
    pub fn is_halted(&self) -> bool {
        self.halt.is_halted()
    }

    /// What went wrong, if nobody ended the request: then that is the reason, whatever came of it.
    pub(crate) fn unless_halted(&self, error: Error) -> Error {
        if self.is_halted() { Error::Ended } else { error }
    }

    /// Closes the connections that are not in use, and ends all threads. Requests that were given up get a moment to tell the nodes so.
    /// For programs that go on without this client.
    pub fn end(&self) {
        let state = self.state();
        state.kept.iter().for_each(Kept::clear);
        state.farewells.end(LATE);
        self.others.iter().for_each(Client::end);
    }

    /// How many nodes a request can do without.
    pub fn spare_nodes(&self) -> usize {
        self.cluster.nodes() - self.config.quorum()
    }

    /// The certificate by which nodes know it.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.identity.certificate()
    }

    /// Its own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cluster whose nodes it asks.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The name of a node.
    pub fn node_name(&self, party: Party) -> &str {
        self.cluster.cards().get(party.index()).map_or("an unknown node", |card| &card.name)
    }

    /// The status of each node, as its first worker reports it.
    pub fn status(&self) -> Vec<(Party, Result<NodeStatus>)> {
        self.status_of_clique(0)
    }

    /// The status of each node, as its worker of this number reports it.
    pub fn status_of_clique(&self, number: u16) -> Vec<(Party, Result<NodeStatus>)> {
        let status = |reply| match reply {
            Reply::Status(status) => Some(status),
            _ => None,
        };
        self.worker_group(number).ask_workers(
            PartySet::all(self.nodes.len()),
            &Operation::Status,
            status,
            |_| false,
        )
    }

    /// Asks every node a question that each answers alone.
    pub(crate) fn ask_each<T>(
        &self,
        operation: &Operation,
        answer: impl Fn(Reply) -> Option<T>,
    ) -> Vec<(Party, Result<T>)> {
        self.ask(PartySet::all(self.nodes.len()), operation, answer, |_| false)
    }

    /// Asks some nodes the same question. A node that takes too long, however slowly its reply arrives, has not answered. As soon as
    /// `enough` is true for the answers so far, the client waits only for replies that have begun to arrive. If a worker of a node does not
    /// answer, another one is asked: each can answer for the node.
    pub(crate) fn ask<T>(
        &self,
        which: PartySet,
        operation: &Operation,
        answer: impl Fn(Reply) -> Option<T>,
        enough: impl Fn(&[(Party, Result<T>)]) -> bool,
    ) -> Vec<(Party, Result<T>)> {
        let (mut outcomes, mut left): (Vec<(Party, Result<T>)>, PartySet) = (Vec::new(), which);
        for client in self.by_preference() {
            let answers = client.ask_workers(left, operation, &answer, &enough);
            outcomes.retain(|(party, _)| !left.contains(*party));
            outcomes.extend(answers);
            let is_open = |(party, answer): &(Party, Result<T>)| {
                answer.as_ref().is_err_and(Error::others_might).then_some(*party)
            };
            left = outcomes.iter().filter_map(is_open).collect();
            if left.is_empty() || enough(&outcomes) {
                break;
            }
        }
        outcomes.sort_by_key(|(party, _)| *party);
        outcomes
    }

    /// The same for the workers of this worker group.
    pub(crate) fn ask_workers<T>(
        &self,
        which: PartySet,
        operation: &Operation,
        answer: impl Fn(Reply) -> Option<T>,
        enough: impl Fn(&[(Party, Result<T>)]) -> bool,
    ) -> Vec<(Party, Result<T>)> {
        let (mut outcomes, mut lines) = (Vec::new(), Vec::new());
        for (party, line) in self.lines(which) {
            match line {
                Ok(line) => lines.push((party, line)),
                Err(e) => outcomes.push((party, Err(e))),
            }
        }
        let mut awaited: PartySet = lines.iter().map(|(party, _)| *party).collect();
        let (mut net, mut settled) = (self.net(lines), PartySet::default());
        let sent = self
            .request(operation.clone(), which, None, None)
            .and_then(|request| Ok(send_to_each(&mut net, awaited, &api::encode(&request)?)?));
        let mut until = Instant::now() + if sent.is_ok() { ALONE } else { Duration::ZERO };
        while !awaited.is_empty() {
            let within = until.saturating_duration_since(Instant::now());
            let Ok(Some(party)) = net.wait_for_any(awaited, within) else { break };
            let Some(bytes) = receive(&mut net, party) else {
                outcomes.push((party, Err(self.no_answer(&mut net, party))));
                awaited = awaited.without([party].into_iter().collect());
                continue;
            };
            let outcome = match api::decode(&bytes, party) {
                Ok(Reply::Refused(refusal)) => Err(self.refused(party, refusal)),
                Ok(reply) => {
                    settled = settled.and([party].into_iter().collect());
                    answer(reply).ok_or_else(|| Error::Answers("a reply to another question".into()))
                }
                Err(e) => Err(self.named(e.into())),
            };
            outcomes.push((party, outcome));
            awaited = awaited.without([party].into_iter().collect());
            if enough(&outcomes) {
                until = until.min(Instant::now() + LATE);
            }
        }
        if !enough(&outcomes) {
            for party in awaited.iter() {
                outcomes.push((party, Err(self.no_answer(&mut net, party))));
            }
        }
        self.keep_some(net, settled);
        outcomes.sort_by_key(|(party, _)| *party);
        let ended =
            |(party, outcome): (Party, Result<T>)| (party, outcome.map_err(|e| self.unless_halted(e)));
        outcomes.into_iter().map(ended).collect()
    }

    /// The error if a node sent no reply.
    fn no_answer(&self, net: &mut TlsNet, party: Party) -> Error {
        self.strategy.note_silent(self, party);
        let gone = net.wait([party].into_iter().collect(), Duration::ZERO).err();
        self.named(gone.unwrap_or(polyclave_protocol::Error::Timeout { peer: party, waited: ALONE }).into())
    }

    /// The same error, with nodes by their names.
    pub(crate) fn named(&self, error: Error) -> Error {
        let named = |message: String| self.cluster.in_names(&message, "client");
        match error {
            Error::Connection { message, peer } => Error::Connection { message: named(message), peer },
            Error::Contested(message) => Error::Contested(named(message)),
            Error::Answers(message) => Error::Answers(named(message)),
            other => other,
        }
    }

    /// The error if there is no connection with a node, as far as the transport knows the reason.
    fn not_connected(&self, party: Party, error: polyclave_protocol::Error) -> Error {
        use polyclave_protocol::Error::{Closed, Disagreement, Peer, Timeout};
        let node = self.node_name(party).to_owned();
        match error {
            Peer { detail, .. } if detail == NOT_ADMITTED => Error::NotAdmitted { node },
            Peer { detail, .. } | Closed { detail, .. } => {
                Error::Unreached { node, detail: self.cluster.in_names(&detail, "client") }
            }
            Timeout { waited, .. } => {
                Error::Unreached { node, detail: format!("it did not answer within {waited:?}") }
            }
            Disagreement { field: "cluster", .. } => Error::Unreached { node, detail: OTHER_CLUSTER.into() },
            other => self.named(other.into()),
        }
    }

    /// Why some nodes cannot be asked, for people. Nodes with the same reason are grouped.
    pub(crate) fn why_not(&self, failed: &[(Party, Error)]) -> String {
        let strange: Vec<&str> = failed
            .iter()
            .filter(|(_, e)| matches!(e, Error::NotAdmitted { .. }))
            .map(|(party, _)| self.node_name(*party))
            .collect();
        let others = failed.iter().filter(|(_, e)| !matches!(e, Error::NotAdmitted { .. }));
        let mut message: Vec<String> = others
            .map(|(party, e)| match e {
                Error::Unreached { .. } => e.to_string(),
                e => format!("{} did not answer ({e})", self.node_name(*party)),
            })
            .collect();
        if !strange.is_empty() {
            message.push(Error::NotAdmitted { node: strange.join(", ") }.to_string());
        }
        message.join("; ")
    }

    /// Connections to some nodes, each kept from before or new.
    pub(crate) fn lines(&self, which: PartySet) -> Vec<(Party, Result<Line>)> {
        let mut lines = Vec::new();
        let mut missing = Vec::new();
        if self.is_halted() {
            return which.iter().map(|party| (party, Err(Error::Ended))).collect();
        }
        for party in which.iter() {
            match self.kept_line(party) {
                Some(line) => lines.push((party, Ok(line))),
                None => missing.push(party),
            }
        }
        if !missing.is_empty() {
            let which = missing.into_iter().collect();
            let cluster = self.cluster.connection_id();
            let called = call(&self.identity, self.limits, &self.nodes, cluster, which, &self.halt);
            for (party, line) in called {
                let failed = (line.is_err() && !self.is_halted()).then(Instant::now);
                *self.state().unreached[party.index()].lock() = failed;
                lines.push((party, line.map_err(|e| self.not_connected(party, e))));
            }
        }
        lines.sort_by_key(|(party, _)| *party);
        lines
    }

    /// Notes that a node answered as no honest node does, or did not answer: it is left out for a while.
    pub(crate) fn suspect(&self, party: Party) {
        if self.is_halted() {
            // It may be this client that did not wait.
            return;
        }
        if let Some(suspected) = self.state().suspected.get(party.index()) {
            *suspected.lock() = Some(Instant::now());
        }
    }

    /// Notes that these nodes have agreed on a request: they are no longer suspected.
    pub(crate) fn trust(&self, nodes: PartySet) {
        for node in nodes.iter() {
            *self.state().suspected[node.index()].lock() = None;
        }
    }

    /// Turns a node's refusal into an error for the caller.
    pub(crate) fn refused(&self, party: Party, refusal: Refusal) -> Error {
        if refusal.reason == Reason::Spent {
            // Its part of the budget is spent. Others may have some left.
            self.suspect(party);
        }
        match refusal.reason {
            Reason::Unauthentic => Error::Unauthentic(refusal.message),
            _ => Error::Refused { node: self.node_name(party).into(), refusal },
        }
    }

    /// Nodes that recently did not accept a connection, or are suspected.
    pub(crate) fn suspects(&self) -> PartySet {
        let state = self.state();
        let lately = |party: &Party| {
            [&state.unreached, &state.suspected].into_iter().any(|when| {
                let at = *when[party.index()].lock();
                at.is_some_and(|at| at.elapsed() < SUSPECT)
            })
        };
        Party::all(self.nodes.len()).filter(lately).collect()
    }

    fn kept_line(&self, party: Party) -> Option<Line> {
        let kept = &self.state().kept[party.index()];
        while let Some(mut line) = kept.take(Instant::now()) {
            if line.is_alive() {
                return Some(line);
            }
        }
        None
    }

    /// A network of this client and some nodes.
    pub(crate) fn net(&self, lines: Vec<(Party, Line)>) -> TlsNet {
        TlsNet::of_lines(self.nodes.len(), self.limits, lines)
            .owned_by(self.state().farewells.clone())
            .ended_by(self.halt.clone())
    }

    /// Keeps the connections of a conversation that has ended well.
    pub(crate) fn keep(&self, net: TlsNet) {
        self.keep_some(net, PartySet::all(self.nodes.len()));
    }

    /// The same for the connections with some nodes.
    pub(crate) fn keep_some(&self, net: TlsNet, which: PartySet) {
        if self.is_halted() {
            return;
        }
        let lines = net.into_lines().unwrap_or_default().into_iter().filter(|(p, _)| which.contains(*p));
        for (party, line) in lines {
            self.state().kept[party.index()].put(line, Instant::now());
        }
    }
}

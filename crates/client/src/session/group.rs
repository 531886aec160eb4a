//! The worker groups of a cluster: worker k of each node meets worker k of the others, and serves by itself.
//! A client has their addresses, keeps connections with them, and remembers how they behaved.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::{self as api, Approval, Operation, Reason, Refusal, Reply, Request, Step, TraceContext};
use polyclave_config::{Card, Cluster};
use polyclave_kernels::process::PerProcess;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::dealt::SeedCommitment;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Party, PartySet, catalog};
use polyclave_transport::{CLIENT_CONNECT, Halt, Limits, Line, NOT_ADMITTED, Node, TlsNet, call};

use crate::identities::Identities;
use crate::session::approvals::Approvals;
use crate::session::kept::Kept;
use crate::session::load::Busy;
use crate::session::replies::{LATE, receive, send_to_each};
use crate::session::state::{PERHAPS_BACK, SUSPECT, State};
use crate::session::strategy::{self, Strategy};
use crate::{Error, Result};

/// A node that does not answer within this time is taken for gone.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// The same for questions that a node answers alone.
const ALONE: Duration = Duration::from_secs(10);

/// How long a node is waited for where two can go on without it.
const AWAY: Duration = Duration::from_millis(1500);

/// What a client is told whose file is that of a cluster from before.
const OTHER_CLUSTER: &str = "it serves another cluster than that of this client's file. If the keys have moved to other nodes or another protocol (a \
     reshare), get the new cluster's file, compare its fingerprint with the operators of the nodes, and take it with `polyclave client join`";

/// Receives remarks for a person.
pub(crate) type Remarks = Arc<dyn Fn(&str) + Send + Sync>;
/// Receives how many blocks are computed, and of how many.
pub(crate) type Work = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Sets of nodes that were left out, and why.
type LeftOut = Mutex<HashSet<(u16, Reason)>>;

/// Who asks, and what it is told: the same for all worker groups.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) name: String,
    /// For whom it asks; empty if for itself.
    pub(crate) on_behalf_of: String,
    /// The trace that its requests belong to.
    pub(crate) trace: Option<TraceContext>,
    pub(crate) identity: Identities,
    /// What the user was told about nodes that were left out.
    pub(crate) left_out: Arc<PerProcess<LeftOut>>,
    /// Receives remarks that a person should read although nothing failed.
    pub(crate) remarks: Remarks,
    /// Ends its requests.
    pub(crate) halt: Halt,
    /// What happens to its requests.
    pub(crate) approvals: Approvals,
    /// Receives the progress of the nodes.
    pub(crate) work: Work,
}

impl Caller {
    /// A request with a fresh id, in the version that all speak to which `net` leads.
    pub(crate) fn request(
        &self,
        net: &TlsNet,
        operation: Operation,
        serving: PartySet,
        (first, dealt): (Option<Step>, Vec<SeedCommitment>),
        approval: Option<Approval>,
    ) -> Result<Request> {
        let mut id = [0; 16];
        random_bytes(&mut id)?;
        let (on_behalf_of, trace) = (self.on_behalf_of.clone(), self.trace);
        let version = net.version().map_or(api::VERSION, u16::from);
        Ok(Request { version, id, serving, operation, first, dealt, approval, on_behalf_of, trace })
    }

    pub(crate) fn remark(&self, message: &str) {
        (self.remarks)(message);
    }

    /// Says that some nodes are left out, once for each kind of reason.
    pub(crate) fn remark_left_out(&self, nodes: PartySet, reason: Reason, why: &str) {
        let mut said = self.left_out.get(|_| Mutex::default()).lock();
        if said.insert((nodes.bits(), reason)) {
            self.remark(&format!("{why} (left out; the others serve)"));
        }
    }

    /// What went wrong, if nobody ended the request: then that is the reason, whatever came of it.
    pub(crate) fn unless_halted(&self, error: Error) -> Error {
        if self.halt.is_halted() { Error::Ended } else { error }
    }
}

/// One worker of each node, or two of three nodes that go on while the third one is away.
pub(crate) struct WorkerGroup {
    pub(crate) cluster: Cluster,
    pub(crate) config: Arc<AnyServiceConfig>,
    pub(crate) strategy: Arc<dyn Strategy>,
    /// Whether two of the nodes can serve what all of them cannot.
    pub(crate) has_standby: bool,
    nodes: Vec<Node>,
    limits: Limits,
    state: PerProcess<State>,
}

impl WorkerGroup {
    /// The group that a cluster file is for. If it is one of several, a node that refuses a connection is not
    /// asked again: another group is. If it has standby pairs, one that does not answer is not waited for as
    /// long.
    pub(crate) fn new(cluster: Cluster, is_one_of_several: bool) -> Result<WorkerGroup> {
        let config = catalog::service(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
        let strategy = strategy::of(&config, cluster.nodes(), cluster.threshold()).into();
        let has_standby = !cluster.pairs().is_empty();
        let address = |card: &Card| Node {
            address: card.client_address.clone(),
            certificates: card.certificates.clone(),
        };
        let nodes = cluster.cards().iter().map(address).collect();
        let mut limits = Limits { connect: CLIENT_CONNECT, idle: ANSWER, ..Limits::for_clients() };
        if is_one_of_several {
            limits.refused = Duration::ZERO;
        }
        if has_standby || cluster.pair().is_some() {
            limits.connect = limits.connect.min(AWAY);
        }
        let (config, state) = (Arc::new(config), PerProcess::default());
        Ok(WorkerGroup { cluster, config, strategy, has_standby, nodes, limits, state })
    }

    /// What this process remembers. A child of a fork begins anew.
    pub(crate) fn state(&self) -> &State {
        self.state.get(|parent| parent.map_or_else(|| State::new(self.nodes.len()), State::of_child))
    }

    /// Closes the connections that are not in use, and ends all threads.
    pub(crate) fn end(&self) {
        let state = self.state();
        state.kept.iter().for_each(Kept::clear);
        state.farewells.end(LATE);
    }

    /// Nodes that recently did not accept a connection, or are suspected.
    pub(crate) fn suspects(&self) -> PartySet {
        let (state, now) = (self.state(), Instant::now());
        Party::all(self.nodes.len()).filter(|party| state.is_left_out(party.index(), now)).collect()
    }

    /// Notes that these nodes have agreed on a request: they are no longer suspected.
    pub(crate) fn trust(&self, nodes: PartySet) {
        for node in nodes.iter() {
            *self.state().suspected[node.index()].lock() = None;
        }
    }

    /// Asks some nodes again that were left out because they were suspected, or could not be reached a while
    /// ago. Returns whether there are any.
    pub(crate) fn give_another_chance(&self, nodes: PartySet) -> bool {
        let state = self.state();
        let mut any = false;
        for node in nodes.iter().map(|node| node.index()) {
            let is_suspected =
                state.suspected[node].lock().take().is_some_and(|until| Instant::now() < until);
            let mut unreached = state.unreached[node].lock();
            let is_unreached =
                unreached.take_if(|at| (PERHAPS_BACK..SUSPECT).contains(&at.elapsed())).is_some();
            any |= is_suspected || is_unreached;
        }
        any
    }

    /// Counts a request as long as it is kept.
    pub(crate) fn begin_request(&self) -> Busy {
        self.state().load.begin()
    }

    /// The name of a node.
    pub(crate) fn node_name(&self, party: Party) -> &str {
        self.cluster.cards().get(party.index()).map_or("an unknown node", |card| &card.name)
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
}

/// The workers of one group, as one client asks them.
#[derive(Clone, Copy)]
pub(crate) struct Workers<'c> {
    pub(crate) caller: &'c Caller,
    pub(crate) group: &'c WorkerGroup,
}

impl Workers<'_> {
    /// Asks some workers the same question. One that takes too long, however slowly its reply arrives, has
    /// not answered. As soon as `enough` is true for the answers so far, the client waits only for replies
    /// that have begun to arrive.
    pub(crate) fn ask<T>(
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
            .caller
            .request(&net, operation.clone(), which, (None, Vec::new()), None)
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
            |(party, outcome): (Party, Result<T>)| (party, outcome.map_err(|e| self.caller.unless_halted(e)));
        outcomes.into_iter().map(ended).collect()
    }

    /// The error if a node sent no reply.
    fn no_answer(&self, net: &mut TlsNet, party: Party) -> Error {
        self.group.strategy.note_silent(*self, party);
        let gone = net.wait([party].into_iter().collect(), Duration::ZERO).err();
        self.named(gone.unwrap_or(polyclave_protocol::Error::Timeout { peer: party, waited: ALONE }).into())
    }

    /// The same error, with nodes by their names.
    pub(crate) fn named(&self, error: Error) -> Error {
        let named = |message: String| self.group.cluster.in_names(&message, "client");
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
        let node = self.group.node_name(party).to_owned();
        match error {
            Peer { detail, .. } if detail == NOT_ADMITTED => Error::NotAdmitted { node },
            Peer { detail, .. } | Closed { detail, .. } => {
                Error::Unreached { node, detail: self.group.cluster.in_names(&detail, "client") }
            }
            Timeout { waited, .. } => {
                Error::Unreached { node, detail: format!("it did not answer within {waited:?}") }
            }
            Disagreement { field: "cluster", .. } => Error::Unreached { node, detail: OTHER_CLUSTER.into() },
            other => self.named(other.into()),
        }
    }

    /// The names of all of them.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.group.cluster.cards().iter().map(|card| card.name.as_str()).collect();
        names.join(" and ")
    }

    /// Why some nodes cannot be asked, for people. Nodes with the same reason are grouped.
    pub(crate) fn why_not(&self, failed: &[(Party, Error)]) -> String {
        let strange: Vec<&str> = failed
            .iter()
            .filter(|(_, e)| matches!(e, Error::NotAdmitted { .. }))
            .map(|(party, _)| self.group.node_name(*party))
            .collect();
        let others = failed.iter().filter(|(_, e)| !matches!(e, Error::NotAdmitted { .. }));
        let mut reasons: Vec<String> = others
            .map(|(party, e)| match e {
                Error::Unreached { .. } => e.to_string(),
                e => format!("{} did not answer ({e})", self.group.node_name(*party)),
            })
            .collect();
        if !strange.is_empty() {
            reasons.push(Error::NotAdmitted { node: strange.join(", ") }.to_string());
        }
        reasons.join("; ")
    }

    /// Connections to some nodes, each kept from before or new.
    pub(crate) fn lines(&self, which: PartySet) -> Vec<(Party, Result<Line>)> {
        let mut lines = Vec::new();
        let mut missing = Vec::new();
        if self.caller.halt.is_halted() {
            return which.iter().map(|party| (party, Err(Error::Ended))).collect();
        }
        for party in which.iter() {
            match self.group.kept_line(party) {
                Some(line) => lines.push((party, Ok(line))),
                None => missing.push(party),
            }
        }
        if !missing.is_empty() {
            let which = missing.into_iter().collect();
            let cluster = &self.group.cluster;
            let called = match self.caller.identity.current(&|remark| self.caller.remark(remark)) {
                Ok(identity) => call(
                    &identity,
                    self.group.limits,
                    &self.group.nodes,
                    (cluster.connection_id(), cluster.pair()),
                    which,
                    &self.caller.halt,
                ),
                Err(e) => {
                    let why = polyclave_protocol::Error::Misuse(e.to_string());
                    which.iter().map(|party| (party, Err(why.clone()))).collect()
                }
            };
            for (party, line) in called {
                let failed = (line.is_err() && !self.caller.halt.is_halted()).then(Instant::now);
                *self.group.state().unreached[party.index()].lock() = failed;
                lines.push((party, line.map_err(|e| self.not_connected(party, e))));
            }
        }
        lines.sort_by_key(|(party, _)| *party);
        lines
    }

    /// Notes that a node answered as no honest node does, or did not answer: it is left out for a while.
    pub(crate) fn suspect(&self, party: Party) {
        if self.caller.halt.is_halted() {
            // It may be this client that did not wait.
            return;
        }
        self.group.state().suspect(party.index(), self.group.has_standby, Instant::now());
    }

    /// Turns a node's refusal into an error for the caller.
    pub(crate) fn refused(&self, party: Party, refusal: Refusal) -> Error {
        if refusal.reason == Reason::Spent {
            // Its part of the budget is spent. Others may have some left.
            self.suspect(party);
        }
        match refusal.reason {
            Reason::Unauthentic => Error::Unauthentic(refusal.message),
            _ => Error::Refused { node: self.group.node_name(party).into(), refusal },
        }
    }

    /// A network of this client and some nodes.
    pub(crate) fn net(&self, lines: Vec<(Party, Line)>) -> TlsNet {
        TlsNet::of_lines(self.group.nodes.len(), self.group.limits, lines)
            .owned_by(self.group.state().farewells.clone())
            .ended_by(self.caller.halt.clone())
    }

    /// Keeps the connections of a conversation that has ended well.
    pub(crate) fn keep(&self, net: TlsNet) {
        self.keep_some(net, PartySet::all(self.group.nodes.len()));
    }

    /// The same for the connections with some nodes.
    pub(crate) fn keep_some(&self, net: TlsNet, which: PartySet) {
        if self.caller.halt.is_halted() {
            return;
        }
        let lines = net.into_lines().unwrap_or_default().into_iter().filter(|(p, _)| which.contains(*p));
        for (party, line) in lines {
            self.group.state().kept[party.index()].put(line, Instant::now());
        }
    }
}

//! A client of a cluster: what its user holds. It has the worker groups that the cluster's nodes form, and
//! picks one for each request.

use std::sync::Arc;

use polyclave_api::{Operation, Reply, TraceContext};
use polyclave_config::{Cluster, check_name};
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::Halt;

use crate::session::approvals::Approvals;
use crate::session::group::{Caller, WorkerGroup, Workers};
use crate::{Error, Result};

/// A client. Many threads may use it at once. A child of a fork may use it too: it makes connections of its
/// own.
pub struct Client {
    pub(crate) caller: Caller,
    /// The first one is that of the cluster file; further ones, if nodes have several workers.
    pub(crate) groups: Arc<[WorkerGroup]>,
    /// Any two of three nodes, which go on with the keys while the third one is away.
    pub(crate) pairs: Arc<[WorkerGroup]>,
}

impl Client {
    /// Sets the function that receives remarks that a person should read although nothing failed: that nodes
    /// are missing, and what that means; that a renewed certificate cannot be used.
    pub fn on_remark(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Client {
        self.caller.remarks = Arc::new(tell);
        self
    }

    /// Sets the function that receives the progress of a step that takes long: the blocks that the nodes have
    /// computed, and all blocks. Each node reports it about once a second.
    pub fn on_work(mut self, tell: impl Fn(u64, u64) + Send + Sync + 'static) -> Client {
        self.caller.work = Arc::new(tell);
        self
    }

    /// The same client, with the same connections, for requests on behalf of somebody else: what a gateway
    /// asks for one of its users. Nodes judge this client as before, and write the name into their audit
    /// logs. It asks without an approval.
    pub fn on_behalf_of(&self, whom: &str) -> Result<Client> {
        check_name("user of a client", whom)?;
        Ok(self.sharing(whom, self.caller.halt.clone()))
    }

    /// The same client, with the same connections, for some of its requests: [`Client::halt`] of it ends only
    /// these. It asks without an approval.
    pub fn for_some_requests(&self) -> Client {
        self.sharing(&self.caller.on_behalf_of, self.caller.halt.child())
    }

    /// The same client, with the same connections, for requests that belong to a trace: nodes that record
    /// traces tell a collector how long each part of them took. `None` for a client whose requests belong to
    /// none. It asks without an approval.
    pub fn in_trace(&self, trace: Option<TraceContext>) -> Client {
        let client = self.sharing(&self.caller.on_behalf_of, self.caller.halt.clone());
        Client { caller: Caller { trace, ..client.caller }, ..client }
    }

    /// The same client, for the rest of a request that has begun.
    pub(crate) fn again(&self) -> Client {
        self.sharing(&self.caller.on_behalf_of, self.caller.halt.clone())
    }

    fn sharing(&self, on_behalf_of: &str, halt: Halt) -> Client {
        let approvals = Approvals::None;
        let caller = Caller { on_behalf_of: on_behalf_of.into(), halt, approvals, ..self.caller.clone() };
        Client { caller, groups: self.groups.clone(), pairs: self.pairs.clone() }
    }

    /// The worker groups that serve, in the order in which they are asked: those of whose nodes fewer are
    /// suspected, then those with fewer requests under way, and in turn. A request with an approval, or a
    /// draft of one, is for the first worker group.
    pub(crate) fn by_preference(&self) -> Vec<Workers<'_>> {
        if self.groups.len() == 1 || !matches!(self.caller.approvals, Approvals::None) {
            return vec![self.first()];
        }
        let serving = self.groups.iter().filter(|group| group.cluster.role().serves());
        let mut groups: Vec<Workers<'_>> = serving.map(|group| self.workers(group)).collect();
        let turn = self.first().group.state().load.turn() % groups.len();
        groups.rotate_left(turn);
        groups.sort_by_cached_key(|Workers { group, .. }| {
            (group.suspects().len(), group.state().load.running())
        });
        groups
    }

    /// The group to ask next for the use of a key, if those of `tried` could not: a worker group of all nodes
    /// ([`Client::by_preference`]), or two nodes, if fewer of these are suspected.
    pub(crate) fn next_for_use(&self, tried: &[*const WorkerGroup]) -> Option<Workers<'_>> {
        let suspected = self.groups[0].suspects();
        let is_new = |workers: &Workers<'_>| !tried.contains(&std::ptr::from_ref(workers.group));
        let all = self.by_preference().into_iter().find(is_new);
        let doubts = |of: &Workers<'_>| match of.group.cluster.pair() {
            Some(pair) => of.group.suspects().len() + suspected.len() - suspected.without(pair).len(),
            None => of.group.suspects().len(),
        };
        // An approved request is served by all nodes.
        let may_be_a_pair = matches!(self.caller.approvals, Approvals::None);
        let pairs = self.pairs.iter().filter(|_| may_be_a_pair).map(|pair| self.workers(pair)).filter(is_new);
        all.into_iter().chain(pairs).min_by_key(doubts)
    }

    /// The group with which a request goes on that was begun with the nodes of this file.
    pub(crate) fn group_of(&self, of: &Cluster) -> Workers<'_> {
        let is_it = |group: &&WorkerGroup| {
            (group.cluster.worker_group(), group.cluster.pair()) == (of.worker_group(), of.pair())
        };
        let group = self.groups.iter().chain(self.pairs.iter()).find(is_it);
        group.map_or(self.first(), |group| self.workers(group))
    }

    /// The first worker group.
    pub(crate) fn first(&self) -> Workers<'_> {
        self.workers(&self.groups[0])
    }

    /// The worker group of this number; the first if there is none.
    pub(crate) fn worker_group(&self, number: u16) -> Workers<'_> {
        let group = self.groups.iter().find(|group| group.cluster.worker_group() == number);
        group.map_or(self.first(), |group| self.workers(group))
    }

    fn workers<'c>(&'c self, group: &'c WorkerGroup) -> Workers<'c> {
        Workers { caller: &self.caller, group }
    }

    /// Ends all requests that are under way, in whatever thread, with [`Error::Ended`]. Their connections are
    /// closed, so the nodes end them too. No request begins any more.
    pub fn halt(&self) {
        self.caller.halt.halt();
    }

    /// Whether [`Client::halt`] was called.
    pub fn is_halted(&self) -> bool {
        self.caller.halt.is_halted()
    }

    /// Closes the connections that are not in use, and ends all threads. Requests that were given up get a
    /// moment to tell the nodes so. For programs that go on without this client.
    pub fn end(&self) {
        self.groups.iter().chain(self.pairs.iter()).for_each(WorkerGroup::end);
    }

    /// Whether two nodes go on with the keys while a third one is away.
    pub fn has_standby(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// How many nodes a use of a key can do without.
    pub fn spare_nodes(&self) -> usize {
        let spare = self.cluster().nodes() - self.groups[0].config.quorum();
        spare.max(usize::from(!self.pairs.is_empty()))
    }

    /// Its own name.
    pub fn name(&self) -> &str {
        &self.caller.name
    }

    /// The cluster whose nodes it asks.
    pub fn cluster(&self) -> &Cluster {
        &self.groups[0].cluster
    }

    /// The name of a node.
    pub fn node_name(&self, party: Party) -> &str {
        self.groups[0].node_name(party)
    }

    /// Asks every node a question that each answers alone.
    pub(crate) fn ask_each<T>(
        &self,
        operation: &Operation,
        answer: impl Fn(Reply) -> Option<T>,
    ) -> Vec<(Party, Result<T>)> {
        self.ask(PartySet::all(self.cluster().nodes()), operation, answer, |_| false)
    }

    /// Asks some nodes the same question. A node that takes too long, however slowly its reply arrives, has
    /// not answered. As soon as `enough` is true for the answers so far, the client waits only for replies
    /// that have begun to arrive. If a worker of a node does not answer, another one is asked: each can
    /// answer for the node.
    pub(crate) fn ask<T>(
        &self,
        which: PartySet,
        operation: &Operation,
        answer: impl Fn(Reply) -> Option<T>,
        enough: impl Fn(&[(Party, Result<T>)]) -> bool,
    ) -> Vec<(Party, Result<T>)> {
        let (mut outcomes, mut left): (Vec<(Party, Result<T>)>, PartySet) = (Vec::new(), which);
        for workers in self.by_preference() {
            let answers = workers.ask(left, operation, &answer, &enough);
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
}

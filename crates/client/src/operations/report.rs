//! What the nodes tell a client that watches them.

use polyclave_api::{NodeStatus, Operation, Reply, Report};
use polyclave_protocol::{Party, PartySet};

use crate::client::Client;
use crate::{Error, Result};

impl Client {
    /// What concerns the operator of a node, as its worker of this number reports it. It takes the right
    /// `observe`.
    pub fn report(&self, worker: u16, node: Party) -> Result<Report> {
        self.ask_one(worker, node, &Operation::Report, |reply| match reply {
            Reply::Report(report) => Some(*report),
            _ => None,
        })
    }

    /// The status of one node, as its worker of this number reports it.
    pub fn status_of(&self, worker: u16, node: Party) -> Result<NodeStatus> {
        self.ask_one(worker, node, &Operation::Status, status)
    }

    /// The status of each node, as its first worker reports it.
    pub fn status(&self) -> Vec<(Party, Result<NodeStatus>)> {
        self.status_of_workers(0)
    }

    /// The status of each node, as its worker of this number reports it.
    pub fn status_of_workers(&self, number: u16) -> Vec<(Party, Result<NodeStatus>)> {
        let all = PartySet::all(self.cluster().nodes());
        self.worker_group(number).ask(all, &Operation::Status, status, |_| false)
    }

    fn ask_one<T>(
        &self,
        worker: u16,
        node: Party,
        operation: &Operation,
        answer: impl Fn(Reply) -> Option<T>,
    ) -> Result<T> {
        // Of this worker: what others tell is of themselves, and no continuation of it.
        let answers =
            self.worker_group(worker).ask(PartySet::from_iter([node]), operation, answer, |_| false);
        let answer = answers.into_iter().find(|(party, _)| *party == node);
        answer.map_or_else(
            || Err(Error::Misuse(format!("{node} is no node of the cluster"))),
            |(_, message)| message,
        )
    }
}

fn status(reply: Reply) -> Option<NodeStatus> {
    match reply {
        Reply::Status(status) => Some(status),
        _ => None,
    }
}

//! What the nodes tell a client that watches them.

use polyclave_protocol::Party;
use polyclave_transport::wire::{Operation, Reply, Report};

use crate::Result;
use crate::client::Client;

impl Client {
    /// What concerns an operator, as each node reports it. It takes the right `observe`. `within` is how long a node may take that was
    /// reached: whoever asks again every second does not wait long for one that is gone.
    pub fn reports(&self) -> Vec<(Party, Result<Report>)> {
        self.ask_each(&Operation::Report, |reply| match reply {
            Reply::Report(report) => Some(*report),
            _ => None,
        })
    }
}

//! Messages between the command and the party processes: lines of JSON over their standard input and output.
//! Nothing secret goes this way except what a party shows on purpose, and nothing touches the disk.

use serde::{Deserialize, Serialize};

use super::BenchJob;
use crate::options::ProtocolOptions;

/// The first line to a party.
#[derive(Serialize, Deserialize)]
pub struct Start {
    /// Its number, from 0.
    pub me: u8,
    /// The protocol, the same for all.
    pub protocol: ProtocolOptions,
    /// The network to imitate.
    pub network: String,
    /// Seconds that a silent peer is waited for.
    pub timeout_s: u64,
    /// The task.
    pub job: BenchJob,
}

/// Where a party listens, and its certificate in hexadecimal.
#[derive(Clone, Serialize, Deserialize)]
pub struct Address {
    /// `host:port`.
    pub address: String,
    /// DER, in hexadecimal.
    pub certificate: String,
}

/// A line from a party.
#[derive(Serialize, Deserialize)]
pub enum Event {
    /// The party listens.
    Ready(Address),
    /// The party runs.
    Alive,
    /// The party's progress.
    Progress(u64),
    /// The party has finished. The type of the report depends on the job.
    Report(serde_json::Value),
    /// The party gave up.
    Failed {
        /// The reason.
        error: String,
        /// Whether it only saw that a peer went away or fell silent: then the peer is the cause.
        by_peer: bool,
    },
}

/// Sends a line to the command.
pub fn tell(event: &Event) {
    use std::io::Write;
    let line = serde_json::to_string(event).expect("events are plain data");
    let mut out = std::io::stdout().lock();
    // If nobody reads it any more, the thread that watches standard input ends this process.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

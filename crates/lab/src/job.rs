//! What the command tells the party processes, and what they tell it: lines of JSON over their standard input and output.
//! Nothing secret goes this way but what a party shows on purpose, and nothing touches the disk.

use serde::{Deserialize, Serialize};

use crate::bench::BenchJob;
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
    /// What to do.
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
    /// It listens.
    Ready(Address),
    /// It runs.
    Alive,
    /// It has come so far.
    Progress(u64),
    /// It is done; the job says what this holds.
    Report(serde_json::Value),
    /// It gave up.
    Failed {
        /// Why.
        error: String,
        /// Whether it only saw a peer go away or fall silent: then the cause is with the peer.
        by_peer: bool,
    },
}

/// Tells the command.
pub fn tell(event: &Event) {
    use std::io::Write;
    let line = serde_json::to_string(event).expect("events are plain data");
    let mut out = std::io::stdout().lock();
    // If nobody listens any more, the watch on standard input ends this process.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

//! The two servers as processes of their own on this machine, joined by TLS over the loopback interface.

use anyhow::{Context, Result};
use polyclave_example_processes::{self as processes, Ended};
use polyclave_protocol::protocol::ProtocolConfig;
use serde::{Deserialize, Serialize};

use crate::devices::KeyShares;
use crate::protocols;
use crate::server::{self, Job, Report};

/// The hidden command of a server.
pub const SERVER: &str = processes::PARTY;

/// What all servers are started with.
#[derive(Clone, Serialize, Deserialize)]
pub struct Start {
    /// The name of the protocol.
    pub protocol: String,
    /// Whether material comes from a dealer that each server could be.
    pub insecure_dealer: bool,
    /// What they compute.
    pub job: Job,
}

/// What one server is told: the same as the other, and its own part of what was given out ahead.
#[derive(Serialize, Deserialize)]
struct Orders {
    start: Start,
    key_shares: KeyShares,
}

/// How it ended at one server.
#[derive(Serialize, Deserialize)]
pub struct Outcome {
    /// What it learned.
    pub report: Report,
    /// One sentence on whom the protocol protects against.
    pub adversary: String,
}

/// Runs both servers to their end.
pub fn run(start: &Start, key_shares: [KeyShares; 2]) -> Result<[Ended<Outcome>; 2]> {
    let orders = key_shares.map(|key_shares| Orders { start: start.clone(), key_shares });
    processes::run(&orders)?.try_into().ok().context("two have ended")
}

/// The process of one server.
pub fn server() {
    processes::party(|orders: Orders, net, meter| {
        let Orders { start: Start { protocol, insecure_dealer, job }, key_shares } = orders;
        let config = protocols::config(&protocol, insecure_dealer)?;
        let report = server::serve(&config, &job, &key_shares, net, meter)?;
        Ok(Outcome { report, adversary: config.promise() })
    });
}

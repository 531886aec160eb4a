//! What a node tells an operator that monitors it: the content of [`NodeStatus`], and what concerns people
//! and keys. It needs the right [`Observe`](super::Right::Observe).

use serde::{Deserialize, Serialize};

use super::{NodeStatus, VersionState};

/// Upper bounds of the buckets of [`Report::latencies`], in milliseconds. One bucket more has what took
/// longer.
pub const LATENCY_BOUNDS_MS: [u32; 14] =
    [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 10_000, 60_000];

/// The most keys in each list of [`KeysReport`].
pub const MAX_REPORTED_KEYS: usize = 12;

/// The most certificates in a report.
pub const MAX_REPORTED_CERTIFICATES: usize = 24;

/// The state of a node, for its operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What every client may know.
    pub status: NodeStatus,
    /// The node's clock, in seconds since 1970.
    pub now: u64,
    /// How often it was started.
    pub starts: u64,
    /// Why it cannot serve requests.
    pub why_not_ready: Option<String>,
    /// Why peers are missing, by their names, as far as it knows.
    pub why_missing: Vec<(String, String)>,
    /// Whether wrong shares are corrected while all nodes are connected.
    pub corrects: bool,
    /// Why it is in quarantine.
    pub quarantine: Option<String>,
    /// Contradictions between its clock and the nodes' certificates.
    pub clock: Option<String>,
    /// Checks that have failed under the MAC key in use.
    pub checks_failed: u32,
    /// Where its audit log ends; `None` if the store knows of no line.
    pub audit: Option<AuditEnd>,
    /// Why its audit log cannot be written.
    pub audit_failure: Option<String>,
    /// Nodes whose faults it has seen since it started.
    pub faults: Vec<FaultCount>,
    /// Requests of clients since it started, by operation and outcome. Those of watchers are not among them.
    pub requests: Vec<RequestCount>,
    /// How many of these took how long: see [`LATENCY_BOUNDS_MS`].
    pub latencies: Vec<u64>,
    /// Certificates that it knows of, the first to end first, at most [`MAX_REPORTED_CERTIFICATES`].
    pub certificates: Vec<CertificateDate>,
    /// How many there are in all.
    pub certificates_in_all: u64,
    /// Its keys; `None` if its store could not be read.
    pub keys: Option<KeysReport>,
    /// The nodes with which it could go on without the third, or does.
    pub standby: Vec<StandbyReport>,
}

/// How a node stands with the other one of a standby pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandbyReport {
    /// The name of the other node.
    pub partner: String,
    /// Whether the two could go on now.
    pub ready: bool,
    /// Whether they do, because the third node is away.
    pub serves: bool,
    /// How many keys they go on with.
    pub keys: u64,
    /// Of how many keys they have no shares yet.
    pub lacking: u64,
}

/// The last line of an audit log that is known to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEnd {
    /// Its number.
    pub number: u64,
    /// Its hash, in which those of all lines before are contained.
    pub hash: [u8; 32],
}

/// How often another node was at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCount {
    /// Its name.
    pub node: String,
    /// Requests in which its shares were wrong.
    pub outvoted: u64,
    /// Requests in which it fell silent.
    pub silent: u64,
}

/// Requests that ended alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCount {
    /// The operation, as in the audit log.
    pub operation: String,
    /// `done`, or the reason of the refusal, as in the audit log.
    pub outcome: String,
    /// How many.
    pub requests: u64,
}

/// The end of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateDate {
    /// `node`, `client`, or `authority` (of clients).
    pub of: String,
    /// The name of its holder.
    pub name: String,
    /// Seconds since 1970.
    pub ends: u64,
    /// Whether it has to be changed now, by the node's settings.
    pub soon: bool,
}

/// Keys, in numbers, and those that need somebody's attention first. Every version counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysReport {
    /// By cipher, modes and state.
    pub counts: Vec<KeyCount>,
    /// Active keys with the least part of their budget left, the least first, at most [`MAX_REPORTED_KEYS`].
    pub least: Vec<KeyBudget>,
    /// Keys that expire or end, the first ones first, at most as many.
    pub ending: Vec<KeyEnd>,
    /// How many seconds old these numbers are.
    pub age: u64,
    /// How long it took to count them, in milliseconds.
    pub took_ms: u64,
}

/// Keys of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCount {
    /// Cipher and modes, for people.
    pub kind: String,
    /// What they may be used for now.
    pub state: VersionState,
    /// How many.
    pub keys: u64,
}

/// What is left of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyBudget {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// Blocks that may be computed in all.
    pub budget: u64,
    /// Blocks that count as spent at this node.
    pub spent: u64,
}

/// A key whose time is limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEnd {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// Seconds since 1970.
    pub at: u64,
    /// Whether it is removed then; else it only decrypts and verifies from then on.
    pub removed: bool,
}

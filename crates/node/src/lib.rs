//! A node: it keeps its shares of keys and serves clients together with other nodes.
//!
//! The folders, each above those that it imports:
//!
//! ```text
//! operator     orders of the operator, health, counts, reports
//! server       a node accepts a client's connection, reads its requests and answers them
//! operations   what a node does for each operation: it judges the operation alone, and runs it with the others
//! strategy     what differs between protocols that abort and protocols that guarantee the output
//! requests     a request gets a channel to the other nodes, is compared among them, and served step by step
//! reshare      all keys move to another set of nodes, while the nodes do not serve
//! keys         keys are stored and looked up, and blocks are charged to their budgets
//! computation  keys are made, and a mode of operation computes on shares
//! clients      the limits and rules of clients, and approvals
//! material     what all nodes make together ahead: common secrets, epochs, stock; and what a failed check ends
//! peers        control streams among the nodes: which nodes are connected, and what nodes tell each other
//! audit        the audit log
//! ```
//!
//! `node.rs` starts and stops all of it. `traces.rs` records requests for a collector of traces. `core.rs` has the parts of a running node. `control.rs` carries out
//! the orders of other nodes. What must not be lost is in `polyclave_store`. Each folder takes the parts that
//! it needs, and imports nothing from the folders above it.
//!
//! Blocking code: a thread for each client connection, for each channel that this node follows, and two for
//! each peer.

pub mod audit;
#[cfg(feature = "cheats")]
mod cheat;
mod clients;
mod clock;
mod computation;
mod control;
mod core;
mod error;
#[cfg(not(feature = "cheats"))]
mod honest;
mod keys;
pub mod local;
mod material;
mod members;
mod node;
mod operations;
mod operator;
mod peers;
mod requests;
pub mod reshare;
mod server;
mod standby;
mod strategy;
mod threads;
mod traces;
#[cfg(test)]
mod vectors;

pub use crate::core::PairState;
#[cfg(feature = "cheats")]
pub use cheat::Cheat;
#[cfg(feature = "cheats")]
use cheat::{FaultInjection, InjectedNet};
pub use clients::authorities::AuthorityState;
#[cfg(not(feature = "cheats"))]
use honest::{FaultInjection, InjectedNet};
pub use node::Running;
pub use operator::certificates::{CertificateEnd, Holder};
pub use operator::{admin, balance};

/// Whether the code of nodes that cheat is compiled in (the feature `cheats`).
pub const HAS_CHEATS: bool = cfg!(feature = "cheats");

#[cfg(feature = "cheats")]
const _: () = assert!(
    option_env!("POLYCLAVE_SHIP").is_none(),
    "POLYCLAVE_SHIP is set, and what ships must not contain nodes that cheat: build the program alone, without packages that turn on the feature `cheats`"
);

/// What keeps a worker from starting until the first workers have run.
pub const SAYS_NO_SECRETS: &str = material::workers::NO_SECRETS;

/// What a refusal says while nodes take fresh common secrets into use.
pub const SAYS_REFRESHING: &str = material::refresh::REFRESHING;

/// The result of a fallible function of a node.
type Result<T, E = polyclave_protocol::Error> = std::result::Result<T, E>;

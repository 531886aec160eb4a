//! A node: it keeps its shares of keys and serves clients together with other nodes.
//!
//! ```text
//! clients --> reception.rs --> request.rs (policy, plan, channel, hello) --> conversation.rs (steps)
//! peers <---> control.rs (peers.rs, marks.rs), follow.rs (channels.rs, turns.rs, pending.rs)  modes/ (what a key is used for)
//!                                                                                make.rs (generation, import)
//! preparation.rs (epoch.rs, rotation.rs, target.rs, stock/: what nodes make together ahead)   quarantine.rs
//! node.rs (start, stop)   core.rs: store/ (keys, budget), limits.rs              circuits.rs, computation.rs, pieces.rs
//!                         logbook.rs (audit.rs), rules.rs, memory.rs
//! readiness.rs (clock.rs)  stock.rs (material made ahead)                       wording.rs (names in what people read)
//! ```
//!
//! Blocking code: a thread for each client connection, for each channel that this node follows, and two for each peer.

pub mod admin;
mod agreement;
pub mod audit;
mod channels;
#[cfg(feature = "cheats")]
mod cheat;
mod circuits;
mod clock;
mod computation;
mod control;
mod conversation;
mod core;
mod epoch;
mod faults;
mod files;
mod follow;
#[cfg(not(feature = "cheats"))]
mod honest;
mod housekeeping;
mod http;
mod key;
mod limits;
pub mod local;
mod logbook;
mod make;
mod marks;
mod memory;
mod modes;
mod names;
mod node;
mod peers;
mod pending;
mod pieces;
mod preparation;
mod progress;
mod quarantine;
mod readiness;
mod reception;
mod request;
mod rotation;
mod rules;
mod set_up;
mod stock;
pub mod store;
mod target;
mod threads;
mod turns;
mod wording;

#[cfg(feature = "cheats")]
pub use cheat::Cheat;
#[cfg(feature = "cheats")]
use cheat::{Conduct, Partners};
#[cfg(not(feature = "cheats"))]
use honest::{Conduct, Partners};
pub use make::{MOST_BLOCKS, MOST_SMALL_BLOCKS, check_new_key};
pub use node::Running;

/// What fallible functions of a node return.
type Result<T, E = polyclave_protocol::Error> = std::result::Result<T, E>;

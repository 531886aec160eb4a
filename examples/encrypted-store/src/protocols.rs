//! Which protocols the nodes can run: the one place that knows.
//!
//! It must evaluate any circuit and keep values on disk; [`service`] makes it of its name. The first one is
//! the default. A further one is a name more in this list, in front if it is to be the default.

pub use polyclave_protocol::catalog::service;

/// By name.
pub const PROTOCOLS: [&str; 2] = ["shamir-active", "shamir"];

/// So many nodes together learn nothing, and where the protocol allows it may cheat.
pub const THRESHOLD: usize = 1;
